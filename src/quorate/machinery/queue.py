"""The work queue of one controller.

Guarantees:

* one entry per key; a key handed out is not handed out again before `done`;
* a key added while it is worked on is worked on again afterwards;
* a delayed entry waits for the earliest of its deadlines; adding it undelayed makes it ready at once;
* HIGH (live changes) goes before LOW (initial list, resync), but every eighth entry handed out is the oldest LOW one,
  so neither starves; within a priority first in, first out, and a key that comes back queues at the end;
* retries of a key back off exponentially (5 ms to 60 s) and all retries together pass one token bucket (100/s, burst
  500).
"""

from __future__ import annotations

import asyncio
import heapq
from collections import deque
from enum import IntEnum

from quorate.machinery.clock import Clock
from quorate.machinery.machinery_metrics import MachineryMetrics

LOW_EVERY = 8


class Priority(IntEnum):
    """Smaller goes first."""

    HIGH = 0
    LOW = 1


class QueueClosed(Exception):
    """The queue hands out nothing any more."""


class Bucket:
    """Token bucket over time: `delay` takes one token and says how long to wait for it."""

    def __init__(self, clock: Clock, *, rate: float = 100.0, burst: int = 500) -> None:
        self._clock = clock
        self._rate = rate
        self._burst = float(burst)
        self._tokens = float(burst)
        self._updated = clock.monotonic()

    def delay(self) -> float:
        """Seconds until the token just taken is really there."""
        now = self._clock.monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._updated) * self._rate) - 1.0
        self._updated = now
        return max(0.0, -self._tokens / self._rate)


class BackOff:
    """Exponential delay per key."""

    def __init__(self, *, base: float = 0.005, maximum: float = 60.0) -> None:
        self._base = base
        self._maximum = maximum
        self._failures: dict[str, int] = {}

    def delay(self, key: str) -> float:
        """The next delay of this key."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        return min(self._maximum, self._base * 2.0 ** min(failures, 60))

    def failures(self, key: str) -> int:
        """How often in a row this key was retried."""
        return self._failures.get(key, 0)

    def forget(self, key: str) -> None:
        """The key succeeded."""
        self._failures.pop(key, None)


class Queue:
    """See the module docstring. One consumer calls `get`."""

    def __init__(
        self,
        name: str,
        clock: Clock,
        metrics: MachineryMetrics,
        *,
        back_off: BackOff | None = None,
        bucket: Bucket | None = None,
    ) -> None:
        self._name = name
        self._clock = clock
        self._metrics = metrics
        self._back_off = back_off or BackOff()
        self._bucket = bucket or Bucket(clock)
        self._ready: tuple[deque[str], deque[str]] = (deque(), deque())
        self._queued: dict[str, tuple[Priority, float]] = {}
        """Ready keys with their priority and since when; a key in a deque whose priority here differs is a leftover."""
        self._processing: dict[str, float] = {}
        self._dirty: dict[str, Priority] = {}
        self._delayed: dict[str, tuple[float, Priority]] = {}
        self._deadlines: list[tuple[float, int, str]] = []
        self._sequence = 0
        self._handed_out = 0
        self._closed = False
        self._changed = asyncio.Event()

    def __len__(self) -> int:
        """Keys ready to be worked on."""
        return len(self._queued)

    @property
    def idle(self) -> bool:
        """Nothing is ready or being worked on; delayed entries may exist."""
        return not self._queued and not self._processing

    @property
    def delayed(self) -> int:
        """Keys that wait for their time."""
        return len(self._delayed)

    def add(self, key: str, *, priority: Priority = Priority.HIGH, after: float = 0.0) -> None:
        """Work on `key`, now or `after` seconds."""
        if self._closed:
            return
        self._metrics.adds.inc(self._name)
        if after > 0:
            self._delay(key, self._clock.monotonic() + after, priority)
        else:
            self._make_ready(key, priority)

    def add_rate_limited(self, key: str, *, at_least: float = 0.0, priority: Priority = Priority.HIGH) -> None:
        """Work on `key` again after its back-off, within the overall rate."""
        self._metrics.retries.inc(self._name)
        self.add(key, priority=priority, after=max(self._back_off.delay(key), self._bucket.delay(), at_least))

    def forget(self, key: str) -> None:
        """The key succeeded: its next retry starts with the smallest delay."""
        self._back_off.forget(key)

    def failures(self, key: str) -> int:
        """How often in a row this key was retried."""
        return self._back_off.failures(key)

    async def get(self) -> str:
        """The next key; the caller owes `done(key)`."""
        while True:
            if self._closed:
                raise QueueClosed
            self._promote()
            key = self._pop()
            if key is not None:
                return key
            self._changed.clear()
            try:
                async with asyncio.timeout(self._until_deadline()):
                    await self._changed.wait()
            except TimeoutError:
                continue

    def done(self, key: str) -> None:
        """Work on `key` ended; if it was added meanwhile it is ready again."""
        started = self._processing.pop(key)
        self._metrics.work_time.observe(self._clock.monotonic() - started, self._name)
        priority = self._dirty.pop(key, None)
        if priority is not None and not self._closed:
            self._make_ready(key, priority)

    def close(self) -> None:
        """Hand out nothing any more and forget what waits; keys being worked on may still be `done`."""
        self._closed = True
        self._queued.clear()
        self._delayed.clear()
        self._dirty.clear()
        self._metrics.depth.set(0, self._name)
        self._changed.set()

    def _make_ready(self, key: str, priority: Priority) -> None:
        self._delayed.pop(key, None)
        if key in self._processing:
            self._dirty[key] = min(priority, self._dirty.get(key, priority))
            return
        queued = self._queued.get(key)
        if queued is not None and queued[0] <= priority:
            return
        self._queued[key] = (priority, queued[1] if queued else self._clock.monotonic())
        self._ready[priority].append(key)
        self._metrics.depth.set(len(self._queued), self._name)
        self._changed.set()

    def _delay(self, key: str, deadline: float, priority: Priority) -> None:
        if key in self._queued or key in self._dirty:
            return
        present = self._delayed.get(key)
        if present is not None:
            priority = min(priority, present[1])
            deadline = min(deadline, present[0])
            if (deadline, priority) == present:
                return
        self._delayed[key] = (deadline, priority)
        self._sequence += 1
        heapq.heappush(self._deadlines, (deadline, self._sequence, key))
        self._changed.set()

    def _promote(self) -> None:
        now = self._clock.monotonic()
        while self._deadlines and self._deadlines[0][0] <= now:
            deadline, _, key = heapq.heappop(self._deadlines)
            delayed = self._delayed.get(key)
            if delayed is not None and delayed[0] == deadline:
                self._make_ready(key, delayed[1])

    def _pop(self) -> str | None:
        high, low = self._ready
        low_first = (self._handed_out + 1) % LOW_EVERY == 0
        order = (
            ((low, Priority.LOW), (high, Priority.HIGH)) if low_first else ((high, Priority.HIGH), (low, Priority.LOW))
        )
        for keys, priority in order:
            while keys:
                key = keys.popleft()
                queued = self._queued.get(key)
                if queued is None or queued[0] != priority:
                    continue
                del self._queued[key]
                now = self._clock.monotonic()
                self._processing[key] = now
                self._handed_out += 1
                self._metrics.depth.set(len(self._queued), self._name)
                self._metrics.queue_time.observe(now - queued[1], self._name)
                return key
        return None

    def _until_deadline(self) -> float | None:
        while self._deadlines:
            deadline, _, key = self._deadlines[0]
            delayed = self._delayed.get(key)
            if delayed is not None and delayed[0] == deadline:
                return max(0.0, deadline - self._clock.monotonic())
            heapq.heappop(self._deadlines)
        return None
