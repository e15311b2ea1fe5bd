"""A forward proxy on loopback that makes tunnels and remembers to where."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

PIECE = 64 * 1024


@dataclass
class Proxy:
    """What was asked of it."""

    url: str = ""
    tunnels: list[str] = field(default_factory=list[str])
    """`host:port` of each CONNECT."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One tunnel until either end closes it."""
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, *_ = head.split()
        assert method == "CONNECT", head
        self.tunnels.append(target)
        host, _, port = target.rpartition(":")
        beyond, onward = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_pump(reader, onward))
                both.create_task(_pump(beyond, writer))
        finally:
            onward.close()
            writer.close()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while piece := await source.read(PIECE):
            sink.write(piece)
            await sink.drain()
        sink.close()


@asynccontextmanager
async def proxy() -> AsyncGenerator[Proxy]:
    """A running proxy."""
    made = Proxy()
    server = await asyncio.start_server(made.serve, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    try:
        yield made
    finally:
        server.close()
        await server.wait_closed()
