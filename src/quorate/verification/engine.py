"""The production engine inside the model: one pass on what is reported now, and what the controllers do with its result.

`Engine.run` is `quorate.datamesh.engine.run_pass` with a registry that is passed in, so the checker runs the production code
and mutants run through the same door. Passes are remembered by their inputs.
"""

from __future__ import annotations

from typing import Final

from quorate.api.meta import ObjectMeta
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import TransitionGroup, TransitionType
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment, ReplicatedVolumeAttachmentSpec
from quorate.api.value import replace
from quorate.datamesh.contract import CreateReplica, DeleteReplica, PassInput, PassResult, ReplicaAction, RetypeReplica
from quorate.datamesh.engine import run_pass
from quorate.datamesh.members import id_of
from quorate.datamesh.registry import Registry
from quorate.verification.assertions import INTERRUPTED, LAST_COPY
from quorate.verification.cluster import UP_TO_DATE, Bench, Cluster, bits, disk_of, reach
from quorate.verification.configuration import ACCESS, DISKFUL, GONE, TIE_BREAKER, VOTERS
from quorate.verification.perfect_cluster import VOLUME
from quorate.verification.published import Published, PublishedTable
from quorate.verification.reports import ReplicaObject, Reports
from quorate.verification.volume_state import VolumeState, with_object
from quorate.verification.world import Worlds

_KIND_OF: Final = {"Diskful": DISKFUL, "TieBreaker": TIE_BREAKER, "Access": ACCESS}
_NOW: Final = 1_000_000_000.0


class Engine:
    """Passes of one registry in one model."""

    def __init__(
        self, registry: Registry, worlds: Worlds, table: PublishedTable, pool: ReplicatedStoragePool, *, rumours: bool
    ) -> None:
        self.registry = registry
        self.worlds = worlds
        self.table = table
        self.pool = pool
        self.rumours = rumours
        self.reports = Reports(worlds)
        self._passes: dict[tuple[object, ...], PassResult] = {}
        self.passes = 0
        self.asked = 0

    def run(self, state: VolumeState) -> tuple[tuple[ReplicaAction, ...], VolumeState] | None:
        """One pass of the production engine; None when it changes nothing."""
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
        if new.status.datamesh != entry.status.datamesh and self._gives_up_last(state, entry, new):
            after = after._replace(broken=LAST_COPY)
        return result.actions, after

    def _gives_up_last(self, state: VolumeState, before: Published, after: Published) -> bool:
        """S16: whether a published revision lets the only current copy be deleted; ForceLeave asks for exactly that.

        Judged when it is published: a copy that is lost to a fault afterwards, while an agent still carries it out, is the
        fault's doing.
        """
        current = self.worlds.current(state.world)
        kept = sum(1 << i for i, target in enumerate(after.targets) if target.configuration.kind in VOTERS)
        for i in bits(current & ~kept):
            obj = state.objects[i]
            held = before.targets[i].configuration.kind in VOTERS
            if held and obj is not None and not obj.force_leave and not current & kept:
                return True
        return False

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
        self.asked += 1
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
                    attachments=tuple(_attachment(i) for i in range(self.worlds.size) if state.wanted >> i & 1),
                    pool=self.pool,
                    features=self.table.features,
                    fenced_nodes=tuple(f"node-{i}" for i in bits(self._evidence(state))),
                    now=_NOW,
                ),
                self.registry,
            )
        return found

    def _evidence(self, state: VolumeState) -> int:
        """Nodes with fencing evidence; with `rumours` every node that reaches nobody."""
        if not self.rumours:
            return state.world.fenced
        links = self.worlds.clusters[state.world.cluster].links
        return state.world.fenced | sum(1 << i for i in range(self.worlds.size) if not links[i])

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


def _attachment(i: int) -> ReplicatedVolumeAttachment:
    return ReplicatedVolumeAttachment(
        metadata=ObjectMeta(name=f"rva-{i}", creation_timestamp="2001-09-09T01:46:40Z"),
        spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name=VOLUME, node_name=f"node-{i}"),
    )
