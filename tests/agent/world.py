"""A world for whole-story tests: the embedded API server, simulated nodes, and a real agent on each of them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from quorate.agent.agent import Agent, AgentOptions
from quorate.api.crd import all_crds
from quorate.api.drbd_resource import DRBDResource, DRBDResourceSpec, Peer, PeerPath
from quorate.api.drbd_resource_operation import (
    CreateNewUUID,
    DRBDResourceOperation,
    DRBDResourceOperationSpec,
    OperationType,
    Phase,
)
from quorate.api.lvm_logical_volume import LVMLogicalVolume, LVMLogicalVolumeSpec, Thin
from quorate.api.lvm_volume_group import Local, LVMVolumeGroup, LVMVolumeGroupSpec, ThinPoolSpec
from quorate.api.meta import Object, ObjectMeta
from quorate.api.namespace import Namespace
from quorate.api.quantity import Quantity
from quorate.api.value import FrozenMap, SharedSecret, replace
from quorate.api.wire import merge_patch
from quorate.local.api_server import ApiServer
from quorate.local.kubelet import Kubelet
from quorate.local.kubelet import Machine as KubeMachine
from quorate.local.ports import SeededIds
from quorate.machinery import errors
from quorate.machinery.client import Client
from quorate.machinery.clock import LoopClock
from quorate.machinery.logs import Entry, Level, Logger, LogSettings
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from quorate.machinery.virtual_loop import run_virtual
from quorate.simulator.cluster import Cluster

T = TypeVar("T")
K = TypeVar("K", bound=Object)

MIB = 1024 * 1024
CRDS = all_crds()
SIZE = 16 * MIB
LOWER = 20 * MIB
NAMESPACE = "d8-sds-replicated-volume"


@dataclass
class World:
    """Server, cluster and agents; create it inside a running virtual loop."""

    nodes: tuple[str, ...] = ("n0", "n1", "n2")
    seed: int = 1
    options: AgentOptions = field(default_factory=AgentOptions)
    thin: bool = False
    voter_mode: str = "dynamic"
    clock: LoopClock = field(default_factory=LoopClock)

    def __post_init__(self) -> None:
        self.server = ApiServer(CRDS, clock=self.clock, ids=SeededIds(self.seed))
        self.cluster = Cluster(asyncio.get_running_loop(), self.seed, self.nodes, voter_mode=self.voter_mode)
        self.entries: list[Entry] = []
        self.log = Logger(lambda entry: self.entries.append(entry), self.clock, LogSettings(Level.INFO))
        self.client = Client(self.server.transport(), self.clock, MachineryMetrics(Registry()), user_agent="test")
        self.agents: dict[str, Agent] = {}
        self._tasks: dict[str, asyncio.Task[None]] = {}

    # --- nodes and agents --------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Volume groups, Node objects, agents."""
        await self.client.create(_namespace())
        for index, name in enumerate(self.nodes):
            self.cluster.node(name).lvm.add_group("vg", 400 * MIB)
            kubelet = Kubelet(
                self.client,
                self.clock,
                KubeMachine(name, {"InternalIP": f"10.0.0.{index + 1}"}, zone=f"zone-{index}"),
                namespace=NAMESPACE,
                running=lambda name=name: self.cluster.node(name).running,
                agent_ready=lambda name=name: name in self._tasks,
            )
            self._keep(f"kubelet/{name}", kubelet.run())
            await self.client.create(self.group(name))
            self.start_agent(name)
        await self.eventually(lambda: self._groups_ready(), "volume groups are ready")

    async def stop(self) -> None:
        for name in list(self._tasks):
            await self.stop_task(name)

    def start_agent(self, name: str) -> None:
        agent = Agent(
            self.cluster.host(name),
            self.server.transport(),
            self.options,
            clock=self.clock,
            random=Random(self.seed),
            log=self.log,
            entropy=Random(self.seed).randbytes,
        )
        self.agents[name] = agent
        self._keep(name, agent.run())

    async def crash(self, name: str) -> None:
        """The machine loses power, its agent with it."""
        await self.stop_task(name)
        self.cluster.crash(name)

    def boot(self, name: str) -> None:
        self.cluster.restart(name)
        self.start_agent(name)

    async def stop_task(self, name: str) -> None:
        task = self._tasks.pop(name)
        task.cancel()
        await asyncio.wait((task,))

    def _keep(self, name: str, work: Coroutine[object, object, None]) -> None:
        self._tasks[name] = asyncio.get_running_loop().create_task(work, name=name)

    async def _groups_ready(self) -> bool:
        listing = await self.client.list(LVMVolumeGroup)
        return all(group.status.phase == "Ready" for group in listing.items)

    # --- objects -----------------------------------------------------------------------------------------------

    def group(self, node: str) -> LVMVolumeGroup:
        pools = (ThinPoolSpec(name="pool", size="200Mi"),) if self.thin else ()
        spec = LVMVolumeGroupSpec(
            actual_vg_name_on_the_node="vg", type="Local", local=Local(node_name=node), thin_pools=pools
        )
        return LVMVolumeGroup(metadata=ObjectMeta(name=f"vg-{node}"), spec=spec)

    def volume(self, node: str, name: str, size: int = LOWER) -> LVMLogicalVolume:
        spec = LVMLogicalVolumeSpec(
            actual_lv_name_on_the_node=name,
            type="Thin" if self.thin else "Thick",
            size=Quantity.of(size),
            lvm_volume_group_name=f"vg-{node}",
            thin=Thin(pool_name="pool") if self.thin else None,
        )
        return LVMLogicalVolume(metadata=ObjectMeta(name=name), spec=spec)

    def resource(self, node_id: int, *, diskful: bool = True, **changes: object) -> DRBDResource:
        spec = DRBDResourceSpec(
            node_name=self.nodes[node_id],
            node_id=node_id,
            system_networks=("Internal",),
            quorum=32,
            quorum_minimum_redundancy=32,
            type="Diskful" if diskful else "Diskless",
            size=Quantity.of(SIZE) if diskful else None,
            lvm_logical_volume_name=f"rv-{node_id}-disk" if diskful else "",
        )
        return DRBDResource(metadata=ObjectMeta(name=f"rv-{node_id}"), spec=replace(spec, **changes))

    async def drbdr(self, node_id: int) -> DRBDResource:
        return await self.client.get(DRBDResource, f"rv-{node_id}")

    async def edit(self, node_id: int, **changes: object) -> DRBDResource:
        """Change the spec of a resource, as the replica controller would."""
        found = await self.drbdr(node_id)
        wanted = replace(found, spec=replace(found.spec, **changes))
        return await self.client.patch(found, merge_patch(found, wanted))

    async def peer(self, node_id: int, *, diskful: bool = True, remote_read: bool = True) -> Peer:
        """The peer entry others need for this resource: its addresses come from its status."""
        found = await self.drbdr(node_id)
        return Peer(
            name=found.metadata.name,
            node_id=node_id,
            type="Diskful" if diskful else "Diskless",
            allow_remote_read=remote_read,
            shared_secret=SharedSecret("the secret"),
            shared_secret_alg="SHA256",
            paths=tuple(
                PeerPath(system_network_name=each.system_network_name, address=each.address)
                for each in found.status.addresses
            ),
        )

    async def operate(
        self,
        name: str,
        node_id: int,
        kind: OperationType,
        parameters: CreateNewUUID | None = None,
        annotations: Mapping[str, str] | None = None,
    ) -> DRBDResourceOperation:
        """Create an operation and wait for its end."""
        spec = DRBDResourceOperationSpec(
            node_name=self.nodes[node_id],
            drbd_resource_name=f"rv-{node_id}",
            type=kind,
            create_new_uuid=parameters,
        )
        meta = ObjectMeta(name=name, annotations=FrozenMap(annotations or {}))
        await self.client.create(DRBDResourceOperation(metadata=meta, spec=spec))

        async def ended() -> bool:
            return (await self.client.get(DRBDResourceOperation, name)).status.phase in Phase.TERMINAL

        await self.eventually(ended, f"operation {name} ended")
        return await self.client.get(DRBDResourceOperation, name)

    async def gone(self, kind: type[K], name: str) -> bool:
        try:
            await self.client.get(kind, name)
        except errors.NotFound:
            return True
        return False

    # --- waiting -----------------------------------------------------------------------------------------------

    async def eventually(
        self, holds: Callable[[], Coroutine[object, object, bool]], what: str, *, within: float = 120.0
    ) -> None:
        """Let virtual time pass until something holds."""
        deadline = self.clock.now() + within
        while not await holds():
            for task in self._tasks.values():
                if task.done():
                    task.result()
            if self.clock.now() > deadline:
                raise AssertionError(f"not within {within:g} s: {what}\n{await self.describe()}")
            await asyncio.sleep(0.2)

    async def describe(self) -> str:
        """The state of all resources, and the last log entries, for a failing test."""
        listing = await self.client.list(DRBDResource)
        lines = [f"{each.metadata.name}: {each.status}" for each in listing.items]
        lines += [f"{entry.level.name} {entry.message} {dict(entry.fields)}" for entry in self.entries[-15:]]
        return "\n".join(lines)


def _namespace() -> Namespace:
    return Namespace(metadata=ObjectMeta(name=NAMESPACE))


def run_world(
    story: Callable[[World], Coroutine[object, object, T]],
    *,
    nodes: tuple[str, ...] = ("n0", "n1", "n2"),
    thin: bool = False,
    voter_mode: str = "dynamic",
) -> T:
    """Run a story on a fresh world."""

    async def main() -> T:
        world = World(nodes=nodes, thin=thin, voter_mode=voter_mode)
        await world.start()
        try:
            return await story(world)
        finally:
            await world.stop()

    return run_virtual(main, seed=1)
