"""Room in the volume groups, at every scrape: full pools are the failure that can be seen coming."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.machinery.gauges import Gauges, Samples
from quorate.machinery.metrics import MetricSpec, Sample
from quorate.machinery.reader import Reader

_LABELS = ("lvg", "thin_pool", "node")
SIZE = MetricSpec("sds_lvg_size_bytes", "gauge", "Size of a volume group, or of a thin pool in it", _LABELS)
FREE = MetricSpec(
    "sds_lvg_free_bytes", "gauge", "Free space of a volume group, or unused space of a thin pool in it", _LABELS
)
ALLOCATED = MetricSpec(
    "sds_lvg_allocated_bytes", "gauge", "Sum of the sizes of the logical volumes in a thin pool", _LABELS
)
ELIGIBLE = MetricSpec("sds_rsp_eligible_nodes", "gauge", "Nodes that replicas of the pool may be placed on", ("name",))


def compute(reader: Reader) -> Samples:
    """Sizes that the node reports, and how many nodes each pool has."""
    groups = reader.list(LVMVolumeGroup)
    return {
        SIZE.name: tuple(_sizes(groups)),
        FREE.name: tuple(_free(groups)),
        ALLOCATED.name: tuple(_allocated(groups)),
        ELIGIBLE.name: tuple(
            Sample((pool.metadata.name,), len(pool.status.eligible_nodes))
            for pool in reader.list(ReplicatedStoragePool)
        ),
    }


def _sample(group: LVMVolumeGroup, thin_pool: str, value: int) -> Sample:
    node = group.spec.local.node_name if group.spec.local is not None else "unknown"
    return Sample((group.metadata.name, thin_pool, node), value)


def _sizes(groups: tuple[LVMVolumeGroup, ...]) -> Iterable[Sample]:
    for group in groups:
        if group.status.vg_size is not None:
            yield _sample(group, "", group.status.vg_size.value)
        for pool in group.status.thin_pools:
            if pool.actual_size is not None:
                yield _sample(group, pool.name, pool.actual_size.value)


def _free(groups: tuple[LVMVolumeGroup, ...]) -> Iterable[Sample]:
    for group in groups:
        if group.status.vg_free is not None:
            yield _sample(group, "", group.status.vg_free.value)
        for pool in group.status.thin_pools:
            if pool.actual_size is not None:
                yield _sample(group, pool.name, _left(pool.actual_size, pool.used_size))


def _allocated(groups: tuple[LVMVolumeGroup, ...]) -> Iterable[Sample]:
    for group in groups:
        for pool in group.status.thin_pools:
            if pool.allocated_size is not None:
                yield _sample(group, pool.name, pool.allocated_size.value)


def _left(size: Quantity, used: Quantity | None) -> int:
    return max(0, size.value - (used.value if used is not None else 0))


GAUGES = Gauges((SIZE, FREE, ALLOCATED, ELIGIBLE), compute)
