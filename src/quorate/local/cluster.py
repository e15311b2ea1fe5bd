"""The one-process cluster: simulated nodes with the real agents, the real controllers, one API server.

Nothing in here decides anything. It starts the same parts that run in production, wired to the embedded API server and
to simulated hosts, and offers the faults that a person or a test wants to cause. The parts share one event loop, which
may run on virtual time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from random import Random

from quorate.agent.agent import Agent, AgentOptions
from quorate.agent.host import Host
from quorate.api.lvm_volume_group import Local, LVMVolumeGroup, LVMVolumeGroupSpec, ThinPoolSpec
from quorate.api.meta import ObjectMeta
from quorate.api.namespace import Namespace
from quorate.controllers.process import ProcessSettings, controller_specs
from quorate.extender.book import CapacityBook
from quorate.extender.client import InProcessExtender
from quorate.local.kept_host import KeptHost
from quorate.local.kubelet import Kubelet, Machine
from quorate.local.shape import NAMESPACE, THIN_POOL, Shape
from quorate.machinery import errors
from quorate.machinery.client import Client
from quorate.machinery.clock import Clock
from quorate.machinery.controller import AnySpec
from quorate.machinery.executor import Gate
from quorate.machinery.logs import Logger
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.manager import Manager, ManagerOptions
from quorate.machinery.metrics import Registry
from quorate.machinery.transport import Transport
from quorate.machinery.worker import Record
from quorate.simulator.cluster import Cluster
from quorate.simulator.persistence import DiskJournal
from quorate.simulator.scheduler import Scheduler

INTERNAL = "InternalIP"
THIN_SHARE = "90%"


@dataclass
class RunningNode:
    """A simulated machine and what runs on it."""

    name: str
    index: int
    agent: Agent | None = None
    tasks: list[asyncio.Task[None]] = field(default_factory=list["asyncio.Task[None]"])
    agent_stopped: bool = False
    """Whether somebody stopped the agent; it then stays down until it is started again."""


@dataclass(frozen=True)
class Wiring:
    """Everything that a local cluster takes from outside."""

    transport: Transport
    clock: Clock
    scheduler: Scheduler
    """Time of the simulated kernel; may run faster than the clock."""
    log: Logger
    seed: int = 0
    entropy: Callable[[int], bytes] | None = None
    record: Record | None = None
    gate: Gate | None = None
    own_transport: Transport | None = None
    """Transport of the kubelets and of whoever drives the cluster, when faults shall not touch them."""
    agent_transport: Callable[[str], Transport] | None = None
    """Transport of one node's agent, when it differs from the controllers' (faults)."""
    disks: DiskJournal | None = None
    """Keeps the disks of the machines; without it they live as long as the process."""


class LocalCluster:
    """See the module docstring. `start` returns when everything runs; `stop` ends it."""

    def __init__(self, shape: Shape, wiring: Wiring) -> None:
        self.shape = shape
        self.wiring = wiring
        self.simulator = Cluster(wiring.scheduler, seed=wiring.seed, voter_mode=shape.voter_mode)
        self.registry = Registry()
        own = wiring.own_transport or wiring.transport
        self.client = Client(own, wiring.clock, MachineryMetrics(Registry()), user_agent="quorate/local")
        self.writer = Client(
            wiring.transport, wiring.clock, MachineryMetrics(Registry()), user_agent="quorate/controller"
        )
        self.book = CapacityBook()
        self.nodes: dict[str, RunningNode] = {}
        self.manager: Manager | None = None
        self._controllers: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._random = Random(wiring.seed)
        self._entropy = wiring.entropy or self._random.randbytes
        self._failed = asyncio.Event()
        self._failure = ""

    async def start(self) -> None:
        """Create the nodes and start every part."""
        await self._create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
        names = self.shape.node_names()
        for index, name in enumerate(names):
            self._add_machine(name, index)
        disks = self.wiring.disks
        if disks is not None:
            disks.on_failure = lambda error: self._fail(f"the disks cannot be kept: {error.strerror or error}")
            disks.start()
        for index, name in enumerate(names):
            await self._join(name, index, self.shape.zone_of(index))
        self.start_controllers()

    async def stop(self) -> None:
        """End every part, the controllers gracefully."""
        await self.stop_controllers()
        tasks = [*self._tasks, *(task for node in self.nodes.values() for task in node.tasks)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._tasks.clear()

    def ready(self) -> bool:
        """Whether the controllers and every agent that should run see the whole cluster."""
        agents = (
            node for node in self.nodes.values() if not node.agent_stopped and self.simulator.nodes[node.name].running
        )
        return (
            self.manager is not None and not self.manager.missing() and all(self._agent_ready(n.name) for n in agents)
        )

    async def wait_failed(self) -> str:
        """Return once a part has ended by an error of its own, with a sentence about it."""
        await self._failed.wait()
        return self._failure

    def _spawn(self, work: Coroutine[object, object, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(lambda ended: self._ended(ended, name))
        return task

    def _ended(self, task: asyncio.Task[None], name: str) -> None:
        """A part that ends by itself is a defect; it is told, not restarted."""
        error = None if task.cancelled() else task.exception()
        if error is not None:
            self.wiring.log.error("a part of the cluster has stopped", part=name, error=repr(error))
            self._fail(f"{name} has stopped: {error!r}")

    def _fail(self, why: str) -> None:
        self._failure = self._failure or why
        self._failed.set()

    # Controllers

    def start_controllers(self) -> None:
        """Start the controller process; the extender's book follows its caches."""
        self.book = CapacityBook()
        self.manager = Manager(
            self.wiring.transport,
            self._specs(),
            ManagerOptions(identity="controller"),
            clock=self.wiring.clock,
            random=Random(self._random.random()),
            entropy=self._entropy,
            log=self.wiring.log,
            registry=self.registry,
            record=self.wiring.record,
            gate=self.wiring.gate,
        )
        self.book.follow(self.manager.caches)
        self._controllers = self._spawn(self.manager.run(), "controllers")

    def _specs(self) -> tuple[AnySpec, ...]:
        settings = ProcessSettings(namespace=NAMESPACE)
        extender = InProcessExtender(self.book, self.wiring.clock)
        return controller_specs(settings, self.wiring.clock, extender, self.writer)

    async def stop_controllers(self) -> None:
        """Let the controllers finish what they are at, then end them."""
        if self.manager is not None:
            self.manager.stop()
            await self._controllers_ended()

    def controllers_ended(self) -> bool:
        """Whether the controller process died by itself."""
        return self._controllers is not None and self._controllers.done()

    async def kill_controllers(self) -> None:
        """End the controllers at once, wherever they are."""
        if self._controllers is not None:
            self._controllers.cancel()
        await self._controllers_ended()

    async def _controllers_ended(self) -> None:
        if self._controllers is not None:
            await asyncio.gather(self._controllers, return_exceptions=True)
        self._controllers = None
        self.manager = None
        self.registry = Registry()

    # Nodes

    async def add_node(self, name: str, index: int, *, zone: str | None = None) -> None:
        """A new machine with its volume groups, its kubelet and its agent."""
        self._add_machine(name, index)
        await self._join(name, index, self.shape.zone_of(index) if zone is None else zone)

    def _add_machine(self, name: str, index: int) -> None:
        """The machine itself, with the disks it had in an earlier run."""
        machine = self.simulator.add_node(name, {"internal": self.shape.address_of(index)})
        if self.wiring.disks is not None:
            self.wiring.disks.adopt(name, machine.lvm)
        for group in self.shape.groups:
            if group not in machine.lvm.state.groups:
                machine.lvm.add_group(group, self.shape.group_size)
        self.nodes[name] = RunningNode(name, index)

    async def _join(self, name: str, index: int, zone: str) -> None:
        """The machine becomes a node of the cluster."""
        kubelet = Kubelet(
            self.client,
            self.wiring.clock,
            Machine(name, {INTERNAL: self.shape.address_of(index)}, zone),
            namespace=NAMESPACE,
            running=lambda: self.simulator.nodes[name].running,
            agent_ready=lambda: self._agent_ready(name),
        )
        await kubelet.sync()
        for group in self.shape.groups:
            await self._create(self._group_object(group, name))
        self._tasks.append(self._spawn(kubelet.run(), f"{name}/kubelet"))
        self.start_agent(name)

    def _group_object(self, group: str, node: str) -> LVMVolumeGroup:
        pools = (ThinPoolSpec(name=THIN_POOL, size=THIN_SHARE),) if self.shape.thin else ()
        return LVMVolumeGroup(
            metadata=ObjectMeta(name=self.shape.group_object_name(group, node)),
            spec=LVMVolumeGroupSpec(
                actual_vg_name_on_the_node=group, type="Local", local=Local(node_name=node), thin_pools=pools
            ),
        )

    async def _create(self, obj: Namespace | LVMVolumeGroup) -> None:
        try:
            await self.client.create(obj)
        except errors.AlreadyExists:
            return

    def _agent_ready(self, name: str) -> bool:
        agent = self.nodes[name].agent
        return agent is not None and not agent.missing()

    # Faults

    def start_agent(self, name: str) -> None:
        """Start the agent of a node."""
        node = self.nodes[name]
        node.agent_stopped = False
        made = self.wiring.agent_transport
        node.agent = Agent(
            self._host(name),
            made(name) if made is not None else self.wiring.transport,
            AgentOptions(),
            clock=self.wiring.clock,
            random=Random(self._random.random()),
            log=self.wiring.log,
            entropy=self._entropy,
        )
        node.tasks = [self._spawn(node.agent.run(), f"{name}/agent")]

    def _host(self, name: str) -> Host:
        host = self.simulator.host(name)
        return host if self.wiring.disks is None else KeptHost(host, self.wiring.disks.commit)

    async def stop_agent(self, name: str) -> None:
        """Kill the agent of a node; the kernel runs on."""
        node = self.nodes[name]
        node.agent_stopped = True
        await self._end_agent(node)

    async def _end_agent(self, node: RunningNode) -> None:
        node.agent = None
        for task in node.tasks:
            task.cancel()
        await asyncio.gather(*node.tasks, return_exceptions=True)
        node.tasks = []

    async def crash_node(self, name: str) -> None:
        """Power off a machine: kernel and agent are gone, disks and objects stay."""
        self.simulator.crash(name)
        await self._end_agent(self.nodes[name])

    def restart_node(self, name: str) -> None:
        """Power a machine on again; its agent starts with it unless somebody stopped it."""
        self.simulator.restart(name)
        if not self.nodes[name].agent_stopped:
            self.start_agent(name)
