"""Volume groups and logical volumes with sizes in GiB."""

from __future__ import annotations

from quorate.api.lvm_logical_volume import LVMLogicalVolume, LVMLogicalVolumeSpec, LVMLogicalVolumeStatus, Phase, Thin
from quorate.api.lvm_volume_group import (
    Local,
    LVMVolumeGroup,
    LVMVolumeGroupSpec,
    LVMVolumeGroupStatus,
    ThinPoolSpec,
    ThinPoolStatus,
)
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.scheduler_extender import FilterAndScore, NarrowReservation, VolumeGroupRef

GIB = 1024**3


def gib(amount: float | None) -> Quantity | None:
    return None if amount is None else Quantity.of(int(amount * GIB))


def pool(
    name: str = "thin",
    size: float | None = 100,
    *,
    allocated: float | None = 0,
    available: float | None = None,
    limit: str = "150%",
) -> ThinPoolStatus:
    return ThinPoolStatus(
        name=name,
        ready=True,
        actual_size=gib(size),
        allocated_size=gib(allocated),
        available_space=gib(available),
        allocation_limit=limit,
    )


def group(
    name: str = "vg", size: float | None = 100, free: float | None = 100, *pools: ThinPoolStatus
) -> LVMVolumeGroup:
    return LVMVolumeGroup(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", resource_version="1"),
        spec=LVMVolumeGroupSpec(
            actual_vg_name_on_the_node=name,
            local=Local(node_name="n1"),
            thin_pools=tuple(ThinPoolSpec(name=item.name, allocation_limit=item.allocation_limit) for item in pools),
        ),
        status=LVMVolumeGroupStatus(vg_size=gib(size), vg_free=gib(free), thin_pools=pools),
    )


def volume(
    name: str, size: float, *, actual: float | None = None, group: str = "vg", thin: str = ""
) -> LVMLogicalVolume:
    """A logical volume; `actual` None = not made yet."""
    asked = gib(size)
    assert asked is not None
    return LVMLogicalVolume(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", resource_version="1"),
        spec=LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=name,
            type="Thin" if thin else "Thick",
            size=asked,
            lvm_volume_group_name=group,
            thin=Thin(pool_name=thin) if thin else None,
        ),
        status=LVMLogicalVolumeStatus(phase=Phase.CREATED if actual is not None else "", actual_size=gib(actual)),
    )


def ask(id: str, size: float, *groups: str, ttl: str = "2s", thin: str = "") -> FilterAndScore:
    return FilterAndScore(
        reservation_id=id,
        reservation_ttl=ttl,
        size=int(size * GIB),
        lvgs=tuple(VolumeGroupRef(name=name, thin_pool_name=thin) for name in groups or ("vg",)),
    )


def keep(id: str, group: str = "vg", *, ttl: str = "1m0s", rename: str = "", thin: str = "") -> NarrowReservation:
    return NarrowReservation(
        reservation_id=id,
        reservation_ttl=ttl,
        lvg=VolumeGroupRef(name=group, thin_pool_name=thin),
        new_reservation_id=rename,
    )
