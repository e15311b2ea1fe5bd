"""Liveness: from every state the volume comes to rest healthy once nothing fails any more.

The continuation is fair and deterministic: everything is repaired, agents apply, disks synchronise, the engine runs, until
nothing is left to do. States on the way of a continuation that ended well are remembered, so most states cost one look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.api.replicated_volume import MemberType
from quorate.datamesh.layout import Layout
from quorate.verification.cluster import FAILED, UP_TO_DATE
from quorate.verification.configuration import ACCESS
from quorate.verification.volume_state import VolumeState, with_object

if TYPE_CHECKING:
    from quorate.verification.volume import VolumeModel

MAX_STEPS = 400


class Liveness:
    """Judges whether states of a model converge."""

    def __init__(self, model: VolumeModel) -> None:
        self._model = model
        self._live: set[VolumeState] = set()

    def converges(self, state: VolumeState) -> bool:
        """From here, with no further fault, everything repaired and everybody working, the volume comes to rest healthy."""
        seen: list[VolumeState] = []
        here = state._replace(intents=(), broken="")
        for _ in range(MAX_STEPS):
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
                return self._model.after(state, self._model.worlds.fence(self._model.worlds.crash(state.world, i), i))
        for _, after in self._model.repairs(state):
            return after
        for _, after in self._model.agents(state):
            return after
        for event, after in self._model.progress(state):
            if event.verb != "write acknowledged":
                return after
        for _, after in self._model.engines(state):
            return after
        return None if self.at_rest(state) else self._helped(state)

    def _helped(self, state: VolumeState) -> VolumeState | None:
        """What people do when everything else has come to rest: they replace a replica whose disk broke, and the workload
        leaves a node whose replica is to go (an attached member does not leave, G17), or whose kernel keeps a quorum that it
        would not have without a node that is gone for good (decision 5: a Primary drops it at its next state change)."""
        cluster = self._model.worlds.clusters[state.world.cluster]
        nodes = cluster.nodes
        for i, obj in enumerate(state.objects):
            if obj is not None and nodes[i].store == FAILED and not obj.deleting:
                return with_object(state, i, obj._replace(deleting=True))
        for i, obj in enumerate(state.objects):
            if obj is not None and (obj.deleting or obj.force_leave) and (state.wanted & ~state.world.fenced) >> i & 1:
                return state._replace(wanted=state.wanted & ~(1 << i))
        for i, node in enumerate(nodes if state.world.fenced else ()):
            if node.primary and state.wanted >> i & 1 and not self._model.worlds.kernels.enforced(cluster, i):
                return state._replace(wanted=state.wanted & ~(1 << i))
        return self._switched_off(state)

    def _switched_off(self, state: VolumeState) -> VolumeState | None:
        """Where the engine waits for evidence about a member whose object is gone, somebody switches its node off."""
        members = self._model.table.entries[state.published].members
        for i, obj in enumerate(state.objects):
            if obj is None and members >> i & 1 and not state.world.fenced >> i & 1:
                return self._model.after(state, self._model.worlds.fence(self._model.worlds.crash(state.world, i), i))
        return None

    def at_rest(self, state: VolumeState) -> bool:
        """Nothing is under way; members, votes and quorum values are the layout's; every member has quorum and confirmed; the
        volume is served where it is wanted and nowhere else; nothing waits for its deletion."""
        entry = self._model.table.entries[state.published]
        if entry.status.datamesh_transitions or not self._layout_reached(state):
            return False
        nodes = self._model.worlds.clusters[state.world.cluster].nodes
        for i, obj in enumerate(state.objects):
            if obj is not None and (obj.deleting or obj.force_leave):
                return False
            if not entry.members >> i & 1:
                continue
            if obj is not None and obj.kind == ACCESS and state.world.fenced >> i & 1:
                continue  # It goes with its attachment, which is not the engine's to delete.
            if state.world.fenced >> i & 1 or state.revisions[i] != entry.revision or not nodes[i].quorum:
                return False
            if nodes[i].primary != bool(state.wanted >> i & 1):
                return False
        return not state.wanted & ~entry.members & ~state.world.fenced

    def _layout_reached(self, state: VolumeState) -> bool:
        status = self._model.table.entries[state.published].status
        layout = self._layout(state)
        datamesh = status.datamesh
        kinds = [member.type for member in datamesh.members]
        return (
            kinds.count(MemberType.DISKFUL) == layout.diskful
            and kinds.count(MemberType.TIE_BREAKER) == layout.tie_breakers
            and MemberType.LIMINAL_DISKFUL not in kinds
            and datamesh.quorum == layout.quorum
            and datamesh.quorum_minimum_redundancy == layout.qmr
            and not datamesh.tie_breakers_suspended
            and status.baseline_guaranteed_minimum_data_redundancy == layout.gmdr
        )

    def _layout(self, state: VolumeState) -> Layout:
        wanted = self._model.table.entries[state.published].status.configuration
        if wanted is None:
            raise ValueError("a formed volume has a configuration")
        return Layout(wanted.failures_to_tolerate, wanted.guaranteed_minimum_data_redundancy)

    def _alive(self, state: VolumeState) -> bool:
        """What convergence needs is left: enough nodes for the layout, one more while a replica is being replaced (the new one
        joins first), and a copy that its own kernel calls UpToDate.

        A node that is fenced stays away for good. When the only UpToDate copy went with it, or with a broken disk, what is
        left is Outdated and perhaps stale: only a person can decide to serve it.
        """
        nodes = self._model.worlds.clusters[state.world.cluster].nodes
        layout = self._layout(state)
        usable = [
            obj
            for i, obj in enumerate(state.objects)
            if not state.world.fenced >> i & 1 and nodes[i].store != FAILED and (obj is None or obj.kind != ACCESS)
        ]
        replacing = any(obj is not None and (obj.deleting or obj.force_leave) for obj in usable)
        if len(usable) < layout.diskful + layout.tie_breakers + replacing:
            return False
        here = [
            node for i, node in enumerate(nodes) if state.objects[i] is not None and not state.world.fenced >> i & 1
        ]
        lost = state.world.fenced or any(node.store == FAILED for node in nodes)
        return any(node.store == UP_TO_DATE if lost else node.current for node in here)
