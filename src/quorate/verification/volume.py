"""The volume model: the production engine, agents, kernels and faults as one transition system.

A state is: the published status (by number), the kernels and the network, the revision each replica confirmed, the replica
objects, the nodes where the volume is wanted, and what people may still do. The engine runs at any moment and sees the
replicas as they are then; agents apply at their own pace in small steps; everything interleaves.

Moves of kernels and agents depend on a part of the state only, so they are remembered by that part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.api.replicated_volume import ReplicatedVolumeStatus
from quorate.api.value import replace
from quorate.datamesh.engine import DEFAULT_REGISTRY
from quorate.datamesh.features import Features
from quorate.datamesh.members import id_of
from quorate.datamesh.registry import Registry
from quorate.verification.assertions import (
    HIDDEN_WRITES,
    LAST_COPY,
    OVERSTATED,
    STUCK,
    THIN_WRITES,
    Assertions,
)
from quorate.verification.cluster import FAILED
from quorate.verification.configuration import ACCESS, DISKFUL, GONE, TIE_BREAKER, NodeConfiguration
from quorate.verification.descriptions import describe_pass, summary
from quorate.verification.engine import Engine
from quorate.verification.kernel import Kernels
from quorate.verification.liveness import Liveness
from quorate.verification.perfect_cluster import VOLUME, address_of, make_configuration, published
from quorate.verification.published import PublishedTable
from quorate.verification.reports import ReplicaObject
from quorate.verification.symmetry import Symmetry, classes_of
from quorate.verification.volume_state import Intent, Scenario, VolumeState, with_object
from quorate.verification.world import Event, Target, World, Worlds, names

_NOTHING: Final = Target(NodeConfiguration())

Moves = tuple[tuple[Event, World], ...]


class VolumeModel:
    """The transition system of one scenario."""

    def __init__(
        self,
        scenario: Scenario,
        registry: Registry = DEFAULT_REGISTRY,
        *,
        reduce_symmetry: bool = True,
        judge_liveness: bool = True,
    ) -> None:
        self.scenario = scenario
        self.judge_liveness = judge_liveness
        layout = scenario.layout
        self.base = layout.diskful + layout.tie_breakers
        self.size = self.base + scenario.spares + scenario.client
        dynamic = scenario.voters == "dynamic"
        features = Features(voter_mode="dynamic" if dynamic else "static")
        cluster = published(layout, nodes=self.size, features=features)
        self._start_status = cluster.volume.status
        self.table = PublishedTable(cluster.volume, self.size, features)
        self.worlds = Worlds(Kernels(dynamic=dynamic), self.size, order=scenario.order)
        self.assertions = Assertions(self.worlds)
        self.engine = Engine(registry, self.worlds, self.table, cluster.pool, rumours=scenario.rumours)
        classes = classes_of(scenario, self.size) if reduce_symmetry else ()
        self.symmetry = Symmetry(classes, self.size, self.worlds, self.table)
        self.liveness = Liveness(self)
        self.limits: set[str] = set()
        """What the kernel's rules do not give: reported, not violations."""
        self._agents: dict[tuple[World, int, int], tuple[tuple[Event, World, bool], ...]] = {}
        self._progress: dict[tuple[int, tuple[int, ...]], tuple[tuple[Event, int], ...]] = {}
        self._repairs: dict[tuple[World, int, int], Moves] = {}
        self._strikes: dict[tuple[World, int], Moves] = {}
        self._confirmations: dict[tuple[object, ...], tuple[int, tuple[int, ...]]] = {}

    @property
    def faults(self) -> int:
        """How many faults may strike."""
        return self.scenario.faults

    @property
    def passes(self) -> int:
        """Passes of the engine that were computed."""
        return self.engine.passes

    # Start -----------------------------------------------------------------------------------------------------------

    def initial(self) -> Iterator[VolumeState]:
        """A formed, healthy volume; attached where the scenario says."""
        scenario, status = self.scenario, self._start_status
        objects: list[ReplicaObject | None] = [None] * self.size
        for i in range(self.base):
            objects[i] = ReplicaObject(DISKFUL if i < scenario.layout.diskful else TIE_BREAKER)
        wanted = 0
        if scenario.attached is not None:
            attached = self.size - 1 if scenario.client else scenario.attached
            if scenario.client:
                objects[attached] = ReplicaObject(ACCESS)
            wanted = 1 << attached
            status = self._attached(status, attached)
        revision = status.datamesh_revision
        revisions = tuple(revision if obj is not None else 0 for obj in objects)
        number, ranks = self.table.number(status, revisions)
        world = self.worlds.start(self.table.entries[number].targets, (1 << scenario.layout.diskful) - 1)
        yield VolumeState(number, world, ranks, tuple(objects), wanted, scenario.intents)

    def _attached(self, status: ReplicatedVolumeStatus, attached: int) -> ReplicatedVolumeStatus:
        members = status.datamesh.members
        if self.scenario.client:
            client = replace(
                members[0],
                name=f"{VOLUME}-{attached}",
                type="Access",
                node_name=f"node-{attached}",
                lvm_volume_group_name="",
                addresses=(address_of(attached),),
            )
            members = (*members, client)
        members = tuple(replace(m, attached=True) if id_of(m.name) == attached else m for m in members)
        return replace(status, datamesh=replace(status.datamesh, members=members, data_present=True))

    # Moves -----------------------------------------------------------------------------------------------------------

    def successors(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        """Every event short of faults; nothing is asked about what follows a known limit of the kernel."""
        if any(True for _ in self._excused(state)):
            return
        if self.scenario.hurry:
            yield from self._hurried(state)
        else:
            yield from self.engines(state)
            yield from self.agents(state)
            yield from self.progress(state)
        yield from self.repairs(state)
        yield from self._people(state)

    def strikes(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        """Every fault that can strike."""
        if any(True for _ in self._excused(state)):
            return
        among = self.table.entries[state.published].members
        for i, obj in enumerate(state.objects):
            if obj is not None:
                among |= 1 << i
        key = (state.world, among)
        found = self._strikes.get(key)
        if found is None:
            found = self._strikes[key] = tuple(self.worlds.faults(state.world, self.scenario.kinds, among))
        for event, world in found:
            yield event, self.after(state, world)

    def _hurried(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        yield from self.progress(state)
        for move in self.agents(state):
            yield move
            return
        yield from self.engines(state)

    def engines(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        """What the engine does, whatever the interchangeable nodes are called."""
        met: set[VolumeState] = set()
        for g in range(len(self.symmetry.group)):
            image = self.symmetry.image(g, state)
            if image in met:
                continue
            met.add(image)
            result = self.engine.run(image)
            if result is not None:
                actions, changed = result
                after = self.symmetry.back(g, changed)
                entries = self.table.entries
                text = describe_pass(entries[state.published], entries[after.published], actions)
                yield Event("engine", 0, text), self._confirmed(after)

    def progress(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        """What happens by itself: a synchronisation ends, a Primary has a write acknowledged."""
        key = (state.world.cluster, state.world.cuts)
        found = self._progress.get(key)
        if found is None:
            moves = self.worlds.progress(state.world)
            found = self._progress[key] = tuple((event, world.cluster) for event, world in moves)
        for event, cluster in found:
            yield event, self.after(state, state.world._replace(cluster=cluster))

    def agents(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        """One step of each agent."""
        key = (state.world, state.published, _absent(state))
        found = self._agents.get(key)
        if found is None:
            found = self._agents[key] = tuple(self._agent_moves(state))
        for event, world, gives_up_last in found:
            after = self.after(state, world)
            if gives_up_last:
                asked = state.objects[event.nodes.bit_length() - 1]
                if asked is not None and not asked.force_leave:
                    after = after._replace(broken=LAST_COPY)
            yield event, after

    def _agent_moves(self, state: VolumeState) -> Iterator[tuple[Event, World, bool]]:
        """Steps, and whether they give up the last current copy.

        Where a copy is lost for good to a fault, the engine's decision is judged instead (`Engine`), when it is taken. The
        object of a replica that is gone was the promise to keep its copy.
        """
        nodes = self.worlds.clusters[state.world.cluster].nodes
        damaged = state.world.fenced or any(node.store == FAILED for node in nodes)
        for i in range(self.size):
            if state.objects[i] is None:
                world = self.worlds.abandon(state.world, i)
                if world is not None:
                    yield Event("takes its resource down", 1 << i), world, False
                continue
            step = self.worlds.agent_step(state.world, i, self.table.entries[state.published].targets[i])
            if step is not None:
                label, world = step
                lost = not damaged and bool(self.worlds.current(state.world)) and not self.worlds.current(world)
                yield Event(label, 1 << i), world, lost

    def repairs(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        """What was broken by a fault comes back."""
        if not state.world.cuts and not state.world.silent and self._all_up(state.world.cluster):
            return
        key = (state.world, state.published, _absent(state))
        found = self._repairs.get(key)
        if found is None:
            targets = self.table.entries[state.published].targets

            def target(i: int) -> Target:
                return targets[i] if state.objects[i] is not None else _NOTHING

            found = self._repairs[key] = tuple(self.worlds.repairs(state.world, target))
        for event, world in found:
            yield event, self.after(state, world)

    def _all_up(self, number: int) -> bool:
        return all(node.up for node in self.worlds.clusters[number].nodes)

    def _people(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        if state.intents:
            yield Event("somebody does", 0, str(state.intents[0])), self._perform_intent(state)
        if self.scenario.in_doubt:
            nodes = self.worlds.clusters[state.world.cluster].nodes
            for i, node in enumerate(nodes):
                if not node.up and not state.world.fenced >> i & 1:
                    yield Event("is fenced", 1 << i), state._replace(world=self.worlds.fence(state.world, i))

    def _perform_intent(self, state: VolumeState) -> VolumeState:
        intent, rest = state.intents[0], state.intents[1:]
        state = state._replace(intents=rest)
        obj = state.objects[intent.node]
        match intent.verb:
            case "delete" if obj is not None:
                return with_object(state, intent.node, obj._replace(deleting=True))
            case "force-leave" if obj is not None:
                return with_object(state, intent.node, obj._replace(force_leave=True))
            case "vanish":
                revisions = tuple(0 if i == intent.node else r for i, r in enumerate(state.revisions))
                return with_object(state, intent.node, None)._replace(revisions=revisions)
            case "attach":
                return state._replace(wanted=state.wanted | 1 << intent.node)
            case "detach":
                return state._replace(wanted=state.wanted & ~(1 << intent.node))
            case "layout" if intent.layout is not None:
                status = self.table.entries[state.published].status
                changed = replace(status, configuration=make_configuration(intent.layout))
                number, ranks = self.table.number(changed, state.revisions)
                return state._replace(published=number, revisions=ranks)
            case _:
                return state

    def after(self, state: VolumeState, world: World) -> VolumeState:
        """The state with this world; agents record the revision wherever they hold what is published."""
        return self._confirmed(
            VolumeState(
                state.published, world, state.revisions, state.objects, state.wanted, state.intents, state.broken
            )
        )

    def _confirmed(self, state: VolumeState) -> VolumeState:
        world = state.world
        key = (world.cluster, world.cuts, world.silent, state.published, state.revisions, _absent(state))
        found = self._confirmations.get(key)
        if found is None:
            found = self._confirmations[key] = self._confirm(state)
        if found[0] == state.published and found[1] == state.revisions:
            return state
        return state._replace(published=found[0], revisions=found[1])

    def _confirm(self, state: VolumeState) -> tuple[int, tuple[int, ...]]:
        entry = self.table.entries[state.published]
        revisions = state.revisions
        for i, revision in enumerate(revisions):
            if state.objects[i] is None:
                continue
            target = entry.targets[i]
            wanted = entry.revision if target.configuration.kind != GONE else 0
            if revision != wanted and self.worlds.confirms(state.world, i, target, check_flag=self.scenario.check_flag):
                revisions = (*revisions[:i], wanted, *revisions[i + 1 :])
        if revisions == state.revisions:
            return state.published, revisions
        return self.table.number(entry.status, revisions)

    # Judgement -------------------------------------------------------------------------------------------------------

    def broken(self, state: VolumeState) -> Iterator[str]:
        """Assertions that do not hold in a state."""
        status = self.table.entries[state.published].status
        promised = status.baseline_guaranteed_minimum_data_redundancy + 1
        excused = list(self._excused(state))
        if excused:
            self.limits.add(HIDDEN_WRITES)
        for found in self.assertions.of(state.world.cluster, state.world.fenced):
            if found not in excused:
                yield found
        if state.broken:
            yield state.broken
        for i, copies, by_tie_break in self.assertions.acknowledged_copies(state.world.cluster):
            if copies >= promised:
                continue
            if by_tie_break:
                self.limits.add(f"{THIN_WRITES}: {copies} of {promised}")
            else:
                yield f"{OVERSTATED}: {names(1 << i)} acknowledges on {copies} copies, {promised} are promised"
        if self.judge_liveness and not self.liveness.converges(state):
            yield STUCK

    def _excused(self, state: VolumeState) -> Iterator[str]:
        """Stale sides that the configuration the nodes hold cannot exclude, whatever the engine does."""
        if self.scenario.strict:
            return
        for found in self.assertions.of(state.world.cluster, state.world.fenced):
            if self.assertions.excused(state.world.cluster, found):
                yield found

    def canonical(self, state: VolumeState) -> VolumeState:
        """The representative of all states that differ only in the names of interchangeable nodes."""
        return state if self.symmetry.trivial else self.symmetry.canonical(state)


def _absent(state: VolumeState) -> int:
    """Nodes without a replica object."""
    mask = 0
    for i, obj in enumerate(state.objects):
        if obj is None:
            mask |= 1 << i
    return mask


__all__ = ["Intent", "Scenario", "VolumeModel", "VolumeState", "summary"]
