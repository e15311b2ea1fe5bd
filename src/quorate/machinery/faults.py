"""A transport that misbehaves on purpose, drawn from a seed.

It produces what a network and a busy server produce: latency; refusals and broken connections before the request took
effect; the same *after* it took effect, where the caller cannot tell (rule 2); watches that lag, each kind by its own
delay (rule 8), and watches that break. With the same seed and the same requests, the same faults.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from random import Random

from quorate.machinery import errors
from quorate.machinery.clock import Clock
from quorate.machinery.transport import Response, Transport


@dataclass(frozen=True)
class FaultPlan:
    """How often and how much; probabilities are per request, per piece of a watch for `drop_watch`."""

    latency: tuple[float, float] = (0.0, 0.0)
    """Shortest and longest time each way."""
    fail_before: float = 0.0
    """The connection breaks before the server saw the request."""
    fail_after: float = 0.0
    """The request takes effect, the answer is lost."""
    hang: float = 0.0
    """No answer ever; the caller's timeout decides. Half of these took effect."""
    watch_lag: tuple[float, float] = (0.0, 0.0)
    """Delay of watch events; drawn once per watch."""
    drop_watch: float = 0.0
    """The watch breaks before delivering a piece."""


CALM = FaultPlan()
HANG_SECONDS = 3600.0


class FaultTransport:
    """Wraps a transport; `plan` can be replaced at any time."""

    def __init__(self, inner: Transport, random: Random, clock: Clock, plan: FaultPlan = CALM) -> None:
        self.plan = plan
        self._inner = inner
        self._random = random
        self._clock = clock

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        plan = self.plan
        await self._wait(plan.latency)
        draw = self._random.random()
        if draw < plan.fail_before:
            raise errors.unavailable(f"{method} {path}: connection refused (injected)")
        hangs = draw < plan.fail_before + plan.hang
        if hangs and self._random.random() < 0.5:
            await self._clock.sleep(HANG_SECONDS)
        answer = await self._inner.request(method, path, query=query, headers=headers, body=body)
        if hangs:
            await self._clock.sleep(HANG_SECONDS)
        if draw < plan.fail_before + plan.hang + plan.fail_after:
            raise errors.unavailable(f"{method} {path}: connection lost (injected)")
        await self._wait(plan.latency)
        return answer

    def stream(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(method, path, query, headers)

    @asynccontextmanager
    async def _stream(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        plan = self.plan
        await self._wait(plan.latency)
        if self._random.random() < plan.fail_before:
            raise errors.unavailable(f"{method} {path}: connection refused (injected)")
        lag = self._random.uniform(*plan.watch_lag)
        async with self._inner.stream(method, path, query=query, headers=headers) as chunks:
            yield self._delayed(chunks, path, lag)

    async def _delayed(self, chunks: AsyncIterator[bytes], path: str, lag: float) -> AsyncIterator[bytes]:
        async for chunk in chunks:
            if lag > 0:
                await self._clock.sleep(lag)
            if self._random.random() < self.plan.drop_watch:
                raise errors.unavailable(f"watch {path}: connection lost (injected)")
            yield chunk

    async def _wait(self, bounds: tuple[float, float]) -> None:
        if bounds[1] > 0:
            await self._clock.sleep(self._random.uniform(*bounds))
