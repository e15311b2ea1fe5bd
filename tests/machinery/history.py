"""A whole simulated history as one number: `python -m tests.machinery.history SEED`.

Two managers with leader election, three controllers, faults, a crash; what the server saw, in order and with its times.
"""

from __future__ import annotations

import asyncio
import hashlib
import sys
from dataclasses import replace

from quorate.api.replicated_volume import ReplicatedVolume
from quorate.machinery.faults import FaultPlan
from quorate.machinery.leader import LeadershipLost
from quorate.machinery.manager import Manager
from tests.machinery.toy import new_volume, toy
from tests.machinery.world import World, virtually

STORM = FaultPlan(latency=(0.0, 0.1), fail_before=0.05, fail_after=0.05, hang=0.01, watch_lag=(0, 1), drop_watch=0.05)


async def _process(world: World, name: str) -> None:
    """A process that starts anew whenever it loses the lease."""
    while True:
        specs = tuple(replace(toy(f"toy-{number}"), concurrency=3) for number in range(3))
        manager: Manager = world.manager(*specs, name=name, election=True, transport=world.transport(STORM))
        try:
            await manager.run()
        except LeadershipLost:
            await world.clock.sleep(1)


async def _main(world: World) -> str:
    processes = [asyncio.create_task(_process(world, name), name=name) for name in ("alpha", "beta")]
    for number in range(6):
        await world.client.create(new_volume(f"volume-{number}"))
        await world.clock.sleep(world.random.uniform(0, 30))
    await world.client.delete(await world.client.get(ReplicatedVolume, "volume-2"))
    processes[0].cancel()
    await asyncio.wait((processes[0],))
    await world.clock.sleep(300)
    processes[1].cancel()
    await asyncio.wait((processes[1],))
    digest = hashlib.sha256()
    for exchange in world.history:
        digest.update(repr(exchange).encode())
    for entry in world.entries:
        digest.update(f"{entry.time!r} {entry.message} {sorted(entry.fields.items(), key=str)}".encode())
    return f"{len(world.history)} {len(world.entries)} {digest.hexdigest()}"


def history(seed: int) -> str:
    """Number of requests, number of log entries, digest of both."""
    return virtually(_main, seed=seed)


if __name__ == "__main__":
    sys.stdout.write(history(int(sys.argv[1])) + "\n")
