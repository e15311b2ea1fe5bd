"""Emergency removals (facts/datamesh 3.7 in the form of decision 6).

No guard about copies, failures or zones: what is lost is lost. qmr and the baseline are never touched (S12). A voter that is
not fenced goes only while the rest has quorum. Beside a tie-breaker it goes in two steps, each confirmed by every remaining
member that may still run; a fenced one goes in one step:

* three or more voters: the tie-breakers lose their vote, the member goes and q = majority, the vote comes back (M1);
* two voters: the tie-breakers drop their connection to the member; then it goes and q = 1.

`diskful-staged/v1` (q = majority + 1 meanwhile) is not chosen any more: with two voters left nobody but a tie-break meets
q = 3, and not even that while the votes are off (docs/decisions/voter-changes-beside-a-tie-breaker.md).
"""

from __future__ import annotations

from quorate.api.replicated_volume import TransitionGroup, TransitionType
from quorate.datamesh import confirm, steps
from quorate.datamesh.dsl import Block, Context, Guard, Kind, Plan, Slot, Step, guard
from quorate.datamesh.guards import emergency, leaving, voting


@guard("one-voter-change")
def no_voter_change_pending(context: Context) -> Block | None:
    """One unconfirmed voter change at a time, emergencies included."""
    return context.registry.rules.voter_change_pending(context)


@guard("staged-removal")
def staged(context: Context) -> Block | None:
    """Internal: the plan with two steps is for a voter beside a tie-breaker."""
    return None if context.registry.rules.emergency_staged(context) else Block("internal: no tie-breaker remains")


@guard("plain-removal")
def plain(context: Context) -> Block | None:
    """Internal: the plan with one step is for a voter without tie-breakers."""
    return Block("internal: a tie-breaker remains") if context.registry.rules.emergency_staged(context) else None


def _removal(name: str, extra: int = 0, *, votes_off: bool = False) -> Step:
    return Step(
        name=name,
        kind=Kind.FORCE,
        apply=steps.force_remove(extra),
        confirm=confirm.by_remaining,
        gates=(emergency.unreachable, emergency.rest_has_quorum, *((voting.vote_is_off,) if votes_off else ())),
        voting=True,
        raises=extra > 0,
    )


LOWER_QUORUM = Step(name="q↓", kind=Kind.FORCE, apply=steps.lower_quorum, confirm=confirm.by_remaining, voting=True)

DISCONNECT = Step(
    name="Disconnect tie-breakers",
    kind=Kind.FORCE,
    apply=steps.disconnect_tie_breakers,
    confirm=confirm.by_remaining,
    gates=(emergency.unreachable, emergency.rest_has_quorum),
    voting=True,
)


VOTE_OFF = Step(
    name="TB vote off",
    kind=Kind.FORCE,
    apply=steps.vote_off,
    confirm=confirm.by_remaining,
    gates=(emergency.unreachable, emergency.rest_has_quorum),
    voting=True,
    raises=True,
)

VOTE_ON = Step(name="TB vote on", kind=Kind.FORCE, apply=steps.vote_on, confirm=confirm.by_remaining, voting=True)


def _plan(plan_id: str, guards: tuple[Guard, ...], plan_steps: tuple[Step, ...]) -> Plan:
    return Plan(
        type=TransitionType.FORCE_REMOVE_REPLICA,
        plan_id=plan_id,
        group=TransitionGroup.EMERGENCY,
        slot=Slot.MEMBERSHIP,
        display="Force-removing replica",
        guards=(leaving.not_attached, emergency.unreachable, *guards),
        steps=plan_steps,
        done="Removed from datamesh",
    )


# A tie-breaker counts in ties; an Access member has no say, so its removal waits for nobody.
_COUNTED = (no_voter_change_pending,)
_VOTER = (emergency.not_the_last_voter, no_voter_change_pending)

PLANS = (
    _plan("access/v1", (), (_removal("Force remove"),)),
    _plan("tiebreaker/v1", _COUNTED, (_removal("Force remove"),)),
    _plan("diskful/v1", (*_VOTER, plain, voting.voters_odd), (_removal("Force remove"),)),
    _plan("diskful-q-down/v1", (*_VOTER, plain, voting.voters_even), (_removal("Force remove"),)),
    _plan("diskful-staged/v1", (*_VOTER, staged), (_removal("Force remove + q↑", 1), LOWER_QUORUM)),
    _plan("diskful-vote-off/v1", (*_VOTER, staged), (VOTE_OFF, _removal("Force remove", votes_off=True), VOTE_ON)),
    _plan("diskful-pair/v1", (*_VOTER, staged, voting.voters_even), (DISCONNECT, _removal("Force remove + q↓"))),
)
