"""The extender as a process of its own: caches of volume groups and logical volumes, the book, the HTTP server.

It listens only once both kinds are known completely: an answer from half a picture would promise room that is not there.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from contextlib import AsyncExitStack
from dataclasses import dataclass
from random import Random

from aiohttp import web

from quorate.extender.book import CapacityBook
from quorate.extender.scoring import DEFAULT_DIVISOR
from quorate.extender.server import application
from quorate.machinery import health
from quorate.machinery.cache import Caches
from quorate.machinery.client import Client
from quorate.machinery.clock import Clock
from quorate.machinery.logs import Logger
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from quorate.machinery.transport import Transport


@dataclass(frozen=True)
class Endpoint:
    """Where the extender listens."""

    host: str = "127.0.0.1"
    port: int = 8099
    """0 takes a free one."""
    certificate: str = ""
    """File of the TLS certificate; empty = plain HTTP."""
    key: str = ""
    """File of its key."""
    health_host: str = ""
    health_port: int | None = None
    """Where health, readiness and metrics are served from the start; None = nowhere."""

    def tls(self) -> ssl.SSLContext | None:
        """The TLS settings, if any."""
        if not self.certificate:
            return None
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.certificate, self.key or None)
        return context


async def serve_extender(
    transport: Transport,
    endpoint: Endpoint,
    *,
    clock: Clock,
    random: Random,
    log: Logger,
    stop: asyncio.Event,
    divisor: float = DEFAULT_DIVISOR,
    listening: Callable[[int], None] = lambda port: None,
) -> None:
    """Serve until `stop` is set; `listening` is told the port."""
    registry = Registry()
    metrics = MachineryMetrics(registry)
    client = Client(transport, clock, metrics, user_agent="quorate/extender")
    caches = Caches(client, clock, metrics, log, random)
    book = CapacityBook(divisor)
    book.follow(caches)
    following = asyncio.create_task(caches.run(), name="caches")
    runner = web.AppRunner(application(book, clock), access_log=None, shutdown_timeout=1.0)
    probes = AsyncExitStack()
    try:
        if endpoint.health_port is not None:
            app = health.application(registry, caches.unsynced, log.settings)
            await probes.enter_async_context(health.serve(app, endpoint.health_port, endpoint.health_host))
        await _first(caches.wait_synced(), following)
        await runner.setup()
        site = web.TCPSite(runner, endpoint.host, endpoint.port, ssl_context=endpoint.tls())
        await site.start()
        address: tuple[str, int] = runner.addresses[0]
        log.info("listening", host=endpoint.host, port=address[1], tls=bool(endpoint.certificate))
        listening(address[1])
        await _first(_wait(stop), following)
    finally:
        await runner.cleanup()
        await probes.aclose()
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def _wait(event: asyncio.Event) -> None:
    await event.wait()


async def _first(wanted: Coroutine[None, None, None], background: asyncio.Task[None]) -> None:
    """Wait for `wanted`; a failure of the background task ends the wait with that failure."""
    task = asyncio.create_task(wanted)
    try:
        await asyncio.wait((task, background), return_when=asyncio.FIRST_COMPLETED)
        if background.done():
            background.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
