"""What follows from a change on the node where it happens: one pass of rules over one resource.

Theory of operation: the caller writes the cause into a `Change`; `settle` then brings every other reported state in
line. The order is fixed, because each rule reads what the earlier ones left: connections, what is known of absent
peers, aborted resyncs, the choice of one resync source, pauses, the coupling of replication and disk states, the
fate of the own disk, quorum, data access, suspension. Rules quote the fact they implement (facts/agent 5) or the
recording that shows it.
"""

from __future__ import annotations

from quorate.simulator.change import Change
from quorate.simulator.model import Connection, PeerVolume, Resource, Volume
from quorate.simulator.states import DISK_RANGE, SYNC_SOURCES, SYNC_TARGETS, Disk, Link, Replication, Role
from quorate.simulator.voting import evaluate

SWITCH_GAIN = 256
"""A target changes its source only for at least this many blocks less to copy (U16)."""

_LOSSES = frozenset({Link.TIMEOUT, Link.BROKEN_PIPE, Link.NETWORK_FAILURE, Link.PROTOCOL_ERROR})


def settle(change: Change) -> None:
    resource = change.resource
    for connection in resource.connections.values():
        _settle_connection(change, connection)
    for volume in resource.volumes.values():
        for peer in volume.peers():
            _settle_absent_peer(change, peer)
            _abort_sync_without_disk(change, volume, peer)
        _choose_source(change, volume)
        for peer in volume.peers():
            _settle_source_pause(change, volume, peer)
            _couple_disks(change, volume, peer)
            _follow_peer(change, volume, peer)
        _settle_quorum(change, volume)
        _doubt_after_lost_primary(change, volume)
    _settle_suspension(change)


def _settle_connection(change: Change, connection: Connection) -> None:
    if connection.link < Link.CONNECTED:
        change.put(connection, "peer_role", Role.UNKNOWN)
        for peer in connection.peer_volumes.values():
            change.put(peer, "replication", Replication.OFF)


def _settle_absent_peer(change: Change, peer: PeerVolume) -> None:
    """D8: of an absent peer only Inconsistent and Outdated stay known."""
    if peer.replication is not Replication.OFF:
        return
    change.put(peer, "paused_by_peer", False)
    if peer.disk not in (Disk.INCONSISTENT, Disk.OUTDATED):
        change.put(peer, "disk", Disk.UNKNOWN)


def _abort_sync_without_disk(change: Change, volume: Volume, peer: PeerVolume) -> None:
    if peer.replication > Replication.ESTABLISHED and (volume.disk <= Disk.FAILED or peer.disk <= Disk.FAILED):
        change.put(peer, "replication", Replication.ESTABLISHED)


def _weight(peer: PeerVolume) -> int:
    return len(peer.out_of_sync) if peer.out_of_sync is not None else 0


def _may_be_source(peer: PeerVolume) -> bool:
    held = peer.paused_by_user or peer.paused_by_peer
    return peer.replication in SYNC_TARGETS and not held and peer.disk >= Disk.OUTDATED


def _choose_source(change: Change, volume: Volume) -> None:
    """U16: a target copies from one peer, the others wait with `dependency` (also unconnected ones, S5)."""
    peers = volume.peers()
    candidates = [peer for peer in peers if _may_be_source(peer)]
    # Among equals the one that was ready first keeps running (S10: once n0, once n1).
    best = min(candidates, key=_weight, default=None)
    running = next((p for p in candidates if change.old_replication(p) is Replication.SYNC_TARGET), None)
    if best is not None and running is not None and _weight(running) < _weight(best) + SWITCH_GAIN:
        best = running
    for peer in peers:
        change.put(peer, "paused_by_dependency", best is not None and peer is not best)
        if peer.replication in SYNC_TARGETS:
            state = Replication.SYNC_TARGET if peer is best else Replication.PAUSED_SYNC_T
            change.put(peer, "replication", state)


def _settle_source_pause(change: Change, volume: Volume, peer: PeerVolume) -> None:
    """U16: a source that is itself a target elsewhere waits; pauses by user and peer show at both ends (S3)."""
    if peer.replication not in SYNC_SOURCES:
        return
    started = change.old_replication(peer) not in SYNC_SOURCES
    target_elsewhere = any(other is not peer and other.replication in SYNC_TARGETS for other in volume.peers())
    if started and target_elsewhere:
        change.put(peer, "paused_by_dependency", True)
    held = peer.paused_by_user or peer.paused_by_peer or peer.paused_by_dependency
    change.put(peer, "replication", Replication.PAUSED_SYNC_S if held else Replication.SYNC_SOURCE)


def _couple_disks(change: Change, volume: Volume, peer: PeerVolume) -> None:
    """The coupling table of facts/agent 4: a replication state forces both disks into a range."""
    allowed = DISK_RANGE[peer.replication]
    change.put(volume, "disk", min(max(volume.disk, allowed.own_low), allowed.own_high))
    change.put(peer, "disk", min(max(peer.disk, allowed.peer_low), allowed.peer_high))


def _same_generation(volume: Volume, peer: PeerVolume) -> bool:
    return (
        volume.backing is not None
        and peer.generations is not None
        and (peer.generations.current == volume.backing.metadata.current)
    )


def _follow_peer(change: Change, volume: Volume, peer: PeerVolume) -> None:
    """When a better informed peer changes what is known of the own data."""
    before, stable = change.old_replication(peer), peer.generations is not None and peer.generations.stable
    joined = before is Replication.OFF and peer.replication is not Replication.OFF
    settled = peer.replication is Replication.ESTABLISHED and peer.disk >= Disk.CONSISTENT and stable
    if settled and volume.disk is Disk.OUTDATED and (joined or change.old_disk(peer) is Disk.OUTDATED):
        # D9: connected to a stable, current peer without a resync (S16, X3).
        change.put(volume, "disk", peer.disk)
    followed = change.old_disk(peer) is Disk.CONSISTENT and peer.disk is Disk.UP_TO_DATE
    if volume.disk is Disk.CONSISTENT and (joined or (followed and stable)):
        change.put(volume, "disk", Disk.UP_TO_DATE)
    if joined and peer.connection.peer_role is Role.PRIMARY and peer.disk is Disk.DISKLESS:
        _meet_diskless_primary(change, volume, peer)
    if volume.disk is Disk.DISKLESS and peer.disk is Disk.UP_TO_DATE and _unfamiliar(change, volume, peer):
        change.put(peer, "disk", Disk.CONSISTENT)


def _meet_diskless_primary(change: Change, volume: Volume, peer: PeerVolume) -> None:
    """D10: the generation that a diskless Primary has seen decides whether the own data is current."""
    if volume.disk < Disk.NEGOTIATING:
        return
    target_elsewhere = any(other is not peer and other.replication in SYNC_TARGETS for other in volume.peers())
    if _same_generation(volume, peer) and not target_elsewhere:
        change.put(volume, "disk", Disk.UP_TO_DATE)
    elif volume.disk is Disk.UP_TO_DATE:
        change.put(volume, "disk", Disk.CONSISTENT)


def _unfamiliar(change: Change, volume: Volume, peer: PeerVolume) -> bool:
    """D11: a diskless node takes a newly UpToDate peer of another generation as Consistent only (S6)."""
    if change.old_disk(peer) is Disk.UP_TO_DATE or not volume.exposed:
        return False
    return peer.generations is not None and peer.generations.current != volume.exposed


def _settle_quorum(change: Change, volume: Volume) -> None:
    if change.keeps_quorum:
        return
    had = change.old(volume, "quorum") is True
    computed = evaluate(volume, had_quorum=had).have_quorum
    if not computed and volume.disk is Disk.UP_TO_DATE and volume.restore_quorum:
        computed = True  # Q16: granted once after a reboot of a node that was alone and quorate
    change.put(volume, "quorum", computed)


def _doubt_after_lost_primary(change: Change, volume: Volume) -> None:
    """D4: a Secondary that loses its only Primary without warning is merely Consistent until the probe."""
    resource = volume.resource
    if resource.role is not Role.SECONDARY or volume.disk is not Disk.UP_TO_DATE:
        return
    connections = resource.connections.values()
    if any(connection.peer_role is Role.PRIMARY for connection in connections):
        return
    if any(_lost_primary(change, connection) for connection in connections):
        change.put(volume, "disk", Disk.CONSISTENT)


def _lost_primary(change: Change, connection: Connection) -> bool:
    was_primary = change.old_peer_role(connection) is Role.PRIMARY and change.old_link(connection) is Link.CONNECTED
    by_force = connection.link is Link.DISCONNECTING and change.forced
    return was_primary and (connection.link in _LOSSES or by_force)


def data_accessible(volume: Volume) -> bool:
    """P1: an UpToDate disk here or at a peer that may be read."""
    if volume.disk is Disk.UP_TO_DATE:
        return True
    return any(peer.disk is Disk.UP_TO_DATE and peer.connection.remote_read for peer in volume.peers())


def data_was_accessible(change: Change, volume: Volume) -> bool:
    if change.old_disk(volume) is Disk.UP_TO_DATE:
        return True
    peers = volume.peers()
    return any(change.old_disk(peer) is Disk.UP_TO_DATE and peer.connection.remote_read for peer in peers)


def _settle_suspension(change: Change) -> None:
    """I3 (on any role) and I4 (a Primary that lost its last current copy)."""
    resource = change.resource
    quorate = all(volume.quorum for volume in resource.volumes.values())
    waits = resource.options["on-no-quorum"] == "suspend-io"
    change.put(resource, "suspended_quorum", waits and not quorate)
    primary = resource.role is Role.PRIMARY
    without = [volume for volume in resource.volumes.values() if primary and not data_accessible(volume)]
    if not without:
        change.put(resource, "suspended_no_data", False)
    elif resource.options["on-no-data-accessible"] == "suspend-io":
        promoted = change.old_role(resource) is not Role.PRIMARY
        if promoted or any(data_was_accessible(change, volume) for volume in without):
            change.put(resource, "suspended_no_data", True)


def compute_members_after(resource: Resource, reachable: frozenset[int]) -> set[int]:
    """Q17: after a committed cluster-wide change the members are the nodes it reached."""
    return set(reachable) | {resource.node_id}
