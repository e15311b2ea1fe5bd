"""Defaults that the controller writes into a class, and the legacy `storagePool` that it migrates away from."""

from __future__ import annotations

from quorate.api import labels
from quorate.api.replicated_storage_class import (
    INTERNAL_NETWORK,
    ConfigurationRolloutStrategy,
    EligibleNodesConflictResolutionStrategy,
    EligibleNodesPolicy,
    MaxParallel,
    ReplicatedStorageClass,
    Storage,
)
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.value import replace


def with_defaults(found: ReplicatedStorageClass) -> ReplicatedStorageClass:
    """Fill what is absent (facts/controllers 2.2)."""
    spec = found.spec
    if not spec.system_network_names:
        spec = replace(spec, system_network_names=(INTERNAL_NETWORK,))
    if spec.configuration_rollout_strategy is None:
        strategy = ConfigurationRolloutStrategy(type="RollingUpdate", rolling_update=MaxParallel())
        spec = replace(spec, configuration_rollout_strategy=strategy)
    if spec.eligible_nodes_conflict_resolution_strategy is None:
        repair = EligibleNodesConflictResolutionStrategy(type="RollingRepair", rolling_repair=MaxParallel())
        spec = replace(spec, eligible_nodes_conflict_resolution_strategy=repair)
    if spec.eligible_nodes_policy is None:
        spec = replace(spec, eligible_nodes_policy=EligibleNodesPolicy())
    return found if spec is found.spec else replace(found, spec=spec)


def with_finalizer(found: ReplicatedStorageClass) -> ReplicatedStorageClass:
    """Own finalizer on (never while deleting), legacy finalizer off, in one patch."""
    meta = found.metadata
    kept = tuple(f for f in meta.finalizers if f != labels.FINALIZER_STORAGE_CLASS_LEGACY)
    if labels.FINALIZER_STORAGE_CLASS not in kept and not meta.deleting:
        kept = (*kept, labels.FINALIZER_STORAGE_CLASS)
    if kept == meta.finalizers:
        return found
    return replace(found, metadata=replace(meta, finalizers=kept))


def migrated(found: ReplicatedStorageClass, legacy: ReplicatedStoragePool) -> ReplicatedStorageClass:
    """`storagePool` becomes `storage` (or just goes, when `storage` is already there)."""
    spec = replace(found.spec, storage_pool="")
    if spec.storage is None:
        storage = Storage(type=legacy.spec.type, lvm_volume_groups=legacy.spec.lvm_volume_groups)
        spec = replace(spec, storage=storage)
    return replace(found, spec=spec)


def differs(found: ReplicatedStorageClass, legacy: ReplicatedStoragePool) -> bool:
    """Whether an explicit `storage` says something else than the pool that `storagePool` names."""
    storage = found.spec.storage
    if storage is None:
        return False
    mine = sorted((group.name, group.thin_pool_name) for group in storage.lvm_volume_groups)
    theirs = sorted((group.name, group.thin_pool_name) for group in legacy.spec.lvm_volume_groups)
    return storage.type != legacy.spec.type or mine != theirs
