"""The agent of one node, assembled: module, broker, event listener, controllers.

Start: the module is loaded with its helper off, then the event stream is followed until its first dump is complete (the
ports in use are known then), then the controllers work. All tasks belong to one group; none outlives `run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random

from quorate.agent import gauges, node_report
from quorate.agent.addresses import Ports
from quorate.agent.broker import Breaker, Broker
from quorate.agent.converge import Converger
from quorate.agent.host import Host
from quorate.agent.intended import PREFIX, Settings
from quorate.agent.kernel import KernelFacts, prepare_module
from quorate.agent.listener import RESCAN, Listener
from quorate.agent.lvm import group as lvm_group
from quorate.agent.lvm import volume as lvm_volume
from quorate.agent.lvm.answers import LvmAnswers
from quorate.agent.operation import controller as operations
from quorate.agent.operation.execute import OperationAnswers
from quorate.agent.patience import Patience
from quorate.agent.resource import controller as resources
from quorate.agent.resource.answers import ResourceAnswers
from quorate.api.drbd_resource import DRBDResource
from quorate.api.drbd_resource_operation import DRBDResourceOperation
from quorate.api.indexes import DRBDR_BY_NODE
from quorate.api.node import Node
from quorate.machinery.cache import Scope
from quorate.machinery.clock import Clock
from quorate.machinery.controller import AnySpec
from quorate.machinery.executor import Gate
from quorate.machinery.logs import Logger
from quorate.machinery.manager import Manager, ManagerOptions
from quorate.machinery.metrics import MetricSpec, Registry, Sample
from quorate.machinery.queue import Priority
from quorate.machinery.tasks import OrderedTaskGroup
from quorate.machinery.transport import Transport

FIRST_DUMP = 30.0
"""Seconds to wait for the first complete dump before working without it."""
BROKER_METRIC = MetricSpec(
    "sds_agent_commands", "gauge", "Host commands: started, hung, and stranded ones that still run.", ("state",)
)
LISTENER_METRIC = MetricSpec(
    "sds_agent_event_stream",
    "gauge",
    "Event stream: whether it stands (`following`), restarts and gaps noticed.",
    ("what",),
)


DEFAULT_SETTINGS = Settings()
DEFAULT_BREAKER = Breaker()


@dataclass(frozen=True, slots=True)
class AgentOptions:
    """How an agent runs."""

    settings: Settings = DEFAULT_SETTINGS
    manage_lvm: bool = True
    """Off where an LVM operator owns LVMLogicalVolume and LVMVolumeGroup."""
    rescan: float = RESCAN
    command_timeout: float = 10.0
    breaker: Breaker = DEFAULT_BREAKER
    resync: float = 36_000.0


class Agent:
    """See the module docstring."""

    def __init__(
        self,
        host: Host,
        transport: Transport,
        options: AgentOptions,
        *,
        clock: Clock,
        random: Random,
        log: Logger,
        entropy: Callable[[int], bytes],
        registry: Registry | None = None,
        gate: Gate | None = None,
    ) -> None:
        self.node_name = host.name
        self.registry = registry or Registry()
        self.manager: Manager | None = None
        self._stopped = False
        self._transport = transport
        self._options = options
        self._clock = clock
        self._random = random
        self._log = log.bind(node=host.name)
        self._entropy = entropy
        self._gate = gate
        settings = options.settings
        self.broker = Broker(host, clock, self._log, timeout=options.command_timeout, breaker=options.breaker)
        self.ports = Ports(host, clock, settings.minimum_port, settings.maximum_port)
        self.listener = Listener(
            self.broker, self.ports, clock, self._log, self._wake, prepare=self._prepare, rescan=options.rescan
        )
        self._collect_metrics()

    async def run(self) -> None:
        """Work until cancelled, or until `stop`."""
        facts = await prepare_module(self.broker)
        if facts is None:
            self._log.error("the DRBD module is not loaded and cannot be loaded")
        settings = self._options.settings
        if facts is not None:
            settings = replace(settings, voter_mode=facts.voter_mode, peer_tiebreaker=facts.peer_tiebreaker)
        self.manager = self._build(facts, settings)
        try:
            async with OrderedTaskGroup() as group:
                background = [group.create_task(self.listener.run(), name=f"{self.node_name}/events")]
                await self._first_dump()
                rescans = self.listener.run_rescans()
                background.append(group.create_task(rescans, name=f"{self.node_name}/rescans"))
                if not self._stopped:
                    await self.manager.run()
                for task in background:
                    task.cancel()
        finally:
            await self.broker.close()

    def stop(self) -> None:
        """Ask `run` to end gracefully: running reconciles are finished."""
        self._stopped = True
        if self.manager is not None:
            self.manager.stop()

    def missing(self) -> tuple[str, ...]:
        """What readiness waits for."""
        return (*self.manager.missing(), *self.listener.missing()) if self.manager else ("agent",)

    async def _prepare(self) -> None:
        await prepare_module(self.broker)

    async def _first_dump(self) -> None:
        try:
            async with asyncio.timeout(FIRST_DUMP):
                await self.listener.ready.wait()
        except TimeoutError:
            self._log.warning("no complete event dump yet; the kernel's ports are not known")

    def _build(self, facts: KernelFacts | None, settings: Settings) -> Manager:
        converger = Converger(self.broker, Patience(self._clock), settings, self._log)
        resource_answers = ResourceAnswers(self.broker, converger, self.ports)
        operation_answers = OperationAnswers(self.broker)
        specs: list[AnySpec] = [
            replace(resources.spec(self.node_name, settings, resource_answers), gauges=(gauges.GAUGES,)),
            operations.spec(self.node_name, operation_answers),
            node_report.spec(self.node_name, facts),
        ]
        if self._options.manage_lvm:
            lvm_answers = LvmAnswers(self.broker)
            specs += [lvm_volume.spec(self.node_name, lvm_answers), lvm_group.spec(self.node_name, lvm_answers)]
        ours = Scope(field_selector=f"spec.nodeName={self.node_name}")
        manager = Manager(
            self._transport,
            specs,
            ManagerOptions(
                identity=f"agent/{self.node_name}",
                resync=self._options.resync,
                scopes={
                    DRBDResource: ours,
                    DRBDResourceOperation: ours,
                    Node: Scope(field_selector=f"metadata.name={self.node_name}"),
                },
            ),
            clock=self._clock,
            random=self._random,
            entropy=self._entropy,
            log=self._log,
            registry=self.registry,
            gate=self._gate,
        )
        resource_answers.client = manager.client
        operation_answers.client = manager.client
        return manager

    def _wake(self, kernel_name: str) -> None:
        """Something about a resource in the kernel changed: look at its object, or at what is left of it."""
        manager = self.manager
        if manager is None:
            return
        queue = manager.workers[0].queue
        if kernel_name.startswith(PREFIX):
            queue.add(kernel_name.removeprefix(PREFIX), priority=Priority.HIGH)
            return
        # Any other name is foreign and left alone, unless an object adopts it.
        for resource in manager.caches.by_index(DRBDResource, DRBDR_BY_NODE, self.node_name):
            if resource.spec.actual_name_on_the_node == kernel_name:
                queue.add(resource.metadata.name, priority=Priority.HIGH)

    def _collect_metrics(self) -> None:
        def commands() -> list[Sample]:
            state = self.broker.state()
            values = {"started": state.started, "hung": state.hung, "stranded": state.stranded}
            return [Sample((name,), float(value)) for name, value in values.items()]

        def stream() -> list[Sample]:
            return [
                Sample(("following",), float(self.listener.following)),
                Sample(("restarts",), float(self.listener.restarts)),
                Sample(("gaps",), float(self.listener.gaps)),
            ]

        self.registry.collect(BROKER_METRIC, commands)
        self.registry.collect(LISTENER_METRIC, stream)
