"""Health, readiness and metrics over HTTP.

`/healthz` answers while the event loop turns: all parts of a process share one task group, so a part that fails ends the
process, and what hangs is the loop. `/readyz` answers 200 once every cache was read completely and every part works, and names
what is missing with 503 until then; its text also says what the process does (leading or standing by). `/metrics` is in the
Prometheus text format. `/loglevel` shows the log level; PUT changes it, from this machine only (nobody authenticates here;
`kubectl port-forward` comes from loopback and is authenticated by the API server).
"""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from quorate.machinery.logs import LogSettings
from quorate.machinery.metrics import Registry

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def _nothing() -> str:
    return ""


def application(
    registry: Registry,
    missing: Callable[[], tuple[str, ...]],
    settings: LogSettings,
    *,
    state: Callable[[], str] = _nothing,
) -> web.Application:
    """The endpoints; `missing` names what is not ready yet, `state` says what a ready process does."""

    async def healthz(request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        del request
        waiting = missing()
        if waiting:
            return web.Response(status=503, text=f"not ready: {', '.join(waiting)}\n")
        doing = state()
        return web.Response(text=f"ok: {doing}\n" if doing else "ok\n")

    async def metrics(request: web.Request) -> web.Response:
        del request
        return web.Response(body=registry.text().encode(), headers={"content-type": METRICS_TYPE})

    async def level(request: web.Request) -> web.Response:
        if request.method == "PUT":
            if not from_this_machine(request.remote or ""):
                return web.Response(status=403, text="the log level is changed from this machine only\n")
            try:
                settings.set_level(await request.text())
            except ValueError as error:
                return web.Response(status=400, text=f"{error}\n")
        return web.Response(text=f"{settings.level.name.lower()}\n")

    app = web.Application(client_max_size=1024)
    app.router.add_get("/healthz", healthz)
    app.router.add_get("/readyz", readyz)
    app.router.add_get("/metrics", metrics)
    app.router.add_get("/loglevel", level)
    app.router.add_put("/loglevel", level)
    return app


def from_this_machine(address: str) -> bool:
    """Whether a peer's address is loopback."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    mapped = found.ipv4_mapped if isinstance(found, ipaddress.IPv6Address) else None
    return (mapped or found).is_loopback


@asynccontextmanager
async def serve(app: web.Application, port: int, host: str = "127.0.0.1") -> AsyncGenerator[int]:
    """Serve while the block runs; yields the port, which is a free one when 0 was asked for."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        address: tuple[str, int] = runner.addresses[0]
        yield address[1]
    finally:
        await runner.cleanup()
