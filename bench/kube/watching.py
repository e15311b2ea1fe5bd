"""When something came true, seen by a watch: looking again and again would cost the API server more than what is measured."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import aclosing, asynccontextmanager
from typing import Generic, TypeVar

from quorate.api.meta import Object
from quorate.machinery.client import Bookmark, Changed, Client, UndecodableChange

K = TypeVar("K", bound=Object)
LASTING = 3600.0


class Seen(Generic[K]):
    """The moment at which each object first was as it should be."""

    def __init__(self, reached: Callable[[K], bool]) -> None:
        self._reached = reached
        self._changed = asyncio.Event()
        self.at: dict[str, float] = {}
        """Monotonic seconds by name."""

    def look(self, obj: K) -> None:
        """One state of an object."""
        name = obj.metadata.name
        if name not in self.at and self._reached(obj):
            self.at[name] = time.monotonic()
            self._changed.set()

    async def all(self, names: Iterable[str], seconds: float = 1800.0) -> None:
        """Wait until all of them were seen."""
        missing = dict.fromkeys(names)
        async with asyncio.timeout(seconds):
            while any(name not in self.at for name in missing):
                self._changed.clear()
                await self._changed.wait()


@asynccontextmanager
async def watching(client: Client, kind: type[K], reached: Callable[[K], bool]) -> AsyncGenerator[Seen[K]]:
    """Watch all objects of a kind while the block runs."""
    seen = Seen(reached)
    version = (await client.list(kind)).resource_version

    async def follow() -> None:
        events = client.watch(kind, resource_version=version, lasting=LASTING)
        async with aclosing(events):
            async for event in events:
                match event:
                    case Changed(obj=obj):
                        seen.look(obj)
                    case Bookmark():
                        pass
                    case UndecodableChange():
                        raise AssertionError(event)

    task = asyncio.create_task(follow(), name=f"watch {kind.__name__}")
    try:
        yield seen
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
