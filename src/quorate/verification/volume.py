"""The volume model: the production engine, agents, kernels and faults as one transition system.

A state is: the published status (by number), the kernels and the network, the revision each replica confirmed, the replica
objects, the nodes where the volume is wanted, and what may still happen (faults, intents). The engine runs at any
moment and sees the replicas as they are then; agents apply at their own pace in small steps; everything interleaves.

The engine is `quorate.datamesh.engine.run_pass` with a registry that is passed in, so the checker runs the production code
and mutants run through the same door.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from quorate.api.meta import ObjectMeta
from quorate.api.replicated_volume import TransitionGroup, TransitionType
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment, ReplicatedVolumeAttachmentSpec
from quorate.api.value import replace
from quorate.datamesh.contract import CreateReplica, DeleteReplica, PassInput, PassResult, ReplicaAction, RetypeReplica
from quorate.datamesh.engine import DEFAULT_REGISTRY, run_pass
from quorate.datamesh.features import Features
from quorate.datamesh.members import id_of
from quorate.datamesh.registry import Registry
from quorate.verification.assertions import (
    HIDDEN_WRITES,
    INTERRUPTED,
    LAST_COPY,
    OVERSTATED,
    STUCK,
    THIN_WRITES,
    Assertions,
)
from quorate.verification.cluster import UP_TO_DATE, Bench, Cluster, bits, disk_of, reach
from quorate.verification.configuration import ACCESS, DISKFUL, GONE, TIE_BREAKER, NodeConfiguration
from quorate.verification.descriptions import describe_pass, summary
from quorate.verification.kernel import Kernels
from quorate.verification.liveness import Liveness
from quorate.verification.perfect_cluster import VOLUME, address_of, make_configuration, published
from quorate.verification.published import Published, PublishedTable
from quorate.verification.reports import ReplicaObject, Reports
from quorate.verification.volume_state import Intent, Scenario, VolumeState, with_object
from quorate.verification.world import Event, Target, World, Worlds, names

_KIND_OF: Final = {"Diskful": DISKFUL, "TieBreaker": TIE_BREAKER, "Access": ACCESS}
_NOW: Final = 1_000_000_000.0
_NOTHING: Final = Target(NodeConfiguration())


class VolumeModel:
    """The transition system of one scenario."""

    def __init__(self, scenario: Scenario, registry: Registry = DEFAULT_REGISTRY) -> None:
        self.scenario = scenario
        self.registry = registry
        layout = scenario.layout
        self.base = layout.diskful + layout.tie_breakers
        self.size = self.base + scenario.spares + scenario.client
        dynamic = scenario.voters == "dynamic"
        self.features = Features(voter_mode="dynamic" if dynamic else "static")
        cluster = published(layout, nodes=self.size, features=self.features)
        self.pool = cluster.pool
        self._start_status = cluster.volume.status
        self.table = PublishedTable(cluster.volume, self.size, self.features)
        self.worlds = Worlds(Kernels(dynamic=dynamic), self.size, order=scenario.order)
        self.assertions = Assertions(self.worlds)
        self.reports = Reports(self.worlds)
        self._passes: dict[tuple[object, ...], PassResult] = {}
        self.passes = 0
        self.liveness = Liveness(self)
        self.limits: set[str] = set()
        """What the kernel's rules do not give: reported, not violations."""

    # Start -----------------------------------------------------------------------------------------------------------

    def initial(self) -> Iterator[VolumeState]:
        """A formed, healthy volume; attached where the scenario says."""
        scenario, status = self.scenario, self._start_status
        objects: list[ReplicaObject | None] = [None] * self.size
        for i in range(self.base):
            objects[i] = ReplicaObject(DISKFUL if i < scenario.layout.diskful else TIE_BREAKER)
        wanted = 0
        if scenario.attached is not None:
            members = status.datamesh.members
            if scenario.client:
                i = self.size - 1
                objects[i] = ReplicaObject(ACCESS)
                model = members[0]
                client = replace(
                    model,
                    name=f"{VOLUME}-{i}",
                    type="Access",
                    node_name=f"node-{i}",
                    lvm_volume_group_name="",
                    addresses=(address_of(i),),
                )
                members = (*members, client)
            attached = self.size - 1 if scenario.client else scenario.attached
            wanted = 1 << attached
            members = tuple(replace(m, attached=True) if id_of(m.name) == attached else m for m in members)
            status = replace(status, datamesh=replace(status.datamesh, members=members, data_present=True))
        revision = status.datamesh_revision
        revisions = tuple(revision if obj is not None else 0 for obj in objects)
        number, ranks = self.table.number(status, revisions)
        targets = self.table.entries[number].targets
        world = self.worlds.start(targets, (1 << scenario.layout.diskful) - 1)
        yield VolumeState(number, world, ranks, tuple(objects), wanted, scenario.faults, scenario.intents)

    # Moves -----------------------------------------------------------------------------------------------------------

    def successors(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        """Every event that can happen next; nothing is asked about what follows a known limit of the kernel."""
        if any(True for _ in self._excused(state)):
            return
        if self.scenario.hurry:
            yield from self._hurried(state)
        else:
            yield from self._moves(state)
        yield from self.repairs(state)
        yield from self._people(state)
        if state.faults_left:
            among = self.table.entries[state.published].members | sum(
                1 << i for i, obj in enumerate(state.objects) if obj is not None
            )
            for event, world in self.worlds.faults(state.world, self.scenario.kinds, among):
                yield event, self.after(state._replace(faults_left=state.faults_left - 1), world)

    def _moves(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        engine = self.engine(state)
        if engine is not None:
            yield engine
        yield from self.agents(state)
        for event, world in self.worlds.progress(state.world):
            yield event, self.after(state, world)

    def _hurried(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        for event, world in self.worlds.progress(state.world):
            yield event, self.after(state, world)
        for move in self.agents(state):
            yield move
            return
        engine = self.engine(state)
        if engine is not None:
            yield engine

    def agents(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        for i in range(self.size):
            if state.objects[i] is None:
                world = self.worlds.abandon(state.world, i)
                if world is not None:
                    yield Event("takes its resource down", 1 << i), self.after(state, world)
                continue
            step = self.worlds.agent_step(state.world, i, self.table.entries[state.published].targets[i])
            if step is not None:
                after = self.after(state, step[1])
                asked = state.objects[i]
                forced = asked is not None and asked.force_leave
                if not forced and self.worlds.current(state.world) and not self.worlds.current(after.world):
                    after = after._replace(broken=LAST_COPY)
                yield Event(step[0], 1 << i), after

    def repairs(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        def target(i: int) -> Target:
            return self.table.entries[state.published].targets[i] if state.objects[i] is not None else _NOTHING

        for event, world in self.worlds.repairs(state.world, target):
            yield event, self.after(state, world)

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
        return self._confirmed(state._replace(world=world))

    def _confirmed(self, state: VolumeState) -> VolumeState:
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
            return state
        number, ranks = self.table.number(entry.status, revisions)
        return state._replace(published=number, revisions=ranks)

    # The engine ------------------------------------------------------------------------------------------------------

    def engine(self, state: VolumeState) -> tuple[Event, VolumeState] | None:
        """One pass of the production engine on what is reported now; None when it changes nothing."""
        entry = self.table.entries[state.published]
        result = self._pass(state, entry)
        after = state
        if result.changed:
            number, ranks = self.table.number(result.status, state.revisions)
            after = state._replace(published=number, revisions=ranks)
        for action in result.actions:
            after = self._act(after, action)
        after = self._collect(after)
        if after == state:
            return None
        new = self.table.entries[after.published]
        if new.status.datamesh != entry.status.datamesh and self._interrupts(state, entry, new):
            after = after._replace(broken=INTERRUPTED)
        return Event("engine", 0, describe_pass(entry, new, result.actions)), self._confirmed(after)

    def _interrupts(self, state: VolumeState, before: Published, after: Published) -> bool:
        """S14: whether nobody could serve any more once all agents applied the revision; emergencies excepted."""
        if any(t.group == TransitionGroup.EMERGENCY for t in after.status.datamesh_transitions):
            return False
        cluster = self.worlds.clusters[state.world.cluster]
        serving = [
            i
            for i, node in enumerate(cluster.nodes)
            if node.quorum and disk_of(node) == UP_TO_DATE and self._would_serve(cluster, i, before)
        ]
        return bool(serving) and not any(self._would_serve(cluster, i, after) for i in serving)

    def _would_serve(self, cluster: Cluster, i: int, entry: Published) -> bool:
        told = cluster.nodes[i]._replace(configuration=entry.targets[i].configuration)
        if told.configuration.kind != DISKFUL:
            return False
        bench = Bench((*cluster.nodes[:i], told, *cluster.nodes[i + 1 :]), cluster.links)
        return self.worlds.kernels.verdicts.of(bench, i, reach(cluster.links, i)) > 0

    def _pass(self, state: VolumeState, entry: Published) -> PassResult:
        world = state.world
        replicas = tuple(
            self.reports.of(
                world.cluster, i, obj, state.revisions[i], entry.targets[i], silent=bool(world.silent >> i & 1)
            )
            for i, obj in enumerate(state.objects)
            if obj is not None
        )
        key = (state.published, tuple(map(id, replicas)), state.wanted, state.world.fenced)
        found = self._passes.get(key)
        if found is None:
            self.passes += 1
            volume = replace(self.table.volume, status=entry.status)
            found = self._passes[key] = run_pass(
                PassInput(
                    volume=volume,
                    replicas=replicas,
                    attachments=tuple(_attachment(i) for i in range(self.size) if state.wanted >> i & 1),
                    pool=self.pool,
                    features=self.features,
                    fenced_nodes=tuple(f"node-{i}" for i in bits(self._evidence(state))),
                    now=_NOW,
                ),
                self.registry,
            )
        return found

    def _evidence(self, state: VolumeState) -> int:
        """Nodes with fencing evidence; with `rumours` every node that reaches nobody."""
        if not self.scenario.rumours:
            return state.world.fenced
        links = self.worlds.clusters[state.world.cluster].links
        return state.world.fenced | sum(1 << i for i in range(self.size) if not links[i])

    def _act(self, state: VolumeState, action: ReplicaAction) -> VolumeState:
        """What the volume controller and the scheduler do with an action."""
        match action:
            case CreateReplica():
                i = self._free_node(state)
                return state if i is None else with_object(state, i, ReplicaObject(_KIND_OF[action.type]))
            case DeleteReplica():
                i = id_of(action.name)
                obj = state.objects[i]
                return state if obj is None else with_object(state, i, obj._replace(deleting=True))
            case RetypeReplica():
                i = id_of(action.name)
                obj = state.objects[i]
                return state if obj is None else with_object(state, i, obj._replace(kind=_KIND_OF[action.type]))

    def _free_node(self, state: VolumeState) -> int | None:
        entry = self.table.entries[state.published]
        named = {id_of(t.replica_name) for t in entry.status.datamesh_transitions if t.replica_name}
        nodes = self.worlds.clusters[state.world.cluster].nodes
        for i, obj in enumerate(state.objects):
            free = obj is None and not entry.members >> i & 1 and i not in named
            if free and nodes[i].up and nodes[i].configuration.kind == GONE and not state.world.silent >> i & 1:
                return i
        return None

    def _collect(self, state: VolumeState) -> VolumeState:
        """A deleted object goes once it is no member, has left, and no removal names it (S42)."""
        entry = self.table.entries[state.published]
        for i, obj in enumerate(state.objects):
            if obj is None or not obj.deleting or entry.members >> i & 1:
                continue
            named = any(
                t.type == TransitionType.REMOVE_REPLICA and id_of(t.replica_name) == i
                for t in entry.status.datamesh_transitions
                if t.replica_name
            )
            gone = not self.worlds.clusters[state.world.cluster].nodes[i].up
            if not named and (state.revisions[i] == 0 or gone):
                revisions = tuple(0 if j == i else r for j, r in enumerate(state.revisions))
                state = with_object(state, i, None)._replace(revisions=revisions)
        return state

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
        if not self.liveness.converges(state):
            yield STUCK

    def _excused(self, state: VolumeState) -> Iterator[str]:
        """Stale sides that the configuration the nodes hold cannot exclude, whatever the engine does."""
        if self.scenario.strict:
            return
        for found in self.assertions.of(state.world.cluster, state.world.fenced):
            if self.assertions.excused(state.world.cluster, found):
                yield found

    def canonical(self, state: VolumeState) -> VolumeState:
        return state


def _attachment(i: int) -> ReplicatedVolumeAttachment:
    return ReplicatedVolumeAttachment(
        metadata=ObjectMeta(name=f"rva-{i}", creation_timestamp="2001-09-09T01:46:40Z"),
        spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name=VOLUME, node_name=f"node-{i}"),
    )


__all__ = ["Intent", "Scenario", "VolumeModel", "VolumeState", "summary"]
