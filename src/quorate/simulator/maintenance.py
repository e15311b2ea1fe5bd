"""Commands on a running volume: resize, suspend and resume, pause and invalidate, generation identifiers.

Rules Z1-Z6, I5, U23 of facts/agent; recorded in S3, S3b, S3c, S11, S16b.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from quorate.simulator import generations
from quorate.simulator.blocks import BLOCK, DeviceError
from quorate.simulator.change import Change
from quorate.simulator.disks import find_metadata
from quorate.simulator.errors import Refusal
from quorate.simulator.kernel import Kernel
from quorate.simulator.metadata import compute_offset, compute_usable_blocks
from quorate.simulator.model import PeerVolume, Volume
from quorate.simulator.operations import Operations
from quorate.simulator.resync import Resync
from quorate.simulator.states import SYNCING, Disk, Replication, Role
from quorate.simulator.transactions import Directory, Member, explore

_SECTORS = BLOCK // 512


@dataclass(slots=True)
class Maintenance:
    directory: Directory
    operations: Operations
    resync: Resync
    begin_generation: Callable[[Volume], None] = field(default=lambda _: None)  # the pending one of a Primary

    # --- size --------------------------------------------------------------------------------------------------

    def resize(self, kernel: Kernel, volume: Volume, *, sectors: int, assume_space: bool, assume_clean: bool) -> None:
        """Z3: agreed among the reachable disks; exit 0 also when nothing changes."""
        if volume.backing is None:
            raise Refusal(138)
        if any(peer.replication > Replication.ESTABLISHED for peer in volume.peers()):
            raise Refusal(130)
        if sectors > capacity(volume) * _SECTORS:
            raise Refusal(111)
        around = explore(self.directory, Member(kernel, volume.resource))
        resources = [entry.member.resource for entry in around.reached]
        sharing = [each.volumes[volume.number] for each in resources if volume.number in each.volumes]
        disks = [volume, *(other for other in sharing if other.backing is not None)]
        blocks = min(capacity(disk) for disk in disks)
        if not assume_space and self._somebody_missing(volume, around.node_ids):
            blocks = min(blocks, volume.backing.metadata.effective_blocks or blocks)
        if sectors:
            blocks = min(blocks, sectors // _SECTORS)
        for each in disks:
            assert each.backing is not None
            each.backing.options["size"] = sectors
        if blocks != volume.blocks:
            self._set_size([volume, *sharing], blocks, clean=assume_clean)
            if not assume_clean:
                self._sync_new_area(volume, sharing)
            for each in (volume, *sharing):
                if each.resource.role is Role.PRIMARY and not each.resource.suspended:
                    self.begin_generation(each)  # the new area is new data to whoever is away (S11 #79)

    def _somebody_missing(self, volume: Volume, reached: frozenset[int]) -> bool:
        assert volume.backing is not None
        entries = enumerate(volume.backing.metadata.peers)
        return any(entry.seen and node_id not in reached for node_id, entry in entries)

    def _set_size(self, volumes: list[Volume], blocks: int, *, clean: bool) -> None:
        for volume in volumes:
            before, volume.blocks = volume.blocks, blocks
            if volume.backing is None:
                continue
            device, metadata = volume.backing.device, volume.backing.metadata
            with suppress(DeviceError):  # a dead disk is noticed by the next access to it
                if find_metadata(device) is None:  # the device grew: internal metadata moves to its new end
                    device.put_structure(compute_offset(device.size), metadata)
            metadata.effective_blocks = blocks
            for bitmap in metadata.bitmaps:
                bitmap.truncate(blocks)
                if blocks > before and not clean:
                    bitmap.add(before, blocks)

    def _sync_new_area(self, volume: Volume, sharing: list[Volume]) -> None:
        """Z4: the Primary is source, without one the node that asked."""
        everybody = [volume, *sharing]
        primary = next((v for v in everybody if v.resource.role is Role.PRIMARY and v.backing is not None), volume)
        for peer in primary.peers():
            if peer.replication is Replication.ESTABLISHED and peer.disk >= Disk.INCONSISTENT and peer.out_of_sync:
                other = self.resync.mirror(peer)
                if other is not None:
                    self.resync.start(peer, other, "resize")

    # --- suspension --------------------------------------------------------------------------------------------

    def suspend(self, kernel: Kernel, volume: Volume) -> None:
        change = Change(volume.resource, "suspend-io", forced=True)
        change.put(volume.resource, "suspended_user", True)
        kernel.commit(change)

    def resume(self, kernel: Kernel, volume: Volume) -> None:
        """I5: takes the user's suspension away; one for quorum comes back at once while quorum is missing (S16b)."""
        change = Change(volume.resource, "resume-io", forced=True)
        change.put(volume.resource, "suspended_user", False)
        kernel.commit(change)

    # --- resync ------------------------------------------------------------------------------------------------

    def pause(self, kernel: Kernel, peer: PeerVolume, *, paused: bool) -> None:
        if peer.paused_by_user is paused:
            raise Refusal(134 if paused else 135)
        change = Change(peer.connection.resource, "pause-sync" if paused else "resume-sync", forced=True)
        change.put(peer, "paused_by_user", paused)
        kernel.commit(change)
        for other in peer.volume.peers():
            self.resync.follow_pauses(other)
            self.resync.go_on(other)

    def invalidate(self, kernel: Kernel, volume: Volume, source_id: int, *, whole: bool = True) -> None:
        """U23: full resync from a connected peer, or a disk that is simply worthless; U22: only what is marked."""
        if volume.backing is None:
            raise Refusal(138)
        connected = [p for p in volume.peers() if p.replication >= Replication.ESTABLISHED and p.disk >= Disk.OUTDATED]
        chosen = [p for p in connected if source_id in (-1, p.connection.peer_id)]
        if not chosen:
            if source_id != -1:
                raise Refusal(-15)
            change = Change(volume.resource, "invalidate")
            change.put(volume, "disk", Disk.INCONSISTENT)
            kernel.commit(change)
            self._set_all(volume, whole=whole)
            return
        if chosen[0].replication in SYNCING:
            raise Refusal(-8)
        self._set_all(volume, whole=whole)
        other = self.resync.mirror(chosen[0])
        if other is not None:
            if other.out_of_sync is not None and whole:
                generations.set_all(other.volume, other.out_of_sync)
            self.resync.start(other, chosen[0], "invalidate")
            self._pause_others(kernel, volume, chosen[0])

    def _pause_others(self, kernel: Kernel, volume: Volume, chosen: PeerVolume) -> None:
        """The other disks wait as further sources of the same invalidation (S3: Established -> PausedSyncT)."""
        change = Change(volume.resource, "invalidate", forced=True)
        for peer in volume.peers():
            if peer is not chosen and peer.replication is Replication.ESTABLISHED and peer.disk >= Disk.INCONSISTENT:
                change.put(peer, "replication", Replication.PAUSED_SYNC_T)
        kernel.commit(change)
        for peer in volume.peers():
            self.resync.follow_pauses(peer)
            other = self.resync.mirror(peer)
            if volume.resource.role is Role.PRIMARY and peer is not chosen and other is not None:
                self._wait_as_source(other)

    def _wait_as_source(self, source: PeerVolume) -> None:
        """A Primary that invalidates its disk makes the others sources as well (S3b, S3c); a Secondary does not (S3)."""
        owner = self.directory.owner(source.connection.resource)
        if owner is None or source.replication is not Replication.ESTABLISHED or source.volume.backing is None:
            return
        if source.out_of_sync is not None:
            generations.set_all(source.volume, source.out_of_sync)
        change = Change(source.connection.resource, "peer-state", forced=True)
        change.put(source, "replication", Replication.PAUSED_SYNC_S)
        owner.kernel.commit(change)

    def _set_all(self, volume: Volume, *, whole: bool) -> None:
        for peer in volume.peers():
            if peer.out_of_sync is not None and whole:
                generations.set_all(volume, peer.out_of_sync)

    def invalidate_remote(self, peer: PeerVolume, *, whole: bool = True) -> None:
        if peer.volume.backing is None:
            raise Refusal(138)
        if peer.replication < Replication.ESTABLISHED:
            raise Refusal(-15)
        if peer.replication in SYNCING:
            raise Refusal(-8)
        other = self.resync.mirror(peer)
        if other is not None:
            for side in (peer, other):
                if side.out_of_sync is not None and whole:
                    generations.set_all(side.volume, side.out_of_sync)
            self._set_all(other.volume, whole=whole)
            self.resync.start(peer, other, "invalidate-remote")
            owner = self.directory.owner(other.connection.resource)
            if owner is not None:
                self._pause_others(owner.kernel, other.volume, other)

    # --- outdate and verify ------------------------------------------------------------------------------------

    def outdate(self, kernel: Kernel, volume: Volume) -> None:
        """What a fencing handler asks for: only while nobody is connected who would have to agree (-6, -16)."""
        if volume.disk < Disk.OUTDATED:
            raise Refusal(-16)
        if any(peer.replication >= Replication.ESTABLISHED for peer in volume.peers()):
            raise Refusal(-6)
        change = Change(volume.resource, "outdate")
        change.put(volume, "disk", Disk.OUTDATED)
        kernel.commit(change)

    def verify(self, kernel: Kernel, peer: PeerVolume, *, start_sector: int, stop_sector: int) -> None:
        """U22: both sides compare block by block; what differs is marked, never copied."""
        if peer.volume.backing is None:
            raise Refusal(138)
        if peer.replication < Replication.ESTABLISHED:
            raise Refusal(-15)
        if peer.replication > Replication.ESTABLISHED:
            raise Refusal(-8)
        other = self.resync.mirror(peer)
        change = Change(peer.connection.resource, "verify")
        change.put(peer, "replication", Replication.VERIFY_S)
        kernel.commit(change)
        owner = self.directory.owner(other.connection.resource) if other is not None else None
        if other is None or owner is None:
            return
        theirs = Change(other.connection.resource, "peer-state", forced=True)
        theirs.put(other, "replication", Replication.VERIFY_T)
        owner.kernel.commit(theirs)
        first, last = start_sector // _SECTORS, stop_sector // _SECTORS or peer.volume.blocks
        peer.sync_total = other.sync_total = max(last - first, 0)
        delay = self.resync.configured_duration(other)
        self.resync.scheduler.call_later(delay, lambda: self._compare(peer, other, first, last))

    def _compare(self, peer: PeerVolume, other: PeerVolume, first: int, last: int) -> None:
        mine, theirs = peer.volume.backing, other.volume.backing
        running = (peer.replication, other.replication) == (Replication.VERIFY_S, Replication.VERIFY_T)
        if not running or mine is None or theirs is None:
            return  # the link or a disk was lost meanwhile
        here, there = mine.device.written(first, last), theirs.device.written(first, last)
        for block in sorted({*here, *there}):
            if here.get(block, 0) != there.get(block, 0):
                for side in (peer, other):
                    if side.out_of_sync is not None:
                        side.out_of_sync.add(block, block + 1)
        for side in (peer, other):
            owner = self.directory.owner(side.connection.resource)
            if owner is not None:
                change = Change(side.connection.resource, "ov-finished", forced=True)
                change.put(side, "replication", Replication.ESTABLISHED)
                owner.kernel.commit(change)


def capacity(volume: Volume) -> int:
    assert volume.backing is not None
    return compute_usable_blocks(volume.backing.device.size, volume.backing.metadata.max_peers)


def identifiers(peer: PeerVolume) -> str:
    """`get-gi`: four UUIDs, then flags; those that were never seen set are printed as 0."""
    backing = peer.volume.backing
    if backing is None:
        return ":".join(["0" * 16] * 4 + ["0"] * 12)
    metadata = backing.metadata
    entry = metadata.peers[peer.connection.peer_id]
    history = [*metadata.history, 0, 0][:2]
    uuids = [metadata.current, entry.bitmap_uuid, *history]
    primary = peer.volume.resource.role is Role.PRIMARY
    near = primary or any(c.peer_role is Role.PRIMARY for c in peer.volume.resource.connections.values())
    flags = [metadata.consistent, metadata.was_up_to_date, near, metadata.crashed_primary, False, False, False]
    flags += [entry.connected, False, False, False, entry.seen]
    return ":".join([*(f"{uuid:016X}" for uuid in uuids), *(str(int(flag)) for flag in flags)])
