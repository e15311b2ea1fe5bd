"""How much room a volume group or a thin pool has, from the objects alone (facts/controllers 6.3). Pure.

`available = min(total − Σ volumes − unaccounted, reported free)`, before reservations:

* *Σ volumes* counts every logical volume object with the larger of asked and actual size, also one that is not made yet or
  is being deleted: what is promised is not free;
* *unaccounted* is what LVM reports as used beyond our objects (foreign volumes, metadata, thin pools in a thick group);
* *reported free* is the last word of the node, which may be newer or older than our objects: the smaller number wins.

A place whose size is not reported has no known capacity and is left out.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.lvm_volume_group import LVMVolumeGroup, ThinPoolStatus
from quorate.api.quantity import Quantity
from quorate.extender.reservations import Place

DEFAULT_ALLOCATION_LIMIT = 150
"""Per cent of a thin pool's size that may be promised when the pool does not say."""


class Capacity(NamedTuple):
    """Bytes of a place."""

    total: int
    available: int


def compute_capacities(group: LVMVolumeGroup, volumes: Iterable[LVMLogicalVolume]) -> dict[Place, Capacity]:
    """The known capacities of a volume group: the group itself and its thin pools."""
    name = group.metadata.name
    thick: list[LVMLogicalVolume] = []
    thin: dict[str, list[LVMLogicalVolume]] = {}
    for volume in volumes:
        if volume.spec.thin is None:
            thick.append(volume)
        else:
            thin.setdefault(volume.spec.thin.pool_name, []).append(volume)
    found: dict[Place, Capacity] = {}
    capacity = _compute_thick(group, thick)
    if capacity is not None:
        found[Place(name)] = capacity
    for pool in group.status.thin_pools:
        capacity = _compute_thin(group, pool, thin.get(pool.name, []))
        if capacity is not None:
            found[Place(name, pool.name)] = capacity
    return found


def _compute_thick(group: LVMVolumeGroup, volumes: list[LVMLogicalVolume]) -> Capacity | None:
    size, free = group.status.vg_size, group.status.vg_free
    if size is None or free is None:
        return None
    pools = sum(_bytes(pool.actual_size) for pool in group.status.thin_pools)
    used = size.value - free.value
    unaccounted = max(0, used - pools - _existing(volumes))
    return Capacity(size.value, min(size.value - _promised(volumes) - pools - unaccounted, free.value))


def _compute_thin(group: LVMVolumeGroup, pool: ThinPoolStatus, volumes: list[LVMLogicalVolume]) -> Capacity | None:
    if pool.actual_size is None:
        return None
    total = pool.actual_size.value * _allocation_limit(group, pool) // 100
    allocated = _bytes(pool.allocated_size)
    unaccounted = max(0, allocated - _existing(volumes))
    reported = pool.available_space.value if pool.available_space is not None else total - allocated
    return Capacity(total, min(total - _promised(volumes) - unaccounted, reported))


def _allocation_limit(group: LVMVolumeGroup, pool: ThinPoolStatus) -> int:
    declared = next((item.allocation_limit for item in group.spec.thin_pools if item.name == pool.name), "")
    for text in (pool.allocation_limit, declared):
        number = text.removesuffix("%")
        if number.isdecimal():
            return int(number)
    return DEFAULT_ALLOCATION_LIMIT


def _bytes(quantity: Quantity | None) -> int:
    return quantity.value if quantity is not None else 0


def _existing(volumes: list[LVMLogicalVolume]) -> int:
    return sum(_bytes(volume.status.actual_size) for volume in volumes)


def _promised(volumes: list[LVMLogicalVolume]) -> int:
    return sum(max(volume.spec.size.value, _bytes(volume.status.actual_size)) for volume in volumes)
