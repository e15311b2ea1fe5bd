"""Structured concurrency with a fixed order.

`asyncio.TaskGroup` cancels its tasks in the order of a set of objects, that is of their addresses: two runs with one
seed would end differently. `OrderedTaskGroup` is the same group, cancelling in the order the tasks were started.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Hashable, Iterator
from contextlib import asynccontextmanager
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)


class _OrderedTasks:
    """The part of `set` that `TaskGroup` uses, remembering the order."""

    def __init__(self) -> None:
        self._tasks: dict[asyncio.Task[object], None] = {}

    def add(self, task: asyncio.Task[object]) -> None:
        self._tasks[task] = None

    def discard(self, task: asyncio.Task[object]) -> None:
        self._tasks.pop(task, None)

    def __iter__(self) -> Iterator[asyncio.Task[object]]:
        return iter(tuple(self._tasks))

    def __len__(self) -> int:
        return len(self._tasks)


class OrderedTaskGroup(asyncio.TaskGroup):
    """A task group that cancels in the order of creation."""

    def __init__(self) -> None:
        super().__init__()
        self._tasks = _OrderedTasks()  # pyright: ignore[reportAttributeAccessIssue]


class KeyedLocks(Generic[Key]):
    """One lock per key, kept only while somebody holds it or waits for it."""

    def __init__(self) -> None:
        self._locks: dict[Key, tuple[asyncio.Lock, int]] = {}

    def __len__(self) -> int:
        return len(self._locks)

    @asynccontextmanager
    async def hold(self, key: Key) -> AsyncGenerator[None]:
        """Be the only one in here with this key."""
        lock, users = self._locks.get(key, (None, 0))
        lock = lock or asyncio.Lock()
        self._locks[key] = (lock, users + 1)
        try:
            async with lock:
                yield
        finally:
            _, users = self._locks.pop(key)
            if users > 1:
                self._locks[key] = (lock, users - 1)
