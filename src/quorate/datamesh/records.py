"""Transition records: how a plan stands in the volume's status, and how a record moves on.

Guarantees: exactly one step of a record is Active, those before it are Completed, those after it Pending (E2); a record is
only ever replaced by a new value; the revision of a step is the datamesh's after its apply (E1, E4).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.api.replicated_volume import DatameshTransition, DatameshTransitionStep, StepStatus
from quorate.api.value import replace
from quorate.datamesh.dsl import Confirmation, Plan, Step
from quorate.datamesh.members import id_of

if TYPE_CHECKING:
    from quorate.datamesh.context import Context


def subject_of(transition: DatameshTransition) -> int:
    """Id of the replica that a transition is about; -1 for the whole volume."""
    return id_of(transition.replica_name) if transition.replica_name else -1


def active_index(transition: DatameshTransition) -> int:
    """Index of the current step: the first that is not completed."""
    for index, step in enumerate(transition.steps):
        if step.status != StepStatus.COMPLETED:
            return index
    return len(transition.steps) - 1


def active_step(transition: DatameshTransition) -> DatameshTransitionStep:
    """The current step."""
    return transition.steps[active_index(transition)]


def fits(plan: Plan, transition: DatameshTransition) -> bool:
    """Whether a record has the steps of the plan; one that does not is treated like an unknown plan."""
    return len(plan.steps) == len(transition.steps) > 0


def confirmation_of(context: Context, step: Step, revision: int) -> Confirmation:
    """Who must confirm a step and who has; where q or qmr may rise, only where the kernel enforces it (decision 5)."""
    must, confirmed = step.confirm(context, revision)
    confirmed &= must
    if step.raises and confirmed:
        enforced = context.registry.rules.enforced
        for replica_id in range(confirmed.bit_length()):
            if confirmed >> replica_id & 1 and not enforced(context, replica_id):
                confirmed &= ~(1 << replica_id)
    return Confirmation(must, confirmed)


def planned_steps(plan: Plan, start: int, now: str) -> tuple[DatameshTransitionStep, ...]:
    """The steps of a new record that starts at `start`; what stands before it needs not be done."""
    return tuple(
        DatameshTransitionStep(name=step.name, status=StepStatus.COMPLETED, completed_at=now)
        if index < start
        else DatameshTransitionStep(name=step.name)
        for index, step in enumerate(plan.steps)
    )


def with_step(transition: DatameshTransition, index: int, step: DatameshTransitionStep) -> DatameshTransition:
    """The record with one step replaced."""
    steps = (*transition.steps[:index], step, *transition.steps[index + 1 :])
    return replace(transition, steps=steps)


def activated(transition: DatameshTransition, index: int, revision: int, now: str) -> DatameshTransition:
    """The record with a step activated at a revision."""
    step = replace(transition.steps[index], status=StepStatus.ACTIVE, datamesh_revision=revision, started_at=now)
    return with_step(transition, index, step)


def completed(transition: DatameshTransition, index: int, now: str, message: str) -> DatameshTransition:
    """The record with a step completed."""
    step = replace(transition.steps[index], status=StepStatus.COMPLETED, completed_at=now, message=message, reason="")
    return with_step(transition, index, step)


def noted(transition: DatameshTransition, index: int, text: str, reason: str, held: str) -> DatameshTransition:
    """The record with its progress text, and with what holds it; the same value when nothing changes."""
    step = transition.steps[index]
    if step.message == text and transition.reason == reason and transition.message == held:
        return transition
    return replace(with_step(transition, index, replace(step, message=text)), reason=reason, message=held)
