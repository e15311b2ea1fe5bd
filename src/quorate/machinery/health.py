"""Health, readiness and metrics over HTTP.

`/healthz` answers while the event loop turns, `/readyz` once every cache was read completely (503 with the missing kinds
until then), `/metrics` in the Prometheus text format, `/loglevel` shows the log level and changes it with PUT.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from aiohttp import web

from quorate.machinery.logs import LogSettings
from quorate.machinery.metrics import Registry

METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


def application(registry: Registry, missing: Callable[[], tuple[str, ...]], settings: LogSettings) -> web.Application:
    """The endpoints; `missing` names what is not ready yet."""

    async def healthz(request: web.Request) -> web.Response:
        del request
        return web.Response(text="ok\n")

    async def readyz(request: web.Request) -> web.Response:
        del request
        waiting = missing()
        if waiting:
            return web.Response(status=503, text=f"not ready: {', '.join(waiting)}\n")
        return web.Response(text="ok\n")

    async def metrics(request: web.Request) -> web.Response:
        del request
        return web.Response(body=registry.text().encode(), headers={"content-type": METRICS_TYPE})

    async def level(request: web.Request) -> web.Response:
        if request.method == "PUT":
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
