"""Accepting a configuration: the pool is ready and its eligible nodes can carry the layout (facts/controllers 2.6, 2.7)."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api import conditions
from quorate.api.replicated_storage_class import (
    ReadyCondition,
    ReplicatedStorageClass,
    ReplicatedStorageClassStatus,
    StoragePoolReadyCondition,
)
from quorate.api.replicated_storage_pool import EligibleNode, ReplicatedStoragePool
from quorate.api.replicated_storage_pool import ReadyCondition as PoolReadyCondition
from quorate.api.replicated_volume import VolumeConfiguration
from quorate.api.value import replace
from quorate.datamesh.layout import Layout, is_valid, layout_of

REPLICATION_WORDS: dict[str, tuple[int, int]] = {
    "None": (0, 0),
    "Availability": (1, 0),
    "Consistency": (0, 1),
    "ConsistencyAndAvailability": (1, 1),
}
"""The older words and what they mean as (FTT, GMDR)."""
DEFAULT_PROMISE = (1, 1)
EVENTUALLY_LOCAL_NOTE = "volumeAccess EventuallyLocal behaves like PreferablyLocal"


def promise_of(found: ReplicatedStorageClass) -> tuple[int, int]:
    """(FTT, GMDR) of a class; replication words are mapped, nothing at all means (1, 1)."""
    spec = found.spec
    if spec.failures_to_tolerate is not None and spec.guaranteed_minimum_data_redundancy is not None:
        return spec.failures_to_tolerate, spec.guaranteed_minimum_data_redundancy
    return REPLICATION_WORDS.get(spec.replication, DEFAULT_PROMISE)


def intended(found: ReplicatedStorageClass, pool_name: str) -> VolumeConfiguration:
    """The configuration that volumes of the class shall have."""
    ftt, gmdr = promise_of(found)
    return VolumeConfiguration(
        replicated_storage_pool_name=pool_name,
        topology=found.spec.topology,
        failures_to_tolerate=ftt,
        guaranteed_minimum_data_redundancy=gmdr,
        volume_access=found.spec.volume_access,
    )


def ensure_pool_fields(
    found: ReplicatedStorageClass,
    status: ReplicatedStorageClassStatus,
    pool: ReplicatedStoragePool | None,
    pool_name: str,
    now: float,
) -> ReplicatedStorageClassStatus:
    """Pool name and StoragePoolReady, which mirrors the pool's Ready."""
    ready = conditions.get(pool.status.conditions, PoolReadyCondition.TYPE) if pool is not None else None
    if pool is None:
        message = f"ReplicatedStoragePool {pool_name} does not exist"
        value, reason = conditions.FALSE, StoragePoolReadyCondition.STORAGE_POOL_NOT_FOUND
    elif ready is None:
        message = f"ReplicatedStoragePool {pool_name} has not reported Ready yet"
        value, reason = conditions.UNKNOWN, StoragePoolReadyCondition.PENDING
    else:
        value, reason, message = ready.status, ready.reason, ready.message
    changed = with_condition(found, status, StoragePoolReadyCondition.TYPE, value, reason, message, now)
    return replace(changed, storage_pool_name=pool_name, storage_pool_based_on_generation=found.metadata.generation)


def ensure_configuration(
    found: ReplicatedStorageClass,
    status: ReplicatedStorageClassStatus,
    pool: ReplicatedStoragePool | None,
    now: float,
) -> ReplicatedStorageClassStatus:
    """Accept the configuration, or say why not and keep the previous one."""
    target = intended(found, status.storage_pool_name)
    pending = _pending_difference(status.configuration, target)
    if pool is None or not conditions.is_true(status.conditions, StoragePoolReadyCondition.TYPE):
        pool_ready = conditions.get(status.conditions, StoragePoolReadyCondition.TYPE)
        message = (
            f"{pending}waiting for the storage pool: {pool_ready.message if pool_ready is not None else 'unknown'}"
        )
        return with_condition(
            found, status, ReadyCondition.TYPE, conditions.FALSE, ReadyCondition.WAITING_FOR_STORAGE_POOL, message, now
        )
    generation = found.metadata.generation
    in_sync = status.configuration == target and status.configuration_generation == generation
    revision = pool.status.eligible_nodes_revision
    if not in_sync or status.storage_pool_eligible_nodes_revision != revision:
        problem = find_problem(target, pool.status.eligible_nodes)
        if problem:
            reason = ReadyCondition.INSUFFICIENT_ELIGIBLE_NODES
            return with_condition(
                found, status, ReadyCondition.TYPE, conditions.FALSE, reason, f"{pending}{problem}", now
            )
    accepted = replace(
        status,
        configuration=target,
        configuration_generation=generation,
        storage_pool_eligible_nodes_revision=revision,
    )
    note = f" ({EVENTUALLY_LOCAL_NOTE})" if found.spec.volume_access == "EventuallyLocal" else ""
    message = f"The class is ready for volumes{note}"
    return with_condition(found, accepted, ReadyCondition.TYPE, conditions.TRUE, ReadyCondition.READY, message, now)


def find_problem(target: VolumeConfiguration, nodes: Iterable[EligibleNode]) -> str:
    """Why the eligible nodes cannot carry the layout; readiness and cordons do not matter here (2.7)."""
    if not is_valid(target.failures_to_tolerate, target.guaranteed_minimum_data_redundancy):
        return "failuresToTolerate and guaranteedMinimumDataRedundancy must be 0..2 and at most 1 apart"
    layout = layout_of(target.failures_to_tolerate, target.guaranteed_minimum_data_redundancy)
    listed = tuple(nodes)
    head = f"{layout} (FTT={layout.ftt}, GMDR={layout.gmdr}, {target.topology})"
    if not listed:
        return f"{head} needs eligible nodes; the pool has none"
    if target.topology == "TransZonal":
        return _trans_zonal_problem(head, layout, listed)
    if target.topology == "Zonal":
        zones = sorted({node.zone_name for node in listed})
        found = (
            _count_problem(
                f"{head} in zone {zone or '(none)'}", layout, tuple(n for n in listed if n.zone_name == zone)
            )
            for zone in zones
        )
        return next((problem for problem in found if problem), "")
    return _count_problem(head, layout, listed)


def _trans_zonal_problem(head: str, layout: Layout, nodes: tuple[EligibleNode, ...]) -> str:
    zones = {node.zone_name for node in nodes}
    with_disk = {node.zone_name for node in nodes if node.lvm_volume_groups}
    need, need_disk = trans_zonal_minimum(layout)
    if len(zones) < need or len(with_disk) < need_disk:
        return (
            f"{head} needs {need} zones, {need_disk} of them with volume groups; "
            f"the pool has {len(zones)} and {len(with_disk)}"
        )
    return _count_problem(head, layout, nodes)


def trans_zonal_minimum(layout: Layout) -> tuple[int, int]:
    """Smallest number of zones, and of zones with disks, over which the layout can be spread."""
    match (layout.ftt, layout.gmdr):
        case (0, 1):
            return 2, 2
        case (1, 0):
            return 3, 2
        case (1, 2):
            return 4, 4
        case _:
            return 3, 3


def _count_problem(head: str, layout: Layout, nodes: tuple[EligibleNode, ...]) -> str:
    need, need_disk = layout.diskful + layout.tie_breakers, layout.diskful
    have, have_disk = len(nodes), sum(bool(node.lvm_volume_groups) for node in nodes)
    if have >= need and have_disk >= need_disk:
        return ""
    return f"{head} needs {need} nodes, {need_disk} of them with volume groups; the pool has {have} and {have_disk}"


def _pending_difference(current: VolumeConfiguration | None, target: VolumeConfiguration) -> str:
    """What is about to change, as the prefix of a message."""
    if current is None:
        return "initial configuration: "
    fields = (
        ("FTT", current.failures_to_tolerate, target.failures_to_tolerate),
        ("GMDR", current.guaranteed_minimum_data_redundancy, target.guaranteed_minimum_data_redundancy),
        ("topology", current.topology, target.topology),
        ("volumeAccess", current.volume_access, target.volume_access),
        ("pool", current.replicated_storage_pool_name, target.replicated_storage_pool_name),
    )
    changed = ", ".join(f"{name} {old} -> {new}" for name, old, new in fields if old != new)
    return f"{changed}: " if changed else ""


def with_condition(
    found: ReplicatedStorageClass,
    status: ReplicatedStorageClassStatus,
    type_: str,
    value: str,
    reason: str,
    message: str,
    now: float,
) -> ReplicatedStorageClassStatus:
    """The status with one condition set."""
    changed = conditions.set_(
        status.conditions,
        type_,
        status=value,
        reason=reason,
        message=message,
        generation=found.metadata.generation,
        now=now,
    )
    return status if changed is status.conditions else replace(status, conditions=changed)
