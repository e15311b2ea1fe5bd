"""The clock port: the only way product code learns the time or waits.

`SystemClock` reads the machine. `LoopClock` reads the running event loop, so that under `VirtualLoop` everything runs
on virtual time (loop time is epoch seconds there).
"""

from __future__ import annotations

import asyncio
import time
from typing import Protocol

_STEADY: int | None = getattr(time, "CLOCK_BOOTTIME", None)


class Clock(Protocol):
    """Time and waiting."""

    def now(self) -> float:
        """Epoch seconds; may jump."""
        ...

    def monotonic(self) -> float:
        """Seconds from an arbitrary moment; never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after `seconds`."""
        ...


class SystemClock:
    """The clock of the machine."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        # Including the time a machine was suspended: a lease expires for others meanwhile.
        return time.clock_gettime(_STEADY) if _STEADY is not None else time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class LoopClock:
    """The clock of the running loop; on a `VirtualLoop` that is virtual time in epoch seconds."""

    def now(self) -> float:
        return asyncio.get_running_loop().time()

    def monotonic(self) -> float:
        return asyncio.get_running_loop().time()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
