"""Diskful members: join and leave (facts/datamesh 3.5, 3.6 in the form of decisions 3 and 4).

qmr is changed by ChangeQuorum only (hazards H3, H13): it goes down before a copy leaves (G19 asks for it) and up once the
copies are UpToDate, so no membership plan carries a qmr step and none is held up by a resync.
"""

from __future__ import annotations

from quorate.api.replicated_volume import MemberType, TransitionGroup, TransitionType
from quorate.datamesh.dsl import Guard, Plan, Slot, Step
from quorate.datamesh.guards import connection, joining, leaving, voting, zones
from quorate.datamesh.plans import macros
from quorate.datamesh.registry import Staging

A = MemberType.ACCESS

GAIN_GUARDS = (zones.in_primary_zone, zones.keeps_zone_promise_when_joining)
"""Zone guards of a new voter."""

COPY_GUARDS = (
    *leaving.COPY_LOSING,
    zones.keeps_zone_redundancy_when_leaving,
    zones.keeps_zone_quorum_when_leaving,
    leaving.tie_breaker_ready_for_even_voters,
)
"""Everything that protects copies and votes when a diskful member goes: guards at creation, gates at every lossy step."""


def _join(plan_id: str, internal: tuple[Guard, ...], steps: tuple[Step, ...]) -> Plan:
    return Plan(
        type=TransitionType.ADD_REPLICA,
        plan_id=plan_id,
        group=TransitionGroup.VOTING_MEMBERSHIP,
        slot=Slot.MEMBERSHIP,
        display="Adding diskful replica",
        guards=(*joining.COMMON, joining.volume_group_known, *GAIN_GUARDS, *internal, joining.disk_slot_free),
        steps=steps,
        done="Joined datamesh",
    )


def _leave(plan_id: str, internal: tuple[Guard, ...], steps: tuple[Step, ...]) -> Plan:
    return Plan(
        type=TransitionType.REMOVE_REPLICA,
        plan_id=plan_id,
        group=TransitionGroup.VOTING_MEMBERSHIP,
        slot=Slot.MEMBERSHIP,
        display="Removing diskful replica",
        guards=(leaving.not_attached, *COPY_GUARDS, *internal),
        steps=steps,
        done="Left datamesh",
    )


_CONNECTED = (connection.voters_and_tie_breakers_connected,)

PLANS = (
    _join("diskful/v1", (voting.voters_even,), (macros.JOIN_VOTER, macros.ATTACH_DISK)),
    _join(
        "diskful-q-up/v1",
        (voting.voters_odd,),
        (macros.join(A), *macros.gaining(A, Staging.PLAIN, raises_quorum=True)),
    ),
    _join("diskful-vote-off/v1", (), (macros.join(A), *macros.gaining(A, Staging.VOTE_OFF))),
    _join("diskful-q-first/v1", (), (macros.join(A), *macros.gaining(A, Staging.QUORUM_FIRST))),
    _leave(
        "remove-diskful/v1",
        (voting.voters_odd,),
        (macros.detach_disk(COPY_GUARDS), macros.leave_voter(COPY_GUARDS)),
    ),
    _leave(
        "remove-diskful-q-down/v1",
        (voting.voters_even,),
        (*macros.losing(A, Staging.PLAIN, COPY_GUARDS, lowers_quorum=True), macros.leave(A)),
    ),
    _leave(
        "remove-diskful-vote-off/v1",
        _CONNECTED,
        (*macros.losing(A, Staging.VOTE_OFF, COPY_GUARDS), macros.leave(A)),
    ),
    _leave(
        "remove-diskful-q-first/v1",
        _CONNECTED,
        (*macros.losing(A, Staging.QUORUM_FIRST, COPY_GUARDS), macros.leave(A)),
    ),
)
