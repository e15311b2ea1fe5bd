"""The API over HTTP: TLS and a bearer token on the loopback interface.

Only this module touches sockets. It checks the token, bounds the size of bodies while reading them, hands requests to
`ApiServer.handle` and writes replies once they are durable. Watches are written chunk by chunk and end when the
client goes away.
"""

from __future__ import annotations

import asyncio
import hmac
import ssl
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import TypeAlias

from aiohttp import web
from multidict import CIMultiDict

from quorate.local.api_server import ApiServer
from quorate.local.rest import BODY_LIMIT, Reply, Request, refusal
from quorate.local.status import too_large, unauthorized
from quorate.local.store import Closed
from quorate.local.watch import Watch

LOOPBACK = "127.0.0.1"
LOCAL = "/local/v1"
"""Paths below this belong to the local cluster, not to Kubernetes; without one they are not found."""

LocalHandler: TypeAlias = Callable[[web.BaseRequest, bytes], Awaitable[web.StreamResponse]]


class HttpServer:
    """Serves one `ApiServer` until `close`."""

    def __init__(self, api: ApiServer, token: str, tls: ssl.SSLContext | None) -> None:
        self._api = api
        self._token = token.encode()
        self._tls = tls
        self._runner: web.ServerRunner | None = None
        self.port = 0
        self.local: LocalHandler | None = None
        """Answers below `LOCAL`, for authenticated requests only."""

    async def start(self, port: int) -> None:
        """Listen on the loopback interface; port 0 takes a free one. Raises `OSError` when the port is taken."""
        server = web.Server(self._handle, handler_cancellation=True, access_log=None)
        self._runner = web.ServerRunner(server, shutdown_timeout=1.0)
        await self._runner.setup()
        site = web.TCPSite(self._runner, LOOPBACK, port, ssl_context=self._tls)
        await site.start()
        self.port = self._runner.addresses[0][1]

    async def close(self) -> None:
        if self._runner is not None:
            await self._runner.cleanup()

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if not self._allowed(request):
            return _response(refusal(unauthorized()), request)
        body = await _read(request)
        if body is None:
            return _response(refusal(too_large(BODY_LIMIT)), request)
        if self.local is not None and request.path.startswith(f"{LOCAL}/"):
            return await self.local(request, body)
        reply = self._api.handle(
            Request(
                request.method,
                request.rel_url.raw_path,
                {key: request.rel_url.query[key] for key in request.rel_url.query},
                {name.lower(): value for name, value in request.headers.items()},
                body,
            )
        )
        if isinstance(reply, Watch):
            return await self._stream(request, reply)
        return _response(await self._api.settle(reply), request)

    def _allowed(self, request: web.BaseRequest) -> bool:
        scheme, _, credentials = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(credentials.strip().encode(), self._token)

    async def _stream(self, request: web.BaseRequest, watch: Watch) -> web.StreamResponse:
        response = web.StreamResponse(
            headers={"Content-Type": "application/json", "Cache-Control": "no-cache, private"}
        )
        response.enable_chunked_encoding()
        await response.prepare(request)
        try:
            async with aclosing(watch.lines()) as lines:
                async for chunk in lines:
                    await response.write(chunk)
        except (Closed, ConnectionError):
            # The server stops or the client has gone: the stream just ends.
            return response
        await response.write_eof()
        return response


async def _read(request: web.BaseRequest) -> bytes | None:
    """The body, `None` when it is larger than allowed; never holds more than the limit in memory."""
    if request.content_length is not None and request.content_length > BODY_LIMIT:
        return None
    body = bytearray()
    while chunk := await request.content.readany():
        body += chunk
        if len(body) > BODY_LIMIT:
            return None
    return bytes(body)


def _response(reply: Reply, request: web.BaseRequest) -> web.StreamResponse:
    headers: CIMultiDict[str] = CIMultiDict(reply.headers)
    headers["Content-Type"] = reply.content_type
    headers["Cache-Control"] = "no-cache, private"
    body = b"" if request.method == "HEAD" else reply.body
    response = web.Response(status=reply.status, body=body, headers=headers)
    if reply.status == 413:
        # What is left of the body is not read.
        response.force_close()
    return response


async def wait_closed(api: ApiServer) -> str:
    """Return the reason once the store stops by itself (its journal failed)."""
    stopped = asyncio.Event()
    undo = api.store.listen("namespaces", stopped.set)
    try:
        while api.store.closed is None:
            stopped.clear()
            await stopped.wait()
        return api.store.closed
    finally:
        undo()
