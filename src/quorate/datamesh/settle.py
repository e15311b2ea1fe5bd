"""Settling: the backward pass of seed 004. Every running transition goes as far as its confirmations and gates allow.

Guarantees: a step is completed only when everybody who must confirm it has; the next one is applied only when its gates
pass at that moment (S10, S14, S15); step k+1 is never published before step k is confirmed. The loop is bounded by the
number of remaining steps (E6). A transition with an unknown plan is left alone and says how to get rid of it (E8).
"""

from __future__ import annotations

from quorate.api.replicated_volume import DatameshTransition, MemberType, TransitionGroup, TransitionType
from quorate.datamesh import ids, messages, tracker
from quorate.datamesh.create import Proposal, create, gate_block, record_for
from quorate.datamesh.dsl import Block, Guard, Kind, Plan, Slot
from quorate.datamesh.guards.emergency import WAITING_FOR_FENCING
from quorate.datamesh.guards.leaving import enough_copies_remain
from quorate.datamesh.planners import selection
from quorate.datamesh.plans.change_type import RESUME
from quorate.datamesh.records import active_index, completed, confirmation_of, noted, subject_of
from quorate.datamesh.state import Report, State, start_step

RELEASE_ANNOTATION = "sds-replicated-volume.deckhouse.io/release-transition"
"""Set on the volume to `<type>/<planID>` by an administrator: drop transitions of that unknown plan (hazard H25)."""


def settle(state: State, report: Report) -> State:
    """Let every transition go on until none moves."""
    rounds = sum(len(transition.steps) for transition in state.transitions) + 1
    for _ in range(rounds):
        before = state
        for transition in state.transitions:
            if transition.type != TransitionType.FORMATION:
                state = _settle_one(state, transition, report)
        if _same_steps(before, state):
            return state
    return state


def _same_steps(before: State, after: State) -> bool:
    if before is after:
        return True
    return [(t.plan_id, t.replica_name, active_index(t)) for t in before.transitions] == [
        (t.plan_id, t.replica_name, active_index(t)) for t in after.transitions
    ]


def _settle_one(state: State, transition: DatameshTransition, report: Report) -> State:
    plan = state.plan_of(transition)
    if plan is None:
        return _note_unknown(state, transition)
    index = active_index(transition)
    step = plan.steps[index]
    context = state.context(transition)
    revision = transition.steps[index].datamesh_revision
    confirmation = confirmation_of(context, step, revision)
    raw = messages.progress(context, step, revision, confirmation)
    waiting = confirmation.must & ~confirmation.confirmed
    if waiting:
        kept = _kept(state, transition, plan)
        if kept is not None:
            return kept
        reason = WAITING_FOR_FENCING if _needs_fencing(state, transition, waiting) else ""
        held = "waits for members that cannot confirm, or for fencing evidence" if reason else ""
        _tell(state, transition, plan, messages.slot_text(plan, index, raw), report)
        return state.with_transition(transition, noted(transition, index, raw, reason, held))
    if index + 1 == len(plan.steps):
        if plan.done:
            _tell(state, transition, plan, plan.done, report)
        return state.without(transition)
    # Taking a join back loses no copy that anybody counted on, unless its disk has become one.
    back = transition.reverting and not context.replica.up_to_date
    blocked = gate_block(context, plan.steps[index + 1], keeps_copies=not back)
    if blocked is not None:
        return _held(state, transition, plan, raw, blocked, report)
    done = noted(completed(transition, index, state.world.now, raw), index, raw, "", "")
    return start_step(state.with_transition(transition, done), done, plan, index + 1)


def _kept(state: State, transition: DatameshTransition, plan: Plan) -> State | None:
    """A detach that is not carried out yet is taken back when the copy is needed after all.

    A Primary refuses a detach that costs its redundancy, so the step would wait for ever, and every other change with it.
    """
    step = plan.steps[active_index(transition)]
    context = state.context(transition)
    if step.kind is not Kind.DETACH_DISK or not context.replica.up_to_date:
        return None
    # Only what is lost for certain counts: other gates also fail while members have yet to confirm this very revision.
    return _taken_back(state, transition) if enough_copies_remain.check(context) is not None else None


def _needs_fencing(state: State, transition: DatameshTransition, waiting: int) -> bool:
    """What waits only for members that nobody reaches, in an emergency or because they have no object any more, goes on
    when they answer or with fencing evidence (decision 6)."""
    if waiting & state.world.seen_connected:
        return False
    replicas = state.world.replicas
    gone = all(i in replicas and replicas[i].rvr is None for i in ids.iterate(waiting))
    return gone or transition.group == TransitionGroup.EMERGENCY


def _held(
    state: State,
    transition: DatameshTransition,
    plan: Plan,
    raw: str,
    blocked: tuple[Guard | None, Block],
    report: Report,
) -> State:
    """A confirmed step whose successor may not be applied: wait, or bring a member half-way back to D (hazard H2)."""
    index = active_index(transition)
    gate, block = blocked
    if gate is not None and gate.takes_back:
        back = _taken_back(state, transition) or _replanned(state, transition)
        if isinstance(back, State):
            return back
        block = back or block
    text = messages.held_text(plan.steps[index + 1], raw, block)
    _tell(state, transition, plan, messages.slot_text(plan, index, text), report)
    if plan.slot is Slot.MEMBERSHIP:
        report.blocked[subject_of(transition)] = block
    reason = block.reason or tracker.HELD
    return state.with_transition(transition, noted(transition, index, raw, reason, messages.limited(block.text)))


def _taken_back(state: State, transition: DatameshTransition) -> State | None:
    member = state.mesh.by_id.get(subject_of(transition))
    if member is None or member.type != MemberType.LIMINAL_DISKFUL:
        return None
    record = record_for(
        RESUME,
        transition.replica_name,
        from_replica_type=MemberType.DISKFUL,
        to_replica_type=MemberType.DISKFUL,
        node_name=member.node_name,
        reverting=True,
    )
    plan = state.registry.find(RESUME.type, RESUME.plan_id)
    if plan is None:
        return None
    result = create(state, Proposal(plan, record, replaces=transition))
    return None if isinstance(result, Block) else result


def _replanned(state: State, transition: DatameshTransition) -> State | Block | None:
    """A vote that must be gained another way than planned (tie-breakers came or went): plan again from here (E16).

    What keeps the new plan from starting is what the transition waits for.
    """
    member = state.mesh.by_id.get(subject_of(transition))
    if member is None or MemberType.DISKFUL not in (transition.replica_type, transition.to_replica_type):
        return None
    plan = selection.changing(state.context(transition), member.type, MemberType.DISKFUL)
    if plan is None:
        return None
    record = record_for(
        plan,
        transition.replica_name,
        from_replica_type=member.type,
        to_replica_type=MemberType.DISKFUL,
        node_name=transition.node_name,
        lvm_volume_group_name=transition.lvm_volume_group_name,
        lvm_volume_group_thin_pool_name=transition.lvm_volume_group_thin_pool_name,
    )
    return create(state, Proposal(plan, record, replaces=transition))


def _note_unknown(state: State, transition: DatameshTransition) -> State:
    """A transition of another version: it keeps its locks, and says so; an administrator may release it."""
    name = f"{transition.type}/{transition.plan_id}"
    if state.world.volume.metadata.annotations.get(RELEASE_ANNOTATION) == name:
        return state.without(transition)
    if not transition.steps:
        return state
    text = messages.limited(
        f"This version does not know the plan {transition.plan_id}; upgrade, or release it with the annotation "
        f"{RELEASE_ANNOTATION}={name}"
    )
    index = active_index(transition)
    return state.with_transition(
        transition, noted(transition, index, transition.steps[index].message, tracker.UNKNOWN_PLAN, text)
    )


def _tell(state: State, transition: DatameshTransition, plan: Plan, text: str, report: Report) -> None:
    """Hand a text to the slot of a transition."""
    match plan.slot:
        case Slot.MEMBERSHIP:
            report.membership[subject_of(transition)] = text
        case Slot.ATTACHMENT:
            replica = state.world.replicas.get(subject_of(transition))
            node = transition.node_name or (replica.node_name if replica is not None else "")
            reason = plan.steps[active_index(transition)].condition_reason
            if node and reason:
                report.attachment[node] = (reason, text)
        case Slot.VOLUME:
            report.volume[plan.type] = text
