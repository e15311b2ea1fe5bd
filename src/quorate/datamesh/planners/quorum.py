"""Quorum planner (facts/datamesh 3.9): q and qmr follow the voters, the copies and the configuration.

It never defers to a membership request: qmr has one owner, so a blocked request cannot keep it wrong (hazard H13, L4).
"""

from __future__ import annotations

from quorate.api.replicated_volume import TransitionType
from quorate.datamesh.create import Proposal, record_for
from quorate.datamesh.dsl import Plan
from quorate.datamesh.layout import majority
from quorate.datamesh.planners.common import create_global
from quorate.datamesh.plans import quorum
from quorate.datamesh.state import Report, State


def dispatch(state: State, report: Report) -> State:
    """Create the quorum change that is due."""
    mesh = state.mesh
    if not mesh.voters or any(t.type == TransitionType.FORCE_REMOVE_REPLICA for t in state.transitions):
        return state
    wanted = _wanted(state)
    plan = state.registry.find(wanted.type, wanted.plan_id) if wanted is not None else None
    return state if plan is None else create_global(state, Proposal(plan, record_for(plan)), report)


def _wanted(state: State) -> Plan | None:
    datamesh = state.mesh.datamesh
    if datamesh.tie_breakers_suspended or any(member.tie_breakers_disconnected for member in datamesh.members):
        return quorum.RESTORE
    q_right = majority(state.mesh.voter_count)
    qmr_right = quorum.right_qmr(state.context())
    q_now, qmr_now = datamesh.quorum, datamesh.quorum_minimum_redundancy
    if q_right == q_now and qmr_right == qmr_now:
        return None
    if q_right <= q_now and qmr_right <= qmr_now:
        return quorum.LOWER
    if q_right >= q_now and qmr_right >= qmr_now:
        return quorum.RAISE
    return quorum.LOWER_Q_RAISE_QMR if q_right < q_now else quorum.RAISE_Q_LOWER_QMR
