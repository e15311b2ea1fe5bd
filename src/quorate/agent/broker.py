"""All programs of a node run through one broker.

Guarantees:

* at most one command of a resource is in flight; others of the same resource wait for it;
* a command that did not end in time is *stranded*: it may hang in the kernel and end any moment, so nothing else is
  started for its resource (and never the same command again) until it ended;
* stranded processes are counted; when there are too many, or too many commands in a row hung, the breaker opens: for a
  while no command is started on this node at all, callers get `NodeWedged` at once, and then one probe is let through;
* every command is logged with its words, secrets hidden; stdout and stderr stay apart.

The broker waits itself and keeps the call of a hung program, instead of asking the host to give up on it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from quorate.agent.commands import redact
from quorate.agent.host import CommandResult, Host
from quorate.machinery.clock import Clock
from quorate.machinery.logs import Logger

TIMEOUT = 10.0
GRACE = 3.0
"""Extra time for a program whose end is stuck in a pipe."""
PATIENCE = 60.0
"""How long a host that cannot see its programs takes a hung one for running; a real host waits for its end."""


class CommandUnavailable(Exception):
    """The command was not run, or nobody knows how it ended."""


class Hung(CommandUnavailable):
    """The command did not end in time and may still be running."""


class Stranded(CommandUnavailable):
    """An earlier command of the same resource is still running; nothing is started beside it."""


class NodeWedged(CommandUnavailable):
    """Too many commands hang on this node; the breaker is open."""


@dataclass(frozen=True, slots=True)
class BrokerState:
    """What the conditions and metrics say about the broker."""

    stranded: int
    started: int
    hung: int
    open_until: float
    """Monotonic time until which the breaker is open; 0 = closed."""


@dataclass(frozen=True, slots=True)
class Breaker:
    """When the broker gives up on a node for a while."""

    consecutive: int = 5
    stranded: int = 20
    pause: float = 30.0


@dataclass(frozen=True, slots=True)
class _StrandedCommand:
    argv: tuple[str, ...]
    task: asyncio.Task[CommandResult]


class Broker:
    """See the module docstring."""

    def __init__(
        self, host: Host, clock: Clock, log: Logger, *, timeout: float = TIMEOUT, breaker: Breaker | None = None
    ) -> None:
        self.host = host
        self._log = log
        self._clock = clock
        self._timeout = timeout
        self._breaker = breaker or Breaker()
        self._locks: dict[str, asyncio.Lock] = {}
        self._stranded: dict[str, _StrandedCommand] = {}
        self._started = 0
        self._hung = 0
        self._in_a_row = 0
        self._open_until = 0.0

    def state(self) -> BrokerState:
        return BrokerState(len(self._stranded), self._started, self._hung, self._open_until)

    async def run(self, resource: str, argv: Sequence[str]) -> CommandResult:
        """Run a command on behalf of a resource; `CommandUnavailable` when its outcome is not known."""
        lock = self._locks.setdefault(resource, asyncio.Lock())
        async with lock:
            self._refuse(resource)
            return await self._start(resource, tuple(argv))

    def forget(self, resource: str) -> None:
        """The resource is gone; its lock is not needed any more."""
        lock = self._locks.get(resource)
        if lock is not None and not lock.locked() and resource not in self._stranded:
            del self._locks[resource]

    async def close(self) -> None:
        """End waiting for stranded commands; the programs themselves cannot be ended."""
        tasks = [command.task for command in self._stranded.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _refuse(self, resource: str) -> None:
        """Before the breaker: a resource with a hung command waits for that one."""
        if resource in self._stranded:
            raise Stranded(f"still running since it hung: {_words(self._stranded[resource].argv)}")
        if self._open_until > self._clock.monotonic():
            raise NodeWedged(
                f"commands hang on this node ({len(self._stranded)} still running); waiting before the next attempt"
            )

    async def _start(self, resource: str, argv: tuple[str, ...]) -> CommandResult:
        self._started += 1
        call = asyncio.ensure_future(self.host.run(argv, timeout=PATIENCE))
        try:
            done, _ = await asyncio.wait({call}, timeout=self._timeout + GRACE)
        except asyncio.CancelledError:
            # The program runs on; whoever comes next must not start a second one beside it.
            self._strand(resource, argv, call)
            raise
        if not done:
            self._strand(resource, argv, call)
            self._count_hang(argv)
            raise Hung(f"{_words(argv)} did not end within {self._timeout:g} s")
        try:
            result = call.result()
        except TimeoutError:
            self._count_hang(argv)
            raise Hung(f"{_words(argv)} did not end within {self._timeout:g} s") from None
        self._in_a_row = 0
        self._open_until = 0.0
        self._log.debug("command", argv=_words(argv), exit_code=result.exit_code)
        return result

    def _strand(self, resource: str, argv: tuple[str, ...], call: asyncio.Future[CommandResult]) -> None:
        async def wait() -> CommandResult:
            return await call

        task = asyncio.ensure_future(wait())
        self._stranded[resource] = _StrandedCommand(argv, task)
        task.add_done_callback(lambda finished: self._ended(resource, finished))

    def _ended(self, resource: str, task: asyncio.Task[CommandResult]) -> None:
        if not task.cancelled():
            task.exception()
        current = self._stranded.get(resource)
        if current is not None and current.task is task:
            del self._stranded[resource]

    def _count_hang(self, argv: tuple[str, ...]) -> None:
        self._hung += 1
        self._in_a_row += 1
        self._log.warning("command hangs", argv=_words(argv), stranded=len(self._stranded))
        if self._in_a_row >= self._breaker.consecutive or len(self._stranded) >= self._breaker.stranded:
            self._open_until = self._clock.monotonic() + self._breaker.pause
            # After the pause one command is let through; if it hangs as well, the breaker opens again at once.
            self._in_a_row = self._breaker.consecutive - 1


def _words(argv: Sequence[str]) -> str:
    return " ".join(redact(argv))
