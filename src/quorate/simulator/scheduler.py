"""Simulated time: a plain scheduler with the two methods of an asyncio loop that the model uses.

Callbacks run in order of time, then of insertion, so a run is a function of its inputs.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from typing import Protocol


class Handle(Protocol):
    """A scheduled callback that can be taken back."""

    def cancel(self) -> None: ...


class Scheduler(Protocol):
    """What the model needs of time; an asyncio loop fits."""

    def time(self) -> float: ...
    def call_later(self, delay: float, callback: Callable[[], object], /) -> Handle: ...


class Timer:
    """An entry of :class:`SimulatedTime`."""

    __slots__ = ("callback", "when")

    def __init__(self, when: float, callback: Callable[[], object]) -> None:
        self.when = when
        self.callback: Callable[[], object] | None = callback

    def cancel(self) -> None:
        self.callback = None


class SimulatedTime:
    """A scheduler that jumps from one due callback to the next."""

    def __init__(self, start: float = 0.0) -> None:
        self._now = start
        self._count = 0
        self._heap: list[tuple[float, int, Timer]] = []

    def time(self) -> float:
        return self._now

    def call_later(self, delay: float, callback: Callable[[], object], /) -> Timer:
        timer = Timer(self._now + max(delay, 0.0), callback)
        heapq.heappush(self._heap, (timer.when, self._count, timer))
        self._count += 1
        return timer

    def next_due(self) -> float | None:
        """When the next callback is due, or None when nothing is scheduled."""
        while self._heap and self._heap[0][2].callback is None:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def step(self, until: float) -> bool:
        """Runs the next callback due at or before ``until``; False (and the clock at ``until``) when there is none."""
        due = self.next_due()
        if due is None or due > until:
            self._now = max(self._now, until)
            return False
        timer = heapq.heappop(self._heap)[2]
        self._now = max(self._now, timer.when)
        callback, timer.callback = timer.callback, None
        if callback is not None:
            callback()
        return True

    def advance(self, seconds: float) -> None:
        """Lets ``seconds`` pass and runs everything that becomes due."""
        until = self._now + seconds
        while self.step(until):
            pass
