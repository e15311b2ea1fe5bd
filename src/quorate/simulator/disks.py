"""Attaching, detaching and sizing the disk of a volume (facts/agent 5.5 D1, D13-D15, 5.6, 6.4)."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from quorate.simulator import generations
from quorate.simulator.blocks import BLOCK, BlockDevice, DeviceError
from quorate.simulator.change import Change
from quorate.simulator.errors import Refusal
from quorate.simulator.kernel import Kernel
from quorate.simulator.metadata import Metadata, compute_offset, compute_usable_blocks
from quorate.simulator.model import Backing, PeerVolume, Volume
from quorate.simulator.options import DISK, Value, compute_defaults
from quorate.simulator.ranges import BlockRanges
from quorate.simulator.states import Disk, Link

MINIMUM_BYTES = 1 << 20


def find_metadata(device: BlockDevice) -> Metadata | None:
    found = device.structure(compute_offset(device.size))
    return found if isinstance(found, Metadata) else None


def read_for_attach(volume: Volume, device: BlockDevice) -> Metadata:
    """Reads metadata as the kernel does at attach, with its refusals in its order (S1, S9c, S10, S15, S19)."""
    try:
        metadata = find_metadata(device)
    except DeviceError:
        raise Refusal(118, "Error while reading metadata.\n") from None
    if metadata is None:
        raise Refusal(119, 'Meta data magic not found. Did you "drbdadm create-md"?\n')
    if not metadata.log_clean:
        raise Refusal(165, 'Found unclean meta data. Did you "drbdadm apply-al"?\n')
    own = volume.resource.node_id
    if metadata.node_id not in (-1, own):
        raise Refusal(119, f"ambiguous node id: meta-data: {metadata.node_id}, config: {own}\n")
    if device.size < MINIMUM_BYTES:
        raise Refusal(112)
    usable = compute_usable_blocks(device.size, metadata.max_peers)
    if usable < volume.blocks:
        sectors = BLOCK // 512
        text = (
            f"Current (diskless) capacity {volume.blocks * sectors}, cannot attach smaller ({usable * sectors}) disk\n"
        )
        raise Refusal(111, text)
    return metadata


def take_slots(volume: Volume, metadata: Metadata) -> None:
    """U3: every peer that wants a bitmap gets a slot, or nobody does."""
    wanting = [peer for peer in volume.peers() if peer.wants_bitmap]
    needed = sum(1 for peer in wanting if metadata.peers[peer.connection.peer_id].slot < 0)
    available = metadata.max_peers - sum(1 for entry in metadata.peers if entry.slot >= 0)
    if needed > available:
        raise Refusal(162, f"Not enough free bitmap slots (available={available}, needed={needed})\n")
    for peer in wanting:
        generations.allocate_slot(volume, peer)


def attach(
    kernel: Kernel,
    volume: Volume,
    path: str,
    device: BlockDevice,
    given: Mapping[str, Value],
    negotiate: Callable[[Volume], None],
) -> None:
    """The whole attach; `negotiate` asks connected peers (D13) and may refuse."""
    if volume.disk > Disk.DISKLESS:
        kernel.free_bitmap(volume)
        raise Refusal(124)
    metadata = read_for_attach(volume, device)
    change = Change(volume.resource, "attach", forced=True)
    change.put(volume, "disk", Disk.ATTACHING)
    kernel.commit(change)
    volume.backing = Backing(path, device, metadata, {**compute_defaults(DISK), **given})
    device.users += 1
    try:
        take_slots(volume, metadata)
        volume.resource.ordered = True
        metadata.node_id = volume.resource.node_id
        _recall(volume, metadata)
        grow_to_fit(volume)
        if any(peer.connection.link is Link.CONNECTED and peer.disk > Disk.DISKLESS for peer in volume.peers()):
            negotiate(volume)
        else:
            _settle_alone(kernel, volume)
    except Refusal:
        _release(kernel, volume, "attach")
        raise
    volume.options["diskless"] = "no"


def _recall(volume: Volume, metadata: Metadata) -> None:
    """What the disk remembers of its last life (U8, Q16)."""
    alone = metadata.members == frozenset({volume.resource.node_id})
    volume.restore_quorum = metadata.have_quorum and metadata.was_up_to_date and alone
    volume.crashed_primary = metadata.crashed_primary and not volume.exposed
    volume.lost_quorum = metadata.lost_quorum and not volume.quorum
    volume.read = volume.written = volume.log_writes = volume.bitmap_writes = 0


def compute_own_disk(metadata: Metadata) -> Disk:
    """D1: what a disk is worth without anybody to ask."""
    if not metadata.consistent:
        return Disk.INCONSISTENT
    return Disk.UP_TO_DATE if metadata.was_up_to_date else Disk.OUTDATED


def _settle_alone(kernel: Kernel, volume: Volume) -> None:
    assert volume.backing is not None
    metadata = volume.backing.metadata
    change = Change(volume.resource, "attach", forced=True)
    change.put(volume, "disk", compute_own_disk(metadata))
    for peer in volume.peers():
        if metadata.peers[peer.connection.peer_id].outdated and peer.disk is Disk.UNKNOWN:
            change.put(peer, "disk", Disk.OUTDATED)
    kernel.commit(change)
    if volume.disk >= Disk.CONSISTENT:
        volume.exposed = metadata.current


def grow_to_fit(volume: Volume) -> None:
    """Z1/Z2 at attach: the last agreed size, or everything the disk has; new area is out of sync for known peers."""
    assert volume.backing is not None
    metadata = volume.backing.metadata
    usable = compute_usable_blocks(volume.backing.device.size, metadata.max_peers)
    before, agreed = volume.blocks, metadata.effective_blocks
    volume.blocks = min(usable, agreed or before or usable)
    if metadata.just_created and not agreed:
        for peer in volume.peers():
            fill_fresh_slot(volume, peer)


def fill_fresh_slot(volume: Volume, peer: PeerVolume) -> None:
    """A slot on a disk that never held data starts with everything out of sync (S2, S5: oos 40912)."""
    if peer.out_of_sync is not None:
        generations.set_all(volume, peer.out_of_sync)


def detach(kernel: Kernel, volume: Volume, tag: str) -> None:
    """Second half of a detach: Detaching or Failed to Diskless."""
    _release(kernel, volume, tag)


def _release(kernel: Kernel, volume: Volume, tag: str) -> None:
    backing = volume.backing
    change = Change(volume.resource, tag, forced=True)
    change.put(volume, "disk", Disk.DISKLESS)
    if backing is not None:
        backing.device.users -= 1
        volume.backing = None
    for peer in volume.peers():
        peer.slot = -1
    kernel.commit(change)


def truncate_bitmaps(volume: Volume) -> None:
    if volume.backing is not None:
        for bitmap in volume.backing.metadata.bitmaps:
            bitmap.truncate(volume.blocks)


def everything(volume: Volume) -> BlockRanges:
    return BlockRanges([(0, volume.blocks)])
