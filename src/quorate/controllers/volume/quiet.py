"""Texts are written when somebody could want to read them, not at every heartbeat (few writes).

A change that touches only texts, progress counters or (while forming) summaries waits until the youngest running step is
a few seconds old: most steps are over by then, and whoever looks at a slower one finds it explained.
"""

from __future__ import annotations

from quorate.api import times
from quorate.api.meta import Condition
from quorate.api.replicated_volume import (
    ConfiguredCondition,
    DatameshReplicaRequest,
    DatameshTransition,
    ReplicatedVolumeStatus,
    ScheduledCondition,
    StepStatus,
)
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachmentStatus
from quorate.api.value import replace
from quorate.controllers.volume.formation import transition

QUIET_SECONDS = 3.0


def is_quiet_change(before: ReplicatedVolumeStatus, after: ReplicatedVolumeStatus) -> bool:
    """Whether nothing but texts, progress and (while forming) summaries differs."""
    if transition.is_forming(before) != transition.is_forming(after):
        return False
    return _blank(before) == _blank(after)


def delay(status: ReplicatedVolumeStatus, now: float) -> float:
    """Seconds until such a change is worth a write; zero or less when it is now."""
    starts = [
        times.parse(step.started_at)
        for t in status.datamesh_transitions
        for step in t.steps
        if step.status == StepStatus.ACTIVE and step.started_at
    ]
    if not transition.is_forming(status):
        starts.extend(times.parse(request.first_observed_at) for request in status.datamesh_replica_requests)
    if not starts:
        return 0.0
    return max(starts) + QUIET_SECONDS - now


def is_quiet_attachment_change(
    before: ReplicatedVolumeAttachmentStatus, after: ReplicatedVolumeAttachmentStatus
) -> bool:
    """Whether only texts of an attachment differ."""

    def blank(status: ReplicatedVolumeAttachmentStatus) -> ReplicatedVolumeAttachmentStatus:
        return replace(status, message="", conditions=tuple(replace(c, message="") for c in status.conditions))

    return blank(before) == blank(after)


def _blank(status: ReplicatedVolumeStatus) -> ReplicatedVolumeStatus:
    forming = transition.is_forming(status)
    return replace(
        status,
        datamesh_transitions=tuple(_blank_transition(t) for t in status.datamesh_transitions),
        datamesh_replica_requests=() if forming else tuple(_blank_request(r) for r in status.datamesh_replica_requests),
        formation=None if forming else status.formation,
        conditions=tuple(c for c in (_blank_condition(c, forming=forming) for c in status.conditions) if c is not None),
        eligible_nodes_violations=() if forming else status.eligible_nodes_violations,
    )


def _blank_transition(value: DatameshTransition) -> DatameshTransition:
    steps = tuple(replace(step, message="", reason="") for step in value.steps)
    return replace(value, message="", reason="", steps=steps)


def _blank_request(value: DatameshReplicaRequest) -> DatameshReplicaRequest:
    return replace(value, message="")


def _blank_condition(value: Condition, *, forming: bool) -> Condition | None:
    if forming and value.type in (ScheduledCondition.TYPE, ConfiguredCondition.TYPE):
        return None
    return replace(value, message="")
