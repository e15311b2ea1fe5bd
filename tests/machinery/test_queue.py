"""The work queue, guarantee by guarantee."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.machinery.clock import LoopClock
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from quorate.machinery.queue import BackOff, Bucket, Priority, Queue, QueueClosed
from quorate.machinery.virtual_loop import run_virtual

T = TypeVar("T")


def with_queue(body: Callable[[Queue, LoopClock, MachineryMetrics], Coroutine[object, object, T]]) -> T:
    async def main() -> T:
        clock = LoopClock()
        metrics = MachineryMetrics(Registry())
        return await body(Queue("q", clock, metrics), clock, metrics)

    return run_virtual(main)


async def take(queue: Queue, count: int) -> list[str]:
    taken: list[str] = []
    for _ in range(count):
        key = await queue.get()
        queue.done(key)
        taken.append(key)
    return taken


def test_one_entry_per_key_first_in_first_out() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        for key in ("a", "b", "a", "c", "b"):
            queue.add(key)
        assert len(queue) == 3
        assert metrics.depth.value("q") == 3
        assert metrics.adds.value("q") == 5
        assert await take(queue, 3) == ["a", "b", "c"]
        assert queue.idle

    with_queue(body)


def test_a_key_added_while_worked_on_is_worked_on_afterwards_and_not_at_the_same_time() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        queue.add("a")
        key = await queue.get()
        queue.add("a")
        queue.add("a")
        assert len(queue) == 0
        queue.done(key)
        assert len(queue) == 1
        assert await take(queue, 1) == ["a"]
        assert queue.idle

    with_queue(body)


def test_the_earliest_deadline_wins() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        started = clock.now()
        queue.add("a", after=100)
        queue.add("a", after=10)
        queue.add("a", after=50)
        await take(queue, 1)
        assert clock.now() - started == pytest.approx(10, abs=0.01)
        assert queue.delayed == 0

    with_queue(body)


def test_an_undelayed_add_takes_a_delayed_entry_along() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        queue.add("a", after=100)
        queue.add("a")
        assert await take(queue, 1) == ["a"]
        assert queue.delayed == 0

    with_queue(body)


def test_a_delay_set_while_the_key_is_worked_on_counts_from_then() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        queue.add("a")
        key = await queue.get()
        queue.add("a", after=5)
        queue.done(key)
        started = clock.now()
        await take(queue, 1)
        assert clock.now() - started == pytest.approx(5, abs=0.01)

    with_queue(body)


def test_a_deadline_that_passes_during_work_is_worked_on_right_after_it() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        queue.add("slow")
        key = await queue.get()
        queue.add("slow", after=1)
        queue.add("other", after=2)
        await clock.sleep(10)
        assert await take(queue, 1) == ["other"]
        queue.done(key)
        assert await take(queue, 1) == ["slow"]

    with_queue(body)


def test_live_changes_go_before_the_initial_list_without_starving_it() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        for number in range(3):
            queue.add(f"low{number}", priority=Priority.LOW)
        for number in range(20):
            queue.add(f"high{number}")
        taken = await take(queue, 23)
        assert taken[:7] == [f"high{number}" for number in range(7)]
        assert taken.index("low0") == 7
        assert taken.index("low1") == 15

    with_queue(body)


def test_a_live_change_raises_the_priority_of_a_waiting_key() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        queue.add("a", priority=Priority.LOW)
        queue.add("b", priority=Priority.LOW)
        queue.add("b")
        assert len(queue) == 2
        assert await take(queue, 2) == ["b", "a"]
        assert len(queue) == 0

    with_queue(body)


def test_retries_back_off_per_key_from_5_ms_to_60_s() -> None:
    back_off = BackOff()
    delays = [back_off.delay("a") for _ in range(20)]
    assert delays[:3] == [0.005, 0.01, 0.02]
    assert delays[-1] == 60.0
    assert back_off.delay("b") == 0.005
    back_off.forget("a")
    assert back_off.delay("a") == 0.005


def test_all_retries_share_a_bucket() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        bucket = Bucket(clock, rate=100, burst=500)
        assert [bucket.delay() for _ in range(500)] == [0.0] * 500
        assert bucket.delay() == pytest.approx(0.01)
        assert bucket.delay() == pytest.approx(0.02)
        await clock.sleep(10)
        assert bucket.delay() == 0.0

    with_queue(body)


def test_a_retried_key_comes_back_after_its_delay_and_is_counted() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        started = clock.now()
        for _ in range(5):
            queue.add_rate_limited("a")
            await take(queue, 1)
        assert clock.now() - started == pytest.approx(0.005 * 31, abs=0.002)
        assert metrics.retries.value("q") == 5
        queue.forget("a")
        queue.add_rate_limited("a", at_least=3)
        before = clock.now()
        await take(queue, 1)
        assert clock.now() - before == pytest.approx(3, abs=0.01)

    with_queue(body)


def test_latency_is_measured_from_ready_to_handed_out() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        queue.add("a")
        await clock.sleep(2)
        await take(queue, 1)
        assert metrics.queue_time.value("q") == pytest.approx(2, abs=0.01)
        assert metrics.queue_time.count("q") == 1

    with_queue(body)


def test_close_wakes_the_consumer_and_forgets_what_waits() -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        queue.add("a", after=5)
        waiting = asyncio.create_task(queue.get())
        await clock.sleep(1)
        queue.close()
        with pytest.raises(QueueClosed):
            await waiting
        queue.add("b")
        assert len(queue) == 0

    with_queue(body)


Operation = tuple[str, str, float]
operations = st.lists(
    st.tuples(
        st.sampled_from(["add", "low", "delay", "retry", "get", "done"]),
        st.sampled_from(["a", "b", "c"]),
        st.floats(0.001, 5),
    ),
    max_size=60,
)


@settings(max_examples=150, deadline=None)
@given(operations)
def test_whatever_happens_no_key_is_handed_out_twice_and_none_is_lost(steps: list[Operation]) -> None:
    async def body(queue: Queue, clock: LoopClock, metrics: MachineryMetrics) -> None:
        working: dict[str, None] = {}
        owed: dict[str, None] = {}

        async def get(wait: float) -> bool:
            try:
                async with asyncio.timeout(wait):
                    key = await queue.get()
            except TimeoutError:
                return False
            assert key not in working
            working[key] = None
            owed.pop(key, None)
            return True

        for name, key, delay in steps:
            match name:
                case "get":
                    await get(delay)
                case "done":
                    if key in working:
                        del working[key]
                        queue.done(key)
                case _:
                    owed[key] = None
                    if name == "retry":
                        queue.add_rate_limited(key)
                    else:
                        priority = Priority.LOW if name == "low" else Priority.HIGH
                        queue.add(key, priority=priority, after=delay if name == "delay" else 0)
        for key in tuple(working):
            del working[key]
            queue.done(key)
        while await get(1000):
            key = next(iter(working))
            del working[key]
            queue.done(key)
        assert not owed
        assert queue.idle
        assert queue.delayed == 0

    with_queue(body)
