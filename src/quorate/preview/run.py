"""Runs a preview: copy, edit, watch, report. Changes nothing outside this process."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from quorate.api import conditions, labels, times
from quorate.api.crd import all_crds
from quorate.api.meta import ObjectMeta
from quorate.api.node import ReadyCondition as NodeReady
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import (
    ConfigurationReadyCondition,
    MembershipLayoutConvergedCondition,
    MemberType,
    ReplicatedVolume,
    ScheduledCondition,
)
from quorate.api.replicated_volume_attachment import (
    ReadyCondition,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeAttachmentSpec,
)
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.sizes import align_4ki
from quorate.api.value import replace
from quorate.api.wire import merge_patch
from quorate.datamesh.layout import is_valid
from quorate.explain.view import ClusterView, is_ready
from quorate.local.api_server import ApiServer
from quorate.local.cluster import LocalCluster, Wiring
from quorate.local.kubelet import NOTICE
from quorate.local.ports import SeededIds
from quorate.local.shape import Shape
from quorate.machinery import errors
from quorate.machinery.clock import LoopClock
from quorate.machinery.logs import Level as LogLevel
from quorate.machinery.logs import Logger, LogSettings, discard
from quorate.machinery.virtual_loop import run_virtual
from quorate.preview.copy import Original, build, original_of, take_down
from quorate.preview.recorder import StepRecorder, level_of, lower
from quorate.preview.results import CannotPreview, Edit, Level, Placement, Preview
from quorate.simulator.blocks import BLOCK
from quorate.simulator.model import PeerVolume

POLL = 0.5
FORM = 300.0
"""Simulated seconds for bringing the copy to the present state."""
SETTLE = 20.0
STUCK = 90.0
"""Simulated seconds without any progress after which a change that says it cannot go on is called impossible."""
LIMIT = 1800.0
COPYING = 5.0
"""Simulated seconds for every copy: how long it really takes depends on the disks and is not forecast."""
SEED = 1


def preview(view: ClusterView, name: str, edit: Edit, now: float) -> Preview:
    """What a change of a volume would do."""
    refusal = _refusal(view, name, edit)
    if refusal:
        return Preview(name, False, refusal)
    try:
        original = original_of(view, name)
        return run_virtual(lambda: _Run(original, edit, now).run(), seed=SEED, start=now)
    except CannotPreview as error:
        return Preview(name, False, str(error))


def _refusal(view: ClusterView, name: str, edit: Edit) -> str:
    """What can be said without running anything."""
    volume = view.volume(name)
    if volume is None:
        return f"there is no volume {name}"
    if volume.metadata.deleting:
        return f"{name} is being deleted"
    configuration = volume.status.configuration
    if configuration is not None:
        ftt = configuration.failures_to_tolerate if edit.ftt is None else edit.ftt
        gmdr = configuration.guaranteed_minimum_data_redundancy if edit.gmdr is None else edit.gmdr
        if not is_valid(ftt, gmdr):
            return f"FTT {ftt} with GMDR {gmdr} has no layout: both go from 0 to 2 and are at most 1 apart"
    present = volume.status.datamesh.size.value
    if edit.size is not None and edit.size < present:
        return f"{name} has {Quantity.of(present)}, and volumes never shrink"
    if edit.replace_node:
        here = [r for r in view.replicas_of(name) if r.spec.node_name == edit.replace_node]
        if not any(r.spec.type in (MemberType.DISKFUL, MemberType.TIE_BREAKER) for r in here):
            return f"{name} has no diskful replica or tie-breaker on {edit.replace_node}"
    return ""


@dataclass
class _Run:
    """One run on virtual time."""

    original: Original
    edit: Edit
    now: float
    copied: dict[str, int] = field(default_factory=dict[str, int])
    """Bytes by DRBD resource of the target."""

    async def run(self) -> Preview:
        clock = LoopClock()
        name = self.original.volume.metadata.name
        self.recorder = StepRecorder(name, clock.now)
        server = ApiServer(all_crds(), clock=clock, ids=SeededIds(SEED))
        log = Logger(discard, clock, LogSettings(LogLevel.ERROR))
        loop = asyncio.get_running_loop()
        wiring = Wiring(server.transport(), clock, loop, log, seed=SEED, record=self.recorder)
        self.clock = clock
        self.cluster = LocalCluster(Shape(nodes=0, groups=(), voter_mode=_voter_mode(self.original)), wiring)
        self.cluster.simulator.resync.planned = self._copying
        try:
            return await self._play(name)
        finally:
            await self.cluster.stop()

    def _copying(self, target: PeerVolume) -> float:
        """Every copy is quick; how many bytes it has is what counts."""
        if self.recorder.active:
            # A newcomer is a target of every peer with current data, but copies each block once.
            key = target.volume.resource.name
            self.copied[key] = max(self.copied.get(key, 0), target.sync_total * BLOCK)
        return COPYING

    async def _play(self, name: str) -> Preview:
        await build(self.cluster, self.original)
        await self._until(self._settled, FORM, "the copy of the present state was not formed")
        await self._attach(name)
        if await take_down(self.cluster, self.original):
            await self.clock.sleep(self._grace())
        before = await self._volume()
        self.copied.clear()
        self.recorder.begin()
        try:
            await self._apply(before)
        except errors.ApiError as error:
            causes = "; ".join(f"{cause.field}: {cause.message}".lstrip(": ") for cause in error.causes)
            return Preview(name, False, causes or error.message, notes=self.original.notes)
        reason = await self._follow()
        after = await self._volume()
        return self._report(before, after, reason)

    def _grace(self) -> float:
        """How long the copy needs to see what the cluster has seen: a node that is down for long is no longer eligible."""
        grace = times.parse_duration(self.original.pool.spec.eligible_nodes_policy.not_ready_grace_period)
        waited = NOTICE + SETTLE
        for name in self.original.nodes:
            node = self.original.view.node(name)
            ready = conditions.get(node.status.conditions, NodeReady.TYPE) if node is not None else None
            if node is None or is_ready(node) or ready is None or not ready.last_transition_time:
                continue
            if self.now - times.parse(ready.last_transition_time) > grace:
                waited = max(waited, NOTICE + grace + SETTLE)
        return waited

    # The volume

    async def _volume(self) -> ReplicatedVolume:
        return await self.cluster.client.get(ReplicatedVolume, self.original.volume.metadata.name)

    async def _attach(self, name: str) -> None:
        """Attach where the real one is attached; a volume with data was attached at least once."""
        nodes = self.original.attached
        once = not nodes and self.original.volume.status.datamesh.data_present
        first = next((r.spec.node_name for r in self.original.members if r.spec.type == MemberType.DISKFUL), "")
        for node in nodes or ((first,) if once and first else ()):
            spec = ReplicatedVolumeAttachmentSpec(replicated_volume_name=name, node_name=node)
            wish = ReplicatedVolumeAttachment(metadata=ObjectMeta(name=f"preview-{node}"), spec=spec)
            await self.cluster.client.create(wish)

            async def attached(wish: ReplicatedVolumeAttachment = wish) -> bool:
                found = await self.cluster.client.get(ReplicatedVolumeAttachment, wish.metadata.name)
                return conditions.is_true(found.status.conditions, ReadyCondition.TYPE)

            await self._until(attached, FORM, f"the copy could not be attached on {node}")
            if once:
                await self.cluster.client.delete(wish)

                async def gone() -> bool:
                    return not (await self.cluster.client.list(ReplicatedVolumeAttachment)).items

                await self._until(gone, FORM, "the copy could not be detached")

    async def _apply(self, volume: ReplicatedVolume) -> None:
        edit, configuration = self.edit, volume.spec.manual_configuration
        assert configuration is not None
        changed = replace(
            configuration,
            failures_to_tolerate=configuration.failures_to_tolerate if edit.ftt is None else edit.ftt,
            guaranteed_minimum_data_redundancy=(
                configuration.guaranteed_minimum_data_redundancy if edit.gmdr is None else edit.gmdr
            ),
        )
        size = volume.spec.size if edit.size is None else Quantity.of(edit.size)
        wanted = replace(volume, spec=replace(volume.spec, manual_configuration=changed, size=size))
        patch = merge_patch(volume, wanted)
        if patch:
            await self.cluster.client.patch(volume, patch)
        self.replaced: tuple[str, ...] = ()
        if edit.replace_node:
            replicas = (await self.cluster.client.list(ReplicatedVolumeReplica)).items
            for replica in replicas:
                if replica.spec.node_name == edit.replace_node and replica.spec.type != MemberType.ACCESS:
                    self.replaced += (replica.metadata.name,)
                    await self.cluster.client.delete(replica)

    # Waiting

    async def _until(self, reached: Callable[[], Awaitable[bool]], seconds: float, failure: str) -> None:
        deadline = self.clock.monotonic() + seconds
        while not await reached():
            if self.clock.monotonic() >= deadline:
                raise CannotPreview(f"{failure}: {await self._why()}")
            await self.clock.sleep(POLL)

    async def _settled(self) -> bool:
        """Formed, members as configured, nothing under way, every reachable copy current."""
        volume = await self._volume()
        status = volume.status
        if status.datamesh_revision == 0 or status.datamesh_transitions:
            return False
        generation = volume.metadata.generation
        return conditions.is_true(status.conditions, MembershipLayoutConvergedCondition.TYPE, generation)

    async def _done(self) -> bool:
        volume = await self._volume()
        if not await self._settled() or not conditions.is_true(
            volume.status.conditions, ConfigurationReadyCondition.TYPE, volume.metadata.generation
        ):
            return False
        if volume.status.datamesh.size.value < align_4ki(volume.spec.size.value):
            return False
        configuration = volume.spec.manual_configuration
        members = tuple(member.name for member in volume.status.datamesh.members)
        if configuration is None or any(name in members for name in self.replaced):
            return False
        promised = volume.status.effective_layout
        if promised.guaranteed_minimum_data_redundancy != configuration.guaranteed_minimum_data_redundancy:
            return False
        return promised.failures_to_tolerate == configuration.failures_to_tolerate

    async def _follow(self) -> str:
        """Watch the change to its end; the answer is why it cannot come there, or nothing."""
        deadline = self.clock.monotonic() + LIMIT
        moved, seen = self.clock.monotonic(), -1
        while self.clock.monotonic() < deadline:
            if await self._done():
                return ""
            volume = await self._volume()
            progress = volume.status.datamesh_revision + len(self.recorder.steps)
            if progress != seen:
                moved, seen = self.clock.monotonic(), progress
            if self.clock.monotonic() - moved > STUCK:
                return await self._why()
            await self.clock.sleep(POLL)
        return await self._why()

    async def _why(self) -> str:
        """What the copy says about itself."""
        volume = await self._volume()
        for type_ in (
            ConfigurationReadyCondition.TYPE,
            ScheduledCondition.TYPE,
            MembershipLayoutConvergedCondition.TYPE,
        ):
            found = conditions.get(volume.status.conditions, type_)
            if found is not None and found.status != conditions.TRUE:
                return found.message or found.reason
        for transition in volume.status.datamesh_transitions:
            texts = (transition.message, *(step.message for step in transition.steps if step.message))
            return f"{transition.type} {transition.replica_name} waits: {'; '.join(text for text in texts if text)}"
        replicas = (await self.cluster.client.list(ReplicatedVolumeReplica)).items
        waiting = tuple(f"{r.metadata.name}: {r.status.message}" for r in replicas if r.status.message)
        return "; ".join(waiting) or "it does not settle"

    # The report

    def _report(self, before: ReplicatedVolume, after: ReplicatedVolume, reason: str) -> Preview:
        lowest = lower(self.recorder.lowest, level_of(before))
        if after.status.observed_protection is not None:
            lowest = lower(lowest, level_of(after))
        return Preview(
            volume=before.metadata.name,
            possible=not reason,
            reason=reason,
            steps=tuple(self.recorder.steps),
            lowest_protection=lowest,
            promised_before=_promised(before),
            promised_after=_promised(after),
            bytes_to_copy=sum(self.copied.values()),
            nodes=_placements(before, after),
            notes=(*self.original.notes, *self._class_note()),
        )

    def _class_note(self) -> tuple[str, ...]:
        """Where the layout of a volume of a class is changed."""
        spec = self.original.volume.spec
        if spec.configuration_mode != "Auto" or (self.edit.ftt is None and self.edit.gmdr is None):
            return ()
        where = f"class {spec.replicated_storage_class_name}"
        return (f"the layout comes from {where}: change it there, or use `quorate volume set-layout --manual`",)


def _promised(volume: ReplicatedVolume) -> Level:
    layout = volume.status.effective_layout
    return Level(layout.failures_to_tolerate, layout.guaranteed_minimum_data_redundancy)


def _placements(before: ReplicatedVolume, after: ReplicatedVolume) -> tuple[Placement, ...]:
    old = {member.name: member for member in before.status.datamesh.members}
    new = {member.name: member for member in after.status.datamesh.members}
    found: list[Placement] = []
    for name in dict.fromkeys((*old, *new)):
        was, now = old.get(name), new.get(name)
        if was is None and now is not None:
            found.append(Placement(name, now.type, now.node_name, "added"))
        elif was is not None and now is None:
            found.append(Placement(name, was.type, was.node_name, "removed"))
        elif was is not None and now is not None:
            change = "kept" if was.type == now.type else f"was {was.type}"
            found.append(Placement(name, now.type, now.node_name, change))
    return tuple(found)


def _voter_mode(original: Original) -> str:
    """Static voters only if every node says so (decision 15)."""
    modes = [
        node.metadata.annotations.get(labels.ANNOTATION_VOTER_MODE, "")
        for name in original.nodes
        if (node := original.view.node(name)) is not None
    ]
    return "static" if modes and all(mode == "static" for mode in modes) else "dynamic"
