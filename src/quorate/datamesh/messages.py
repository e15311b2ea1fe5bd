"""Texts for people: progress of a step, its place in the plan, what blocks it (facts/datamesh 5.4, seeds 000 and 004).

Guarantees: every text that leaves the engine is at most 512 characters long (E11, hazard H17).
"""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.common import MESSAGE_LIMIT
from quorate.api.messages import cut
from quorate.datamesh import ids
from quorate.datamesh.context import Context, Replica
from quorate.datamesh.dsl import Block, Confirmation, Plan, Step

ATTACHED = "Volume is attached and ready to serve I/O on the node"
ATTACHED_DELETING = "Volume is attached and ready to serve I/O on the node; it is pending deletion and waits for detach"
DETACHED = "Volume has been detached from the node"
FORMING = "Datamesh formation is in progress"


def limited(text: str) -> str:
    """A text cut to the limit of status messages."""
    return cut(text, MESSAGE_LIMIT)


def progress(context: Context, step: Step, revision: int, confirmation: Confirmation) -> str:
    """`<c>/<m> replicas confirmed revision <r>[. Waiting: [#i]][. Errors: ...]`: stored on the step."""
    must, confirmed = confirmation
    text = f"{ids.count(confirmed)}/{ids.count(must)} replicas confirmed revision {revision}"
    waiting = must & ~confirmed
    if not waiting:
        return text
    text += f". Waiting: [{ids.text(waiting)}]"
    errors = [error for replica_id in ids.iterate(waiting) if (error := _error(context, step, replica_id))]
    return limited(f"{text}. Errors: {' | '.join(errors)}" if errors else text)


def _error(context: Context, step: Step, replica_id: int) -> str:
    """What a waiting replica reports: only the step's diagnostic conditions, only False at the current generation."""
    replica: Replica | None = context.world.replicas.get(replica_id)
    if replica is None or replica.rvr is None:
        return f"#{replica_id} replica not found"
    rvr = replica.rvr
    found: list[str] = []
    for condition_type in step.diagnostic_conditions:
        condition = conditions.get(rvr.status.conditions, condition_type)
        if condition is None or condition.status != "False":
            continue
        if condition.observed_generation != rvr.metadata.generation:
            continue
        if replica_id == context.subject and condition.reason in step.expected_reasons:
            continue
        detail = f": {condition.message}" if condition.message else ""
        found.append(f"{condition_type}/{condition.reason}{detail}")
    return f"#{replica_id} {', '.join(found)}" if found else ""


def slot_text(plan: Plan, index: int, raw: str) -> str:
    """What a request or an attachment is told while a step is active.

    `<prefix>, <raw>` (seed 004), or `<plan> (step i/n: <step>): <raw>` for a plan of several steps.
    """
    step = plan.steps[index]
    prefix = step.message_prefix or plan.display
    if len(plan.steps) == 1:
        return limited(f"{prefix}, {raw}")
    return limited(f"{prefix} (step {index + 1}/{len(plan.steps)}: {step.name}): {raw}")


def held_text(step: Step, raw: str, block: Block) -> str:
    """A confirmed step whose successor may not be applied yet."""
    return limited(f"{raw}. Next step {step.name} waits: {block.text}")


def blocked_text(plan: Plan, block: Block) -> str:
    """A plan that may not start: the guard's own sentence, or `<plan> is blocked: <reason>`."""
    return limited(block.text if block.sentence else f"{plan.display} is blocked: {block.text}")


def waiting_text(plan: Plan, active: Plan | None, active_raw: str) -> str:
    """A plan whose slot is taken by another transition."""
    name = active.display if active is not None else "another transition"
    return limited(f"{plan.display}: waiting for {name} to complete" + (f". {active_raw}" if active_raw else ""))
