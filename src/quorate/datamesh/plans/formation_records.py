"""Records of formation: its transition and the arithmetic of the first quorum. The volume controller drives the steps."""

from __future__ import annotations

from quorate.api.replicated_volume import (
    DatameshTransition,
    DatameshTransitionStep,
    ReplicatedVolumeStatus,
    StepStatus,
    TransitionGroup,
    TransitionType,
)
from quorate.api.value import replace
from quorate.datamesh.messages import limited
from quorate.datamesh.records import active_index, with_step

PLAN_ID = "create/v1"
PRECONFIGURE = "Preconfigure"
ESTABLISH_CONNECTIVITY = "Establish connectivity"
BOOTSTRAP_DATA = "Bootstrap data"
STEPS = (PRECONFIGURE, ESTABLISH_CONNECTIVITY, BOOTSTRAP_DATA)


def find_formation(status: ReplicatedVolumeStatus) -> DatameshTransition | None:
    """The formation under way, if any."""
    for transition in status.datamesh_transitions:
        if transition.type == TransitionType.FORMATION:
            return transition
    return None


def is_forming(status: ReplicatedVolumeStatus) -> bool:
    """Never formed, or a formation is under way: the engine stands still (E13)."""
    return status.datamesh_revision == 0 or find_formation(status) is not None


def formation_transition(revision: int, now: str) -> DatameshTransition:
    """A new formation: all three steps, the first Active."""
    steps = tuple(
        DatameshTransitionStep(name=name, status=StepStatus.ACTIVE, datamesh_revision=revision, started_at=now)
        if index == 0
        else DatameshTransitionStep(name=name)
        for index, name in enumerate(STEPS)
    )
    return DatameshTransition(
        type=TransitionType.FORMATION, group=TransitionGroup.FORMATION, plan_id=PLAN_ID, steps=steps
    )


def formation_step(transition: DatameshTransition) -> str:
    """Name of the step that a formation is in."""
    return transition.steps[active_index(transition)].name


def advanced(transition: DatameshTransition, revision: int, now: str) -> DatameshTransition:
    """The formation with its current step completed and the next one Active."""
    index = active_index(transition)
    done = replace(transition.steps[index], status=StepStatus.COMPLETED, completed_at=now, message="")
    following = replace(
        transition.steps[index + 1], status=StepStatus.ACTIVE, datamesh_revision=revision, started_at=now
    )
    return with_step(with_step(transition, index, done), index + 1, following)


def noted(transition: DatameshTransition, message: str, revision: int) -> DatameshTransition:
    """The formation with what its current step waits for; the same value when that is known already."""
    index = active_index(transition)
    step = transition.steps[index]
    text = limited(message)
    if step.message == text and step.datamesh_revision == revision:
        return transition
    return with_step(transition, index, replace(step, message=text, datamesh_revision=revision))
