"""Data generations: when a new one begins, what is remembered of the old, and which blocks a peer misses.

Rules U1-U6, U11, U13, U18, U21 of facts/agent 5.4. A generation is a random number; the previous one stays as the
bitmap UUID of every node that does not get the new data, so that a later handshake finds the bitmap to use.
Node ids without a slot keep the oldest generation ("day 0") as long as a free slot records every write for them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from quorate.simulator.metadata import Metadata
from quorate.simulator.model import Generations, PeerVolume, Volume
from quorate.simulator.ranges import BlockRanges
from quorate.simulator.states import SYNC_TARGETS, Disk, Replication, Role

Draw = Callable[[], int]


def is_stable(volume: Volume) -> bool:
    """A Primary is authoritative; next to a Primary a Secondary is not."""
    resource = volume.resource
    if resource.role is Role.PRIMARY:
        return True
    return not any(connection.peer_role is Role.PRIMARY for connection in resource.connections.values())


def announce(volume: Volume, peer: PeerVolume) -> Generations:
    """What this node tells a peer; without a disk only the generation it has seen."""
    if volume.backing is None or volume.disk < Disk.NEGOTIATING:
        return Generations(current=volume.exposed, stable=is_stable(volume))
    metadata = volume.backing.metadata
    entries = enumerate(metadata.peers)
    return Generations(
        current=metadata.current,
        bitmap_uuids=tuple((owner, entry.bitmap_uuid) for owner, entry in entries if entry.bitmap_uuid),
        history=tuple(metadata.history),
        dirty_blocks=len(peer.out_of_sync) if peer.out_of_sync is not None else 0,
        crashed_primary=volume.crashed_primary,
        lost_quorum=volume.lost_quorum,
        reconnecting=peer.connection.was_connected,
        stable=is_stable(volume),
        inconsistent=not metadata.consistent,
        discard_my_data=peer.connection.discard_my_data,
    )


def misses_writes(volume: Volume, peer: PeerVolume, weak: frozenset[int] = frozenset()) -> bool:
    """U5: a peer that will not get what is written from now on."""
    if peer.disk is Disk.DISKLESS and not peer.wants_bitmap:
        return False  # a connected client holds no data
    if peer.connection.peer_id in weak:
        return True
    return peer.disk <= Disk.UNKNOWN and peer.disk is not Disk.NEGOTIATING


def _keep_for(metadata: Metadata, node_id: int, previous: int) -> bool:
    entry = metadata.peers[node_id]
    if entry.bitmap_uuid not in (0, previous):
        return False
    entry.bitmap_uuid = previous
    return True


def rotate(volume: Volume, draw: Draw, weak: frozenset[int] = frozenset()) -> bool:
    """U5: stores the current generation for everybody who misses the next; True when somebody was found."""
    assert volume.backing is not None
    metadata = volume.backing.metadata
    previous = draw() if metadata.just_created else metadata.current
    configured = {peer.connection.peer_id: peer for peer in volume.peers()}
    found = False
    for node_id, peer in configured.items():
        if misses_writes(volume, peer, weak):
            found |= _keep_for(metadata, node_id, previous)
    free = metadata.max_peers - sum(1 for entry in metadata.peers if entry.slot >= 0)
    for node_id in range(len(metadata.peers)):
        if node_id != volume.resource.node_id and node_id not in configured:
            kept = _keep_for(metadata, node_id, previous)
            # A node id without a slot counts only while a free slot still records for it.
            found |= kept and (metadata.peers[node_id].slot >= 0 or free > 0)
    return found


def begin(volume: Volume, draw: Draw, weak: frozenset[int] = frozenset()) -> int | None:
    """Starts a generation and answers it; None when nobody would miss anything (U5)."""
    assert volume.backing is not None
    metadata = volume.backing.metadata
    if not rotate(volume, draw, weak):
        return None
    metadata.current = draw()
    volume.exposed = metadata.current
    return metadata.current


def adopt(volume: Volume, current: int, weak: frozenset[int], draw: Draw) -> None:
    """A connected Primary began a generation: a current disk remembers who missed it, then follows."""
    assert volume.backing is not None
    metadata = volume.backing.metadata
    if volume.disk < Disk.CONSISTENT or any(peer.replication in SYNC_TARGETS for peer in volume.peers()):
        return  # it lacks the data of this generation; taken over when a resync ends
    previous = metadata.current
    if volume.disk is Disk.UP_TO_DATE:
        rotate(volume, draw, weak)
    metadata.current = current
    volume.exposed = current
    metadata.remember(previous)


def finish_sync(volume: Volume, peer: PeerVolume) -> None:
    """U18: the target takes over the source's generation and history, and its view of who is behind."""
    assert volume.backing is not None
    assert peer.generations is not None
    metadata, source = volume.backing.metadata, peer.generations
    behind = {owner for owner, uuid in source.bitmap_uuids if uuid and owner != volume.resource.node_id}
    for uuid in reversed(source.history):
        metadata.remember(uuid)
    previous, metadata.current = metadata.current, source.current
    for node_id, entry in enumerate(metadata.peers):
        if node_id not in behind and entry.bitmap_uuid:
            old, entry.bitmap_uuid = entry.bitmap_uuid, 0
            metadata.remember(old)
    metadata.remember(previous)
    volume.exposed = metadata.current


def clear_towards(volume: Volume, peer: PeerVolume) -> None:
    """U11: equal generations and no resync, so nothing is missing at this peer."""
    assert volume.backing is not None
    metadata = volume.backing.metadata
    entry = metadata.peers[peer.connection.peer_id]
    old, entry.bitmap_uuid = entry.bitmap_uuid, 0
    metadata.remember(old)
    if peer.out_of_sync is not None:
        peer.out_of_sync.clear()


def learn_who_caught_up(volume: Volume, peer: PeerVolume) -> None:
    """A peer of the same generation that keeps no mark for a third node knows that node to be in sync.

    Recorded as "clearing bitmap UUID and content for node ..." (S5c, S6g, X7).
    """
    if volume.backing is None or peer.generations is None:
        return
    metadata, told = volume.backing.metadata, peer.generations
    if told.current != metadata.current or volume.disk is not Disk.UP_TO_DATE or peer.disk is not Disk.UP_TO_DATE:
        return
    marked = {owner for owner, uuid in told.bitmap_uuids if uuid}
    for third in volume.peers():
        node_id = third.connection.peer_id
        entry = metadata.peers[node_id]
        if third is peer or node_id in marked or not entry.bitmap_uuid or not entry.seen:
            continue
        old, entry.bitmap_uuid = entry.bitmap_uuid, 0
        metadata.remember(old)
        if third.out_of_sync is not None:
            third.out_of_sync.clear()


def mark(volume: Volume, start: int, end: int, owners: Iterable[PeerVolume]) -> None:
    """U6: blocks written without these peers, and without every node that has no slot yet."""
    assert volume.backing is not None
    metadata = volume.backing.metadata
    for peer in owners:
        if peer.out_of_sync is not None:
            peer.out_of_sync.add(start, end)
    used = {entry.slot for entry in metadata.peers if entry.slot >= 0}
    configured = {peer.slot for peer in volume.peers() if peer.slot >= 0}
    for slot, bitmap in enumerate(metadata.bitmaps):
        if slot not in used or slot not in configured:
            bitmap.add(start, end)


def set_all(volume: Volume, bitmap: BlockRanges) -> None:
    bitmap.clear()
    bitmap.add(0, volume.blocks)


def has_slot(volume: Volume, peer: PeerVolume) -> bool:
    """Whether a peer has a slot in the metadata or could get one."""
    assert volume.backing is not None
    metadata = volume.backing.metadata
    return metadata.peers[peer.connection.peer_id].slot >= 0 or metadata.free_slot() is not None


def allocate_slot(volume: Volume, peer: PeerVolume) -> bool:
    """U3: gives a peer its old slot or the lowest free one."""
    assert volume.backing is not None
    metadata = volume.backing.metadata
    entry = metadata.peers[peer.connection.peer_id]
    if entry.slot < 0:
        slot = metadata.free_slot()
        if slot is None:
            return False
        entry.slot = slot
    peer.slot = entry.slot
    return True


def forget(metadata: Metadata, node_id: int, blocks: int) -> None:
    """U21: the slot becomes a day-0 slot again: a copy of another free one, or everything out of sync."""
    entry = metadata.peers[node_id]
    free, freed = metadata.free_slot(), entry.slot
    day0 = next((other.bitmap_uuid for other in metadata.peers if other.unused and other.bitmap_uuid), 0)
    if freed >= 0:
        metadata.bitmaps[freed] = metadata.bitmaps[free].copy() if free is not None else BlockRanges([(0, blocks)])
    entry.slot, entry.bitmap_uuid = -1, day0
    entry.seen = entry.exists = entry.outdated = entry.connected = False


def needs_new_generation(before: Disk, now: Disk) -> bool:
    """U4: contact to a peer's data was lost."""
    had = before >= Disk.INCONSISTENT and before not in (Disk.UNKNOWN, Disk.OUTDATED)
    return had and (now < Disk.INCONSISTENT or now in (Disk.UNKNOWN, Disk.OUTDATED))


def receives_data(peer: PeerVolume) -> bool:
    """I1: gets application writes; the others get out-of-sync marks only."""
    if peer.replication is Replication.OFF or peer.replication is Replication.WF_BITMAP_S:
        return False
    # A Consistent disk turns UpToDate by itself, so it must not miss what is written meanwhile.
    return peer.disk >= Disk.CONSISTENT or (
        peer.disk is Disk.INCONSISTENT and peer.replication is not Replication.AHEAD
    )
