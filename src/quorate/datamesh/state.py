"""The state of a pass: the mesh and the transitions as they stand after the decisions so far.

Guarantees: a `State` is immutable; every change gives a new one, so whatever is decided later in a pass sees the effects of
what was decided before. `Report` collects texts for people and is never read by a decision.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from quorate.datamesh.context import Context, Mesh, World, mesh_of
from quorate.datamesh.records import activated, subject_of

if TYPE_CHECKING:
    from quorate.api.replicated_volume import Datamesh, DatameshTransition
    from quorate.datamesh.dsl import Block, Plan
    from quorate.datamesh.registry import Registry


@dataclass(frozen=True, slots=True, eq=False)
class State:
    """World, mesh, transitions."""

    world: World
    registry: Registry
    mesh: Mesh
    transitions: tuple[DatameshTransition, ...]

    def context(self, transition: DatameshTransition | None = None, subject: int = -1) -> Context:
        """A question about a transition (and its subject), or about a replica."""
        if transition is not None:
            subject = subject_of(transition)
        return Context(self.world, self.mesh, self.transitions, self.registry, subject, transition)

    def plan_of(self, transition: DatameshTransition) -> Plan | None:
        """The plan of a transition; None when this version does not know it, or knows it with other steps."""
        plan = self.registry.find(transition.type, transition.plan_id)
        return plan if plan is not None and len(plan.steps) == len(transition.steps) else None

    def with_transition(self, before: DatameshTransition, after: DatameshTransition) -> State:
        """The state with one record replaced; itself when it is the same value."""
        if after is before:
            return self
        changed = tuple(after if transition is before else transition for transition in self.transitions)
        return replace(self, transitions=changed)

    def without(self, *gone: DatameshTransition) -> State:
        """The state without these records."""
        kept = tuple(t for t in self.transitions if not any(t is other for other in gone))
        return replace(self, transitions=kept)

    def with_datamesh(self, datamesh: Datamesh) -> State:
        """The state with this datamesh published: one more revision if it differs (E1, E4)."""
        if datamesh == self.mesh.datamesh:
            return self
        return replace(self, mesh=mesh_of(datamesh, self.mesh.revision + 1))


@dataclass(slots=True)
class Report:
    """Texts of a pass."""

    membership: dict[int, str] = field(default_factory=dict[int, str])
    """By replica id: what its request is told."""
    blocked: dict[int, Block] = field(default_factory=dict[int, "Block"])
    """By replica id: what keeps its membership from changing."""
    attachment: dict[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    """By node name: reason and message of the `Attached` condition."""
    volume: dict[str, str] = field(default_factory=dict[str, str])
    """By transition type: why a change of the whole volume waits."""


def start_step(state: State, transition: DatameshTransition, plan: Plan, index: int) -> State:
    """Apply a step of a record that is in the state: publish, then activate it at the revision reached."""
    changed = state.with_datamesh(plan.steps[index].apply(state.context(transition)))
    after = activated(transition, index, changed.mesh.revision, state.world.now)
    return changed.with_transition(transition, after)
