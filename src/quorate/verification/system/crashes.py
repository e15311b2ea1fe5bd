"""Crash injection: the controller process dies after every k effects and starts anew."""

from __future__ import annotations

import asyncio

from quorate.machinery.effects import Effect, Emit, Observe
from quorate.machinery.executor import Job
from quorate.verification.system.system import System

RESTART = 1.0
"""Seconds until a dead controller process runs again."""


class Crash(BaseException):
    """The process is gone."""


class CrashEvery:
    """Lets `limit` effects pass, then kills the process; counts how often."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.passed = 0
        self.crashes = 0
        self.enabled = True

    def __call__(self, job: Job, effect: Effect) -> None:
        del job
        if not self.enabled or isinstance(effect, Emit | Observe):
            return  # side notes: a process that dies after each of them would never get to its writes
        if self.passed >= self.limit:
            self.passed = 0
            self.crashes += 1
            raise Crash
        self.passed += 1


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
