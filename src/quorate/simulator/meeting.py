"""What two ends compare and write when they meet: secrets, settings, sizes, generations, sessions (N1, P13, U7, U10)."""

from __future__ import annotations

from quorate.simulator import generations
from quorate.simulator.change import Change
from quorate.simulator.errors import Refusal
from quorate.simulator.events import device_line, path_line
from quorate.simulator.handshake import Decision, Side, Strategy, compute_replication, decide, prefer_consistent
from quorate.simulator.kernel import Kernel
from quorate.simulator.metadata import compute_usable_blocks
from quorate.simulator.model import Connection, Path, Volume
from quorate.simulator.settle import data_accessible
from quorate.simulator.states import Disk, Link, Replication, Role
from quorate.simulator.transactions import Member

_HANDSHAKE_NET = (
    "protocol",
    "allow-two-primaries",
    "after-sb-0pri",
    "after-sb-1pri",
    "after-sb-2pri",
    "data-integrity-alg",
)


def capacity(volume: Volume) -> int:
    """What a disk offers to a peer: its room, capped by an explicit size (S11 #86)."""
    assert volume.backing is not None
    usable = compute_usable_blocks(volume.backing.device.size, volume.backing.metadata.max_peers)
    sectors = volume.backing.options["size"]
    assert isinstance(sectors, int)
    return min(usable, sectors // 8) if sectors else usable


def secret(connection: Connection) -> str:
    algorithm = connection.net["cram-hmac-alg"]
    return f"{algorithm}/{connection.net['shared-secret']}" if algorithm else ""


def one_sided(connection: Connection, end: Connection) -> bool:
    return bool(secret(connection)) != bool(secret(end))


def settings_agree(connection: Connection, end: Connection) -> bool:
    """P13: settings of the handshake must be equal, and only one side may discard its data."""
    if connection.discard_my_data and end.discard_my_data:
        return False
    return all(connection.net[name] == end.net[name] for name in _HANDSHAKE_NET)


def compare_ends(connection: Connection, end: Connection) -> dict[int, Decision]:
    """The handshake table per volume that both sides have, from the side of `connection`."""
    decisions: dict[int, Decision] = {}
    for number, peer in connection.peer_volumes.items():
        other = end.peer_volumes.get(number)
        if other is None:
            continue
        mine, theirs = generations.announce(peer.volume, peer), generations.announce(other.volume, other)
        peer.generations, other.generations = theirs, mine
        both = peer.volume.disk >= Disk.NEGOTIATING and other.volume.disk >= Disk.NEGOTIATING
        if not both:
            decisions[number] = Decision(Strategy.NO_SYNC, "diskless")
            continue
        own, far = Side(connection.resource.node_id, mine), Side(end.resource.node_id, theirs)
        decisions[number] = apply_discard(prefer_consistent(decide(own, far), mine, theirs), connection, end)
    return decisions


def apply_discard(decision: Decision, connection: Connection, end: Connection) -> Decision:
    """`--discard-my-data` settles a split brain in favour of the other side (S14)."""
    if decision.strategy not in (Strategy.SPLIT_BRAIN, Strategy.SPLIT_BRAIN_OLD):
        return decision
    if connection.discard_my_data == end.discard_my_data:
        return decision
    whole = decision.strategy is Strategy.SPLIT_BRAIN_OLD
    if connection.discard_my_data:
        return decision._replace(strategy=Strategy.TARGET_SET_BITMAP if whole else Strategy.TARGET_USE_BITMAP)
    return decision._replace(strategy=Strategy.SOURCE_SET_BITMAP if whole else Strategy.SOURCE_USE_BITMAP)


_OPPOSITE = {Replication.WF_BITMAP_S: Replication.WF_BITMAP_T, Replication.WF_BITMAP_T: Replication.WF_BITMAP_S}


def join_ends(
    change: Change, mine: Connection, theirs: Connection, decisions: dict[int, Decision], *, mirrored: bool
) -> None:
    """One end's part of a meeting."""
    change.put(mine, "link", Link.CONNECTED)
    change.put(mine, "peer_role", theirs.resource.role)
    for number, peer in mine.peer_volumes.items():
        other = theirs.peer_volumes.get(number)
        if other is None or number not in decisions:
            continue
        strategy = decisions[number].strategy
        roles = (theirs.resource.role, mine.resource.role) if mirrored else (mine.resource.role, theirs.resource.role)
        state = compute_replication(strategy, *roles)
        if mirrored:
            state = _OPPOSITE.get(state, state)
        if state is Replication.WF_BITMAP_T and mine.resource.role is Role.PRIMARY and data_accessible(peer.volume):
            raise Refusal(-10)  # U10: a Primary with current data does not become a target
        change.put(peer, "replication", state)
        change.put(peer, "disk", other.volume.disk)
        peer.quorate = other.volume.quorum
        if knows_newer(peer.volume, other.volume):
            change.put(peer.volume, "disk", Disk.OUTDATED)


def too_small(connection: Connection, end: Connection) -> Connection | None:
    """Z2: a disk with data never shrinks for a newcomer; answers the end whose disk cannot hold the other's data."""
    for number, peer in connection.peer_volumes.items():
        other = end.peer_volumes.get(number)
        if other is None or peer.volume.backing is None or other.volume.backing is None:
            continue
        for mine, theirs, small in ((peer.volume, other.volume, end), (other.volume, peer.volume, connection)):
            if mine.disk >= Disk.OUTDATED and capacity(theirs) < mine.blocks:
                return small
    return None


def force_secondary(member: Member | None, side: Connection, decisions: dict[int, Decision], *, mirrored: bool) -> bool:
    """I7: a suspended Primary that others left behind gives up by itself if it is told to (S5c)."""
    resource = side.resource
    wanted = resource.options["on-suspended-primary-outdated"] == "force-secondary"
    if member is None or not wanted or resource.role is not Role.PRIMARY or not resource.suspended:
        return False
    behind = [
        number
        for number, decision in decisions.items()
        if (decision.strategy.source if mirrored else decision.strategy.target)
    ]
    if not behind:
        return False
    change = Change(resource, "peer-state", forced=True)
    change.put(resource, "role", Role.SECONDARY)
    if any(volume.open for volume in resource.volumes.values()):
        change.put(resource, "fail_io", True)
    for number in behind:
        if resource.volumes[number].disk > Disk.OUTDATED:
            change.put(resource.volumes[number], "disk", Disk.OUTDATED)
    member.kernel.commit(change)
    return True


def same_session(one: Connection, other: Connection) -> bool:
    return one.link is Link.CONNECTED and other.link is Link.CONNECTED and one.session == other.session


def knows_newer(mine: Volume, theirs: Volume) -> bool:
    """A node without a disk has seen a generation this disk never heard of (S6e; not S6g)."""
    if mine.backing is None or mine.disk <= Disk.OUTDATED or theirs.backing is not None or not theirs.exposed:
        return False
    metadata = mine.backing.metadata
    known = {metadata.current, *metadata.history, *(entry.bitmap_uuid for entry in metadata.peers)}
    return theirs.exposed not in known and theirs.resource.role is not Role.PRIMARY


def establish(here: Kernel, connection: Connection, there: Kernel, end: Connection, path: Path | None) -> None:
    """Both ends count a session; the transport stands if it did not before."""
    session = max(connection.session, end.session) + 1
    for side in (connection, end):
        side.session = session
        side.discard_my_data = False
    if path is not None:
        use_path(here, connection, path)
        for mirror in end.paths:
            if (mirror.local, mirror.remote) == (path.remote, path.local):
                use_path(there, end, mirror)


def learn_sizes(kernel: Kernel, mine: Connection, theirs: Connection) -> None:
    """Z6: a node without a disk takes the peer's size over while they shake hands, before they are Connected (X0a #32)."""
    for number, peer in mine.peer_volumes.items():
        other = theirs.peer_volumes.get(number)
        if other is None or peer.volume.backing is not None or other.volume.backing is None:
            continue
        if other.volume.blocks and peer.volume.blocks != other.volume.blocks:
            peer.volume.blocks = other.volume.blocks
            kernel.announce(f"change {device_line(peer.volume)}")


def use_path(kernel: Kernel, connection: Connection, path: Path) -> None:
    """The transport of one end stands over this path (N2: over one at a time)."""
    for other in connection.paths:
        wanted = other is path
        if other.established is not wanted:
            other.established = wanted
            kernel.announce(f"change {path_line(connection, other)}")


def close_paths(kernel: Kernel, connection: Connection) -> None:
    for path in connection.paths:
        if path.established:
            path.established = False
            kernel.announce(f"change {path_line(connection, path)}")
