"""Reading and writing a DRBD device: openers, replication, suspension, and the ledger of acknowledged writes.

Guarantees: a write is acknowledged only after every disk that counts has it (protocol C) and is then in the ledger;
a suspended device keeps writes pending and completes or fails them later; contents are versions, so a test can ask
whether anything acknowledged is missing from an UpToDate disk (I1-I9, P7-P9).
"""

from __future__ import annotations

import errno
from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.simulator import generations
from quorate.simulator.blocks import BLOCK, DeviceError
from quorate.simulator.change import Change
from quorate.simulator.errors import Refusal
from quorate.simulator.kernel import Kernel
from quorate.simulator.model import Connection, Opener, PeerVolume, Resource, Volume
from quorate.simulator.resync import Resync
from quorate.simulator.settle import data_accessible
from quorate.simulator.states import Disk, Replication, Role
from quorate.simulator.transactions import Directory

_KIB = BLOCK // 1024


@dataclass(slots=True)
class PendingWrite:
    """A write that waits for the device to resume; `finish` gets None or the error number."""

    volume: Volume
    block: int
    values: tuple[int, ...]
    finish: Callable[[int | None], None]
    stored: bool = False  # on the local disk already, waiting for peers
    logged: bool = False  # the local disk failed under it, and its own log names the blocks


@dataclass(slots=True)
class Ledger:
    """The truth about one resource's data: the last acknowledged value of each block, per volume."""

    acknowledged: dict[tuple[int, int], int] = field(default_factory=dict[tuple[int, int], int])

    def note(self, number: int, block: int, values: tuple[int, ...]) -> None:
        for offset, value in enumerate(values):
            self.acknowledged[number, block + offset] = value

    def missing_from(self, volume: Volume) -> list[int]:
        """Blocks whose acknowledged value a disk does not hold."""
        if volume.backing is None:
            return []
        device = volume.backing.device
        items = self.acknowledged.items()
        return sorted(
            block for (number, block), value in items if number == volume.number and device.read(block) != value
        )


@dataclass(slots=True)
class DeviceIo:
    """I/O of all DRBD devices of a cluster. `spread` tells neighbours about a changed disk state."""

    directory: Directory
    resync: Resync
    spread: Callable[[Volume], None]
    ledger_of: Callable[[Volume], Ledger]
    fail_disk: Callable[[Kernel, Volume], None]
    reaches: Callable[[PeerVolume], bool]
    promote: Callable[[Kernel, Resource], None]
    demote: Callable[[Kernel, Resource], None]
    panic: Callable[[Resource], None]
    news: Callable[[str, Connection, str], float]
    waiting: dict[Volume, list[PendingWrite]] = field(default_factory=dict[Volume, list[PendingWrite]])
    """Writes that wait, oldest first; a volume is in here only while it has some."""

    def open(self, kernel: Kernel, volume: Volume, *, write: bool, program: str, pid: int) -> Opener:
        """P7, P9: who may open, with the error a program sees."""
        resource = volume.resource
        if resource.fail_io:
            raise DeviceError(errno.ENOTRECOVERABLE, "State not recoverable")
        if resource.role is not Role.PRIMARY:
            self._open_secondary(kernel, volume, write=write)
        if not volume.quorum and not write:
            raise DeviceError(errno.ENODATA, "No data available")
        opener = Opener(program, pid, kernel.clock.wall(), write)
        volume.openers.append(opener)
        self._notify(kernel, volume)
        return opener

    def _open_secondary(self, kernel: Kernel, volume: Volume, *, write: bool) -> None:
        """auto-promote: a writer promotes, a reader needs that nobody is Primary; without it both fail (S4)."""
        resource = volume.resource
        automatic = resource.options["auto-promote"] is True
        if write and automatic:
            try:
                self.promote(kernel, resource)
            except Refusal:
                raise DeviceError(errno.EROFS, "Read-only file system") from None
            resource.promoted_by_open = True
            return
        other = any(connection.peer_role is Role.PRIMARY for connection in resource.connections.values())
        if write:
            raise DeviceError(errno.EROFS, "Read-only file system")
        if not automatic or other or not data_accessible(volume):
            raise DeviceError(errno.EMEDIUMTYPE, "Wrong medium type")

    def close(self, kernel: Kernel, volume: Volume, opener: Opener) -> None:
        volume.openers.remove(opener)
        resource = volume.resource
        if resource.promoted_by_open and not any(each.writable for each in resource.volumes.values()):
            resource.promoted_by_open = False
            self.demote(kernel, resource)
        if not volume.openers and volume.resource.fail_io:
            change = Change(volume.resource, "release", forced=True)
            change.put(volume.resource, "fail_io", False)
            kernel.commit(change)
        self._notify(kernel, volume)

    def _notify(self, kernel: Kernel, volume: Volume) -> None:
        """First open and last close are events of their own (facts 3.3)."""
        for observer in tuple(kernel.observers):
            observer(Change(volume.resource, "open"))

    # --- writing -----------------------------------------------------------------------------------------------

    def write(
        self, kernel: Kernel, volume: Volume, block: int, values: tuple[int, ...], finish: Callable[[int | None], None]
    ) -> None:
        """Writes consecutive blocks; `finish` is called now, or when a suspension ends."""
        request = PendingWrite(volume, block, values, finish)
        if volume.resource.suspended:
            self._keep(request)
            return
        self._perform(kernel, request)

    def _keep(self, request: PendingWrite) -> None:
        self.waiting.setdefault(request.volume, []).append(request)

    def resume(self, kernel: Kernel, volume: Volume) -> None:
        """After a change: pending writes go on, or fail when I/O is made to fail."""
        resource = volume.resource
        if resource.suspended and not resource.fail_io:
            self._mark_stranded(volume)
            return
        for request in self.waiting.pop(volume, ()):
            self._perform(kernel, request)

    def _mark_stranded(self, volume: Volume) -> None:
        """A request that reached the local disk before the suspension is out of sync at whoever is gone (X7 #49)."""
        if volume.backing is None:
            return
        for request in self.waiting.get(volume, ()):
            if request.stored:
                gone = [peer for peer in volume.peers() if peer.replication is Replication.OFF]
                generations.mark(volume, request.block, request.block + len(request.values), gone)

    def drop(self, volume: Volume) -> None:
        """The node is gone, and its programs with it."""
        self.waiting.pop(volume, None)

    def _perform(self, kernel: Kernel, request: PendingWrite) -> None:
        volume = request.volume
        if volume.resource.fail_io or not data_accessible(volume) or (not volume.quorum):
            request.finish(errno.EIO)
            return
        start, end = request.block, request.block + len(request.values)
        silent = any(generations.receives_data(peer) and not self.reaches(peer) for peer in volume.peers())
        if silent and volume.new_generation and not request.stored:
            self._keep(request)  # a generation is announced before anything is written in it
            return
        if not request.stored:
            self.begin_generation(kernel, volume)
            covered = volume.backing is not None and volume.backing.metadata.covers(start, end)
            if not self._store(kernel, volume, start, request.values):
                request.finish(errno.EIO)
                return
            request.stored = True
            request.logged = covered and volume.backing is None
        if silent:
            # Sent into the void: nothing is acknowledged before the silence is noticed (X7 #47).
            self._keep(request)
            return
        # A request that survived a loss is completed in a new generation: whoever is still away misses it (S5 #87).
        self.begin_generation(kernel, volume)
        missed = self._replicate(volume, start, request.values)
        self._mark(volume, start, end, missed, own=not request.logged)
        volume.written += len(request.values) * _KIB if volume.backing is not None else 0
        if volume.backing is not None:
            volume.log_writes = volume.log_writes or 1
            volume.backing.metadata.log(start, end)
        self.ledger_of(volume).note(volume.number, start, request.values)
        request.finish(None)

    def begin_generations(self, kernel: Kernel, resource: Resource) -> None:
        """A Primary that gets its quorum back starts the pending generation before it resumes (S17: quorum -> uuid)."""
        if resource.role is Role.PRIMARY and not resource.suspended:
            for volume in resource.volumes.values():
                self.begin_generation(kernel, volume)

    def begin_generation(self, kernel: Kernel, volume: Volume) -> None:
        """U4: the first write after a promotion or a loss starts a generation that connected peers adopt."""
        if not volume.new_generation:
            return
        volume.new_generation = False
        weak = frozenset(p.connection.peer_id for p in volume.peers() if generations.misses_writes(volume, p))
        if volume.backing is not None and volume.disk is Disk.UP_TO_DATE:
            current = generations.begin(volume, kernel.draw)
        else:
            current = kernel.draw()
            volume.exposed = current
            weak |= {volume.resource.node_id}
        if current is None:
            return
        for peer in volume.peers():
            other = self.resync.mirror(peer)
            if other is None or peer.replication is Replication.OFF:
                continue
            if other.volume.backing is not None:
                generations.adopt(other.volume, current, weak, kernel.draw)
            else:
                other.volume.exposed = current

    def _store(self, kernel: Kernel, volume: Volume, start: int, values: tuple[int, ...]) -> bool:
        """The local copy; a failing disk is detached and the write goes on without it (I8)."""
        if volume.backing is None:
            return True
        if volume.bitmap_freed:
            self.panic(volume.resource)  # S15b
        try:
            for offset, value in enumerate(values):
                volume.backing.device.write(start + offset, value)
        except DeviceError:
            self.fail_disk(kernel, volume)
            return data_accessible(volume)
        return True

    def _replicate(self, volume: Volume, start: int, values: tuple[int, ...]) -> list[PeerVolume]:
        """Sends to every peer that takes data; answers the peers that missed it."""
        missed: list[PeerVolume] = []
        failing: list[tuple[PeerVolume, PeerVolume]] = []
        for peer in volume.peers():
            other = self.resync.mirror(peer)
            if other is None or not generations.receives_data(peer) or other.volume.backing is None:
                missed.append(peer)
                continue
            try:
                for offset, value in enumerate(values):
                    other.volume.backing.device.write(start + offset, value)
            except DeviceError:
                failing.append((peer, other))
                missed.append(peer)
                continue
            if other.volume.bitmap_freed:
                self.panic(other.volume.resource)  # S15b: the write is answered, then the machine is gone
            peer.sent += len(values) * _KIB
            other.received += len(values) * _KIB
            other.volume.written += len(values) * _KIB
            other.volume.log_writes = other.volume.log_writes or 1
            other.volume.backing.metadata.log(start, start + len(values))
        self._fail_peers(volume, failing)
        return missed

    def _fail_peers(self, volume: Volume, failing: list[tuple[PeerVolume, PeerVolume]]) -> None:
        """Disks that fail under the same write are reported one after the other (S19: the last one is cut off)."""
        node = volume.resource.node
        for _, other in sorted(failing, key=lambda pair: self.news(node, pair[0].connection, str(Disk.FAILED))):
            owner = self.directory.owner(other.connection.resource)
            if owner is not None:
                self.fail_disk(owner.kernel, other.volume)

    def _mark(self, volume: Volume, start: int, end: int, missed: list[PeerVolume], *, own: bool) -> None:
        """U6: every disk that took the write records it for those that did not.

        The write under which the own disk failed is not recorded by the others when that disk's own activity log names
        it: `apply-al`, without which it cannot come back, marks the whole extent (S19 #55).
        """
        holders = [volume] if volume.backing is not None else []
        for peer in volume.peers():
            other = self.resync.mirror(peer)
            if other is not None and peer not in missed and other.volume.backing is not None:
                holders.append(other.volume)
        have = {holder.resource.node_id for holder in holders}
        if not own:
            have.add(volume.resource.node_id)
        for holder in holders:
            # Also for a peer the writer does not know (X1a #62: a newcomer that only some nodes were told about).
            owners = [peer for peer in holder.peers() if peer.connection.peer_id not in have]
            generations.mark(holder, start, end, owners)

    # --- reading -----------------------------------------------------------------------------------------------

    def read(self, kernel: Kernel, volume: Volume, block: int) -> int:
        """I2: locally when current, else from an UpToDate peer that may be read."""
        if volume.resource.fail_io or not data_accessible(volume):
            raise DeviceError(errno.EIO, "Input/output error")
        if volume.backing is not None and self._clean(volume, block):
            try:
                value = volume.backing.device.read(block)
            except DeviceError:
                self.fail_disk(kernel, volume)  # I8: the read goes on at a peer (S19 #65)
            else:
                volume.read += _KIB
                return value
        for peer in volume.peers():
            other = self.resync.mirror(peer)
            usable = peer.disk is Disk.UP_TO_DATE and peer.connection.remote_read
            if usable and other is not None and other.volume.backing is not None:
                peer.received += _KIB
                other.volume.read += _KIB
                other.sent += _KIB
                return other.volume.backing.device.read(block)
        raise DeviceError(errno.EIO, "Input/output error")

    def _clean(self, volume: Volume, block: int) -> bool:
        if volume.disk is Disk.UP_TO_DATE:
            return True
        if volume.disk is not Disk.INCONSISTENT:
            return False
        return all(peer.out_of_sync is not None and block not in peer.out_of_sync for peer in volume.peers())
