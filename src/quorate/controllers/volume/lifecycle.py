"""Metrics of the life of volumes and attachments (facts/controllers 8.1), derived from the patches of a decision.

Guarantees: decisions know nothing of metrics; an observation stands right behind the patch that completes what it measures, so
the executor records it only once that write succeeded, and only in the process that wrote. Start times on the wire are whole
seconds, so a duration is right within one second.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from quorate.api import labels, times
from quorate.api.replicated_volume import (
    DatameshTransition,
    DatameshTransitionStep,
    ReplicatedVolume,
    StepStatus,
)
from quorate.api.replicated_volume_attachment import Phase, ReplicatedVolumeAttachment
from quorate.controllers.volume.formation import transition
from quorate.controllers.volume.gauges import node_label
from quorate.controllers.volume.snapshot import Snapshot
from quorate.machinery.effects import Answers, Decision, Effect, Observe, Patch

FORMATION = "sds_rv_initial_formation_duration_seconds"
VOLUME_DELETION = "sds_rv_deletion_duration_seconds"
ATTACHMENT_READY = "sds_rva_ready_duration_seconds"
ATTACHMENT_DETACH = "sds_rva_detach_duration_seconds"
TRANSITION = "sds_rv_datamesh_transition_duration_seconds"
TRANSITIONS = "sds_rv_datamesh_transitions_completed_total"
STEP = "sds_rv_datamesh_step_duration_seconds"


def observed(
    decide: Callable[[Snapshot, Answers, float], Decision],
) -> Callable[[Snapshot, Answers, float], Decision]:
    """The same decision, with an observation behind every patch that completes something."""

    def decide_and_observe(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
        decision = decide(snapshot, answers, now)
        effects: list[Effect] = []
        for effect in decision.effects:
            effects.append(effect)
            if isinstance(effect, Patch):
                effects.extend(observations(effect, now))
        return decision if len(effects) == len(decision.effects) else replace(decision, effects=tuple(effects))

    return decide_and_observe


def observations(patch: Patch, now: float) -> tuple[Observe, ...]:
    """What a patch completes."""
    before, after = patch.before, patch.after
    if isinstance(before, ReplicatedVolume) and isinstance(after, ReplicatedVolume):
        return (*_formed(before, after, now), *_volume_gone(before, after, now), *_transitions(before, after, now))
    if isinstance(before, ReplicatedVolumeAttachment) and isinstance(after, ReplicatedVolumeAttachment):
        return (*_attached(before, after, now), *_detached(before, after, now))
    return ()


def _formed(before: ReplicatedVolume, after: ReplicatedVolume, now: float) -> tuple[Observe, ...]:
    """Creation of the volume to its first revision without a Formation transition."""
    if not transition.is_forming(before.status) or transition.is_forming(after.status):
        return ()
    return (Observe(FORMATION, _since(before.metadata.creation_timestamp, now), _class(before)),)


def _volume_gone(before: ReplicatedVolume, after: ReplicatedVolume, now: float) -> tuple[Observe, ...]:
    released = _released(before.metadata.finalizers, after.metadata.finalizers)
    if not released or not before.metadata.deletion_timestamp:
        return ()
    return (Observe(VOLUME_DELETION, _since(before.metadata.deletion_timestamp, now), _class(before)),)


def _attached(before: ReplicatedVolumeAttachment, after: ReplicatedVolumeAttachment, now: float) -> tuple[Observe, ...]:
    """Creation of the attachment to Attached; once, so a later interruption is not measured from the creation."""
    if before.status.phase not in ("", Phase.PENDING, Phase.ATTACHING) or after.status.phase != Phase.ATTACHED:
        return ()
    return (Observe(ATTACHMENT_READY, _since(before.metadata.creation_timestamp, now), _node(before)),)


def _detached(before: ReplicatedVolumeAttachment, after: ReplicatedVolumeAttachment, now: float) -> tuple[Observe, ...]:
    released = _released(before.metadata.finalizers, after.metadata.finalizers)
    if not released or not before.metadata.deletion_timestamp:
        return ()
    return (Observe(ATTACHMENT_DETACH, _since(before.metadata.deletion_timestamp, now), _node(before)),)


def _transitions(before: ReplicatedVolume, after: ReplicatedVolume, now: float) -> tuple[Observe, ...]:
    """Steps that were completed, and transitions that are gone from the list."""
    present = {_identity(found): found for found in after.status.datamesh_transitions}
    effects: list[Observe] = []
    for found in before.status.datamesh_transitions:
        marks = {**_class(before), "node": node_label(found), "type": found.type}
        later = present.get(_identity(found))
        for position, step in enumerate(found.steps):
            end = _end(step, later.steps[position] if later is not None and position < len(later.steps) else None, now)
            if end is not None:
                effects.append(
                    Observe(STEP, max(0.0, end - times.parse(step.started_at)), {**marks, "step": step.name})
                )
        if later is None and _start(found):
            effects.append(Observe(TRANSITION, _since(_start(found), now), marks))
            effects.append(Observe(TRANSITIONS, 1.0, marks))
    return tuple(effects)


def _end(step: DatameshTransitionStep, later: DatameshTransitionStep | None, now: float) -> float | None:
    """When an active step ended, None while it goes on; with its transition gone it ended now."""
    if step.status != StepStatus.ACTIVE or not step.started_at:
        return None
    if later is None:
        return now
    if later.status != StepStatus.COMPLETED:
        return None
    return times.parse(later.completed_at) if later.completed_at else now


def _identity(found: DatameshTransition) -> tuple[str, str, str, str]:
    return found.type, found.replica_name, found.plan_id, _start(found)


def _start(found: DatameshTransition) -> str:
    return found.steps[0].started_at if found.steps else ""


def _released(before: tuple[str, ...], after: tuple[str, ...]) -> bool:
    return labels.FINALIZER_VOLUME in before and labels.FINALIZER_VOLUME not in after


def _class(volume: ReplicatedVolume) -> dict[str, str]:
    return {"storage_class": volume.spec.replicated_storage_class_name or "unknown"}


def _node(attachment: ReplicatedVolumeAttachment) -> dict[str, str]:
    return {"node": attachment.spec.node_name}


def _since(start: str, now: float) -> float:
    return max(0.0, now - times.parse(start)) if start else 0.0
