"""Virtual time shown at a chosen speed: the tour is the same run on every machine, only its pace is real.

The loop never waits for more than the pace asks, and catches up when the machine was busy, so a slow machine plays the
same acts in about the same time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import TypeVar

from quorate.machinery.virtual_loop import VirtualLoop

T = TypeVar("T")
LONGEST = 0.05
"""Seconds of one nap, so that Ctrl-C is heard at once."""


class PacedLoop(VirtualLoop):
    """`speed` is virtual seconds per second of the viewer's time; 0 means as fast as the machine can."""

    def __init__(self, *, seed: int, start: float = 1_700_000_000.0) -> None:
        super().__init__(seed=seed, start=start)
        self.speed = 0.0
        self._due = time.monotonic()

    def advance(self, timeout: float | None) -> None:
        before = self.time()
        super().advance(timeout)
        passed = self.time() - before
        if self.speed > 0 and passed > 0:
            self._nap(passed / self.speed)

    def _nap(self, seconds: float) -> None:
        self._due = max(self._due + seconds, time.monotonic() - 1.0)
        while (left := self._due - time.monotonic()) > 0:
            time.sleep(min(left, LONGEST))


def run_paced(main: Callable[[PacedLoop], Coroutine[object, object, T]], *, seed: int) -> T:
    """Run to the end on a fresh loop; whatever is left is cancelled."""
    loop = PacedLoop(seed=seed)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main(loop))
    finally:
        loop.speed = 0.0
        try:
            leftovers = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name().rpartition("#")[2])
            for task in leftovers:
                task.cancel()
            if leftovers:
                loop.run_until_complete(asyncio.gather(*leftovers, return_exceptions=True))
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()
