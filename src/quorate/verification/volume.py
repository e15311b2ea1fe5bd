"""The volume model: the production engine, agents, kernels and faults as one transition system.

A state is: the published status (by number), the kernels and the network, the revision each replica confirmed, the replica
objects, the nodes where the volume is wanted, and what may still happen (faults, intents). The engine runs at any
moment and sees the replicas as they are then; agents apply at their own pace in small steps; everything interleaves.

The engine is `quorate.datamesh.engine.run_pass` with a registry that is passed in, so the checker runs the production code
and mutants run through the same door.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from quorate.api.meta import ObjectMeta
from quorate.api.replicated_volume import TransitionType
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment, ReplicatedVolumeAttachmentSpec
from quorate.api.value import replace
from quorate.datamesh.contract import CreateReplica, DeleteReplica, PassInput, PassResult, ReplicaAction, RetypeReplica
from quorate.datamesh.engine import DEFAULT_REGISTRY, run_pass
from quorate.datamesh.features import Features
from quorate.datamesh.layout import Layout
from quorate.datamesh.members import id_of
from quorate.datamesh.registry import Registry
from quorate.verification.agent import Order
from quorate.verification.assertions import HIDDEN_WRITES, LAST_COPY, OVERSTATED, STUCK, THIN_WRITES, Assertions
from quorate.verification.configuration import ACCESS, DISKFUL, GONE, TIE_BREAKER, NodeConfiguration
from quorate.verification.kernel import Kernels
from quorate.verification.perfect_cluster import VOLUME, address_of, make_configuration, published
from quorate.verification.published import Published, PublishedTable
from quorate.verification.reports import ReplicaObject, Reports
from quorate.verification.world import CRASH, LINK, PARTITION, Event, Target, World, Worlds, names

_KIND_OF: Final = {"Diskful": DISKFUL, "TieBreaker": TIE_BREAKER, "Access": ACCESS}
_NOW: Final = 1_000_000_000.0
_NOTHING: Final = Target(NodeConfiguration())


class Intent(NamedTuple):
    """Something a person does: `delete`, `vanish`, `force-leave` a replica; `attach`, `detach` a node; `layout`."""

    verb: str
    node: int = 0
    layout: Layout | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.layout}" if self.layout is not None else f"{self.verb} n{self.node}"


class VolumeState(NamedTuple):
    """See the module's docstring. `objects[i]` is the replica object on node i, None = none."""

    published: int
    world: World
    revisions: tuple[int, ...]
    objects: tuple[ReplicaObject | None, ...]
    wanted: int
    faults_left: int
    intents: tuple[Intent, ...]
    given_up: bool = False
    """An agent destroyed the last current copy by doing what it was told."""


class Scenario(NamedTuple):
    """Where a search starts and what may happen."""

    layout: Layout
    voters: str
    name: str = "rest"
    intents: tuple[Intent, ...] = ()
    attached: int | None = None
    client: bool = False
    """The attached node is an Access member on a node of its own."""
    spares: int = 1
    faults: int = 1
    kinds: tuple[str, ...] = (PARTITION, LINK, CRASH)
    order: Order = "strict"
    check_flag: bool = True
    in_doubt: bool = False
    """Whether unfenced emergencies are part of the scenario (nodes may be fenced)."""


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
        self._live: set[VolumeState] = set()
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
        engine = self.engine(state)
        if engine is not None:
            yield engine
        yield from self._agents(state)
        for event, world in self.worlds.progress(state.world):
            yield event, self._after(state, world)
        yield from self._repairs(state)
        yield from self._people(state)
        if state.faults_left:
            among = self.table.entries[state.published].members | sum(
                1 << i for i, obj in enumerate(state.objects) if obj is not None
            )
            for event, world in self.worlds.faults(state.world, self.scenario.kinds, among):
                yield event, self._after(state._replace(faults_left=state.faults_left - 1), world)

    def _agents(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        for i in range(self.size):
            if state.objects[i] is None:
                world = self.worlds.abandon(state.world, i)
                if world is not None:
                    yield Event("takes its resource down", 1 << i), self._after(state, world)
                continue
            step = self.worlds.agent_step(state.world, i, self.table.entries[state.published].targets[i])
            if step is not None:
                after = self._after(state, step[1])
                if self.worlds.current(state.world) and not self.worlds.current(after.world):
                    after = after._replace(given_up=True)
                yield Event(step[0], 1 << i), after

    def _repairs(self, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
        def target(i: int) -> Target:
            return self.table.entries[state.published].targets[i] if state.objects[i] is not None else _NOTHING

        for event, world in self.worlds.repairs(state.world, target):
            yield event, self._after(state, world)

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
                return _with_object(state, intent.node, obj._replace(deleting=True))
            case "force-leave" if obj is not None:
                return _with_object(state, intent.node, obj._replace(force_leave=True))
            case "vanish":
                revisions = tuple(0 if i == intent.node else r for i, r in enumerate(state.revisions))
                return _with_object(state, intent.node, None)._replace(revisions=revisions)
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

    def _after(self, state: VolumeState, world: World) -> VolumeState:
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
        detail = _describe(entry, self.table.entries[after.published], result.actions)
        return Event("engine", 0, detail), self._confirmed(after)

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
                    fenced_nodes=tuple(f"node-{i}" for i in range(self.size) if state.world.fenced >> i & 1),
                    now=_NOW,
                ),
                self.registry,
            )
        return found

    def _act(self, state: VolumeState, action: ReplicaAction) -> VolumeState:
        """What the volume controller and the scheduler do with an action."""
        match action:
            case CreateReplica():
                i = self._free_node(state)
                return state if i is None else _with_object(state, i, ReplicaObject(_KIND_OF[action.type]))
            case DeleteReplica():
                i = id_of(action.name)
                obj = state.objects[i]
                return state if obj is None else _with_object(state, i, obj._replace(deleting=True))
            case RetypeReplica():
                i = id_of(action.name)
                obj = state.objects[i]
                return state if obj is None else _with_object(state, i, obj._replace(kind=_KIND_OF[action.type]))

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
                state = _with_object(state, i, None)._replace(revisions=revisions)
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
        if state.given_up:
            yield LAST_COPY
        for i, copies, by_tie_break in self.assertions.acknowledged_copies(state.world.cluster):
            if copies >= promised:
                continue
            if by_tie_break:
                self.limits.add(f"{THIN_WRITES}: {copies} of {promised}")
            else:
                yield f"{OVERSTATED}: {names(1 << i)} acknowledges on {copies} copies, {promised} are promised"
        if not self.converges(state):
            yield STUCK

    def _excused(self, state: VolumeState) -> Iterator[str]:
        """Stale sides that the configuration the nodes hold cannot exclude, whatever the engine does."""
        for found in self.assertions.of(state.world.cluster, state.world.fenced):
            if self.assertions.excused(state.world.cluster, found):
                yield found

    def converges(self, state: VolumeState) -> bool:
        """From here, with no further fault, everything repaired and everybody working, the volume comes to rest healthy."""
        seen: list[VolumeState] = []
        here = state._replace(faults_left=0, intents=())
        for _ in range(400):
            if here in self._live:
                break
            seen.append(here)
            following = self._fair(here)
            if following is None:
                if not self.at_rest(here) and self._alive(here):
                    return False
                break
            here = following
        else:
            return False
        self._live.update(seen)
        return True

    def _fair(self, state: VolumeState) -> VolumeState | None:
        """One step of a fair continuation: repair first, then agents, data, engine.

        Whoever asks for ForceLeave switches the node off for good: nobody else can keep it from coming back.
        """
        for i, obj in enumerate(state.objects):
            if obj is not None and obj.force_leave and not state.world.fenced >> i & 1:
                return self._after(state, self.worlds.fence(self.worlds.crash(state.world, i), i))
        for _, after in self._repairs(state):
            return after
        for _, after in self._agents(state):
            return after
        for event, world in self.worlds.progress(state.world):
            if event.verb != "write acknowledged":
                return self._after(state, world)
        engine = self.engine(state)
        if engine is not None:
            return engine[1]
        return None if self.at_rest(state) else self._switched_off(state)

    def _switched_off(self, state: VolumeState) -> VolumeState | None:
        """Where the engine waits for evidence about a member whose object is gone, somebody switches its node off."""
        members = self.table.entries[state.published].members
        for i, obj in enumerate(state.objects):
            if obj is None and members >> i & 1 and not state.world.fenced >> i & 1:
                return self._after(state, self.worlds.fence(self.worlds.crash(state.world, i), i))
        return None

    def at_rest(self, state: VolumeState) -> bool:
        """Nothing is under way, every member has quorum and confirmed, and the volume is served where it is wanted."""
        entry = self.table.entries[state.published]
        if entry.status.datamesh_transitions:
            return False
        nodes = self.worlds.clusters[state.world.cluster].nodes
        for i in range(self.size):
            if entry.members >> i & 1 and not state.world.fenced >> i & 1:
                if state.revisions[i] != entry.revision or not nodes[i].quorum:
                    return False
                if entry.targets[i].primary and not nodes[i].primary:
                    return False
        return True

    def _alive(self, state: VolumeState) -> bool:
        """A current copy is left, and as many nodes as the layout needs; without them there is nothing to converge to."""
        nodes = self.worlds.clusters[state.world.cluster].nodes
        wanted = self.table.entries[state.published].status.configuration
        if wanted is not None:
            layout = Layout(wanted.failures_to_tolerate, wanted.guaranteed_minimum_data_redundancy)
            if self.size - state.world.fenced.bit_count() < layout.diskful + layout.tie_breakers:
                return False
        return any(
            node.current and state.objects[i] is not None and not state.world.fenced >> i & 1
            for i, node in enumerate(nodes)
        )

    def canonical(self, state: VolumeState) -> VolumeState:
        return state


def _with_object(state: VolumeState, i: int, obj: ReplicaObject | None) -> VolumeState:
    return state._replace(objects=(*state.objects[:i], obj, *state.objects[i + 1 :]))


def _attachment(i: int) -> ReplicatedVolumeAttachment:
    return ReplicatedVolumeAttachment(
        metadata=ObjectMeta(name=f"rva-{i}", creation_timestamp="2001-09-09T01:46:40Z"),
        spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name=VOLUME, node_name=f"node-{i}"),
    )


def _describe(before: Published, after: Published, actions: tuple[ReplicaAction, ...]) -> str:
    parts = [type(action).__name__ for action in actions]
    if after.revision != before.revision or after.status.datamesh != before.status.datamesh:
        parts.append(f"publishes {summary(after)}")
    for transition in after.status.datamesh_transitions:
        active = next((step.name for step in transition.steps if step.status == "Active"), "")
        parts.append(f"{transition.type} {transition.plan_id} {transition.replica_name}: {active}".replace("  ", " "))
    return "; ".join(parts) or "records progress"


def summary(entry: Published) -> str:
    """Members, q and qmr in short."""
    datamesh = entry.status.datamesh
    marks = {"Diskful": "D", "LiminalDiskful": "D∅", "TieBreaker": "TB", "Access": "A"}
    found = " ".join(
        f"n{id_of(m.name)}={marks.get(m.type, m.type)}{'*' if m.attached else ''}"
        f"{'!' if m.tie_breakers_disconnected else ''}"
        for m in sorted(datamesh.members, key=lambda m: id_of(m.name))
    )
    off = ", TB vote off" if datamesh.tie_breakers_suspended else ""
    return f"[{found}] q={datamesh.quorum} qmr={datamesh.quorum_minimum_redundancy}{off}"
