"""The whole machinery: pure controllers, caches, queues, executor and manager against the embedded API server."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from itertools import count

import pytest

from quorate.api import conditions
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.machinery.effects import Answers, Decision, Effect
from quorate.machinery.executor import Job
from quorate.machinery.faults import CALM, FaultPlan
from quorate.machinery.leader import LeadershipLost
from quorate.machinery.manager import Manager
from quorate.machinery.virtual_loop import VirtualLoop
from tests.machinery.toy import FINALIZER, FORMED, Snapshot, decide, new_volume, toy
from tests.machinery.world import Crash, World, running, virtually

STORM = FaultPlan(
    latency=(0.0, 0.05), fail_before=0.05, fail_after=0.08, hang=0.01, watch_lag=(0.0, 2.0), drop_watch=0.02
)


async def formed(world: World, name: str) -> bool:
    volume = await world.client.get(ReplicatedVolume, name)
    return conditions.is_true(volume.status.conditions, FORMED)


async def replicas(world: World) -> list[str]:
    return [replica.metadata.name for replica in (await world.client.list(ReplicatedVolumeReplica)).items]


def test_a_pure_function_runs_end_to_end() -> None:
    async def main(world: World) -> None:
        async with running(world.manager(toy())) as manager:
            await world.client.create(new_volume("v1"))
            await world.clock.sleep(5)
            assert await formed(world, "v1")
            volume = await world.client.get(ReplicatedVolume, "v1")
            assert volume.metadata.finalizers == (FINALIZER,)
            assert await replicas(world) == ["v1-0", "v1-1"]
            await world.client.delete(volume)
            await world.clock.sleep(5)
            assert (await world.client.list(ReplicatedVolume)).items == ()
            assert await replicas(world) == []
            assert manager.metrics.reconcile_errors.total() == 0

    virtually(main)


def test_at_rest_nothing_is_written_and_simulated_time_is_nearly_free() -> None:
    async def main(world: World) -> None:
        async with running(world.manager(toy(), election=True)):
            for number in range(20):
                await world.client.create(new_volume(f"v{number}"))
            await world.clock.sleep(30)
            loop = asyncio.get_running_loop()
            assert isinstance(loop, VirtualLoop)
            writes, steps = len(world.writes()), loop.steps
            await world.clock.sleep(10_000)
            assert len(world.writes()) == writes
            # A lease renewal every two seconds and bookmarks: some steps each, however many volumes there are. A step
            # takes microseconds, so this is thousands of simulated seconds per real second.
            assert loop.steps - steps < 10 * 10_000

    virtually(main)


def test_a_resync_looks_at_everything_and_writes_nothing() -> None:
    async def main(world: World) -> None:
        async with running(world.manager(toy())) as manager:
            for number in range(5):
                await world.client.create(new_volume(f"v{number}"))
            await world.clock.sleep(30)
            writes, before = len(world.writes()), manager.metrics.reconciles.total()
            await world.clock.sleep(36_000)
            assert manager.metrics.reconciles.total() == before + 5
            assert len(world.writes()) == writes

    virtually(main)


@pytest.mark.parametrize("seed", range(6))
def test_everything_converges_in_a_storm(seed: int) -> None:
    async def main(world: World) -> None:
        transport = world.transport(STORM)
        async with running(world.manager(toy(), transport=transport)) as manager:
            for number in range(8):
                await world.client.create(new_volume(f"v{number}"))
            await world.clock.sleep(60)
            await world.client.delete(await world.client.get(ReplicatedVolume, "v3"))
            await world.clock.sleep(600)
            transport.plan = CALM
            await world.clock.sleep(600)
            expected = [f"v{number}-{index}" for number in range(8) if number != 3 for index in range(2)]
            assert await replicas(world) == expected
            for number in (0, 1, 2, 4, 5, 6, 7):
                assert await formed(world, f"v{number}")
            assert manager.metrics.unknown_outcomes.total() + manager.metrics.reconcile_errors.total() > 0

    virtually(main, seed=seed)


class CrashAfter:
    """Lets `count` effects pass, then kills the process."""

    def __init__(self, limit: int) -> None:
        self.left = limit

    def __call__(self, job: Job, effect: Effect) -> None:
        if self.left == 0:
            raise Crash
        self.left -= 1


async def life(world: World, manager: Manager) -> bool:
    """Run one process until it crashed or came to rest; True when it came to rest."""
    task = asyncio.create_task(manager.run(), name="manager")
    await asyncio.wait((task,), timeout=120)
    if not task.done():
        manager.stop()
        await task
        return True
    failure = task.exception()
    assert "Crash" in repr(failure)
    return False


async def lives(world: World, k: int) -> int:
    """Processes that die after k effects each, until one comes to rest; how many died."""
    for died in range(40):
        if await life(world, world.manager(toy(), gate=CrashAfter(k))):
            return died
    raise AssertionError("no end of crashes")


@pytest.mark.parametrize("k", range(1, 5))
def test_a_crash_after_every_k_effects_converges(k: int) -> None:
    async def main(world: World) -> None:
        await world.client.create(new_volume("v1"))
        await world.client.create(new_volume("v2"))
        assert await lives(world, k) > 0
        assert await replicas(world) == ["v1-0", "v1-1", "v2-0", "v2-1"]
        assert await formed(world, "v1")
        await world.client.delete(await world.client.get(ReplicatedVolume, "v1"))
        await lives(world, k)
        assert await replicas(world) == ["v2-0", "v2-1"]
        assert [volume.metadata.name for volume in (await world.client.list(ReplicatedVolume)).items] == ["v2"]

    virtually(main)


def test_a_crash_at_every_single_effect_converges() -> None:
    """Crash once, before effect number n, for every n until a run needs no more effects than that."""

    async def main(world: World, n: int) -> bool:
        await world.client.create(new_volume("v1"))
        crashed = not await life(world, world.manager(toy(), gate=CrashAfter(n)))
        async with running(world.manager(toy(), name="two")):
            await world.clock.sleep(60)
        assert await replicas(world) == ["v1-0", "v1-1"]
        assert await formed(world, "v1")
        return crashed

    points = 0
    for n in count():
        assert n < 50
        if not virtually(lambda world, n=n: main(world, n), seed=n):
            break
        points += 1
    assert points >= 5


def acting(world: World, name: str) -> list[float]:
    """When a process wrote."""
    return [exchange.time for exchange in world.writes() if exchange.sender == f"quorate/{name}"]


def test_two_managers_never_both_act() -> None:
    async def main(world: World) -> None:
        first = world.manager(toy(), name="first", election=True)
        second = world.manager(toy(), name="second", election=True)
        running_first = asyncio.create_task(first.run(), name="first")
        await world.clock.sleep(1)
        running_second = asyncio.create_task(second.run(), name="second")
        await world.client.create(new_volume("v1"))
        await world.clock.sleep(60)
        assert acting(world, "first")
        assert not acting(world, "second")
        assert second.missing() == ()  # warm while it waits
        first.stop()
        await running_first
        await world.client.create(new_volume("v2"))
        await world.clock.sleep(5)  # the lease was released: no wait for its end
        assert acting(world, "second")
        assert max(acting(world, "first")) < min(acting(world, "second"))
        second.stop()
        await running_second

    virtually(main)


def test_a_leader_cut_off_stops_before_the_next_one_starts() -> None:
    async def main(world: World) -> None:
        cut = world.transport()
        first = world.manager(toy(), name="first", election=True, transport=cut)
        second = world.manager(toy(), name="second", election=True)
        running_first = asyncio.create_task(first.run(), name="first")
        await world.clock.sleep(1)
        running_second = asyncio.create_task(second.run(), name="second")
        for number in range(100):
            await world.client.create(new_volume(f"v{number}"))
            await world.clock.sleep(1)
            if number == 30:
                cut.plan = FaultPlan(fail_before=1.0)
        with pytest.raises(LeadershipLost):
            await running_first
        assert max(acting(world, "first")) < min(acting(world, "second"))
        assert (await replicas(world)).count("v99-1") == 1
        second.stop()
        await running_second

    virtually(main)


def test_a_paused_former_leader_writes_nothing_when_it_wakes() -> None:
    """The process stands still for a minute between deciding and writing, as under a debugger or on a starved node."""

    async def main(world: World) -> None:
        pauses = [60.0]

        def paused(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
            decision = decide(snapshot, answers, now)
            if decision.effects and pauses:
                loop = asyncio.get_running_loop()
                assert isinstance(loop, VirtualLoop)
                loop.stand_still(pauses.pop())
            return decision

        first = world.manager(replace(toy(), decide=paused), name="first", election=True)
        second = world.manager(toy(), name="second", election=True)
        running_first = asyncio.create_task(first.run(), name="first")
        await world.clock.sleep(5)
        running_second = asyncio.create_task(second.run(), name="second")
        await world.client.create(new_volume("v1"))
        with pytest.raises(LeadershipLost):
            await running_first
        assert acting(world, "first") == []
        assert first.metrics.reconciles.value("toy-controller", "not-leading") == 1
        await world.clock.sleep(120)
        assert await formed(world, "v1")
        assert acting(world, "second")
        second.stop()
        await running_second

    virtually(main)


def test_controllers_start_after_the_caches_and_the_lease() -> None:
    async def main(world: World) -> None:
        transport = world.transport(FaultPlan(latency=(1.0, 1.0)))
        manager = world.manager(toy(), election=True, transport=transport)
        await world.client.create(new_volume("v1"))
        async with running(manager):
            assert manager.missing() == ("ReplicatedVolume", "ReplicatedVolumeReplica")
            await world.clock.sleep(30)
        ours = [exchange for exchange in world.history if exchange.sender == "quorate/one"]
        kinds = ["lease" if "/leases" in exchange.path else exchange.method for exchange in ours]
        first_write = kinds.index("PATCH")
        assert kinds.index("GET") < kinds.index("lease") < first_write
        assert kinds[:first_write].count("GET") >= 2
        lists = [place for place, kind in enumerate(kinds) if kind == "GET"][:2]
        assert max(lists) < kinds.index("lease")

    virtually(main)


def test_stop_finishes_running_reconciles_and_releases_the_lease() -> None:
    async def main(world: World) -> None:
        transport = world.transport()
        manager = world.manager(toy(), election=True, transport=transport)
        async with running(manager):
            await world.clock.sleep(5)
            transport.plan = FaultPlan(latency=(0.5, 0.5))
            await world.client.create(new_volume("v1"))
            await world.clock.sleep(1.2)  # in the middle of the first reconcile
        done = [exchange.method for exchange in world.writes() if exchange.sender == "quorate/one"]
        assert done == ["PATCH", "POST", "POST", "PATCH"]
        leases = [
            exchange for exchange in world.history if "/leases/toy" in exchange.path and exchange.method == "PATCH"
        ]
        assert b'"holderIdentity":null' in leases[-1].body
        assert len(asyncio.all_tasks()) == 1

    virtually(main)
