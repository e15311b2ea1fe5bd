"""Budgets that the volumes of a class share: configuration rollout and repair (facts/controllers 2.12).

Slots go to the volumes that wait, in name order; a slot is free again when its volume has converged.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import conditions
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_volume import (
    ConfigurationReadyCondition,
    MembershipLayoutConvergedCondition,
    ReplicatedVolume,
    ReplicatedVolumeStatus,
    SatisfyEligibleNodesCondition,
    VolumeConfiguration,
)
from quorate.controllers.volume.formation import transition
from quorate.controllers.volume.snapshot import Snapshot

DEFAULT_MAX_PARALLEL = 5
"""What a class without a strategy means."""


@dataclass(frozen=True)
class Held:
    """Why a volume does not take the newer configuration now."""

    reason: str
    message: str


def hold(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> Held | None:
    """Whether a volume that already has a configuration must keep it for the moment."""
    source = snapshot.storage_class
    volume = snapshot.existing_volume()
    if volume.spec.configuration_mode == "Manual" or source is None or status.configuration is None:
        return None
    strategy = source.spec.configuration_rollout_strategy
    if strategy is not None and strategy.type == "NewVolumesOnly":
        message = "The class has a newer configuration that is for new volumes only (NewVolumesOnly)"
        return Held(ConfigurationReadyCondition.NEWER_CONFIGURATION_HELD, message)
    intended = source.status.configuration
    assert intended is not None
    if _admitted(snapshot, source, intended):
        return None
    # No live counters in the text: every sibling would be patched whenever one of them moves.
    message = "Waiting for a place in the configuration rollout of the class"
    return Held(ConfigurationReadyCondition.CONFIGURATION_ROLLOUT_IN_PROGRESS, message)


def _admitted(snapshot: Snapshot, source: ReplicatedStorageClass, intended: VolumeConfiguration) -> bool:
    strategy = source.spec.configuration_rollout_strategy
    rolling = strategy.rolling_update if strategy is not None else None
    limit = rolling.max_parallel if rolling is not None else DEFAULT_MAX_PARALLEL
    tracked = tuple(sibling for sibling in snapshot.siblings if _is_tracked(sibling, source))
    pending = [v.metadata.name for v in tracked if v.status.configuration != intended]
    active = sum(
        v.status.configuration == intended and not _has_converged(v, source.status.configuration_generation)
        for v in tracked
    )
    own = snapshot.existing_volume().metadata.name
    return sorted([*pending, own]).index(own) < limit - active


def _is_tracked(volume: ReplicatedVolume, source: ReplicatedStorageClass) -> bool:
    """Excluded: deleting, Manual, of another class, never configured, forming."""
    return (
        not volume.metadata.deleting
        and volume.spec.configuration_mode != "Manual"
        and volume.spec.replicated_storage_class_name == source.metadata.name
        and volume.status.configuration is not None
        and not transition.is_forming(volume.status)
    )


def _has_converged(volume: ReplicatedVolume, generation: int) -> bool:
    found = conditions.get(volume.status.conditions, MembershipLayoutConvergedCondition.TYPE)
    return (
        volume.status.configuration_generation == generation
        and found is not None
        and found.status == conditions.TRUE
        and found.observed_generation == volume.metadata.generation
    )


def may_repair(snapshot: Snapshot) -> bool:
    """RollingRepair.maxParallel: whether this volume may replace a replica on a node that is no longer eligible.

    Manual resolution never repairs. Volumes already repairing keep their place; the others follow in name order.
    """
    volume = snapshot.existing_volume()
    source = snapshot.storage_class
    if volume.spec.configuration_mode == "Manual" or source is None:
        return False
    strategy = source.spec.eligible_nodes_conflict_resolution_strategy
    if strategy is not None and strategy.type != "RollingRepair":
        return False
    repair = strategy.rolling_repair if strategy is not None else None
    limit = repair.max_parallel if repair is not None else DEFAULT_MAX_PARALLEL
    if is_repairing(volume):
        return True
    violating = [v for v in snapshot.siblings if v.status.eligible_nodes_violations and not v.metadata.deleting]
    active = sum(is_repairing(v) for v in violating)
    waiting = sorted([v.metadata.name for v in violating if not is_repairing(v)] + [volume.metadata.name])
    return waiting.index(volume.metadata.name) < limit - active


def is_repairing(volume: ReplicatedVolume) -> bool:
    """Whether the volume holds a repair slot."""
    found = conditions.get(volume.status.conditions, SatisfyEligibleNodesCondition.TYPE)
    return found is not None and found.reason == SatisfyEligibleNodesCondition.CONFLICT_RESOLUTION_IN_PROGRESS
