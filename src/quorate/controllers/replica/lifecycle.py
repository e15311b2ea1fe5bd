"""Metrics of a replica's life (facts/controllers 8.1), recorded once the write they describe succeeded."""

from __future__ import annotations

from quorate.api import conditions, times
from quorate.api.replicated_volume_replica import (
    BackingVolumeReadyCondition,
    ReadyCondition,
    ReplicatedVolumeReplicaStatus,
)
from quorate.controllers.replica.situation import Situation
from quorate.machinery.effects import Effect, Observe
from quorate.machinery.metrics import MetricSpec

READY_METRIC = "sds_rvr_ready_transition_duration_seconds"
BACKING_VOLUME_METRIC = "sds_rvr_backing_volume_duration_seconds"
DELETION_METRIC = "sds_rvr_deletion_duration_seconds"
FOREIGN_PEERS_METRIC = "sds_rvr_foreign_peers_total"

METRICS = (
    MetricSpec(
        FOREIGN_PEERS_METRIC,
        "counter",
        "DRBD peers seen that do not belong to the replica's volume.",
        ("node", "storage_class"),
    ),
)
"""Metrics of this controller beyond the lifecycle ones."""


def observe_status(
    situation: Situation, new: ReplicatedVolumeReplicaStatus, foreign: tuple[str, ...], now: float
) -> tuple[Effect, ...]:
    """How long the backing volume and readiness took, at the moment they are reached; foreign peers when they appear."""
    old, effects = situation.replica.status, list[Effect]()
    created = situation.replica.metadata.creation_timestamp
    unseen = [name for name in foreign if name not in old.message]
    if unseen:
        effects.append(Observe(FOREIGN_PEERS_METRIC, float(len(unseen)), _labels(situation)))
    if situation.deleting or not created:
        return tuple(effects)
    if _became_true(old, new, BackingVolumeReadyCondition.TYPE):
        effects.append(Observe(BACKING_VOLUME_METRIC, _since(created, now), _labels(situation)))
    if _became_true(old, new, ReadyCondition.TYPE):
        before = conditions.get(old.conditions, ReadyCondition.TYPE)
        start = before.last_transition_time if before is not None and before.last_transition_time else created
        effects.append(Observe(READY_METRIC, _since(start, now), _labels(situation)))
    return tuple(effects)


def observe_deletion(situation: Situation, now: float) -> tuple[Effect, ...]:
    """How long the deletion took."""
    deleted = situation.replica.metadata.deletion_timestamp
    return (Observe(DELETION_METRIC, _since(deleted, now), _labels(situation)),) if deleted else ()


def _became_true(old: ReplicatedVolumeReplicaStatus, new: ReplicatedVolumeReplicaStatus, type: str) -> bool:
    return not conditions.is_true(old.conditions, type) and conditions.is_true(new.conditions, type)


def _since(start: str, now: float) -> float:
    return max(0.0, now - times.parse(start))


def _labels(situation: Situation) -> dict[str, str]:
    volume = situation.volume
    storage_class = volume.spec.replicated_storage_class_name if volume is not None else ""
    return {"node": situation.replica.spec.node_name or "unknown", "storage_class": storage_class or "unknown"}
