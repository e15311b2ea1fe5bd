"""Creating a transition: slot, guards, gates of the first step, admission, then record and first step in one go.

Guarantees (E9): a proposal that is blocked changes nothing. What it replaces (the occupant of its slot in an emergency or
when a change is turned round) and what yields to it leave the list in the same value in which it appears (E7, hazard H6).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quorate.api.replicated_volume import DatameshTransition
from quorate.api.value import replace as replace_value
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, Guard, Plan, Step
from quorate.datamesh.records import planned_steps
from quorate.datamesh.state import State, start_step
from quorate.datamesh.tracker import admit

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Proposal:
    """A transition that a dispatcher would like to create."""

    plan: Plan
    record: DatameshTransition
    """Type, group, plan id, subject and captured values; steps are filled in at creation."""
    start: int = 0
    """First step; later than 0 when a running change is turned round half-way."""
    replaces: DatameshTransition | None = None
    """The occupant of the slot that it takes the place of."""
    extra_guards: tuple[Guard, ...] = ()
    """Guards of this occasion, asked after the plan's."""
    keeps_copies: bool = True
    """False when a join is taken back: no copy is lost that anybody counted on."""


def record_for(plan: Plan, replica_name: str = "", **captured: object) -> DatameshTransition:
    """The record of a plan with what its later steps need (E15)."""
    record = DatameshTransition(type=plan.type, group=plan.group, plan_id=plan.plan_id, replica_name=replica_name)
    return replace_value(record, **captured) if captured else record


def gate_block(context: Context, step: Step, *, keeps_copies: bool = True) -> tuple[Guard | None, Block] | None:
    """What forbids to apply a step now: an unconfirmed voter change, or one of its gates."""
    if step.voting:
        pending = context.registry.rules.voter_change_pending(context)
        if pending is not None:
            return None, pending
    for gate in step.gates:
        if not keeps_copies and gate.protects_copies:
            continue
        block = gate.check(context)
        if block is not None:
            return gate, block
    return None


def first_block(context: Context, guards: Iterable[Guard], *, keeps_copies: bool = True) -> Block | None:
    """The first guard that blocks (facts/datamesh 3.3)."""
    for guard in guards:
        if not keeps_copies and guard.protects_copies:
            continue
        block = guard.check(context)
        if block is not None:
            return block._replace(protective=guard.protects_copies)
    return None


def create(state: State, proposal: Proposal) -> State | Block:
    """The state with the transition created and its first step published, or why not."""
    plan, record = proposal.plan, proposal.record
    remaining = state if proposal.replaces is None else state.without(proposal.replaces)
    context = remaining.context(record)
    guards = (*plan.guards, *proposal.extra_guards)
    block = first_block(context, guards, keeps_copies=proposal.keeps_copies)
    if block is not None:
        return block
    gate = gate_block(context, plan.steps[proposal.start], keeps_copies=proposal.keeps_copies)
    if gate is not None:
        return gate[1]
    room = admit(remaining, plan, record)
    if isinstance(room, Block):
        return room
    remaining = remaining.without(*room)
    full = replace_value(record, steps=planned_steps(plan, proposal.start, state.world.now))
    appended = replace(remaining, transitions=(*remaining.transitions, full))
    return start_step(appended, full, plan, proposal.start)
