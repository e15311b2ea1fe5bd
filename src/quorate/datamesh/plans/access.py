"""Access members: join and leave (facts/datamesh 3.5, 3.6; seed 000, ensureDatameshAccessReplicas)."""

from __future__ import annotations

from quorate.api.replicated_volume import MemberType, TransitionGroup, TransitionType
from quorate.datamesh.dsl import Plan, Slot
from quorate.datamesh.guards import joining, leaving
from quorate.datamesh.plans import macros

JOIN = Plan(
    type=TransitionType.ADD_REPLICA,
    plan_id="access/v1",
    group=TransitionGroup.NON_VOTING_MEMBERSHIP,
    slot=Slot.MEMBERSHIP,
    display="Joining datamesh",
    guards=joining.ACCESS,
    steps=(macros.join(MemberType.ACCESS),),
    done="Joined datamesh",
)

LEAVE = Plan(
    type=TransitionType.REMOVE_REPLICA,
    plan_id="access/v1",
    group=TransitionGroup.NON_VOTING_MEMBERSHIP,
    slot=Slot.MEMBERSHIP,
    display="Leaving datamesh",
    guards=(leaving.not_attached,),
    steps=(macros.leave(MemberType.ACCESS),),
    done="Left datamesh",
)

PLANS = (JOIN, LEAVE)
