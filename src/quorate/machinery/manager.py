"""Runs controllers: the order of starting and stopping.

Start: caches are read completely, then leadership is acquired, then controllers work. A process that waits for the lease
has warm caches. Stop: controllers finish what they are at, events are sent, the lease is released, the watches end.
Losing the lease stops everything at once and raises `LeadershipLost`: the process ends and starts anew. All tasks belong to
one group, so none outlives `run`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from random import Random

from aiohttp import web

from quorate.api.meta import Object
from quorate.machinery import gauges, health
from quorate.machinery.cache import Caches, Scope
from quorate.machinery.client import Client
from quorate.machinery.clock import Clock
from quorate.machinery.controller import AnySpec
from quorate.machinery.events import EventRecorder
from quorate.machinery.executor import Executor, Gate
from quorate.machinery.leader import Election, LeaderElector, LeadershipLost
from quorate.machinery.lifecycle_metrics import LIFECYCLE
from quorate.machinery.logs import Logger
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from quorate.machinery.tasks import OrderedTaskGroup
from quorate.machinery.transport import Transport
from quorate.machinery.worker import Record, Shell, Worker


@dataclass(frozen=True)
class Listen:
    """An address to listen on; port 0 takes a free one."""

    port: int
    host: str = "127.0.0.1"


@dataclass(frozen=True)
class ManagerOptions:
    """How a process runs its controllers."""

    identity: str
    """Name of this process in Events."""
    election: Election | None = None
    """Without one, the process works at once."""
    resync: float = 36_000.0
    """Seconds between two complete looks at every primary object."""
    grace: float = 20.0
    """Seconds that running reconciles have to finish."""
    timeout: float = 30.0
    """Seconds for one API request."""
    scopes: Mapping[type[Object], Scope] = field(default_factory=dict[type[Object], Scope])
    """Kinds of which only a part is cached."""
    listen: tuple[Listen, ...] = ()
    """Where health, readiness, metrics and the log level are served."""


class Manager:
    """See the module docstring."""

    def __init__(
        self,
        transport: Transport,
        specs: Sequence[AnySpec],
        options: ManagerOptions,
        *,
        clock: Clock,
        random: Random,
        entropy: Callable[[int], bytes],
        log: Logger,
        registry: Registry | None = None,
        record: Record | None = None,
        gate: Gate | None = None,
    ) -> None:
        self.registry = registry or Registry()
        self.metrics = MachineryMetrics(self.registry)
        self._options = options
        self._clock = clock
        self._log = log
        self._declare(specs)
        user_agent = f"quorate/{options.identity}"
        self.client = Client(transport, clock, self.metrics, timeout=options.timeout, user_agent=user_agent)
        self.caches = Caches(self.client, clock, self.metrics, log, random, scopes=options.scopes)
        self.events = EventRecorder(self.client, clock, self.metrics, log, options.identity)
        self.elector: LeaderElector | None = None
        if options.election is not None:
            self.elector = LeaderElector(options.election, self.client, clock, self.metrics, log)
        self.executor = Executor(
            self.client,
            self.caches,
            self.events,
            self.registry,
            self.metrics,
            may_write=self.elector.leading if self.elector is not None else lambda: True,
            gate=gate,
        )
        shell = Shell(self.caches, self.executor, self.events, clock, self.metrics, log, entropy, record)
        self.workers = tuple(Worker(spec, shell) for spec in specs)
        for group in (group for spec in specs for group in spec.gauges):
            gauges.register(group, self.registry, self.caches, clock, log)
        self.working = asyncio.Event()
        """Set once the controllers work."""
        self._stopping = asyncio.Event()
        self.ports: tuple[int, ...] = ()
        """Ports that are listened on, in the order of `ManagerOptions.listen`."""

    def missing(self) -> tuple[str, ...]:
        """What readiness waits for."""
        return self.caches.unsynced()

    def state(self) -> str:
        """What the process does, in a word for people."""
        if self.elector is None:
            return "working"
        return "leading" if self.elector.leading() else "standing by"

    def stop(self) -> None:
        """Ask `run` to end gracefully."""
        self._stopping.set()

    async def run(self) -> None:
        """Work until `stop`; raises LeadershipLost when the lease is lost."""
        try:
            async with AsyncExitStack() as stack, OrderedTaskGroup() as group:
                await self._listen(stack)
                background = [
                    group.create_task(self.caches.run(), name="caches"),
                    group.create_task(self._resync(), name="resync"),
                    group.create_task(self.events.run(), name="events"),
                ]
                working: list[asyncio.Task[None]] = []
                start = group.create_task(self._start(group, working, background), name="start")
                await self._stopping.wait()
                await _end(start)
                await self._shut_down(working, background)
        except BaseExceptionGroup as failures:
            lost = _only_leadership_lost(failures)
            if lost is None:
                raise
            raise lost from None

    async def _start(
        self, group: asyncio.TaskGroup, working: list[asyncio.Task[None]], background: list[asyncio.Task[None]]
    ) -> None:
        await self.caches.wait_synced()
        self._log.info("caches are complete")
        if self.elector is not None:
            await self.elector.acquire()
            background.append(group.create_task(self.elector.hold(), name="lease"))
        working.extend(group.create_task(worker.run(), name=worker.spec.name) for worker in self.workers)
        self.working.set()

    async def _shut_down(self, working: list[asyncio.Task[None]], background: list[asyncio.Task[None]]) -> None:
        self._log.info("stopping")
        for worker in self.workers:
            worker.close()
        try:
            async with asyncio.timeout(self._options.grace):
                for task in working:
                    await asyncio.wait((task,))
                await self.events.drained()
        except TimeoutError:
            self._log.warning("reconciles did not finish in time and are cancelled")
        for task in working:
            await _end(task)
        for task in reversed(background):
            await _end(task)
        if self.elector is not None:
            await self.elector.release()
        self._log.info("stopped")

    async def _listen(self, stack: AsyncExitStack) -> None:
        """Endpoints come first and go last, so that probes see a process that starts or stops as alive."""

        def app() -> web.Application:
            return health.application(self.registry, self.missing, self._log.settings, state=self.state)

        self.ports = tuple(
            [
                await stack.enter_async_context(health.serve(app(), listen.port, listen.host))
                for listen in self._options.listen
            ]
        )

    async def _resync(self) -> None:
        while True:
            await self._clock.sleep(self._options.resync)
            self.caches.resync()

    def _declare(self, specs: Iterable[AnySpec]) -> None:
        for metric in LIFECYCLE:
            self.registry.declare(metric)
        for spec in specs:
            for metric in spec.metrics:
                self.registry.declare(metric)


async def _end(task: asyncio.Task[None]) -> None:
    """Cancel a task and wait for its end; its failure is the group's business."""
    task.cancel()
    await asyncio.wait((task,))


def _only_leadership_lost(failures: BaseExceptionGroup[BaseException]) -> LeadershipLost | None:
    matching, others = failures.split(LeadershipLost)
    inner: BaseException | None = matching if others is None else None
    while isinstance(inner, BaseExceptionGroup):
        inner = inner.exceptions[0]
    return inner if isinstance(inner, LeadershipLost) else None
