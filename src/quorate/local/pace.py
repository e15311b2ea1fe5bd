"""Time of the simulated machines: as fast as the wall clock, or a given number of times faster."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from quorate.simulator.scheduler import Handle


class Loop(Protocol):
    """What is needed of an event loop."""

    def time(self) -> float: ...
    def call_later(self, delay: float, callback: Callable[[], object], /) -> Handle: ...


class ScaledTime:
    """A scheduler whose seconds pass `scale` times faster than the loop's; it starts at `start` (epoch seconds)."""

    def __init__(self, loop: Loop, *, scale: float, start: float) -> None:
        self._loop = loop
        self._scale = scale
        self._start = start
        self._origin = loop.time()

    def time(self) -> float:
        return self._start + (self._loop.time() - self._origin) * self._scale

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Handle:
        return self._loop.call_later(delay / self._scale, callback)
