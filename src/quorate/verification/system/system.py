"""A whole cluster on virtual time, with verbs for scenarios.

The same controllers, agents, extender and API server as in production run against simulated nodes; a scenario reads like
a story, and every wait is bounded in simulated seconds and says what it waited for.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from quorate.api import conditions
from quorate.api.crd import all_crds
from quorate.api.drbd_resource import DRBDResource
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.meta import Object, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import (
    LVMVolumeGroupRef,
    ReplicatedStorageClass,
    ReplicatedStorageClassSpec,
    Storage,
)
from quorate.api.replicated_volume import ReplicatedVolume, ReplicatedVolumeSpec, VolumeConfiguration
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment, ReplicatedVolumeAttachmentSpec
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.api.wire import merge_patch
from quorate.local.api_server import ApiServer
from quorate.local.cluster import LocalCluster, Wiring
from quorate.local.ports import SeededIds
from quorate.local.shape import THIN_POOL, Shape
from quorate.machinery import errors
from quorate.machinery.clock import Clock, LoopClock
from quorate.machinery.executor import Gate
from quorate.machinery.faults import CALM, FaultPlan, FaultTransport
from quorate.machinery.logs import Level, Logger, LogSettings, discard, text_sink
from quorate.machinery.virtual_loop import run_virtual
from quorate.verification.system.counting import CountingTransport, Writes

T = TypeVar("T")
K = TypeVar("K", bound=Object)
POLL = 0.25
"""Seconds between two looks while waiting."""
DEFAULT_SHAPE = Shape()


class NotReached(AssertionError):
    """What was waited for did not come; the text tells what the system says instead."""


@dataclass(frozen=True)
class SystemOptions:
    """How a simulated system is set up."""

    shape: Shape = DEFAULT_SHAPE
    seed: int = 1
    faults: FaultPlan = CALM
    """Misbehaviour of the network between controllers or agents and the API server."""
    gate: Gate | None = None
    log_level: Level | None = None
    """Write logs of this level to standard error."""
    start_cluster: bool = True


@dataclass
class System:
    """The running system; see the module docstring."""

    options: SystemOptions
    cluster: LocalCluster
    server: ApiServer
    writes: Writes
    agents_and_controllers: FaultTransport
    """Its plan is how the network to the API server misbehaves; the story's own requests are not touched."""
    clock: Clock
    attachments: int = 0
    checks: list[str] = field(default_factory=list[str])

    # Objects

    async def get(self, kind: type[K], name: str) -> K:
        """An object, live."""
        return await self.cluster.client.get(kind, name)

    async def list(self, kind: type[K]) -> tuple[K, ...]:
        """All objects of a kind, live."""
        return (await self.cluster.client.list(kind)).items

    async def edit(self, kind: type[K], name: str, change: Callable[[K], K]) -> K:
        """Change an object's main half as a person with kubectl would; conflicts are tried again."""
        for _ in range(20):
            before = await self.get(kind, name)
            patch = merge_patch(before, change(before))
            if not patch:
                return before
            try:
                return await self.cluster.client.patch(before, patch)
            except errors.Conflict:
                continue
        raise NotReached(f"{kind.__name__} {name} could not be edited")

    async def delete(self, kind: type[K], name: str) -> None:
        """Delete an object."""
        found = await self.get(kind, name)
        await self.cluster.client.delete(found)

    async def create_class(
        self,
        name: str = "fast",
        *,
        ftt: int = 1,
        gmdr: int = 1,
        topology: str = "Ignored",
        access: str = "PreferablyLocal",
        zones: tuple[str, ...] = (),
        ready: bool = True,
        **spec: object,
    ) -> None:
        """A storage class over all volume groups; waits until it is ready."""
        shape = self.options.shape
        groups = tuple(
            LVMVolumeGroupRef(name=shape.group_object_name(group, node), thin_pool_name=THIN_POOL if shape.thin else "")
            for node in self.cluster.nodes
            for group in shape.groups
        )
        base = ReplicatedStorageClassSpec(
            reclaim_policy="Delete",
            topology="Ignored",
            failures_to_tolerate=ftt,
            guaranteed_minimum_data_redundancy=gmdr,
            zones=zones,
            storage=Storage(type="LVMThin" if shape.thin else "LVM", lvm_volume_groups=groups),
        )
        made = replace(base, topology=topology, volume_access=access, **spec)
        await self.cluster.client.create(ReplicatedStorageClass(metadata=ObjectMeta(name=name), spec=made))
        if ready:
            await self.until(lambda: self._class_is_ready(name), 60, f"class {name} is ready")

    async def _class_is_ready(self, name: str) -> bool:
        found = await self.get(ReplicatedStorageClass, name)
        return conditions.is_true(found.status.conditions, "Ready", found.metadata.generation)

    async def create_volume(
        self, name: str = "vol", *, class_name: str = "fast", size: str = "64Mi", max_attachments: int = 1
    ) -> None:
        """A volume of a class."""
        spec = ReplicatedVolumeSpec(
            size=Quantity.parse(size), replicated_storage_class_name=class_name, max_attachments=max_attachments
        )
        await self.cluster.client.create(ReplicatedVolume(metadata=ObjectMeta(name=name), spec=spec))

    async def create_manual_volume(
        self, name: str = "vol", *, configuration: VolumeConfiguration, size: str = "64Mi", max_attachments: int = 1
    ) -> None:
        """A volume with a configuration of its own."""
        spec = ReplicatedVolumeSpec(
            size=Quantity.parse(size),
            configuration_mode="Manual",
            manual_configuration=configuration,
            max_attachments=max_attachments,
        )
        await self.cluster.client.create(ReplicatedVolume(metadata=ObjectMeta(name=name), spec=spec))

    async def create_attachment(self, volume: str, node: str) -> str:
        """A wish to attach; the answer is its name."""
        self.attachments += 1
        name = f"rva-{self.attachments}-{volume}-{node}"
        spec = ReplicatedVolumeAttachmentSpec(replicated_volume_name=volume, node_name=node)
        await self.cluster.client.create(ReplicatedVolumeAttachment(metadata=ObjectMeta(name=name), spec=spec))
        return name

    # Waiting

    async def until(self, reached: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
        """Wait for something, at most `seconds` of simulated time."""
        deadline = self.clock.monotonic() + seconds
        while True:
            if await reached():
                return
            if self.clock.monotonic() >= deadline:
                raise NotReached(f"after {seconds:.0f} simulated seconds not reached: {what}\n{await self.describe()}")
            await self.clock.sleep(POLL)

    async def formed(self, name: str = "vol", seconds: float = 120) -> None:
        """Wait until the volume is formed and converged."""
        await self.until(lambda: self.is_converged(name), seconds, f"volume {name} is formed")

    async def is_converged(self, name: str = "vol") -> bool:
        """Formed, members as configured, no transition under way, every copy UpToDate."""
        volume = await self.get(ReplicatedVolume, name)
        status = volume.status
        if status.datamesh_revision == 0 or status.datamesh_transitions:
            return False
        if not conditions.is_true(status.conditions, "MembershipLayoutConverged", volume.metadata.generation):
            return False
        observed = status.observed_protection
        return observed is not None and observed.up_to_date_voters == observed.total_voters

    async def attached(self, attachment: str, seconds: float = 120) -> None:
        """Wait until an attachment is Ready."""

        async def ready() -> bool:
            found = await self.get(ReplicatedVolumeAttachment, attachment)
            return conditions.is_true(found.status.conditions, "Ready")

        await self.until(ready, seconds, f"attachment {attachment} is ready")

    async def attach(self, volume: str, node: str, seconds: float = 120) -> str:
        """Attach and wait."""
        name = await self.create_attachment(volume, node)
        await self.attached(name, seconds)
        return name

    async def detach(self, attachment: str, seconds: float = 120) -> None:
        """Delete an attachment and wait until it is gone."""
        await self.delete(ReplicatedVolumeAttachment, attachment)
        await self.gone(ReplicatedVolumeAttachment, attachment, seconds)

    async def gone(self, kind: type[Object], name: str, seconds: float = 120) -> None:
        """Wait until an object does not exist."""

        async def absent() -> bool:
            try:
                await self.get(kind, name)
            except errors.NotFound:
                return True
            return False

        await self.until(absent, seconds, f"{kind.__name__} {name} is gone")

    async def quiet(self, seconds: float = 600) -> None:
        """At rest nothing is written: no API write in `seconds` of simulated time."""
        self.writes.reset()
        await self.clock.sleep(seconds)
        assert not self.writes.log, f"writes at rest: {self.writes.log[:10]}"

    # Checks

    def resource_of(self, replica: str) -> str:
        """Name of a replica's DRBD resource on its node."""
        return f"sdsrv-{replica}"

    async def check_no_orphans(self) -> None:
        """Every child has its parent, every LV its object, every DRBD resource its object."""
        volumes = {v.metadata.name for v in await self.list(ReplicatedVolume)}
        replicas = {r.metadata.name: r for r in await self.list(ReplicatedVolumeReplica)}
        for replica in replicas.values():
            assert replica.spec.replicated_volume_name in volumes, f"orphan replica {replica.metadata.name}"
        for resource in await self.list(DRBDResource):
            assert resource.metadata.name in replicas, f"orphan DRBDResource {resource.metadata.name}"
        logical = await self.list(LVMLogicalVolume)
        for volume in logical:
            assert any(volume.metadata.name.startswith(f"{name}-") for name in replicas), volume.metadata.name
        self._check_nodes(set(replicas), {volume.spec.actual_lv_name_on_the_node for volume in logical})

    def _check_nodes(self, replicas: set[str], logical: set[str]) -> None:
        known = {self.resource_of(name) for name in replicas}
        for name, node in self.cluster.simulator.nodes.items():
            if not node.running:
                continue
            for resource in node.kernel.resources:
                assert resource in known, f"{name} still runs DRBD resource {resource}"
            for group in node.lvm.state.groups.values():
                for volume in group.volumes:
                    pool = volume.startswith(THIN_POOL) or "lvol" in volume
                    assert pool or volume in logical, f"{name} still has logical volume {volume}"

    async def describe(self) -> str:
        """What the system says about itself, for failed waits."""
        volumes, replicas = await self.list(ReplicatedVolume), await self.list(ReplicatedVolumeReplica)
        attachments = await self.list(ReplicatedVolumeAttachment)
        return "\n".join(
            (
                *(line for volume in volumes for line in _describe_volume(volume)),
                *(_describe_replica(replica) for replica in replicas),
                *(f"{a.metadata.name}: {a.status.phase} {a.status.message}" for a in attachments),
            )
        )


def _describe_volume(volume: ReplicatedVolume) -> Iterator[str]:
    status = volume.status
    yield f"{volume.metadata.name}: {status.membership_layout or 'forming'} r{status.datamesh_revision}"
    for transition in status.datamesh_transitions:
        steps = ", ".join(f"{s.name}={s.status} {s.message}".strip() for s in transition.steps)
        yield f"  {transition.type} {transition.replica_name}: {transition.message} [{steps}]"
    for condition in status.conditions:
        if condition.status != conditions.TRUE:
            yield f"  {condition.type}={condition.status}/{condition.reason}: {condition.message}"
    for request in status.datamesh_replica_requests:
        yield f"  request {request.name} {request.request.operation}: {request.message}"


def _describe_replica(replica: ReplicatedVolumeReplica) -> str:
    where = f"{replica.metadata.name} {replica.spec.type} on {replica.spec.node_name}"
    return f"{where} r{replica.status.datamesh_revision} {replica.status.phase}: {replica.status.message}"


def run_system(story: Callable[[System], Coroutine[object, object, T]], options: SystemOptions | None = None) -> T:
    """Run a story on a fresh system on virtual time; the same seed gives the same history."""
    chosen = options or SystemOptions()

    async def main() -> T:
        system = _build(chosen)
        if chosen.start_cluster:
            await system.cluster.start()
        try:
            return await story(system)
        finally:
            await system.cluster.stop()

    return run_virtual(main, seed=chosen.seed)


def _build(options: SystemOptions) -> System:
    clock = LoopClock()
    sink = text_sink(sys.stderr, lambda epoch: f"{epoch - 1_700_000_000:10.3f}") if options.log_level else discard
    log = Logger(sink, clock, LogSettings(options.log_level or Level.ERROR))
    server = ApiServer(all_crds(), clock=clock, ids=SeededIds(options.seed))
    writes = Writes()
    faulty = FaultTransport(server.transport(), Random(options.seed), clock, options.faults)
    wiring = Wiring(
        CountingTransport(faulty, writes),
        clock,
        asyncio.get_running_loop(),
        log,
        seed=options.seed,
        gate=options.gate,
        own_transport=CountingTransport(server.transport(), writes),
    )
    cluster = LocalCluster(options.shape, wiring)
    return System(options, cluster, server, writes, faulty, clock)
