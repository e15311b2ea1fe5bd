"""One node's part of a cluster-wide change, as small functions, and the text about openers."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from quorate.simulator import generations
from quorate.simulator.change import Change
from quorate.simulator.model import Connection, PeerVolume, Resource, Volume
from quorate.simulator.states import Disk, Link, Replication, Role
from quorate.simulator.transactions import Apply, Member


def learn_state(change: Change, peer: PeerVolume, far: Volume) -> None:
    """What a neighbour's state message says: its disk, its quorum, and the size a node without a disk follows (Z6)."""
    peer.quorate = far.quorum
    if peer.replication is Replication.OFF:
        return
    if far.backing is not None and peer.generations is not None:
        known = replace(peer.generations, current=far.backing.metadata.current, stable=generations.is_stable(far))
        peer.generations = known
        secondary = peer.volume.resource.role is not Role.PRIMARY
        if peer.volume.backing is None and secondary and far.disk is Disk.UP_TO_DATE:
            peer.volume.exposed = known.current  # a diskless Secondary follows the data (S6: "on same UUID now")
    change.put(peer, "disk", far.disk)
    if peer.volume.backing is None and far.blocks and far.backing is not None:
        peer.volume.blocks = far.blocks
        if far.disk is Disk.UP_TO_DATE and not peer.volume.exposed:
            peer.volume.exposed = far.backing.metadata.current


def opener_lines(volume: Volume) -> list[str]:
    if not volume.openers:
        return []
    head = f"/dev/drbd{volume.minor} open_cnt:{len(volume.openers)}, writable:{int(volume.writable)}"
    lines = [f"{head}; list of openers follows"]
    for opener in reversed(volume.openers):
        moment = datetime.fromtimestamp(opener.since, UTC)
        when = f"{moment:%Y-%m-%d %H:%M:%S}.{moment.microsecond // 1000:03d}"
        lines.append(f"drbd{volume.minor} opened by {opener.program} (pid {opener.pid}) at {when}")
    return lines


def become_peer(role: Role) -> Apply:
    def apply(_: Member, change: Change, link: Connection | None) -> None:
        if link is not None:
            change.put(link, "peer_role", role)

    return apply


def peer_detaches(number: int) -> Apply:
    def apply(_: Member, change: Change, link: Connection | None) -> None:
        if link is not None and number in link.peer_volumes:
            change.put(link.peer_volumes[number], "disk", Disk.DETACHING)

    return apply


def prepare_forced_disk(change: Change, volume: Volume, *, up_to_date: bool, outdate: bool) -> None:
    others = any(peer.disk is Disk.UP_TO_DATE for peer in volume.peers())
    if up_to_date and Disk.INCONSISTENT <= volume.disk < Disk.UP_TO_DATE and not others:
        change.put(volume, "disk", Disk.UP_TO_DATE)
    if outdate:
        for peer in volume.peers():
            if peer.disk is Disk.UNKNOWN:
                change.put(peer, "disk", Disk.OUTDATED)


def outdated_side(connection: Connection, back: Connection) -> Resource | None:
    """D2: with quorum on and exactly one Primary, the Secondary outdates itself."""
    mine, theirs = connection.resource, back.resource
    if mine.options["quorum"] == "off" or mine.role is theirs.role:
        return None
    return theirs if mine.role is Role.PRIMARY else mine


def part_ways(change: Change, connection: Connection, outdated: Resource | None) -> None:
    resource = connection.resource
    initiator = change.tag != "remote"
    change.put(connection, "link", Link.DISCONNECTING if initiator else Link.TEAR_DOWN)
    if outdated is resource:
        for volume in resource.volumes.values():
            if volume.disk > Disk.OUTDATED:
                change.put(volume, "disk", Disk.OUTDATED)
    elif outdated is not None:
        for peer in connection.peer_volumes.values():
            if peer.disk > Disk.OUTDATED:
                change.put(peer, "disk", Disk.OUTDATED)
