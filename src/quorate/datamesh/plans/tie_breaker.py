"""Tie-breaker members: join and leave. Replacing one is create-first: the old one stays until another counts (S26)."""

from __future__ import annotations

from quorate.api.replicated_volume import MemberType, TransitionGroup, TransitionType
from quorate.datamesh.dsl import Plan, Slot
from quorate.datamesh.guards import joining, leaving, zones
from quorate.datamesh.plans import macros

JOIN = Plan(
    type=TransitionType.ADD_REPLICA,
    plan_id="tiebreaker/v1",
    group=TransitionGroup.NON_VOTING_MEMBERSHIP,
    slot=Slot.MEMBERSHIP,
    display="Joining datamesh",
    guards=(*joining.COMMON, zones.in_primary_zone, zones.tie_breaker_zone_is_thin),
    steps=(macros.join(MemberType.TIE_BREAKER),),
    done="Joined datamesh",
)

LEAVE = Plan(
    type=TransitionType.REMOVE_REPLICA,
    plan_id="tiebreaker/v1",
    group=TransitionGroup.NON_VOTING_MEMBERSHIP,
    slot=Slot.MEMBERSHIP,
    display="Leaving datamesh",
    guards=(leaving.not_attached, leaving.tie_breaker_not_needed, leaving.zone_keeps_tie_breaker),
    steps=(macros.leave(MemberType.TIE_BREAKER),),
    done="Left datamesh",
)

PLANS = (JOIN, LEAVE)
