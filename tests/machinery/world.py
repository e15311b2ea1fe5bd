"""A world for the tests: the embedded API server and any number of managers on virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from random import Random
from typing import TypeVar

from quorate.api.crd import all_crds
from quorate.local.api_server import ApiServer
from quorate.local.ports import SeededIds
from quorate.machinery.client import Client
from quorate.machinery.clock import LoopClock
from quorate.machinery.controller import AnySpec
from quorate.machinery.executor import Gate
from quorate.machinery.faults import CALM, FaultPlan, FaultTransport
from quorate.machinery.leader import Election
from quorate.machinery.logs import Entry, Level, Logger, LogSettings
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.manager import Manager, ManagerOptions
from quorate.machinery.metrics import Registry
from quorate.machinery.transport import Response, Transport
from quorate.machinery.virtual_loop import run_virtual
from quorate.machinery.worker import Record

T = TypeVar("T")
CRDS = all_crds()


class Crash(BaseException):
    """Kills a manager like a killed process: nothing catches it."""


@dataclass(frozen=True)
class Exchange:
    """One request as the server saw it."""

    time: float
    sender: str
    method: str
    path: str
    status: int
    body: bytes = b""


class Recorder:
    """A transport that keeps the history of requests."""

    def __init__(self, inner: Transport, clock: LoopClock, history: list[Exchange]) -> None:
        self._inner = inner
        self._clock = clock
        self._history = history

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        answer = await self._inner.request(method, path, query=query, headers=headers, body=body)
        sender = headers.get("user-agent", "")
        self._history.append(Exchange(self._clock.now(), sender, method, path, answer.status, body))
        return answer

    def stream(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        sender = headers.get("user-agent", "")
        version = query.get("resourceVersion", "").encode()
        self._history.append(Exchange(self._clock.now(), sender, "WATCH", path, 0, version))
        return self._inner.stream(method, path, query=query, headers=headers)


@dataclass
class World:
    """Server, clock and history; create it inside a running (virtual) loop."""

    seed: int = 0
    history_limit: int = 4096
    clock: LoopClock = field(default_factory=LoopClock)
    history: list[Exchange] = field(default_factory=list[Exchange])
    entries: list[Entry] = field(default_factory=list[Entry])

    def __post_init__(self) -> None:
        self.random = Random(self.seed)
        self.server = ApiServer(CRDS, clock=self.clock, ids=SeededIds(self.seed), history=self.history_limit)
        self.client = Client(self.transport(), self.clock, MachineryMetrics(Registry()), user_agent="test")
        self.log = Logger(self.entries.append, self.clock, LogSettings(Level.DEBUG))

    def transport(self, plan: FaultPlan = CALM) -> FaultTransport:
        """A way to the server with its own faults."""
        recorder = Recorder(self.server.transport(), self.clock, self.history)
        return FaultTransport(recorder, Random(self.random.random()), self.clock, plan)

    def manager(
        self,
        *specs: AnySpec,
        name: str = "one",
        transport: Transport | None = None,
        election: bool = False,
        gate: Gate | None = None,
        record: Record | None = None,
        options: ManagerOptions | None = None,
    ) -> Manager:
        """A process with these controllers."""
        elect = Election("toy", "kube-system", name) if election else None
        random = Random(self.random.random())
        return Manager(
            transport or self.transport(),
            specs,
            options or ManagerOptions(identity=name, election=elect),
            clock=self.clock,
            random=random,
            entropy=random.randbytes,
            log=self.log.bind(process=name),
            gate=gate,
            record=record,
        )

    def writes(self) -> Sequence[Exchange]:
        """Successful changes so far, without leases and events."""
        return [
            exchange
            for exchange in self.history
            if exchange.method in ("POST", "PATCH", "DELETE")
            and exchange.status < 300
            and "/leases" not in exchange.path
            and "/events" not in exchange.path
        ]

    async def until(self, condition: Callable[[], bool], *, within: float = 600.0, step: float = 0.1) -> None:
        """Wait in virtual time until `condition` holds."""
        deadline = self.clock.now() + within
        while not condition():
            assert self.clock.now() < deadline, f"not within {within:g} s"
            await self.clock.sleep(step)


@asynccontextmanager
async def running(manager: Manager) -> AsyncGenerator[Manager]:
    """Run a manager while the block runs, then stop it gracefully."""
    task = asyncio.create_task(manager.run(), name="manager")
    try:
        yield manager
    finally:
        manager.stop()
        await task


def virtually(main: Callable[[World], Coroutine[object, object, T]], *, seed: int = 0, history: int = 4096) -> T:
    """Run a test body in a fresh world on virtual time."""

    async def body() -> T:
        return await main(World(seed, history))

    return run_virtual(body, seed=seed)
