"""The virtual loop: time jumps, deadlocks are found, runs repeat."""

from __future__ import annotations

import asyncio

import pytest

from quorate.machinery.clock import LoopClock
from quorate.machinery.tasks import KeyedLocks, OrderedTaskGroup
from quorate.machinery.virtual_loop import Deadlock, VirtualLoop, run_virtual

START = 1_700_000_000.0


def test_time_jumps_to_the_next_timer() -> None:
    async def main() -> tuple[float, int]:
        clock = LoopClock()
        await clock.sleep(86_400 * 365)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop)
        return clock.now() - START, loop.steps

    elapsed, steps = run_virtual(main, start=START)
    assert elapsed == pytest.approx(86_400 * 365, abs=1e-3)
    assert steps < 10


def test_a_timer_never_fires_before_its_time() -> None:
    async def main() -> None:
        clock = LoopClock()
        for delay in (0.001, 0.1, 1 / 3, 7.7, 1e-9, 3600.0):
            before = clock.now()
            await clock.sleep(delay)
            assert clock.now() >= before + delay

    run_virtual(main, start=START)


def test_nothing_scheduled_is_a_deadlock_that_names_the_waiting_tasks() -> None:
    async def main() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(asyncio.Event().wait(), name="waits-for-nobody")

    with pytest.raises(Deadlock, match="waits-for-nobody"):
        run_virtual(main)


def _order(seed: int) -> tuple[int, ...]:
    async def main() -> tuple[int, ...]:
        order: list[int] = []

        async def one(number: int) -> None:
            await asyncio.sleep(1)
            order.append(number)

        async with asyncio.TaskGroup() as group:
            for number in range(20):
                group.create_task(one(number))
        return tuple(order)

    return run_virtual(main, seed=seed)


def test_the_seed_orders_timers_of_one_instant() -> None:
    assert _order(1) == _order(1)
    assert len({_order(seed) for seed in range(5)}) > 1


def test_threads_are_refused() -> None:
    async def main() -> None:
        await asyncio.to_thread(print)

    with pytest.raises(RuntimeError, match="threads"):
        run_virtual(main)


def test_leftovers_are_cancelled_in_the_order_of_creation() -> None:
    ended: list[int] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(number)

    kept: list[asyncio.Task[None]] = []

    async def main() -> None:
        kept.extend(asyncio.create_task(wait(number)) for number in range(12))
        await asyncio.sleep(0)

    run_virtual(main)
    assert ended == list(range(12))


def test_a_failing_group_cancels_in_the_order_of_creation() -> None:
    ended: list[int] = []

    async def wait(number: int) -> None:
        try:
            await asyncio.sleep(1000)
        finally:
            ended.append(number)

    async def fail() -> None:
        await asyncio.sleep(1)
        raise ValueError

    async def main() -> None:
        async with OrderedTaskGroup() as group:
            for number in range(12):
                group.create_task(wait(number))
            group.create_task(fail())

    with pytest.raises(ExceptionGroup):
        run_virtual(main)
    assert ended == list(range(12))


def test_keyed_locks_exclude_per_key_and_leave_nothing_behind() -> None:
    async def main() -> None:
        locks: KeyedLocks[str] = KeyedLocks()
        inside: dict[str, int] = {"a": 0, "b": 0}
        both = 0

        async def use(key: str) -> None:
            nonlocal both
            async with locks.hold(key):
                inside[key] += 1
                assert inside[key] == 1
                both = max(both, sum(inside.values()))
                await asyncio.sleep(1)
                inside[key] -= 1

        async with asyncio.TaskGroup() as group:
            for key in ("a", "b", "a", "b", "a"):
                group.create_task(use(key))
        assert both == 2
        assert len(locks) == 0

    run_virtual(main)
