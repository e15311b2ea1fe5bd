"""The state of LVM on one node: physical volumes, volume groups, logical volumes and thin pools.

Guarantees: extents are never handed out twice; a volume that is open or mapped by another device is never removed; a
volume never shrinks. Every refusal is an :class:`LvmError` carrying the text and the exit code the real tools give.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from enum import Enum

from quorate.simulator.blocks import MemoryDisk
from quorate.simulator.lvm_devices import CHUNK, PoolSpace, ThinDisk

MIB = 1024 * 1024
PV_HEADER = MIB
DEFAULT_EXTENT = 4 * MIB


class LvmError(Exception):
    """A refusal: what goes to standard error, and the exit code."""

    def __init__(self, text: str, exit_code: int = 5) -> None:
        super().__init__(text)
        self.text = text
        self.exit_code = exit_code


class Kind(Enum):
    """What a logical volume is; the value is the first letter of its attributes."""

    LINEAR = "-"
    THIN = "V"
    POOL = "t"
    POOL_METADATA = "e"


@dataclass
class PhysicalVolume:
    """A disk given to LVM."""

    name: str
    size: int
    uuid: str
    group: str = ""
    used_extents: int = 0

    def extents(self, extent_size: int) -> int:
        return max(self.size - PV_HEADER, 0) // extent_size


@dataclass
class LogicalVolume:
    """One logical volume; ``extents`` is the virtual size for thin ones, which take no extents themselves."""

    name: str
    group: str
    kind: Kind
    extents: int
    uuid: str
    disk: MemoryDisk | None = None
    space: PoolSpace | None = None
    pool: str = ""
    origin: str = ""
    thin_id: int = 0
    tags: tuple[str, ...] = ()
    contiguous: bool = False
    active: bool = True
    suspended: bool = False
    allocation: dict[str, int] = field(default_factory=dict[str, int])

    @property
    def path(self) -> str:
        return f"/dev/{self.group}/{self.name}"

    @property
    def in_use(self) -> bool:
        return self.disk is not None and self.disk.users > 0


@dataclass
class VolumeGroup:
    """A volume group and what is in it, in order of creation."""

    name: str
    uuid: str
    extent_size: int
    volumes: dict[str, LogicalVolume] = field(default_factory=dict[str, LogicalVolume])
    tags: tuple[str, ...] = ()
    next_thin_id: int = 1
    failed: bool = False  # a fault: its disks answer with errors, so nothing can be created
    hidden: int = 0  # how many of the volumes no report shows by default

    def add(self, volume: LogicalVolume) -> None:
        self.volumes[volume.name] = volume
        self.hidden += volume.kind is Kind.POOL_METADATA

    def drop(self, volume: LogicalVolume) -> None:
        del self.volumes[volume.name]
        self.hidden -= volume.kind is Kind.POOL_METADATA


class LvmState:
    """All of LVM on a node, with the changes the commands make."""

    def __init__(self, node: str) -> None:
        self._node = node
        self.serial = 0
        self.physical: dict[str, PhysicalVolume] = {}
        self.groups: dict[str, VolumeGroup] = {}

    # --- looking things up -------------------------------------------------------------------------------------

    def group(self, name: str) -> VolumeGroup:
        found = self.groups.get(name)
        if found is None:
            raise LvmError(f'Volume group "{name}" not found\n  Cannot process volume group {name}')
        return found

    def volume(self, group: str, name: str) -> LogicalVolume:
        found = self.group(group).volumes.get(name)
        if found is None:
            raise LvmError(f'Failed to find logical volume "{group}/{name}"')
        return found

    def members(self, group: VolumeGroup) -> list[PhysicalVolume]:
        return [pv for pv in self.physical.values() if pv.group == group.name]

    def total_extents(self, group: VolumeGroup) -> int:
        return sum(pv.extents(group.extent_size) for pv in self.members(group))

    def free_extents(self, group: VolumeGroup) -> int:
        return self.total_extents(group) - sum(pv.used_extents for pv in self.members(group))

    # --- physical volumes and groups ---------------------------------------------------------------------------

    def create_physical(self, name: str, size: int) -> PhysicalVolume:
        known = self.physical.get(name)
        if known is not None and known.group:
            raise LvmError(f'Can\'t initialize physical volume "{name}" of volume group "{known.group}" without -ff')
        self.physical[name] = PhysicalVolume(name, size, self._uuid(name))
        return self.physical[name]

    def create_group(
        self, name: str, disks: tuple[str, ...], extent_size: int = DEFAULT_EXTENT, tags: tuple[str, ...] = ()
    ) -> VolumeGroup:
        if name in self.groups:
            raise LvmError(f"A volume group called {name} already exists.")
        group = VolumeGroup(name, self._uuid(name), extent_size, tags=tags)
        self.extend_group(group, disks)
        self.groups[name] = group
        return group

    def extend_group(self, group: VolumeGroup, disks: tuple[str, ...]) -> None:
        for disk in disks:
            pv = self.physical.get(disk)
            if pv is None:
                raise LvmError(f"No device found for {disk}.")
            if pv.group:
                raise LvmError(f"Physical volume '{disk}' is already in volume group '{pv.group}'")
        for disk in disks:
            self.physical[disk].group = group.name

    def remove_group(self, group: VolumeGroup) -> None:
        if group.volumes:
            raise LvmError(f'Volume group "{group.name}" still contains {len(group.volumes)} logical volume(s)')
        for pv in self.members(group):
            pv.group, pv.used_extents = "", 0
        del self.groups[group.name]

    # --- logical volumes ---------------------------------------------------------------------------------------

    def create_linear(
        self, group: VolumeGroup, name: str, extents: int, *, contiguous: bool, tags: tuple[str, ...]
    ) -> LogicalVolume:
        self._refuse_existing(group, name)
        volume = LogicalVolume(name, group.name, Kind.LINEAR, 0, self._uuid(name), tags=tags, contiguous=contiguous)
        self._allocate(group, volume, extents)
        volume.disk = MemoryDisk(volume.path, extents * group.extent_size)
        group.add(volume)
        return volume

    def create_pool(self, group: VolumeGroup, name: str, extents: int) -> LogicalVolume:
        """A thin pool: its data, its metadata volume, and once per group a spare for repairs."""
        self._refuse_existing(group, name)
        metadata = self._metadata_extents(group, extents)
        spare = 0 if any(lv.name == "lvol0_pmspare" for lv in group.volumes.values()) else metadata
        self._require(group, extents + metadata + spare)
        pool = LogicalVolume(name, group.name, Kind.POOL, 0, self._uuid(name))
        self._allocate(group, pool, extents)
        pool.space = PoolSpace(extents * group.extent_size)
        hidden = [LogicalVolume(f"{name}_tmeta", group.name, Kind.POOL_METADATA, 0, self._uuid(name), pool=name)]
        if spare:
            hidden.append(LogicalVolume("lvol0_pmspare", group.name, Kind.POOL_METADATA, 0, self._uuid(name)))
        for volume in hidden:
            self._allocate(group, volume, metadata)
            group.add(volume)
        group.add(pool)
        return pool

    def create_thin(
        self, group: VolumeGroup, pool: LogicalVolume, name: str, size: int, *, tags: tuple[str, ...], origin: str = ""
    ) -> LogicalVolume:
        self._refuse_existing(group, name)
        if pool.kind is not Kind.POOL or pool.space is None:
            raise LvmError(f"Logical volume {group.name}/{pool.name} is not a thin pool.")
        if pool.space.full:
            raise LvmError(
                f"Free space in pool {group.name}/{pool.name} is above threshold, new volumes are not allowed."
            )
        extents = -(-size // group.extent_size)
        volume = LogicalVolume(name, group.name, Kind.THIN, extents, self._uuid(name), pool=pool.name, tags=tags)
        disk = ThinDisk(volume.path, extents * group.extent_size, pool.space)
        if origin:
            source = self.volume(group.name, origin)
            if not isinstance(source.disk, ThinDisk):
                raise LvmError(f"Logical volume {group.name}/{origin} is not a thin volume.")
            disk.copy_from(source.disk)
            volume.origin = origin
        volume.disk, volume.thin_id = disk, group.next_thin_id
        group.next_thin_id += 1
        group.add(volume)
        return volume

    def extend(self, volume: LogicalVolume, extents: int) -> None:
        group = self.group(volume.group)
        if extents == volume.extents:
            raise LvmError(
                f"New size ({extents} extents) matches existing size ({volume.extents} extents).\n  No size change."
            )
        if extents < volume.extents:
            raise LvmError(
                f"New size given ({extents} extents) not larger than existing size ({volume.extents} extents)"
            )
        if volume.kind is Kind.THIN:
            volume.extents = extents
        else:
            self._allocate(group, volume, extents - volume.extents)
        if volume.disk is not None:
            volume.disk.resize(volume.extents * group.extent_size)
        if volume.space is not None:
            volume.space.size = volume.extents * group.extent_size

    def remove(self, volume: LogicalVolume) -> tuple[str, ...]:
        """Remove a volume and, for a pool, what lives in it; the names removed, in order."""
        group = self.group(volume.group)
        candidates = group.volumes.values() if volume.kind is Kind.POOL else ()
        doomed = [lv for lv in candidates if lv.pool == volume.name]
        for each in (*doomed, volume):
            if each.in_use:
                raise LvmError(f"Logical volume {group.name}/{each.name} is used by another device.")
        for each in (*doomed, volume):
            if isinstance(each.disk, ThinDisk):
                each.disk.release()
            for disk, extents in each.allocation.items():
                self.physical[disk].used_extents -= extents
            group.drop(each)
        return tuple(each.name for each in (*doomed, volume) if each.kind is not Kind.POOL_METADATA)

    # --- inside ------------------------------------------------------------------------------------------------

    def _refuse_existing(self, group: VolumeGroup, name: str) -> None:
        if group.failed:
            raise LvmError(
                f"Error writing device of {group.name}: Input/output error\n  Failed to write VG {group.name}."
            )
        if name in group.volumes:
            raise LvmError(f'Logical Volume "{name}" already exists in volume group "{group.name}"')

    def _require(self, group: VolumeGroup, extents: int) -> None:
        free = self.free_extents(group)
        if free < extents:
            raise LvmError(
                f'Volume group "{group.name}" has insufficient free space ({free} extents): {extents} required.'
            )

    def _allocate(self, group: VolumeGroup, volume: LogicalVolume, extents: int) -> None:
        self._require(group, extents)
        members = self.members(group)
        if volume.contiguous:
            wanted = [pv for pv in members if not volume.allocation or pv.name in volume.allocation]
            members = [pv for pv in wanted if pv.extents(group.extent_size) - pv.used_extents >= extents]
            if not members:
                raise LvmError(f"Insufficient suitable contiguous allocatable extents for logical volume {volume.name}")
        left = extents
        for pv in members:
            share = min(left, pv.extents(group.extent_size) - pv.used_extents)
            if share > 0:
                pv.used_extents += share
                volume.allocation[pv.name] = volume.allocation.get(pv.name, 0) + share
                left -= share
        volume.extents += extents

    def _metadata_extents(self, group: VolumeGroup, extents: int) -> int:
        size = max(extents * group.extent_size // CHUNK * 64, 2 * MIB)
        return -(-size // group.extent_size)

    def _uuid(self, name: str) -> str:
        """Unique on the cluster and the same in every run."""
        self.serial += 1
        text = hashlib.sha256(f"{self._node}/{name}/{self.serial}".encode()).hexdigest()
        return "-".join((text[:6], text[6:10], text[10:14], text[14:18], text[18:22], text[22:26], text[26:32]))


def mapper_path(volume: LogicalVolume) -> str:
    """The device mapper doubles the dashes of both names."""
    return f"/dev/mapper/{volume.group.replace('-', '--')}-{volume.name.replace('-', '--')}"
