"""Turns: at most so many in-process requests per turn of the event loop.

In a local cluster controllers, agents and the API server share one thread with the people who watch it. When hundreds of
volumes form at once, hundreds of requests become ready in one turn of the loop, and a request over HTTP, which needs several
turns, would wait for all of them each time. With turns it waits for a few.
"""

from __future__ import annotations

import asyncio
from collections import deque


class Turns:
    """First come, first served; whoever has to wait goes in one of the next turns of the loop."""

    def __init__(self, per_turn: int) -> None:
        self._per_turn = per_turn
        self._left = per_turn
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._scheduled = False

    async def take(self) -> None:
        """Wait for a turn."""
        loop = asyncio.get_running_loop()
        self._schedule(loop)
        if self._left > 0 and not self._waiting:
            self._left -= 1
            return
        turn: asyncio.Future[None] = loop.create_future()
        self._waiting.append(turn)
        await turn

    def _schedule(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self._scheduled:
            self._scheduled = True
            loop.call_soon(self._next, loop)

    def _next(self, loop: asyncio.AbstractEventLoop) -> None:
        self._scheduled = False
        self._left = self._per_turn
        while self._waiting and self._left > 0:
            turn = self._waiting.popleft()
            if not turn.done():
                self._left -= 1
                turn.set_result(None)
        if self._waiting:
            self._schedule(loop)
