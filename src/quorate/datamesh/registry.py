"""The registry: all plans and the engine's few replaceable rules, immutable and passed to every pass.

Guarantees: a plan is found by (type, plan id) or not at all; nothing is registered at run time. Everything that decides
about safety is data in here, so a verification can build a registry with one rule broken (`without_guard`, `map_steps`,
`with_rules`) and watch the property fail; production code uses `DEFAULT_REGISTRY`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import TypeAlias

from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, Guard, Plan, Step

PlanKey: TypeAlias = tuple[str, str]


class Staging(Enum):
    """How a voter is changed (decision 4)."""

    PLAIN = "plain"
    """No tie-breaker: voter and q in one revision."""
    VOTE_OFF = "vote-off"
    """M1: the tie-breakers lose their vote meanwhile."""
    QUORUM_FIRST = "q-first"
    """M2: q is one higher meanwhile; only where a number bites (static voters)."""


@dataclass(frozen=True, slots=True)
class Rules:
    """Decisions that belong to no single plan."""

    staging: Callable[[Context], Staging]
    """How the subject's vote is changed next to the tie-breakers that there are."""
    enforced: Callable[[Context, int], bool]
    """Whether a replica's kernel enforces the quorum values that its confirmed revision has (decision 5)."""
    voter_change_pending: Callable[[Context], Block | None]
    """Whether another change of the voters is not confirmed by everybody that may still run (S4, decision 6)."""
    emergency_staged: Callable[[Context], bool]
    """Whether an emergency removal of the subject takes two steps (decision 6)."""


@dataclass(frozen=True, slots=True)
class Registry:
    """Plans by type and id, and the rules."""

    plans: Mapping[PlanKey, Plan]
    rules: Rules

    def find(self, transition_type: str, plan_id: str) -> Plan | None:
        """The plan of a transition; None when this version does not know it."""
        return self.plans.get((transition_type, plan_id))

    def with_plans(self, plans: Iterable[Plan]) -> Registry:
        """A registry with these plans added or replaced."""
        return replace(self, plans={**self.plans, **{(plan.type, plan.plan_id): plan for plan in plans}})

    def with_rules(self, rules: Rules) -> Registry:
        """A registry with other rules."""
        return replace(self, rules=rules)

    def map_plans(self, change: Callable[[Plan], Plan]) -> Registry:
        """A registry with every plan changed."""
        return replace(self, plans={key: change(plan) for key, plan in self.plans.items()})

    def map_steps(self, change: Callable[[Plan, Step], Step]) -> Registry:
        """A registry with every step changed."""
        return self.map_plans(lambda plan: replace(plan, steps=tuple(change(plan, step) for step in plan.steps)))

    def without_guard(self, *names: str) -> Registry:
        """A registry without these guards and gates."""

        def keep(guards: tuple[Guard, ...]) -> tuple[Guard, ...]:
            return tuple(guard for guard in guards if guard.name not in names)

        def change(plan: Plan) -> Plan:
            steps = tuple(replace(step, gates=keep(step.gates)) for step in plan.steps)
            return replace(plan, guards=keep(plan.guards), steps=steps)

        return self.map_plans(change)

    def without_gates(self, *names: str) -> Registry:
        """A registry whose steps do not ask these gates again; with no name: none at all."""
        return self.map_steps(
            lambda _, step: replace(step, gates=tuple(gate for gate in step.gates if names and gate.name not in names))
        )


def registry_of(plans: Iterable[Plan], rules: Rules) -> Registry:
    """A registry of these plans; ValueError when two have the same type and id."""
    found: dict[PlanKey, Plan] = {}
    for plan in plans:
        key = (plan.type, plan.plan_id)
        if key in found:
            raise ValueError(f"plan {key} is registered twice")
        found[key] = plan
    return Registry(found, rules)
