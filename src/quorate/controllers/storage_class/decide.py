"""The class decision, in the step order of facts/controllers 2.1."""

from __future__ import annotations

from quorate.api import conditions, labels
from quorate.api.replicated_storage_class import (
    ReadyCondition,
    ReplicatedStorageClass,
    ReplicatedStorageClassStatus,
    StoragePoolReadyCondition,
)
from quorate.api.value import replace
from quorate.controllers.storage_class import defaults, kubernetes_class, pool, volumes
from quorate.controllers.storage_class.configuration import ensure_configuration, ensure_pool_fields, with_condition
from quorate.controllers.storage_class.snapshot import Snapshot
from quorate.machinery.effects import Answers, Decision, Effect, Half, Patch


def decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    """What to do about one class now."""
    del answers
    found = snapshot.storage_class
    if found is None or (found.metadata.deleting and not snapshot.volumes):
        return Decision(effects=_deletion(snapshot))
    if found.spec.storage_pool:
        return _migrate(snapshot, found, now)
    if found.spec.storage is None:
        message = "spec.storage is missing: name the volume groups that the class uses"
        return Decision(effects=_invalid(found, message, now))
    return _normal(snapshot, found, now)


def _normal(snapshot: Snapshot, found: ReplicatedStorageClass, now: float) -> Decision:
    prepared = defaults.with_finalizer(defaults.with_defaults(found))
    effects: list[Effect] = []
    if prepared is not found:
        effects.append(Patch(before=found, after=prepared, half=Half.MAIN, cause="defaults and finalizer of the class"))
        if prepared.spec is not found.spec:
            # The generation changes with the spec; conditions are judged for the new one on the next event.
            return Decision(effects=tuple(effects), requeue=True)
    pool_name = pool.pool_name_of(prepared)
    effects.extend(pool.ensure_effects(prepared, snapshot.pool, pool_name))
    effects.extend(kubernetes_class.ensure_effects(prepared, snapshot.kubernetes_class))
    status = _without_old_format(prepared.status)
    status = ensure_pool_fields(prepared, status, snapshot.pool, pool_name, now)
    status = ensure_configuration(prepared, status, snapshot.pool, now)
    status = volumes.ensure_volumes(prepared, status, snapshot.volumes, now)
    status = volumes.ensure_phase(prepared, status)
    effects.extend(_status_patch(prepared, status))
    effects.extend(_release_unused(snapshot, status))
    return Decision(effects=tuple(effects))


def _without_old_format(status: ReplicatedStorageClassStatus) -> ReplicatedStorageClassStatus:
    """A configuration without a pool name is of an older format and is derived anew."""
    if status.configuration is None or status.configuration.replicated_storage_pool_name:
        return status
    return replace(status, configuration=None, configuration_generation=0)


def _release_unused(snapshot: Snapshot, status: ReplicatedStorageClassStatus) -> tuple[Effect, ...]:
    """Pools stay held while any volume still runs a configuration that names them."""
    kept = {status.storage_pool_name, *status.volumes.used_storage_pool_names}
    effects: list[Effect] = []
    for used in snapshot.used_pools:
        if used.metadata.name not in kept:
            effects.extend(pool.release_effects(snapshot.name, used))
    return tuple(effects)


def _migrate(snapshot: Snapshot, found: ReplicatedStorageClass, now: float) -> Decision:
    """The deprecated `spec.storagePool` becomes `spec.storage` (2.11)."""
    legacy = snapshot.legacy_pool
    if legacy is None:
        message = f"ReplicatedStoragePool {found.spec.storage_pool} does not exist"
        status = with_condition(
            found, found.status, StoragePoolReadyCondition.TYPE, conditions.FALSE,
            StoragePoolReadyCondition.STORAGE_POOL_NOT_FOUND, message, now,
        )  # fmt: skip
        status = with_condition(
            found, status, ReadyCondition.TYPE, conditions.FALSE, ReadyCondition.WAITING_FOR_STORAGE_POOL, message, now
        )
        return Decision(effects=_status_patch(found, volumes.ensure_phase(found, status)))
    if defaults.differs(found, legacy):
        message = f"spec.storage differs from the pool {found.spec.storage_pool} that spec.storagePool names"
        return Decision(effects=_invalid(found, message, now))
    after = defaults.migrated(found, legacy)
    return Decision(effects=(Patch(before=found, after=after, half=Half.MAIN, cause="storagePool becomes storage"),))


def _invalid(found: ReplicatedStorageClass, message: str, now: float) -> tuple[Effect, ...]:
    status = with_condition(
        found, found.status, ReadyCondition.TYPE, conditions.FALSE, ReadyCondition.INVALID_CONFIGURATION, message, now
    )
    return _status_patch(found, volumes.ensure_phase(found, status))


def _status_patch(found: ReplicatedStorageClass, status: ReplicatedStorageClassStatus) -> tuple[Effect, ...]:
    if status == found.status:
        return ()
    after = replace(found, status=status)
    return (Patch(before=found, after=after, half=Half.STATUS, cause="state of the class"),)


def _deletion(snapshot: Snapshot) -> tuple[Effect, ...]:
    """StorageClass first, then the pools, then the class; also cleans up after a class that is already gone (2.10)."""
    cause = "the class is being deleted"
    effects: list[Effect] = list(kubernetes_class.delete_effects(snapshot.kubernetes_class, cause))
    for used in snapshot.used_pools:
        effects.extend(pool.release_effects(snapshot.name, used))
    found = snapshot.storage_class
    if found is not None:
        ours = (labels.FINALIZER_STORAGE_CLASS, labels.FINALIZER_STORAGE_CLASS_LEGACY)
        rest = tuple(f for f in found.metadata.finalizers if f not in ours)
        if rest != found.metadata.finalizers:
            after = replace(found, metadata=replace(found.metadata, finalizers=rest))
            effects.append(Patch(before=found, after=after, half=Half.MAIN, cause=cause))
    return tuple(effects)
