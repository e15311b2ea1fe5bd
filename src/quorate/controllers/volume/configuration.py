"""reconcileRVConfiguration: derive the configuration from the class (Auto) or the spec (Manual), by content.

Callers decide when it runs: when there is no configuration yet, and in normal operation. During formation the
configuration is frozen.
"""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_volume import (
    NAME_LIMIT,
    ConfigurationReadyCondition,
    ReplicatedVolume,
    ReplicatedVolumeStatus,
    VolumeConfiguration,
)
from quorate.api.value import replace
from quorate.controllers.volume import rollout
from quorate.controllers.volume.outcome import Outcome
from quorate.controllers.volume.snapshot import Snapshot, intended_configuration
from quorate.datamesh.layout import TRANSZONAL_ZONES

ROLLOUT_RECHECK = 5.0
"""Seconds until a volume that waits for its turn looks again; there is no watch on sibling volumes."""


def reconcile(snapshot: Snapshot, status: ReplicatedVolumeStatus, now: float) -> Outcome:
    """The status with configuration, generations and the ConfigurationReady condition."""
    volume = snapshot.existing_volume()
    intended = intended_configuration(volume, snapshot.storage_class)
    if intended is None:
        return Outcome(status=_waiting_for_class(volume, status, snapshot.storage_class, now))
    if status.configuration == intended:
        return Outcome(status=_ready(volume, _with_generations(snapshot, status), now))
    generation = _source_generation(snapshot)
    held = rollout.hold(snapshot, status)
    if held is not None:
        observed = replace(status, configuration_observed_generation=generation)
        wake = ROLLOUT_RECHECK if held.reason == ConfigurationReadyCondition.CONFIGURATION_ROLLOUT_IN_PROGRESS else None
        return Outcome(status=_not_ready(volume, observed, held.reason, held.message, now), wake_after=wake)
    invalid = _invalid(snapshot, intended)
    if invalid:
        reason = ConfigurationReadyCondition.INVALID_CONFIGURATION
        return Outcome(status=_not_ready(volume, status, reason, invalid, now))
    accepted = _with_generations(snapshot, replace(status, configuration=intended))
    return Outcome(status=_ready(volume, accepted, now))


def _source_generation(snapshot: Snapshot) -> int:
    """Auto: the class's configuration generation. Manual: 0 (no rollout tracking)."""
    if snapshot.existing_volume().spec.configuration_mode == "Manual" or snapshot.storage_class is None:
        return 0
    return snapshot.storage_class.status.configuration_generation


def _with_generations(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> ReplicatedVolumeStatus:
    generation = _source_generation(snapshot)
    if (status.configuration_generation, status.configuration_observed_generation) == (generation, generation):
        return status
    return replace(status, configuration_generation=generation, configuration_observed_generation=generation)


def _waiting_for_class(
    volume: ReplicatedVolume, status: ReplicatedVolumeStatus, found: ReplicatedStorageClass | None, now: float
) -> ReplicatedVolumeStatus:
    name = volume.spec.replicated_storage_class_name
    if found is None:
        message = f"ReplicatedStorageClass {name} does not exist; create it or name another class"
    else:
        ready = conditions.get(found.status.conditions, "Ready")
        detail = f": {ready.message}" if ready is not None and ready.status != conditions.TRUE and ready.message else ""
        message = f"ReplicatedStorageClass {name} has no configuration for its present generation yet{detail}"
    return _not_ready(volume, status, ConfigurationReadyCondition.WAITING_FOR_STORAGE_CLASS, message, now)


def _invalid(snapshot: Snapshot, intended: VolumeConfiguration) -> str:
    """Why the intended configuration cannot be used: pool missing, or zones that cannot carry the layout (H10)."""
    pool = snapshot.intended_pool
    pool_name = intended.replicated_storage_pool_name
    if pool is None:
        return f"ReplicatedStoragePool {pool_name} does not exist; create it or configure another pool"
    name = snapshot.existing_volume().metadata.name
    if len(name) > NAME_LIMIT:
        return f"The name has {len(name)} characters; at most {NAME_LIMIT} fit into the names of its logical volumes"
    if intended.topology != "TransZonal":
        return ""
    promise = (intended.failures_to_tolerate, intended.guaranteed_minimum_data_redundancy)
    counts = TRANSZONAL_ZONES.get(promise, ())
    zones = len(pool.spec.zones)
    if zones in counts:
        return ""
    allowed = " or ".join(str(count) for count in counts) or "no"
    return (
        f"TransZonal with failuresToTolerate={intended.failures_to_tolerate} and guaranteedMinimumDataRedundancy="
        f"{intended.guaranteed_minimum_data_redundancy} needs {allowed} zones; pool {pool_name} lists {zones}"
    )


def _ready(volume: ReplicatedVolume, status: ReplicatedVolumeStatus, now: float) -> ReplicatedVolumeStatus:
    message = "Configuration is valid and matches its source"
    return _with_condition(volume, status, conditions.TRUE, ConfigurationReadyCondition.READY, message, now)


def _not_ready(
    volume: ReplicatedVolume, status: ReplicatedVolumeStatus, reason: str, message: str, now: float
) -> ReplicatedVolumeStatus:
    return _with_condition(volume, status, conditions.FALSE, reason, message, now)


def _with_condition(
    volume: ReplicatedVolume, status: ReplicatedVolumeStatus, value: str, reason: str, message: str, now: float
) -> ReplicatedVolumeStatus:
    changed = conditions.set_(
        status.conditions,
        ConfigurationReadyCondition.TYPE,
        status=value,
        reason=reason,
        message=message,
        generation=volume.metadata.generation,
        now=now,
    )
    return status if changed is status.conditions else replace(status, conditions=changed)
