"""Resize planner (facts/datamesh 3.13): the published size follows the spec upwards."""

from __future__ import annotations

from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import TransitionType
from quorate.api.sizes import align_4ki
from quorate.datamesh.create import Proposal, record_for
from quorate.datamesh.planners.common import create_global
from quorate.datamesh.plans.resize import RESIZE
from quorate.datamesh.state import Report, State


def dispatch(state: State, report: Report) -> State:
    """Create the resize that is due; a smaller spec is ignored."""
    wanted = align_4ki(state.world.volume.spec.size.value)
    if wanted <= state.mesh.datamesh.size.value:
        return state
    if any(transition.type == TransitionType.RESIZE_VOLUME for transition in state.transitions):
        return state
    plan = state.registry.find(RESIZE.type, RESIZE.plan_id)
    if plan is None:
        return state
    return create_global(state, Proposal(plan, record_for(plan, size=Quantity.of(wanted))), report)
