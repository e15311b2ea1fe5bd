"""Listens to the volume controller's decisions and turns them into steps.

The manager's `record` sink sees every decision with its snapshot, so nothing is missed between two looks, and the same
registry that decided says which guards were checked and who must confirm.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from quorate.api.replicated_volume import DatameshTransition, ReplicatedVolume, StepStatus
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.controllers.volume.controller import NAME
from quorate.controllers.volume.snapshot import Snapshot
from quorate.datamesh import dsl, ids
from quorate.datamesh.context import mesh_of, world_of
from quorate.datamesh.contract import PassInput
from quorate.datamesh.default_registry import DEFAULT_REGISTRY
from quorate.datamesh.state import State
from quorate.machinery.effects import Answers, Create, Decision, Delete, Effect, Half, Patch
from quorate.preview.results import Guard, Level, Step

StepKey = tuple[str, str, str, int, int]
NO_LEVEL = Level(None, None)


def level_of(volume: ReplicatedVolume) -> Level:
    """What is observed of a volume."""
    observed = volume.status.observed_protection
    if observed is None:
        return NO_LEVEL
    return Level(observed.failures_to_tolerate, observed.guaranteed_minimum_data_redundancy)


def lower(one: Level, other: Level) -> Level:
    """The lower of two, each number by itself; unknown ones do not count."""

    def least(a: int | None, b: int | None) -> int | None:
        return a if b is None else b if a is None else min(a, b)

    return Level(least(one.ftt, other.ftt), least(one.gmdr, other.gmdr))


@dataclass
class StepRecorder:
    """Collects steps while `active`."""

    volume: str
    now: Callable[[], float]
    active: bool = False
    began: float = 0.0
    lowest: Level = NO_LEVEL
    steps: list[Step] = field(default_factory=list[Step])
    _seen: dict[StepKey, int] = field(default_factory=dict[StepKey, int])
    _actions: list[str] = field(default_factory=list[str])

    def begin(self) -> None:
        """From now on decisions belong to the edit."""
        self.active, self.began = True, self.now()

    def __call__(
        self, controller: str, key: str, snapshot: object, answers: Answers, now: float, decision: Decision
    ) -> None:
        """The manager's sink."""
        if not self.active or controller != NAME or key != self.volume or not isinstance(snapshot, Snapshot):
            return
        for effect in decision.effects:
            self._note(snapshot, effect)

    def _note(self, snapshot: Snapshot, effect: Effect) -> None:
        match effect:
            case Create(obj=ReplicatedVolumeReplica() as made, cause=cause):
                text = f"create replica {made.metadata.name} ({made.spec.type})"
                self._action(snapshot, text, made.metadata.name, made.spec.node_name, cause)
            case Delete(obj=ReplicatedVolumeReplica() as gone, cause=cause):
                text = f"delete replica {gone.metadata.name} ({gone.spec.type})"
                self._action(snapshot, text, gone.metadata.name, gone.spec.node_name, cause)
            case Patch(before=ReplicatedVolumeReplica() as old, after=ReplicatedVolumeReplica() as new, cause=cause):
                if old.spec.type != new.spec.type:
                    text = f"change replica {old.metadata.name} from {old.spec.type} to {new.spec.type}"
                    self._action(snapshot, text, old.metadata.name, old.spec.node_name, cause)
            case Patch(after=ReplicatedVolume() as after, half=Half.STATUS):
                self.lowest = lower(self.lowest, level_of(after))
                self._transitions(snapshot, after)
            case _:
                pass

    def _action(self, snapshot: Snapshot, what: str, replica: str, node: str, why: str) -> None:
        if what in self._actions:
            return
        self._actions.append(what)
        self._append("replica", what, "", "", replica, node, why, (), (), snapshot.existing_volume())

    def _transitions(self, snapshot: Snapshot, after: ReplicatedVolume) -> None:
        for transition in after.status.datamesh_transitions:
            for index, step in enumerate(transition.steps):
                if step.status == StepStatus.PENDING or not step.started_at:
                    continue
                key = (transition.type, transition.replica_name, transition.plan_id, index, step.datamesh_revision)
                if key not in self._seen:
                    self._seen[key] = len(self.steps)
                    self._started(snapshot, after, transition, index)
                self._waits(self._seen[key], (transition.message, step.message))

    def _started(self, snapshot: Snapshot, after: ReplicatedVolume, transition: DatameshTransition, index: int) -> None:
        state = _state(snapshot, after)
        plan = state.plan_of(transition) if state is not None else None
        record = transition.steps[index]
        guards: tuple[Guard, ...] = ()
        confirmed_by: tuple[str, ...] = ()
        if state is not None and plan is not None:
            asked = (*(plan.guards if index == 0 else ()), *plan.steps[index].gates)
            guards = tuple(dict.fromkeys(_guard(guard) for guard in asked))
            must, _ = plan.steps[index].confirm(state.context(transition), record.datamesh_revision)
            nodes = {name: replica.node_name for name, replica in state.world.replicas.items()}
            confirmed_by = tuple(f"{self.volume}-{i} on {nodes.get(i, '?')}" for i in ids.iterate(must))
        node = transition.node_name or next(
            (m.node_name for m in after.status.datamesh.members if m.name == transition.replica_name), ""
        )
        position = f"{record.name} ({index + 1}/{len(transition.steps)})"
        about = f"{transition.type} {transition.replica_name}".strip()
        why = "taken back" if transition.reverting else (plan.display if plan is not None else "")
        self._append(
            "transition",
            about,
            position,
            transition.plan_id,
            transition.replica_name,
            node,
            why,
            guards,
            confirmed_by,
            after,
        )

    def _append(
        self,
        kind: str,
        what: str,
        step: str,
        plan: str,
        replica: str,
        node: str,
        why: str,
        guards: tuple[Guard, ...],
        confirmed_by: tuple[str, ...],
        volume: ReplicatedVolume,
    ) -> None:
        self.steps.append(
            Step(
                number=len(self.steps) + 1,
                kind=kind,
                what=what,
                step=step,
                plan=plan,
                replica=replica,
                node=node,
                why=why,
                guards=guards,
                confirmed_by=confirmed_by,
                waits=(),
                protection=level_of(volume),
                after_seconds=round(self.now() - self.began, 1),
            )
        )

    def _waits(self, position: int, texts: tuple[str, ...]) -> None:
        """Keeps texts that name a wait; mere counts of confirmations are not worth a line."""
        found = self.steps[position]
        held = (text.partition(". Next step ")[2] for text in texts)
        new = tuple(f"next step {text}" for text in held if text and f"next step {text}" not in found.waits)
        if new:
            self.steps[position] = replace(found, waits=(*found.waits, *new))


def _state(snapshot: Snapshot, after: ReplicatedVolume) -> State | None:
    """The engine's state right after a decision."""
    configuration = after.status.configuration
    if configuration is None:
        return None
    inputs = PassInput(
        volume=after,
        replicas=snapshot.replicas,
        attachments=snapshot.attachments,
        pool=snapshot.pool,
        features=snapshot.features,
        fenced_nodes=snapshot.fenced_nodes,
    )
    requests = {_id(entry.name): entry.request for entry in after.status.datamesh_replica_requests}
    world = world_of(inputs, configuration, requests, "-")
    mesh = mesh_of(after.status.datamesh, after.status.datamesh_revision)
    return State(world, DEFAULT_REGISTRY, mesh, after.status.datamesh_transitions)


def _id(name: str) -> int:
    return int(name.rpartition("-")[2])


def _guard(guard: dsl.Guard) -> Guard:
    text = (guard.check.__doc__ or "").strip().partition("\n")[0]
    return Guard(guard.name, text)
