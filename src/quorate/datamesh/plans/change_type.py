"""Type changes (facts/datamesh 3.8). Identity (id, name, node) never changes; an attached member may change its type."""

from __future__ import annotations

from quorate.api.replicated_volume import MemberType, TransitionGroup, TransitionType
from quorate.datamesh.dsl import Guard, Plan, Slot, Step
from quorate.datamesh.guards import connection, joining, leaving, voting, zones
from quorate.datamesh.plans import macros
from quorate.datamesh.plans.diskful import COPY_GUARDS, GAIN_GUARDS
from quorate.datamesh.registry import Staging

A, D, TB = MemberType.ACCESS, MemberType.DISKFUL, MemberType.TIE_BREAKER

_TO_TIE_BREAKER = (zones.in_primary_zone, zones.tie_breaker_zone_is_thin)
_FROM_TIE_BREAKER = (leaving.tie_breaker_not_needed, leaving.zone_keeps_tie_breaker)

RETYPE_COPY_GUARDS = (
    *leaving.COPY_LOSING,
    zones.keeps_zone_redundancy_when_leaving,
    zones.keeps_zone_quorum_when_becoming_tie_breaker,
    leaving.tie_breaker_ready_with_subject,
)
"""Copy-losing guards of D → TB: the subject counts as the tie-breaker that it becomes (G22b)."""


def _change(plan_id: str, guards: tuple[Guard, ...], steps: tuple[Step, ...], *, votes: bool) -> Plan:
    return Plan(
        type=TransitionType.CHANGE_REPLICA_TYPE,
        plan_id=plan_id,
        group=TransitionGroup.VOTING_MEMBERSHIP if votes else TransitionGroup.NON_VOTING_MEMBERSHIP,
        slot=Slot.MEMBERSHIP,
        display="Changing replica type",
        guards=guards,
        steps=steps,
        done="Changed replica type",
    )


_CONNECTED = (connection.voters_and_tie_breakers_connected,)


def _to_diskful(origin: str, first: tuple[Guard, ...]) -> tuple[Plan, ...]:
    name = "a-to-d" if origin == A else "tb-to-d"

    def plan(suffix: str, internal: tuple[Guard, ...], steps: tuple[Step, ...]) -> Plan:
        guards = (*first, joining.volume_group_known, *GAIN_GUARDS, *internal, joining.disk_slot_free)
        return _change(f"{name}{suffix}/v1", guards, steps, votes=True)

    return (
        plan("", (voting.voters_even,), macros.gaining(origin, Staging.PLAIN)),
        plan("-q-up", (voting.voters_odd,), macros.gaining(origin, Staging.PLAIN, raises_quorum=True)),
        plan("-vote-off", _CONNECTED, macros.gaining(origin, Staging.VOTE_OFF)),
        plan("-q-first", _CONNECTED, macros.gaining(origin, Staging.QUORUM_FIRST)),
    )


def _from_diskful(to: str, first: tuple[Guard, ...], copies: tuple[Guard, ...]) -> tuple[Plan, ...]:
    name = "d-to-a" if to == A else "d-to-tb"

    def plan(suffix: str, internal: tuple[Guard, ...], steps: tuple[Step, ...]) -> Plan:
        return _change(f"{name}{suffix}/v1", (*copies, *first, *internal), steps, votes=True)

    return (
        plan("", (voting.voters_odd,), macros.losing(to, Staging.PLAIN, copies)),
        plan("-q-down", (voting.voters_even,), macros.losing(to, Staging.PLAIN, copies, lowers_quorum=True)),
        plan("-vote-off", _CONNECTED, macros.losing(to, Staging.VOTE_OFF, copies)),
        plan("-q-first", _CONNECTED, macros.losing(to, Staging.QUORUM_FIRST, copies)),
    )


RESUME = _change("resume-diskful/v1", (), (macros.RESUME_DISK,), votes=True)
"""A liminal member goes (back) to D: after a change that was taken back, or when its transition is lost (hazard H30)."""

PLANS = (
    _change("a-to-tb/v1", _TO_TIE_BREAKER, (macros.retype(A, TB),), votes=False),
    _change("tb-to-a/v1", (joining.access_role_allowed, *_FROM_TIE_BREAKER), (macros.retype(TB, A),), votes=False),
    *_to_diskful(A, ()),
    *_to_diskful(TB, (leaving.tie_breaker_not_needed_as_voter,)),
    *_from_diskful(A, (joining.access_role_allowed,), COPY_GUARDS),
    *_from_diskful(TB, (), RETYPE_COPY_GUARDS),
    RESUME,
)
