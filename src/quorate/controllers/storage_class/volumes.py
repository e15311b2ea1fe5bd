"""What the volumes of a class say about it: counters, rollout, conflicts, phase (facts/controllers 2.8, 2.9)."""

from __future__ import annotations

from enum import Enum

from quorate.api import conditions
from quorate.api.replicated_storage_class import (
    ConfigurationRolledOutCondition,
    Phase,
    ReadyCondition,
    ReplicatedStorageClass,
    ReplicatedStorageClassStatus,
    StoragePoolReadyCondition,
    VolumesSatisfyEligibleNodesCondition,
    VolumeStatistics,
)
from quorate.api.replicated_volume import (
    ConfigurationReadyCondition,
    MembershipLayoutConvergedCondition,
    ReplicatedVolume,
    SatisfyEligibleNodesCondition,
)
from quorate.api.value import replace
from quorate.controllers.storage_class.configuration import with_condition

TRACKED_CONDITIONS = (ConfigurationReadyCondition.TYPE, MembershipLayoutConvergedCondition.TYPE)


class Bucket(Enum):
    """Where a tracked volume stands in the rollout; the first match wins."""

    PENDING = "pending"
    STALE = "stale"
    ALIGNED = "aligned"


def bucket_of(volume: ReplicatedVolume, generation: int) -> Bucket:
    """Pending: has not seen the configuration or has not judged itself. Stale: runs an older one. Aligned: the rest."""
    if volume.status.configuration_observed_generation != generation or generation == 0:
        return Bucket.PENDING
    found = tuple(conditions.get(volume.status.conditions, type_) for type_ in TRACKED_CONDITIONS)
    if any(
        c is None or c.status == conditions.UNKNOWN or c.observed_generation != volume.metadata.generation
        for c in found
    ):
        return Bucket.PENDING
    if volume.status.configuration_generation != generation:
        return Bucket.STALE
    if any(c is not None and c.status == conditions.FALSE for c in found):
        return Bucket.STALE
    return Bucket.ALIGNED


def in_conflict(volume: ReplicatedVolume) -> bool:
    """Whether the volume says that a replica is on a node that is not eligible."""
    found = conditions.get(volume.status.conditions, SatisfyEligibleNodesCondition.TYPE)
    return found is not None and found.status != conditions.TRUE


def compute_statistics(volumes: tuple[ReplicatedVolume, ...], generation: int) -> VolumeStatistics:
    """All counters, always written."""
    buckets = [bucket_of(v, generation) for v in volumes if v.spec.configuration_mode != "Manual"]
    pools = {v.status.configuration.replicated_storage_pool_name for v in volumes if v.status.configuration is not None}
    return VolumeStatistics(
        total=len(volumes),
        pending_observation=buckets.count(Bucket.PENDING),
        aligned=buckets.count(Bucket.ALIGNED),
        in_conflict_with_eligible_nodes=sum(in_conflict(volume) for volume in volumes),
        stale_configuration=buckets.count(Bucket.STALE),
        used_storage_pool_names=tuple(sorted(pools)),
    )


def ensure_volumes(
    found: ReplicatedStorageClass,
    status: ReplicatedStorageClassStatus,
    volumes: tuple[ReplicatedVolume, ...],
    now: float,
) -> ReplicatedStorageClassStatus:
    """Counters and the two rollout conditions."""
    counted = compute_statistics(volumes, status.configuration_generation)
    status = replace(status, volumes=counted) if counted != status.volumes else status
    value, reason, message = _rolled_out(found, counted)
    status = with_condition(found, status, ConfigurationRolledOutCondition.TYPE, value, reason, message, now)
    value, reason, message = _satisfied(found, counted)
    return with_condition(found, status, VolumesSatisfyEligibleNodesCondition.TYPE, value, reason, message, now)


def is_rolling_update(found: ReplicatedStorageClass) -> bool:
    """An absent strategy means RollingUpdate."""
    strategy = found.spec.configuration_rollout_strategy
    return strategy is None or strategy.type == "RollingUpdate"


def is_rolling_repair(found: ReplicatedStorageClass) -> bool:
    """An absent strategy means RollingRepair."""
    strategy = found.spec.eligible_nodes_conflict_resolution_strategy
    return strategy is None or strategy.type == "RollingRepair"


def _rolled_out(found: ReplicatedStorageClass, counted: VolumeStatistics) -> tuple[str, str, str]:
    reasons = ConfigurationRolledOutCondition
    if counted.pending_observation:
        message = f"{counted.pending_observation} volumes have not observed the configuration yet"
        return conditions.UNKNOWN, reasons.NEW_CONFIGURATION_NOT_YET_OBSERVED, message
    if counted.stale_configuration:
        aligned = f"{counted.aligned}/{(counted.aligned or 0) + counted.stale_configuration} volumes aligned"
        if is_rolling_update(found):
            return conditions.FALSE, reasons.CONFIGURATION_ROLLOUT_IN_PROGRESS, f"Rollout in progress: {aligned}"
        return conditions.FALSE, reasons.CONFIGURATION_ROLLOUT_DISABLED, f"{aligned}; NewVolumesOnly keeps the others"
    return conditions.TRUE, reasons.ROLLED_OUT_TO_ALL_VOLUMES, "All volumes have the configuration"


def _satisfied(found: ReplicatedStorageClass, counted: VolumeStatistics) -> tuple[str, str, str]:
    reasons = VolumesSatisfyEligibleNodesCondition
    if not counted.in_conflict_with_eligible_nodes:
        return conditions.TRUE, reasons.ALL_VOLUMES_SATISFY, "All volumes are on eligible nodes"
    message = f"{counted.in_conflict_with_eligible_nodes} volumes have replicas on nodes that are not eligible"
    if is_rolling_repair(found):
        return conditions.FALSE, reasons.CONFLICT_RESOLUTION_IN_PROGRESS, f"{message}; they are being replaced"
    return conditions.FALSE, reasons.MANUAL_CONFLICT_RESOLUTION, f"{message}; delete those replicas to replace them"


def ensure_phase(found: ReplicatedStorageClass, status: ReplicatedStorageClassStatus) -> ReplicatedStorageClassStatus:
    """Phase and message, last of all because they read the conditions."""
    phase, message = _phase(found, status)
    if (phase, message) == (status.phase, status.message):
        return status
    return replace(status, phase=phase, message=message)


def _phase(found: ReplicatedStorageClass, status: ReplicatedStorageClassStatus) -> tuple[str, str]:
    ready = conditions.get(status.conditions, ReadyCondition.TYPE)
    pool_ready = conditions.get(status.conditions, StoragePoolReadyCondition.TYPE)
    if found.metadata.deleting:
        total = status.volumes.total or 0
        return Phase.TERMINATING, f"Waiting for {total} volumes to be deleted" if total else "Being deleted"
    if ready is not None and ready.reason == ReadyCondition.INVALID_CONFIGURATION:
        return Phase.INVALID_CONFIGURATION, ready.message  # trap 17: said by Ready, whatever the pool does
    if pool_ready is None or pool_ready.status != conditions.TRUE:
        return Phase.WAITING_FOR_STORAGE_POOL, pool_ready.message if pool_ready is not None else "Waiting for the pool"
    if ready is not None and ready.reason == ReadyCondition.INSUFFICIENT_ELIGIBLE_NODES:
        return Phase.INSUFFICIENT_NODES, ready.message
    if ready is None or ready.status != conditions.TRUE:
        return Phase.INVALID_CONFIGURATION, ready.message if ready is not None else "Not judged yet"
    return _rollout_phase(found, status, ready.message)


def _rollout_phase(
    found: ReplicatedStorageClass, status: ReplicatedStorageClassStatus, ready_message: str
) -> tuple[str, str]:
    rolled = conditions.get(status.conditions, ConfigurationRolledOutCondition.TYPE)
    satisfied = conditions.get(status.conditions, VolumesSatisfyEligibleNodesCondition.TYPE)
    open_ = [c for c in (rolled, satisfied) if c is not None and c.status != conditions.TRUE]
    if not open_:
        return Phase.READY, ready_message
    message = ". ".join(c.message for c in open_)
    counted = status.volumes
    active = (
        bool(counted.pending_observation)
        or (bool(counted.stale_configuration) and is_rolling_update(found))
        or (bool(counted.in_conflict_with_eligible_nodes) and is_rolling_repair(found))
    )
    return (Phase.ROLLING_OUT if active else Phase.PARTIALLY_ALIGNED), message
