"""The in-process transport: requests reach the embedded API server without a socket.

Answers are held back until they are durable. Works on any asyncio loop, a virtual one included: it uses no threads
and no real time.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from quorate.local.rest import Reply, Request
from quorate.local.store import Closed
from quorate.local.turns import Turns
from quorate.machinery import errors
from quorate.machinery.transport import Response

if TYPE_CHECKING:
    from quorate.local.api_server import ApiServer


class InProcessTransport:
    """Implements `quorate.machinery.transport.Transport` over an `ApiServer`."""

    def __init__(self, server: ApiServer, turns: Turns | None = None) -> None:
        self._server = server
        self._turns = turns

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        # One turn of the loop, so that requests of different tasks interleave as they do over a network.
        await asyncio.sleep(0)
        if self._turns is not None:
            await self._turns.take()
        reply = self._server.handle(_request(method, path, query, headers, body))
        if not isinstance(reply, Reply):
            raise ValueError("a watch is a stream: use stream()")
        reply = await self._server.settle(reply)
        if self._server.store.closed is not None:
            raise errors.unavailable(self._server.store.closed)
        names = {name.lower(): value for name, value in reply.headers}
        return Response(reply.status, reply.body, {"content-type": reply.content_type, **names})

    def stream(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(_request(method, path, query, headers, b""))

    @asynccontextmanager
    async def _stream(self, request: Request) -> AsyncGenerator[AsyncIterator[bytes]]:
        await asyncio.sleep(0)
        reply = self._server.handle(request)
        if isinstance(reply, Reply):
            reply = await self._server.settle(reply)
            if reply.status >= 300:
                raise errors.from_status(reply.status, reply.body)
            yield _once(reply.body)
            return
        async with aclosing(self._lines(reply.lines())) as lines:
            yield lines

    async def _lines(self, lines: AsyncGenerator[bytes]) -> AsyncGenerator[bytes]:
        async with aclosing(lines):
            try:
                async for chunk in lines:
                    yield chunk
            except Closed as closed:
                raise errors.unavailable(str(closed)) from None
        if self._server.store.closed is not None:
            raise errors.unavailable(self._server.store.closed)


async def _once(body: bytes) -> AsyncIterator[bytes]:
    yield body


def _request(method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes) -> Request:
    return Request(method, path, dict(query), {name.lower(): value for name, value in headers.items()}, body)
