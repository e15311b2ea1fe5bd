"""Liveness: from every state the volume comes to rest healthy once nothing fails any more.

The continuation is fair and deterministic: everything is repaired, agents apply, disks synchronise, the engine runs, until
nothing is left to do. States on the way of a continuation that ended well are remembered, so most states cost one look-up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.datamesh.layout import Layout
from quorate.verification.volume_state import VolumeState

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
        here = state._replace(faults_left=0, intents=(), broken="")
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
        for event, world in self._model.worlds.progress(state.world):
            if event.verb != "write acknowledged":
                return self._model.after(state, world)
        engine = self._model.engine(state)
        if engine is not None:
            return engine[1]
        return None if self.at_rest(state) else self._switched_off(state)

    def _switched_off(self, state: VolumeState) -> VolumeState | None:
        """Where the engine waits for evidence about a member whose object is gone, somebody switches its node off."""
        members = self._model.table.entries[state.published].members
        for i, obj in enumerate(state.objects):
            if obj is None and members >> i & 1 and not state.world.fenced >> i & 1:
                return self._model.after(state, self._model.worlds.fence(self._model.worlds.crash(state.world, i), i))
        return None

    def at_rest(self, state: VolumeState) -> bool:
        """Nothing is under way, every member has quorum and confirmed, and the volume is served where it is wanted."""
        entry = self._model.table.entries[state.published]
        if entry.status.datamesh_transitions:
            return False
        nodes = self._model.worlds.clusters[state.world.cluster].nodes
        for i in range(self._model.size):
            if entry.members >> i & 1 and not state.world.fenced >> i & 1:
                if state.revisions[i] != entry.revision or not nodes[i].quorum:
                    return False
                if entry.targets[i].primary and not nodes[i].primary:
                    return False
        return True

    def _alive(self, state: VolumeState) -> bool:
        """A current copy is left, and as many nodes as the layout needs; without them there is nothing to converge to."""
        nodes = self._model.worlds.clusters[state.world.cluster].nodes
        wanted = self._model.table.entries[state.published].status.configuration
        if wanted is not None:
            layout = Layout(wanted.failures_to_tolerate, wanted.guaranteed_minimum_data_redundancy)
            if self._model.size - state.world.fenced.bit_count() < layout.diskful + layout.tie_breakers:
                return False
        return any(
            node.current and state.objects[i] is not None and not state.world.fenced >> i & 1
            for i, node in enumerate(nodes)
        )
