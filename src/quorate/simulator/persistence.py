"""Disks that outlive the process: LVM, DRBD metadata and block contents of every node in one append-only file.

Guarantees: the file holds the disks of all nodes as they were at one moment between two events of the simulation, so
that the end of the process, kill -9 included, is a power loss of all machines at that moment. Every change is written
with one `os.write` before the event loop turns to anybody who could learn of it (the page cache survives the process);
a torn last record was seen by nobody and is cut off. The file is rewritten at the start and when most of it is history.
Chunks of thin volumes are taken again by what is written in them.
"""

from __future__ import annotations

import dataclasses
import os
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import msgspec

from quorate.simulator.blocks import MemoryDisk
from quorate.simulator.lvm import Lvm
from quorate.simulator.lvm_devices import PoolSpace, ThinDisk
from quorate.simulator.lvm_model import Kind, LogicalVolume, PhysicalVolume, VolumeGroup
from quorate.simulator.metadata import Metadata, PeerEntry
from quorate.simulator.ranges import BlockRanges

FILE = "disks.journal"
MAGIC = b"quorate disks 1\n"
HEAD = 8
"""Bytes before each record: its length and its checksum."""
SMALL = 8 << 20
"""A file below this many bytes is never rewritten while it is used."""
GROWTH = 4
"""How many times larger than after its last rewriting the file may become."""


class DisksDamaged(Exception):
    """The file cannot be used, as a sentence for people."""


Field = int | bool | list[int]


class MetadataRow(msgspec.Struct, frozen=True, array_like=True):
    """DRBD metadata: plain fields by name, peers that are not in their first state, bitmaps as ranges."""

    fields: dict[str, Field]
    peers: list[tuple[int, dict[str, int | bool]]]
    bitmaps: list[list[tuple[int, int]]]


class PhysicalRow(msgspec.Struct, frozen=True, array_like=True):
    name: str
    size: int
    uuid: str
    group: str


class GroupRow(msgspec.Struct, frozen=True, array_like=True):
    name: str
    uuid: str
    extent_size: int
    tags: tuple[str, ...]
    next_thin_id: int


class VolumeRow(msgspec.Struct, frozen=True, array_like=True):
    name: str
    group: str
    kind: str
    extents: int
    uuid: str
    pool: str
    origin: str
    thin_id: int
    tags: tuple[str, ...]
    contiguous: bool
    allocation: dict[str, int]


class LvmChange(msgspec.Struct, frozen=True, array_like=True, tag="lvm"):
    """LVM of a node: its few disks and groups as a whole, volumes by difference."""

    node: str
    serial: int
    sizes: dict[str, int]
    physical: list[PhysicalRow]
    groups: list[GroupRow]
    volumes: list[VolumeRow]
    removed: list[str]
    """Identifiers of volumes that are gone."""


class DiskChange(msgspec.Struct, frozen=True, array_like=True, tag="disk"):
    """Blocks and structures of a volume, by the identifier of the volume; 0 is an erased block."""

    node: str
    uuid: str
    blocks: dict[int, int]
    structures: dict[int, MetadataRow | None]


Change = LvmChange | DiskChange
_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(list[Change])


@dataclasses.dataclass
class _Kept:
    """What the file says about a node."""

    lvm: LvmChange | None = None
    volumes: dict[str, VolumeRow] = dataclasses.field(default_factory=dict[str, VolumeRow])
    blocks: dict[str, dict[int, int]] = dataclasses.field(default_factory=dict[str, dict[int, int]])
    structures: dict[str, dict[int, MetadataRow]] = dataclasses.field(default_factory=dict[str, dict[int, MetadataRow]])

    def apply(self, change: Change) -> None:
        match change:
            case LvmChange():
                self.lvm = change
                for uuid in change.removed:
                    self.volumes.pop(uuid, None)
                    self.blocks.pop(uuid, None)
                    self.structures.pop(uuid, None)
                self.volumes.update({row.uuid: row for row in change.volumes})
            case DiskChange():
                blocks = self.blocks.setdefault(change.uuid, {})
                blocks.update(change.blocks)
                structures = self.structures.setdefault(change.uuid, {})
                for offset, row in change.structures.items():
                    if row is None:
                        structures.pop(offset, None)
                    else:
                        structures[offset] = row


@dataclasses.dataclass
class _Dirty:
    """What changed on one disk since the last record."""

    node: str
    uuid: str
    disk: MemoryDisk
    blocks: set[int] = dataclasses.field(default_factory=set[int])
    structures: set[int] = dataclasses.field(default_factory=set[int])


class DiskJournal:
    """See the module docstring. `defer` runs a callback before anything that is scheduled later (`loop.call_soon`)."""

    def __init__(self, directory: Path, defer: Callable[[Callable[[], None]], object]) -> None:
        self._path = directory / FILE
        self._defer = defer
        self._kept = _read(self._path)
        self._machines: dict[str, Lvm] = {}
        self._rows: dict[str, dict[str, VolumeRow]] = {}
        self._owners: dict[int, _Dirty] = {}
        """By identity of the disk: where it belongs and what changed on it."""
        self._dirty_disks: dict[int, _Dirty] = {}
        self._dirty_machines: set[str] = set()
        self._scheduled = False
        self._descriptor: int | None = None
        self._size = 0
        self._limit = SMALL
        self.on_failure: Callable[[OSError], None] | None = None
        """Hears why nothing is kept any more."""

    def adopt(self, node: str, lvm: Lvm) -> None:
        """Give a fresh machine the disks it had, if there are any, and keep what happens to them from now on."""
        kept = self._kept.pop(node, None)
        if kept is not None and kept.lvm is not None:
            _restore(lvm, kept.lvm, kept)
        self._machines[node] = lvm
        self._rows[node] = {}
        lvm.on_change = lambda: self._machine_changed(node)
        self._machine_changed(node)

    def start(self) -> None:
        """All machines are adopted: rewrite the file and keep every change."""
        self._compact()

    def highest(self) -> int:
        """The highest number that any block holds."""
        disks = (v.disk for lvm in self._machines.values() for v in _volumes(lvm) if v.disk is not None)
        return max((value for disk in disks for value in disk.contents().values()), default=0)

    def commit(self) -> None:
        """Write everything that changed as one record."""
        self._scheduled = False
        if self._descriptor is None or not (self._dirty_disks or self._dirty_machines):
            return
        changes: list[Change] = [self._lvm_change(node) for node in sorted(self._dirty_machines)]
        self._dirty_machines.clear()
        dirty, self._dirty_disks = self._dirty_disks, {}
        changes += [_disk_change(each) for each in dirty.values() if each.uuid in self._rows[each.node]]
        try:
            self._append(self._descriptor, changes)
            if self._size > self._limit:
                self._compact()
        except OSError as error:
            self.close()
            if self.on_failure is not None:
                self.on_failure(error)

    def close(self) -> None:
        """Stop keeping changes."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    # What disks tell

    def wrote(self, disk: MemoryDisk, blocks: Iterable[int]) -> None:
        self._mark(disk).blocks.update(blocks)

    def structured(self, disk: MemoryDisk, offset: int) -> None:
        self._mark(disk).structures.add(offset)

    def _mark(self, disk: MemoryDisk) -> _Dirty:
        # A volume is never removed while somebody can write to it, so a disk that tells something is known.
        found = self._owners[id(disk)]
        self._dirty_disks[id(disk)] = found
        self._schedule()
        return found

    def _machine_changed(self, node: str) -> None:
        self._dirty_machines.add(node)
        for volume in _volumes(self._machines[node]):
            self._follow(node, volume)
        self._schedule()

    def _schedule(self) -> None:
        if not self._scheduled and self._descriptor is not None:
            self._scheduled = True
            self._defer(self.commit)

    def _follow(self, node: str, volume: LogicalVolume) -> None:
        disk = volume.disk
        if disk is None or id(disk) in self._owners:
            return
        whole = _Dirty(node, volume.uuid, disk, set(disk.contents()), set(disk.structures()))
        self._owners[id(disk)] = whole
        if whole.blocks or whole.structures:
            self._dirty_disks[id(disk)] = whole
        disk.watch(self)

    # Records

    def _lvm_change(self, node: str) -> LvmChange:
        lvm, before = self._machines[node], self._rows[node]
        now = {volume.uuid: _volume_row(volume) for volume in _volumes(lvm)}
        removed = [uuid for uuid in before if uuid not in now]
        changed = [row for uuid, row in now.items() if before.get(uuid) != row]
        self._rows[node] = now
        if removed:
            self._forget(node, now)
        return LvmChange(
            node,
            lvm.state.serial,
            dict(lvm.sizes),
            [PhysicalRow(pv.name, pv.size, pv.uuid, pv.group) for pv in lvm.state.physical.values()],
            [GroupRow(g.name, g.uuid, g.extent_size, g.tags, g.next_thin_id) for g in lvm.state.groups.values()],
            changed,
            removed,
        )

    def _forget(self, node: str, now: dict[str, VolumeRow]) -> None:
        for key in [key for key, owner in self._owners.items() if owner.node == node and owner.uuid not in now]:
            del self._owners[key]
            self._dirty_disks.pop(key, None)

    def _append(self, descriptor: int, changes: list[Change]) -> None:
        body = _ENCODER.encode(changes)
        data = memoryview(len(body).to_bytes(4, "big") + zlib.crc32(body).to_bytes(4, "big") + body)
        self._size += len(data)
        while data:
            data = data[os.write(descriptor, data) :]

    def _compact(self) -> None:
        """A new file with the state of this moment, put in place at once."""
        fresh = self._path.with_suffix(".new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        os.write(descriptor, MAGIC)
        self._size = len(MAGIC)
        for node, lvm in self._machines.items():
            self._rows[node] = {}
            changes: list[Change] = [self._lvm_change(node)]
            for volume in _volumes(lvm):
                if volume.disk is not None:
                    blocks, structures = set(volume.disk.contents()), set(volume.disk.structures())
                    changes.append(_disk_change(_Dirty(node, volume.uuid, volume.disk, blocks, structures)))
            self._append(descriptor, changes)
        self._dirty_machines.clear()
        self._dirty_disks.clear()
        for owner in self._owners.values():
            owner.blocks.clear()
            owner.structures.clear()
        fresh.replace(self._path)
        self.close()
        self._descriptor = descriptor
        self._limit = max(SMALL, GROWTH * self._size)


def _volumes(lvm: Lvm) -> Iterator[LogicalVolume]:
    for group in lvm.state.groups.values():
        yield from group.volumes.values()


# --- reading the file -------------------------------------------------------------------------------------------


def _read(path: Path) -> dict[str, _Kept]:
    """What the file says, up to the first record that is not whole."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return {}
    if not data.startswith(MAGIC):
        raise DisksDamaged(f"{path} does not hold the disks of a local cluster")
    kept: dict[str, _Kept] = {}
    for body in _records(memoryview(data)[len(MAGIC) :]):
        try:
            changes = _DECODER.decode(body)
        except msgspec.MsgspecError as error:
            raise DisksDamaged(f"{path} was written by another version of Quorate: {error}") from error
        for change in changes:
            kept.setdefault(change.node, _Kept()).apply(change)
    return kept


def _records(data: memoryview) -> Iterator[memoryview]:
    while len(data) >= HEAD:
        length, checksum = int.from_bytes(data[:4], "big"), int.from_bytes(data[4:HEAD], "big")
        body = data[HEAD : HEAD + length]
        if len(body) < length or zlib.crc32(body) != checksum:
            return
        yield body
        data = data[HEAD + length :]


# --- values -----------------------------------------------------------------------------------------------------


def _volume_row(volume: LogicalVolume) -> VolumeRow:
    return VolumeRow(
        volume.name,
        volume.group,
        volume.kind.name,
        volume.extents,
        volume.uuid,
        volume.pool,
        volume.origin,
        volume.thin_id,
        volume.tags,
        volume.contiguous,
        dict(volume.allocation),
    )


def _disk_change(dirty: _Dirty) -> DiskChange:
    disk, structures = dirty.disk, dirty.disk.structures()
    blocks = {block: disk.content(block) for block in sorted(dirty.blocks)}
    rows: dict[int, MetadataRow | None] = {}
    for offset in sorted(dirty.structures):
        found = structures.get(offset)
        rows[offset] = _metadata_row(found) if isinstance(found, Metadata) else None
        if isinstance(found, Metadata) and found.on_change is not None:
            # Bitmaps that were put in place of others are followed from now on.
            found.watch(found.on_change)
    dirty.blocks.clear()
    dirty.structures.clear()
    return DiskChange(dirty.node, dirty.uuid, blocks, rows)


_APART = frozenset({"peers", "bitmaps", "on_change"})
_METADATA = tuple(field.name for field in dataclasses.fields(Metadata) if field.name not in _APART)
_PEER = tuple(field.name for field in dataclasses.fields(PeerEntry) if field.name not in _APART)
_FIRST = PeerEntry()
_SETS = frozenset({"members", "log_extents"})


def _metadata_row(metadata: Metadata) -> MetadataRow:
    fields: dict[str, Field] = {}
    for name in _METADATA:
        value: int | bool | list[int] | frozenset[int] = getattr(metadata, name)
        fields[name] = sorted(value) if isinstance(value, frozenset) else value
    peers = [(number, _peer_row(entry)) for number, entry in enumerate(metadata.peers) if entry != _FIRST]
    return MetadataRow(fields, peers, [list(bitmap) for bitmap in metadata.bitmaps])


def _peer_row(entry: PeerEntry) -> dict[str, int | bool]:
    return {name: getattr(entry, name) for name in _PEER if getattr(entry, name) != getattr(_FIRST, name)}


def _metadata(row: MetadataRow) -> Metadata:
    max_peers = row.fields["max_peers"]
    assert isinstance(max_peers, int)
    made = Metadata(max_peers, bitmaps=[BlockRanges(ranges) for ranges in row.bitmaps])
    for name, value in row.fields.items():
        setattr(made, name, frozenset(value) if isinstance(value, list) and name in _SETS else value)
    for number, fields in row.peers:
        for name, value in fields.items():
            setattr(made.peers[number], name, value)
    return made


# --- putting disks back -----------------------------------------------------------------------------------------


def _restore(lvm: Lvm, head: LvmChange, kept: _Kept) -> None:
    """A machine boots: its volume groups are found on its disks, and every volume is active."""
    lvm.sizes.update(head.sizes)
    state = lvm.state
    state.serial = head.serial
    for row in head.physical:
        state.physical[row.name] = PhysicalVolume(row.name, row.size, row.uuid, row.group)
    for row in head.groups:
        group = VolumeGroup(row.name, row.uuid, row.extent_size, tags=row.tags, next_thin_id=row.next_thin_id)
        state.groups[row.name] = group
    for row in kept.volumes.values():
        group = state.groups[row.group]
        volume = _volume(row, group)
        group.add(volume)
        for disk, extents in row.allocation.items():
            state.physical[disk].used_extents += extents
        if volume.disk is not None:
            _fill(volume.disk, kept.blocks.get(row.uuid, {}), kept.structures.get(row.uuid, {}))


def _volume(row: VolumeRow, group: VolumeGroup) -> LogicalVolume:
    volume = LogicalVolume(
        row.name,
        row.group,
        Kind[row.kind],
        row.extents,
        row.uuid,
        pool=row.pool,
        origin=row.origin,
        thin_id=row.thin_id,
        tags=row.tags,
        contiguous=row.contiguous,
        allocation=dict(row.allocation),
    )
    size = row.extents * group.extent_size
    match volume.kind:
        case Kind.LINEAR:
            volume.disk = MemoryDisk(volume.path, size)
        case Kind.POOL:
            volume.space = PoolSpace(size)
        case Kind.THIN:
            space = group.volumes[row.pool].space
            assert space is not None
            volume.disk = ThinDisk(volume.path, size, space)
        case Kind.POOL_METADATA:
            pass
    return volume


def _fill(disk: MemoryDisk, blocks: dict[int, int], structures: dict[int, MetadataRow]) -> None:
    for block, value in blocks.items():
        if value:
            disk.write(block, value)
    for offset, row in structures.items():
        disk.put_structure(offset, _metadata(row))
