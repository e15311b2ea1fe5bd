"""Crash injection: the controller process dies after every k effects and starts anew."""

from __future__ import annotations

import asyncio

from quorate.machinery.effects import Effect
from quorate.machinery.executor import Job
from quorate.verification.system.counting import Writes
from quorate.verification.system.system import System

CONTROLLER = "controller"
RESTART = 1.0
"""Seconds until a dead controller process runs again."""


class Crash(BaseException):
    """The process is gone."""


class CrashEvery:
    """Kills the process at the first effect after `limit` of its writes succeeded; counts how often.

    Writes are counted when they are done, not when they begin: several workers write at once, and a process that died with
    all of them in flight every time would never get anything done.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.crashes = 0
        self._writes: Writes | None = None
        self._done = 0

    def follow(self, writes: Writes) -> None:
        """Count these writes from now on."""
        self._writes = writes
        self._done = len(writes.log)

    def __call__(self, job: Job, effect: Effect) -> None:
        del job, effect
        if self._writes is None or self._ours() < self.limit:
            return
        self._done = len(self._writes.log)
        self.crashes += 1
        raise Crash

    def _ours(self) -> int:
        assert self._writes is not None
        return sum(write.writer == CONTROLLER for write, _ in self._writes.log[self._done :])


async def supervise(system: System) -> None:
    """Start the controllers again whenever they died, as a Deployment does; until cancelled."""
    while True:
        await system.clock.sleep(RESTART)
        if system.cluster.controllers_ended():
            await system.cluster.kill_controllers()
            system.cluster.start_controllers()


def supervised(system: System) -> asyncio.Task[None]:
    """`supervise` as a task."""
    return asyncio.create_task(supervise(system), name="supervisor")
