"""The stage of the tour: a whole local cluster and the verbs that the acts are written in.

Everything is asked of the API, as a person with kubectl would; only power, data and the progress of copies are looked
up in the simulated machines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TypeVar

from quorate.api import conditions
from quorate.api.crd import all_crds
from quorate.api.meta import Object, ObjectMeta
from quorate.api.names import drbd_name_on_node
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import (
    LVMVolumeGroupRef,
    ReplicatedStorageClass,
    ReplicatedStorageClassSpec,
    Storage,
)
from quorate.api.replicated_volume import MemberType, ReplicatedVolume, ReplicatedVolumeSpec
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment, ReplicatedVolumeAttachmentSpec
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.api.wire import merge_patch
from quorate.demo.picture import NodeView, Picture, compute_row
from quorate.local.api_server import ApiServer
from quorate.local.cluster import LocalCluster, Wiring
from quorate.local.io import IoReport, IoRequest, LocalIo, Progress
from quorate.local.io_ledger import IoLedger
from quorate.local.ports import SeededIds
from quorate.local.shape import THIN_POOL, Shape
from quorate.machinery import errors
from quorate.machinery.clock import LoopClock
from quorate.machinery.logs import Logger, discard
from quorate.simulator.blocks import digest
from quorate.simulator.model import Volume
from quorate.simulator.states import Disk, Replication

K = TypeVar("K", bound=Object)
POLL = 0.25
SIZE = "2Gi"
RATE = 5.0
FOREVER = 36_000.0


class NotReached(Exception):
    """Something that the tour waits for did not happen; the text says what."""


@dataclass
class Writer:
    """A verified writer in the background."""

    volume: str
    node: str = ""
    last: Progress | None = None
    task: asyncio.Task[None] | None = None

    @property
    def acknowledged(self) -> int:
        return self.last.acknowledged if self.last is not None else 0

    @property
    def failed(self) -> int:
        return self.last.failed if self.last is not None else 0

    @property
    def longest_pause(self) -> float:
        return self.last.longest_pause if self.last is not None else 0.0


@dataclass
class Stage:
    """See the module docstring."""

    cluster: LocalCluster
    clock: LoopClock
    io: LocalIo
    writer: Writer | None = None
    acknowledged: int = 0
    """Writes of writers that have ended."""

    # Objects

    async def get(self, kind: type[K], name: str) -> K:
        return await self.cluster.client.get(kind, name)

    async def volumes(self) -> tuple[ReplicatedVolume, ...]:
        found = (await self.cluster.client.list(ReplicatedVolume)).items
        return tuple(sorted(found, key=lambda volume: volume.metadata.name))

    async def create_class(self, name: str, ftt: int, gmdr: int) -> None:
        """A class over every volume group."""
        shape = self.cluster.shape
        groups = tuple(
            LVMVolumeGroupRef(name=shape.group_object_name(group, node), thin_pool_name=THIN_POOL)
            for node in shape.node_names()
            for group in shape.groups
        )
        spec = ReplicatedStorageClassSpec(
            reclaim_policy="Delete",
            topology="Ignored",
            failures_to_tolerate=ftt,
            guaranteed_minimum_data_redundancy=gmdr,
            storage=Storage(type="LVMThin", lvm_volume_groups=groups),
        )
        await self.cluster.client.create(ReplicatedStorageClass(metadata=ObjectMeta(name=name), spec=spec))

    async def class_ready(self, name: str) -> bool:
        found = await self.get(ReplicatedStorageClass, name)
        return conditions.is_true(found.status.conditions, "Ready", found.metadata.generation)

    async def set_promise(self, class_name: str, ftt: int, gmdr: int) -> None:
        """Edit what a class promises."""
        for _ in range(10):
            before = await self.get(ReplicatedStorageClass, class_name)
            spec = replace(before.spec, failures_to_tolerate=ftt, guaranteed_minimum_data_redundancy=gmdr)
            try:
                await self.cluster.client.patch(before, merge_patch(before, replace(before, spec=spec)))
                return
            except errors.Conflict:
                continue
        raise NotReached(f"class {class_name} could not be edited")

    async def create_volume(self, name: str, class_name: str) -> None:
        spec = ReplicatedVolumeSpec(size=Quantity.parse(SIZE), replicated_storage_class_name=class_name)
        await self.cluster.client.create(ReplicatedVolume(metadata=ObjectMeta(name=name), spec=spec))

    async def create_attachment(self, volume: str, node: str) -> str:
        name = f"{volume}-on-{node}"
        spec = ReplicatedVolumeAttachmentSpec(replicated_volume_name=volume, node_name=node)
        await self.cluster.client.create(ReplicatedVolumeAttachment(metadata=ObjectMeta(name=name), spec=spec))
        return name

    async def delete(self, kind: type[Object], name: str) -> None:
        await self.cluster.client.delete(await self.get(kind, name))

    async def is_gone(self, kind: type[Object], name: str) -> bool:
        try:
            await self.get(kind, name)
        except errors.NotFound:
            return True
        return False

    # Questions

    async def has_layout(self, name: str, layout: str) -> bool:
        """Formed, with this layout, no change under way, every copy UpToDate."""
        volume = await self.get(ReplicatedVolume, name)
        status = volume.status
        if status.membership_layout != layout or status.datamesh_transitions:
            return False
        if not conditions.is_true(status.conditions, "MembershipLayoutConverged", volume.metadata.generation):
            return False
        observed = status.observed_protection
        return observed is not None and observed.up_to_date_voters == observed.total_voters

    async def is_attached(self, attachment: str) -> bool:
        found = await self.get(ReplicatedVolumeAttachment, attachment)
        return conditions.is_true(found.status.conditions, "Ready")

    async def copies_on(self, volume: str) -> list[str]:
        """Nodes that hold a copy."""
        members = (await self.get(ReplicatedVolume, volume)).status.datamesh.members
        return [member.node_name for member in members if member.type == MemberType.DISKFUL]

    async def until(self, reached: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
        """Wait, at most so many seconds of the cluster's time."""
        deadline = self.clock.monotonic() + seconds
        while not await reached():
            if self.clock.monotonic() >= deadline:
                raise NotReached(f"not within {seconds:.0f} s: {what}")
            await self.clock.sleep(POLL)

    # Writing

    def start_writer(self, volume: str) -> Writer:
        """Write in the background until `stop_writer`."""
        writer = self.writer = Writer(volume)

        async def write() -> None:
            async with aclosing(self.io.run(IoRequest(volume, seconds=FOREVER, rate=RATE))) as messages:
                async for message in messages:
                    if not isinstance(message, IoReport):
                        writer.last, writer.node = message, message.node

        writer.task = asyncio.create_task(write(), name=f"writer/{volume}")
        return writer

    async def stop_writer(self) -> None:
        if self.writer is not None and self.writer.task is not None:
            self.writer.task.cancel()
            await asyncio.gather(self.writer.task, return_exceptions=True)
            self.acknowledged += self.writer.acknowledged
            self.writer = None

    async def acknowledging(self, count: int, seconds: float = 60.0) -> int:
        """Wait until so many further writes are acknowledged; how many are in all."""
        writer = self.writer
        assert writer is not None
        goal = writer.acknowledged + count

        async def enough() -> bool:
            if writer.task is not None and writer.task.done() and not writer.task.cancelled():
                raise NotReached(f"the writer ended: {writer.task.exception()}")
            return writer.acknowledged >= goal

        await self.until(enough, seconds, f"{count} further writes are acknowledged")
        return writer.acknowledged

    # Below everything

    async def disks_of(self, name: str) -> dict[str, Volume]:
        """The UpToDate disks of a volume on nodes with quorum, by node."""
        found: dict[str, Volume] = {}
        for member in (await self.get(ReplicatedVolume, name)).status.datamesh.members:
            node = self.cluster.simulator.nodes[member.node_name]
            resource = node.kernel.resources.get(drbd_name_on_node(member.name)) if node.running else None
            for volume in resource.volumes.values() if resource is not None else ():
                if volume.disk is Disk.UP_TO_DATE and volume.backing is not None and volume.quorum:
                    found[member.node_name] = volume
        return found

    async def digests(self, name: str) -> dict[str, str]:
        """Checksums of the contents of those disks, by node."""
        volumes = await self.disks_of(name)
        return {
            node: digest(volume.backing.device, 0, volume.blocks)
            for node, volume in volumes.items()
            if volume.backing is not None
        }

    def leftovers(self) -> list[str]:
        """Whatever still exists on the machines: DRBD resources and logical volumes."""
        found: list[str] = []
        for name, node in self.cluster.simulator.nodes.items():
            found += [f"{name}: {resource}" for resource in node.kernel.resources]
            for group in node.lvm.state.groups.values():
                found += [f"{name}: {volume.path}" for volume in group.volumes.values() if volume.disk is not None]
        return found

    # The picture

    async def picture(self) -> Picture:
        """What is so at this moment."""
        simulator, shape = self.cluster.simulator, self.cluster.shape
        running = {name: node.running for name, node in simulator.nodes.items()}
        replicas = {r.metadata.name: r for r in (await self.cluster.client.list(ReplicatedVolumeReplica)).items}
        copied = {name: percent for node in simulator.nodes for name, percent in self._copied(node)}
        rows = tuple(compute_row(volume, replicas, running, copied) for volume in await self.volumes())
        nodes = tuple(NodeView(name, shape.zone_of(n.index), running[name]) for name, n in self.cluster.nodes.items())
        return Picture(nodes, rows, self._footer())

    def _copied(self, node: str) -> list[tuple[str, int]]:
        """Per cent that replicas of a node have copied, while they do."""
        kernel = self.cluster.simulator.nodes[node].kernel
        found: list[tuple[str, int]] = []
        for resource in kernel.resources.values() if self.cluster.simulator.nodes[node].running else ():
            for volume in resource.volumes.values():
                for peer in volume.peers():
                    if peer.replication is Replication.SYNC_TARGET and peer.sync_total:
                        left = len(peer.out_of_sync) if peer.out_of_sync is not None else 0
                        found.append((resource.name.removeprefix("sdsrv-"), 100 - 100 * left // peer.sync_total))
        return found

    def _footer(self) -> str:
        writer = self.writer
        if writer is None or writer.last is None:
            return ""
        last = writer.last
        held = f"; a write waits for {last.waiting:.0f} s" if last.waiting > 1 else ""
        return (
            f"writes on {writer.volume} at {writer.node}: {last.acknowledged} acknowledged, {last.failed} failed{held}"
        )


async def build_stage(seed: int) -> Stage:
    """A cluster of five nodes in three zones on the running loop's time."""
    clock = LoopClock()
    server = ApiServer(all_crds(), clock=clock, ids=SeededIds(seed))
    wiring = Wiring(server.transport(), clock, asyncio.get_running_loop(), Logger(discard, clock), seed=seed)
    cluster = LocalCluster(Shape(nodes=5, zones=3), wiring)
    await cluster.start()
    return Stage(cluster, clock, LocalIo(cluster, clock, IoLedger()))
