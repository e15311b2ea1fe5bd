"""The steps that membership plans are made of, each with who confirms it and what is asked before it is applied.

Voter changes are mirror images: what `gaining` does, `losing` takes back step by step, so a transition can be turned round
at any step (decision 8).
"""

from __future__ import annotations

from quorate.api.replicated_volume import MemberType
from quorate.api.replicated_volume_replica import DRBDConfiguredCondition
from quorate.datamesh import confirm, steps
from quorate.datamesh.dsl import Guard, Kind, Step
from quorate.datamesh.guards.connection import (
    meets_current_data,
    subject_connected,
    voters_and_tie_breakers_connected,
)
from quorate.datamesh.guards.voting import quorum_is_raised, rest_keeps_quorum, staged_as, vote_is_off
from quorate.datamesh.members import symbol
from quorate.datamesh.registry import Staging

_JOINING = (DRBDConfiguredCondition.PENDING_DATAMESH_JOIN,)


def _tie_gates(member_type: str) -> tuple[Guard, ...]:
    """Tie-breakers come and go while nobody lives on the tie-break."""
    return (rest_keeps_quorum,) if member_type == MemberType.TIE_BREAKER else ()


def join(member_type: str) -> Step:
    """✦ → A, ✦ → TB. A tie-breaker counts in ties, so its coming and going is a voting step."""
    return Step(
        name=f"✦ → {symbol(member_type)}",
        kind=Kind.JOIN,
        apply=steps.join(member_type),
        confirm=confirm.by_full_mesh,
        gates=_tie_gates(member_type),
        voting=member_type == MemberType.TIE_BREAKER,
        expected_reasons=_JOINING,
    )


def leave(member_type: str) -> Step:
    """A → ✕, TB → ✕."""
    return Step(
        name=f"{symbol(member_type)} → ✕",
        kind=Kind.LEAVE,
        apply=steps.leave,
        confirm=confirm.by_full_mesh_leaving,
        gates=_tie_gates(member_type),
        voting=member_type == MemberType.TIE_BREAKER,
    )


def retype(origin: str, to: str) -> Step:
    """A → TB, TB → A."""
    return Step(
        name=f"{symbol(origin)} → {symbol(to)}",
        kind=Kind.RETYPE,
        apply=steps.retype(to),
        confirm=confirm.by_full_mesh,
        gates=(rest_keeps_quorum,),
        voting=True,
    )


ATTACH_DISK = Step(
    name="D∅ → D",
    kind=Kind.ATTACH_DISK,
    apply=steps.attach_disk,
    confirm=confirm.by_subject,
    gates=(subject_connected,),
)

RESUME_DISK = Step(
    name="D∅ → D",
    kind=Kind.ATTACH_DISK,
    apply=steps.attach_disk,
    confirm=confirm.by_subject,
    gates=(meets_current_data,),
)
"""Going back to D: the copy is returned where it can be compared with a current one."""

VOTE_OFF = Step(
    name="TB vote off",
    kind=Kind.VOTE_OFF,
    apply=steps.vote_off,
    confirm=confirm.by_voters,
    gates=(voters_and_tie_breakers_connected, subject_connected, staged_as(Staging.VOTE_OFF)),
    voting=True,
    raises=True,
)

VOTE_ON = Step(
    name="TB vote on",
    kind=Kind.VOTE_ON,
    apply=steps.vote_on,
    confirm=confirm.by_voters,
    voting=True,
)

RAISE_QUORUM = Step(
    name="q↑",
    kind=Kind.RAISE_QUORUM,
    apply=steps.raise_quorum,
    confirm=confirm.by_voters,
    gates=(voters_and_tie_breakers_connected, subject_connected, staged_as(Staging.QUORUM_FIRST)),
    voting=True,
    raises=True,
)

LOWER_QUORUM = Step(
    name="q↓",
    kind=Kind.LOWER_QUORUM,
    apply=steps.lower_quorum,
    confirm=confirm.by_voters,
    voting=True,
)


def detach_disk(gates: tuple[Guard, ...]) -> Step:
    """D → D∅: a copy is lost, so everything that protects copies is asked right before (S15)."""
    return Step(
        name="D → D∅",
        kind=Kind.DETACH_DISK,
        apply=steps.detach_disk,
        confirm=confirm.by_subject,
        gates=gates,
    )


def change_volume(gates: tuple[Guard, ...]) -> Step:
    """D∅ gets another volume group: the old volume, and the copy on it, is gone afterwards."""
    return Step(
        name="D∅ → D∅ (new volume)",
        kind=Kind.CHANGE_VOLUME,
        apply=steps.change_volume,
        confirm=confirm.by_subject,
        gates=gates,
    )


_IN_FORCE: dict[Staging, tuple[Guard, ...]] = {
    Staging.PLAIN: (),
    Staging.VOTE_OFF: (vote_is_off,),
    Staging.QUORUM_FIRST: (quorum_is_raised,),
}
"""What the first half of a staged gain must have left in force."""


def _gain(origin: str, staging: Staging, mark: str) -> Step:
    return Step(
        name=f"{symbol(origin)} → D∅{mark}",
        kind=Kind.GAIN_VOTE,
        apply=steps.gain_vote,
        confirm=confirm.by_all,
        gates=(subject_connected, staged_as(staging), *_IN_FORCE[staging]),
        voting=True,
        raises=True,
    )


JOIN_VOTER = Step(
    name="✦ → D∅",
    kind=Kind.JOIN_VOTER,
    apply=steps.join_voter,
    confirm=confirm.by_all,
    gates=(staged_as(Staging.PLAIN),),
    voting=True,
    raises=True,
    expected_reasons=_JOINING,
)


def gaining(origin: str, staging: Staging, *, raises_quorum: bool = False) -> tuple[Step, ...]:
    """A or TB becomes D: plain, by M1 or by M2."""
    match staging:
        case Staging.PLAIN:
            return (_gain(origin, staging, " + q↑" if raises_quorum else ""), ATTACH_DISK)
        case Staging.VOTE_OFF:
            return (VOTE_OFF, _gain(origin, staging, " + q"), VOTE_ON, ATTACH_DISK)
        case Staging.QUORUM_FIRST:
            return (RAISE_QUORUM, _gain(origin, staging, " + q"), ATTACH_DISK)


def _lose(to: str, staging: Staging, mark: str, gates: tuple[Guard, ...]) -> Step:
    extra = 1 if staging is Staging.QUORUM_FIRST else 0
    return Step(
        name=f"D∅ → {symbol(to)}{mark}",
        kind=Kind.LOSE_VOTE,
        apply=steps.lose_vote(to, extra),
        confirm=confirm.by_all,
        gates=(
            *gates,
            staged_as(staging),
            *((vote_is_off,) if staging is Staging.VOTE_OFF else ()),
            rest_keeps_quorum,
        ),
        voting=True,
        raises=extra > 0,
    )


def leave_voter(gates: tuple[Guard, ...]) -> Step:
    """D∅ → ✕."""
    return Step(
        name="D∅ → ✕",
        kind=Kind.LEAVE_VOTER,
        apply=steps.leave_voter,
        confirm=confirm.by_all_leaving,
        gates=(*gates, staged_as(Staging.PLAIN), rest_keeps_quorum),
        voting=True,
    )


def losing(to: str, staging: Staging, gates: tuple[Guard, ...], *, lowers_quorum: bool = False) -> tuple[Step, ...]:
    """D becomes A or TB: plain, by M1 or by M2. The backing volume goes with the vote, so the gates are asked twice."""
    detach = detach_disk(gates)
    match staging:
        case Staging.PLAIN:
            return (detach, _lose(to, staging, " + q↓" if lowers_quorum else "", gates))
        case Staging.VOTE_OFF:
            return (detach, VOTE_OFF, _lose(to, staging, " + q", gates), VOTE_ON)
        case Staging.QUORUM_FIRST:
            connected = (*gates, voters_and_tie_breakers_connected)
            return (detach, _lose(to, staging, " + q", connected), LOWER_QUORUM)
