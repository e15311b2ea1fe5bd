"""The event stream of the kernel: a signal that something about a resource changed, never a source of state.

Guarantees:

* the stream is restarted whenever it ends (1 s, doubling to 30 s; from the beginning after a complete dump);
* each start begins with a complete dump, after which every resource seen, and every one known before and not seen, is
  looked at;
* gaps are noticed: a change or a removal of something unknown, a creation of something known, the end of a resource
  whose parts did not end, a line that cannot be read; each leads to a full rescan;
* lost lines that leave no trace are found by a periodic rescan of all resources, which costs one command and wakes only
  what differs from the last time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing, suppress

from quorate.agent import commands
from quorate.agent.addresses import Ports
from quorate.agent.broker import Broker, CommandUnavailable
from quorate.agent.observe import PROC_DRBD
from quorate.agent.parsers import ParseError
from quorate.agent.parsers.events import Event, parse_endpoint, parse_event
from quorate.agent.parsers.status import ResourceStatus, parse_status
from quorate.machinery.clock import Clock
from quorate.machinery.logs import Logger

FIRST_DELAY = 1.0
LONGEST_DELAY = 30.0
RESCAN = 60.0
PATIENCE = 30.0
"""Seconds without a stream before the agent is not ready: an ordinary restart must not make its node ineligible."""
SPACING = 1.0
"""Seconds between two rescans at least."""
ALL = "all resources"
IDENTITY = {
    "resource": (),
    "device": ("volume",),
    "connection": ("peer-node-id",),
    "peer-device": ("peer-node-id", "volume"),
    "path": ("peer-node-id", "local", "peer"),
}


class Mirror:
    """Which objects the stream has told of; only to notice gaps."""

    def __init__(self) -> None:
        self._known: dict[str, set[tuple[str, ...]]] = {}

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._known))

    def clear(self) -> None:
        self._known.clear()

    def apply(self, event: Event) -> bool:
        """Take a live line over; False when it does not fit what was told before: lines are missing."""
        name = event.resource
        if event.object not in IDENTITY:
            return True
        if event.verb == "rename":
            self._known[event.get("new_name")] = self._known.pop(name, set())
            return True
        key = (event.object, *(event.get(part) for part in IDENTITY[event.object]))
        parts = self._known.get(name)
        known = parts is not None and key in parts
        match event.verb:
            case "exists" | "create":
                self._known.setdefault(name, set()).add(key)
                return event.verb == "exists" or (not known and (parts is not None or event.object == "resource"))
            case "change":
                # Learned now: one missing creation is one gap, not one per change.
                self._known.setdefault(name, set()).add(key)
                return known
            case "destroy":
                if parts is None or not known:
                    return False
                parts.discard(key)
                if event.object != "resource":
                    return True
                del self._known[name]
                return not parts
            case _:
                return True


class Listener:
    """Follows the stream and wakes the controllers."""

    def __init__(
        self,
        broker: Broker,
        ports: Ports,
        clock: Clock,
        log: Logger,
        wake: Callable[[str], None],
        *,
        prepare: Callable[[], Awaitable[object]] | None = None,
        rescan: float = RESCAN,
    ) -> None:
        self._broker = broker
        self._ports = ports
        self._clock = clock
        self._log = log
        self._wake = wake
        self._prepare = prepare
        self._rescan_interval = rescan
        self._mirror = Mirror()
        self._last: dict[str, ResourceStatus] = {}
        self._wanted = asyncio.Event()
        self._down_since: float | None = None
        self.gaps = 0
        self.restarts = 0
        self.ready = asyncio.Event()
        """Set after the first complete dump: the ports the kernel uses are known."""

    async def run(self) -> None:
        """Follow the stream until cancelled."""
        delay = FIRST_DELAY
        self._down_since = self._clock.monotonic()
        while True:
            if self._prepare is not None:
                # The stream ends with the module: whoever loads it again, the helper must be off.
                await self._prepare()
            complete = await self._follow() if self._module_loaded() else False
            if complete:
                delay = FIRST_DELAY
            elif not self._module_loaded():
                # Without the module there are no resources and no ports in use; drbdsetup would load it.
                self.ready.set()
            self.restarts += 1
            await self._clock.sleep(delay)
            delay = min(delay * 2, LONGEST_DELAY)

    def missing(self) -> tuple[str, ...]:
        """What readiness waits for: the module, and a stream that has not been down for long."""
        if not self._module_loaded():
            return ("DRBD module",)
        since = self._down_since
        return ("event stream",) if since is not None and self._clock.monotonic() - since > PATIENCE else ()

    @property
    def following(self) -> bool:
        """Whether the stream stands and its dump was complete."""
        return self._down_since is None and self.ready.is_set()

    async def run_rescans(self) -> None:
        """Compare all resources with the last look from time to time and after gaps, until cancelled."""
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(self._rescan_interval):
                    await self._wanted.wait()
            self._wanted.clear()
            await self.rescan()
            await self._clock.sleep(SPACING)

    async def rescan(self) -> None:
        """Wake what differs from the last look; one command for the whole node."""
        if not self._module_loaded():
            return
        try:
            result = await self._broker.run(ALL, commands.status_of_all())
            found = {status.name: status for status in parse_status(result.stdout)} if result.exit_code == 0 else None
        except (CommandUnavailable, ParseError) as error:
            self._log.warning("rescan failed", error=str(error))
            return
        if found is None:
            self._log.warning("rescan failed", error=commands.error_text(result))
            return
        for name in sorted({*found, *self._last}):
            if found.get(name) != self._last.get(name):
                self._wake(name)
        self._last = found

    async def _follow(self) -> bool:
        """One life of the stream; True when its dump was complete."""
        before = self._mirror.names()
        self._mirror.clear()
        self._ports.forget_kernel()
        complete = False
        try:
            async with aclosing(self._lines()) as lines:
                async for line in lines:
                    complete = self._take(line, complete, before)
        except OSError as error:
            self._log.warning("event stream failed", error=str(error))
        if self._down_since is None:
            self._down_since = self._clock.monotonic()
        self._log.info("event stream ended", complete=complete)
        return complete

    async def _lines(self) -> AsyncGenerator[str, None]:
        async for line in self._broker.host.lines(commands.EVENTS):
            yield line

    def _take(self, line: str, complete: bool, before: tuple[str, ...]) -> bool:
        event = parse_event(line)
        if event is None:
            self._log.warning("event line cannot be read", line=line[:200])
            self._gap("a line that cannot be read")
            return complete
        if event.ends_dump:
            self.ready.set()
            self._down_since = None
            for name in sorted({*self._mirror.names(), *before}):
                self._wake(name)
            return True
        fits = self._mirror.apply(event)
        self._note_ports(event)
        if complete:
            self._wake(event.resource)
            if event.verb == "rename":
                self._wake(event.get("new_name"))
            if not fits:
                self._gap(f"{event.verb} {event.object} of {event.resource} does not fit")
        return complete

    def _gap(self, what: str) -> None:
        self.gaps += 1
        self._log.warning("events are missing, looking at everything", what=what)
        self._wanted.set()

    def _note_ports(self, event: Event) -> None:
        if event.object == "path" and event.verb in ("exists", "create"):
            local = parse_endpoint(event.get("local"))
            if local is not None:
                self._ports.path_appeared(event.resource, *local)
        elif event.object == "resource" and event.verb == "destroy":
            self._ports.resource_gone(event.resource)

    def _module_loaded(self) -> bool:
        return self._broker.host.read_text(PROC_DRBD) is not None
