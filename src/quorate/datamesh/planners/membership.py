"""Membership planner (facts/datamesh 3.5-3.8, 3.15): replicas by ascending id, each toward what it wants to be.

What a replica wants may differ from what is under way for it. Then the running transition is turned round where that is
legal (decision 8), cancelled by an emergency where nothing else helps (decision 11), or finished first.
"""

from __future__ import annotations

from quorate.api.replicated_volume import (
    DatameshMember,
    DatameshTransition,
    MemberType,
    Operation,
    TransitionType,
)
from quorate.api.value import replace
from quorate.datamesh import members, messages
from quorate.datamesh.context import Context, Replica
from quorate.datamesh.create import Proposal, create, record_for
from quorate.datamesh.dsl import Block, Kind, Plan, Slot
from quorate.datamesh.guards.emergency import another_copy_exists
from quorate.datamesh.planners import selection, turning
from quorate.datamesh.planners.intent import (
    Become,
    Intent,
    Leave,
    NewVolume,
    Vanish,
    compute_intent,
    is_served,
    serves,
    steady_type,
)
from quorate.datamesh.plans.quorum import RESTORE
from quorate.datamesh.records import active_index, active_step, confirmation_of, subject_of
from quorate.datamesh.state import Report, State
from quorate.datamesh.tracker import is_held, occupant, slot_of

_SUPPORTED = (MemberType.DISKFUL, MemberType.TIE_BREAKER, MemberType.ACCESS)


def dispatch(state: State, report: Report) -> State:
    """Create the membership changes that are due."""
    for replica in state.world.replicas.values():
        intent = compute_intent(state, replica)
        if intent is not None:
            state = _dispatch_one(state, replica, intent, report)
    return state


def turn(state: State, report: Report) -> State:
    """Turn running changes round that nobody wants any more, before they are taken one step further (decision 8)."""
    for transition in state.transitions:
        if slot_of(transition) is not Slot.MEMBERSHIP:
            continue
        replica = state.world.replicas[subject_of(transition)]
        intent = compute_intent(state, replica)
        if intent is not None and not serves(transition, intent):
            state = _dispatch_one(state, replica, intent, report)
    return state


def _dispatch_one(state: State, replica: Replica, intent: Intent, report: Report) -> State:
    running = occupant(state, replica.name, Slot.MEMBERSHIP)
    member = state.mesh.by_id.get(replica.id)
    if running is not None and serves(running, intent):
        return state
    if running is None and member is not None and is_served(member, intent):
        return state
    if running is not None and member is not None and running.type == TransitionType.FORCE_REMOVE_REPLICA:
        return _abandoned(state, running)
    if running is None and member is not None and not _asked(replica, member, intent):
        return state
    context = state.context(subject=replica.id)
    found = _plan(context, member, intent)
    if found is None:
        if isinstance(intent, Become) and intent.type not in _SUPPORTED:
            report.membership[replica.id] = f"{intent.type} replicas are not supported"
        return state
    plan, record = found
    proposal = _proposal(state, plan, record, running, intent)
    if proposal is None:
        active = state.plan_of(running) if running is not None else None
        progress = active_step(running).message if running is not None and running.steps else ""
        report.membership[replica.id] = messages.waiting_text(plan, active, progress)
        return state
    result = create(state, proposal)
    if isinstance(result, Block):
        report.blocked[replica.id] = result
        if running is None or isinstance(intent, Vanish):
            report.membership[replica.id] = messages.blocked_text(plan, result)
        return state
    return result


def _asked(replica: Replica, member: DatameshMember, intent: Intent) -> bool:
    """Whether a change may start: asked for by a request, or a member half-way that must go on (hazard H30)."""
    if not isinstance(intent, Become) or members.is_liminal(member.type):
        return True
    return replica.request is not None and replica.request.operation in (Operation.JOIN, Operation.CHANGE_ROLE)


def _plan(context: Context, member: DatameshMember | None, intent: Intent) -> tuple[Plan, DatameshTransition] | None:
    """The plan that leads to what is wanted, with the record that captures what its steps need."""
    replica = context.replica
    if member is None:
        if not isinstance(intent, Become):
            return None
        plan = selection.joining(context, intent.type)
        disk = intent if intent.type == MemberType.DISKFUL else Become(intent.type)
        return _with_record(plan, replica, disk, replica_type=intent.type)
    present = steady_type(member)
    match intent:
        case Leave():
            return _with_record(selection.leaving(context, present), replica, None, replica_type=present)
        case Vanish():
            return _with_record(selection.vanishing(context, present), replica, None, replica_type=present)
        case NewVolume():
            if present != MemberType.DISKFUL:
                return None
            plan = selection.changing_volume(context)
            return _with_record(plan, replica, intent, from_replica_type=present, to_replica_type=present)
        case Become(wanted):
            if wanted == present:
                plan = selection.resuming(context) if member.type == MemberType.LIMINAL_DISKFUL else None
            else:
                plan = selection.changing(context, present, wanted)
            disk = intent if wanted == MemberType.DISKFUL else None
            return _with_record(plan, replica, disk, from_replica_type=present, to_replica_type=wanted)


def _with_record(
    plan: Plan | None, replica: Replica, disk: Become | NewVolume | None, **types: str
) -> tuple[Plan, DatameshTransition] | None:
    if plan is None:
        return None
    captured = {
        "node_name": replica.node_name,
        "lvm_volume_group_name": disk.volume_group if disk is not None else "",
        "lvm_volume_group_thin_pool_name": disk.thin_pool if disk is not None else "",
    }
    return plan, record_for(plan, replica.name, **captured, **types)


def _proposal(
    state: State, plan: Plan, record: DatameshTransition, running: DatameshTransition | None, intent: Intent
) -> Proposal | None:
    """How to bring the plan in: fresh, as an emergency over the running one, or by turning the running one round."""
    if isinstance(intent, Vanish):
        extra = () if intent.explicit else (another_copy_exists,)
        return Proposal(plan, record, replaces=running, extra_guards=extra)
    if running is None:
        return Proposal(plan, record)
    active = state.plan_of(running)
    if active is None:
        return None
    index = active_index(running)
    context = state.context(running)
    must, confirmed = confirmation_of(context, active.steps[index], running.steps[index].datamesh_revision)
    settled = not must & ~confirmed
    start = turning.compute_start(active, index, settled, plan)
    if start is None or _third_configuration(active, index, settled, running, record):
        return None
    # A join that is taken back loses no copy that anybody counted on, unless its disk has become one.
    back = turning.takes_back_join(active, plan) and not state.world.replicas[context.subject].up_to_date
    return Proposal(plan, replace(record, reverting=back), start, running, keeps_copies=not back)


def _third_configuration(
    active: Plan, index: int, settled: bool, running: DatameshTransition, record: DatameshTransition
) -> bool:
    """Whether the successor would add a configuration to the two that nodes may hold while a vote is unconfirmed."""
    if settled or active.steps[index].kind not in (Kind.GAIN_VOTE, Kind.LOSE_VOTE, Kind.JOIN_VOTER):
        return False
    return not turning.leads_back(running, record)


def _abandoned(state: State, running: DatameshTransition) -> State:
    """An emergency that nobody wants any more, held before its member is gone: the tie-breakers come back instead."""
    plan = state.registry.find(RESTORE.type, RESTORE.plan_id)
    if plan is None or not is_held(running):
        return state
    result = create(state, Proposal(plan, record_for(plan), replaces=running))
    return state if isinstance(result, Block) else result
