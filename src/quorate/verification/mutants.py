"""Mutants: the engine, the agent or the evidence with one known hazard put back. The checker must catch each of them.

A mutant lives here and nowhere else: it is built from the production registry by breaking one rule, or by breaking one rule
of the model around the engine (the agent's order, the confirmation, what counts as fencing evidence). Each names the
scenario in which it is caught; the test demands the violation and reports the number of states it took.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final, NamedTuple

from quorate.api.replicated_volume import Datamesh, TransitionType
from quorate.api.value import replace as replace_value
from quorate.datamesh import confirm, members
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Confirmation, Kind, Plan, Step
from quorate.datamesh.engine import DEFAULT_REGISTRY
from quorate.datamesh.layout import Layout
from quorate.datamesh.registry import Registry, Staging
from quorate.verification.assertions import (
    INTERRUPTED,
    LAST_COPY,
    OVERSTATED,
    STALE_SIDE,
    STUCK,
    TWO_SIDES,
)
from quorate.verification.volume_state import Intent, Scenario
from quorate.verification.world import CRASH, DISK, PARTITION

ONE, PAIR, PAIR_TB, THREE, FOUR = Layout(0, 0), Layout(0, 1), Layout(1, 0), Layout(1, 1), Layout(1, 2)


class Mutant(NamedTuple):
    """A hazard put back, and where it must be caught."""

    name: str
    hazard: str
    """What is wrong with it, in one sentence."""
    expected: tuple[str, ...]
    """Assertions of which one must be broken."""
    scenario: Scenario
    registry: Registry = DEFAULT_REGISTRY


def _with_staging(staging: Callable[[Context], Staging]) -> Registry:
    return DEFAULT_REGISTRY.with_rules(replace(DEFAULT_REGISTRY.rules, staging=staging))


def _plain(context: Context) -> Staging:
    return Staging.PLAIN


def _quorum_first(context: Context) -> Staging:
    return Staging.QUORUM_FIRST if context.mesh.tie_breakers & ~context.subject_bit else Staging.PLAIN


def _off_beside_tie_breakers(context: Context) -> Staging:
    return Staging.VOTE_OFF if context.mesh.tie_breakers & ~context.subject_bit else Staging.PLAIN


# H1 ------------------------------------------------------------------------------------------------------------------


def _relative_quorum(plan: Plan, step: Step) -> Step:
    """q is counted up and down from the stored value, as the plan was chosen, instead of from the voters."""
    change = 1 if "-q-up" in plan.plan_id else -1 if "-q-down" in plan.plan_id else 0
    if step.kind not in (Kind.GAIN_VOTE, Kind.LOSE_VOTE, Kind.JOIN_VOTER, Kind.LEAVE_VOTER, Kind.FORCE):
        return step

    def apply(context: Context) -> Datamesh:
        before = context.mesh.datamesh
        after = step.apply(context)
        return after if after == before else replace_value(after, quorum=before.quorum + change)

    return replace(step, apply=apply)


# H3, H4 --------------------------------------------------------------------------------------------------------------


def _with_redundancy_step(plan: Plan) -> Plan:
    """A join raises qmr by itself once the disk is attached, without waiting for the copy to be UpToDate."""
    if plan.type != TransitionType.ADD_REPLICA or not plan.plan_id.startswith("diskful"):
        return plan

    def apply(context: Context) -> Datamesh:
        return replace_value(context.mesh.datamesh, quorum_minimum_redundancy=context.world.layout.qmr)

    raised = Step(name="qmr↑", kind=Kind.OTHER, apply=apply, confirm=confirm.by_all, voting=True, raises=True)
    return replace(plan, steps=(*plan.steps, raised))


# H15 -----------------------------------------------------------------------------------------------------------------


def _waits_for_the_gone(plan: Plan, step: Step) -> Step:
    """A leaving replica confirms only by its own report, also when its object is gone."""
    if plan.type != TransitionType.REMOVE_REPLICA:
        return step

    def wait(context: Context, revision: int) -> Confirmation:
        must, confirmed = step.confirm(context, revision)
        subject = context.world.replicas.get(context.subject)
        gone = subject is None or subject.rvr is None
        return Confirmation(must, confirmed & ~context.subject_bit if gone else confirmed)

    return replace(step, confirm=wait)


# Others --------------------------------------------------------------------------------------------------------------


def _never_staged(context: Context) -> bool:
    return False


def _nothing_pending(context: Context) -> None:
    return None


def _always_enforced(context: Context, replica_id: int) -> bool:
    return True


def _one_step_emergencies() -> Registry:
    rules = replace(DEFAULT_REGISTRY.rules, emergency_staged=_never_staged)
    return DEFAULT_REGISTRY.with_rules(rules)


def _any_emergency() -> Registry:
    """Unreachable is enough: no quorum of the rest, no staging, several at once."""
    rules = replace(DEFAULT_REGISTRY.rules, emergency_staged=_never_staged, voter_change_pending=_nothing_pending)
    return DEFAULT_REGISTRY.with_rules(rules).without_guard("rest-has-quorum", "one-voter-change")


def _confirmed_by_nobody(plan: Plan, step: Step) -> Step:
    """Emergency steps do not wait for the remaining members."""
    return replace(step, confirm=confirm.by_nobody) if plan.type == TransitionType.FORCE_REMOVE_REPLICA else step


def _never_enforced() -> Registry:
    return DEFAULT_REGISTRY.with_rules(replace(DEFAULT_REGISTRY.rules, enforced=_always_enforced))


def _without_plan(*keys: tuple[str, str]) -> Registry:
    plans = {key: plan for key, plan in DEFAULT_REGISTRY.plans.items() if key not in keys}
    return replace(DEFAULT_REGISTRY, plans=plans)


def _vote_with_the_disk(plan: Plan, step: Step) -> Step:
    """A member that loses its vote loses its backing volume with the detach, without a second look."""
    if step.kind is not Kind.DETACH_DISK or plan.type != TransitionType.REMOVE_REPLICA:
        return step

    def apply(context: Context) -> Datamesh:
        datamesh = step.apply(context)
        kept = tuple(
            replace_value(member, type="Access", lvm_volume_group_name="")
            if member.name == context.replica.name
            else member
            for member in datamesh.members
        )
        voters = sum(members.is_voter(member.type) for member in kept)
        return replace_value(datamesh, members=kept, quorum=voters // 2 + 1)

    return replace(step, apply=apply)


def _scenario(layout: Layout, voters: str, name: str, *intents: Intent, faults: int = 1) -> Scenario:
    return Scenario(layout, voters, name, intents=intents, attached=0, faults=faults)


_REPLACE_PAIR = _scenario(PAIR_TB, "static", "a diskful replica is replaced", Intent("delete", 1))

MUTANTS: Final = (
    Mutant(
        "H1",
        "q is changed relative to the stored value, so an emergency in between leaves it below the majority",
        (TWO_SIDES, STALE_SIDE),
        _scenario(FOUR, "static", "4D becomes 1D", Intent("layout", 0, ONE), faults=2)._replace(
            kinds=(CRASH, PARTITION), in_doubt=True, spares=0, hurry=True
        ),
        DEFAULT_REGISTRY.map_steps(_relative_quorum),
    ),
    Mutant(
        "H2",
        "the guards that protect copies are not asked again before a copy is lost",
        (LAST_COPY,),
        _scenario(PAIR, "static", "2D becomes 1D", Intent("layout", 0, ONE), Intent("force-leave", 0))._replace(
            kinds=(CRASH,), in_doubt=True, attached=None
        ),
        DEFAULT_REGISTRY.without_gates("G18", "G16", "G19", "G20", "G21", "G22a", "S25"),
    ),
    Mutant(
        "H3",
        "qmr is raised while the new copy is still being synchronised",
        (INTERRUPTED,),
        _scenario(ONE, "static", "1D becomes 2D", Intent("layout", 0, PAIR), faults=0),
        DEFAULT_REGISTRY.map_plans(_with_redundancy_step),
    ),
    Mutant(
        "H4",
        "q is raised while the new vote cannot be reached",
        (INTERRUPTED,),
        _scenario(ONE, "static", "1D becomes 2D", Intent("layout", 0, PAIR)),
        DEFAULT_REGISTRY.without_guard("subject-connected"),
    ),
    Mutant(
        "H7",
        "the agent writes all options before it touches peers, so a lower q stands beside the old voters",
        (TWO_SIDES, STALE_SIDE),
        _scenario(FOUR, "static", "4D becomes 1D", Intent("layout", 0, ONE))._replace(
            kinds=(PARTITION,), spares=0, order="options-first"
        ),
    ),
    Mutant(
        "H8",
        "voters that nobody reaches are forgotten without fencing evidence, quorum of the rest or stages",
        (TWO_SIDES, STALE_SIDE),
        _scenario(THREE, "static", "two replica objects are gone", Intent("vanish", 1), Intent("vanish", 2))._replace(
            kinds=(PARTITION,)
        ),
        _any_emergency(),
    ),
    Mutant(
        "H14",
        "a member that cannot cooperate is never detached, so it can never be removed",
        (STUCK,),
        _scenario(PAIR_TB, "static", "a node fails")._replace(kinds=(CRASH,), in_doubt=True),
        _without_plan((TransitionType.FORCE_DETACH, "force-detach/v1")),
    ),
    Mutant(
        "H15",
        "a removal waits for the report of a replica whose object is gone",
        (STUCK,),
        _scenario(
            THREE, "static", "a leaving replica's object goes", Intent("delete", 2), Intent("vanish", 2), faults=0
        ),
        DEFAULT_REGISTRY.map_steps(_waits_for_the_gone),
    ),
    Mutant(
        "H31",
        "a vote changes beside a tie-breaker in one revision",
        (TWO_SIDES,),
        _REPLACE_PAIR,
        _with_staging(_plain),
    ),
    Mutant(
        "one-step-retype",
        "a voter becomes a tie-breaker in one revision",
        (TWO_SIDES,),
        _scenario(THREE, "dynamic", "3D becomes 2D+1TB", Intent("layout", 0, PAIR_TB), faults=2)._replace(
            kinds=(PARTITION,)
        ),
        _with_staging(_off_beside_tie_breakers),
    ),
    Mutant(
        "M2",
        "q = 3 of two voters meanwhile: a node that boots waits for quorum, and the change for the node",
        (STUCK,),
        _REPLACE_PAIR._replace(kinds=(CRASH,)),
        _with_staging(_quorum_first),
    ),
    Mutant(
        "not-enforced",
        "a revision counts as confirmed although the Primary has only stored the raised qmr",
        (OVERSTATED,),
        _scenario(PAIR_TB, "static", "2D+1TB becomes 3D", Intent("layout", 0, THREE), faults=2)._replace(
            check_flag=False, kinds=(DISK,)
        ),
        _never_enforced(),
    ),
    Mutant(
        "one-step-emergency",
        "a voter that may still run is removed beside a tie-breaker in one step",
        (TWO_SIDES, STALE_SIDE),
        _scenario(PAIR_TB, "static", "a replica object is gone", Intent("vanish", 1), faults=2)._replace(
            kinds=(PARTITION,), spares=0
        ),
        _one_step_emergencies(),
    ),
    Mutant(
        "rest-without-quorum",
        "a voter that may still run is removed although the rest has no quorum",
        (TWO_SIDES, STALE_SIDE),
        _scenario(PAIR_TB, "dynamic", "a replica is forced out", Intent("force-leave", 1), faults=2)._replace(
            kinds=(PARTITION,), attached=None, spares=0
        ),
        DEFAULT_REGISTRY.without_guard("rest-has-quorum"),
    ),
    Mutant(
        "rumour",
        "a node that merely does not answer counts as fenced",
        (TWO_SIDES, STALE_SIDE),
        _scenario(PAIR_TB, "dynamic", "a replica object is gone", Intent("vanish", 0), faults=2)._replace(
            kinds=(PARTITION,), spares=0, rumours=True
        ),
    ),
    Mutant(
        "no-connection-gates",
        "a vote is given while not everybody is connected",
        (TWO_SIDES, STALE_SIDE, STUCK, INTERRUPTED),
        _REPLACE_PAIR._replace(kinds=(PARTITION,)),
        DEFAULT_REGISTRY.without_guard("all-connected", "subject-connected"),
    ),
    Mutant(
        "blind-return",
        "a disk that was away comes back without meeting a current copy",
        (STALE_SIDE,),
        Scenario(
            PAIR_TB,
            "static",
            "a diskful replica is replaced, then attached",
            intents=(Intent("delete", 1), Intent("attach", 0)),
            kinds=(PARTITION,),
            strict=True,
            hurry=True,
        ),
        DEFAULT_REGISTRY.without_guard("newer-data-elsewhere"),
    ),
    Mutant(
        "no-copy-guards",
        "a diskful member leaves without asking how many copies remain",
        (LAST_COPY, OVERSTATED, INTERRUPTED),
        _scenario(PAIR, "static", "a diskful replica leaves", Intent("layout", 0, ONE), Intent("delete", 1))._replace(
            attached=None, kinds=(DISK,)
        ),
        DEFAULT_REGISTRY.map_steps(_vote_with_the_disk).without_guard("G19", "G20", "G16", "S25", "serving-copies"),
    ),
    Mutant(
        "unconfirmed-emergency",
        "the steps of an emergency do not wait for the remaining members",
        (TWO_SIDES, STALE_SIDE),
        _scenario(PAIR_TB, "static", "a replica object is gone", Intent("vanish", 1), faults=2)._replace(
            kinds=(PARTITION,), spares=0
        ),
        DEFAULT_REGISTRY.map_steps(_confirmed_by_nobody),
    ),
)
"""Mutants of the volume model; those that need hand-written revisions are in `sequence_mutants`."""
