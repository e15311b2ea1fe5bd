"""An event loop on virtual time: no sockets, no threads, no waiting.

Guarantees: when nothing is ready, time jumps to the next timer; when there is no timer either, nothing can ever
happen again and `Deadlock` names the tasks that wait. Two runs with one seed execute the same callbacks in the same
order, in any process: callbacks run first in, first out, and timers of the same instant run in an order drawn from
the seed (asyncio promises none, so the seed explores interleavings that are legal).
"""

from __future__ import annotations

import asyncio
import math
from asyncio import base_events
from collections.abc import Callable, Coroutine, Generator
from contextvars import Context
from random import Random
from typing import NoReturn, TypeVar, TypeVarTuple, cast

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TIE_STEP = 1e-6
"""Timers are moved by up to 63 of these; larger than the resolution of a float at today's epoch seconds (2.4e-7)."""


class Deadlock(RuntimeError):
    """Every task waits and no timer is set."""


class _Selector:
    """Stands where asyncio waits for sockets: moves the time forward instead."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def select(self, timeout: float | None) -> tuple[()]:
        self._loop.advance(timeout)
        return ()


class VirtualLoop(base_events.BaseEventLoop):
    """See the module docstring. `steps` counts loop iterations, so cost at rest can be asserted without a stopwatch."""

    def __init__(self, *, seed: int, start: float) -> None:
        super().__init__()
        self._selector = _Selector(self)
        self._virtual_time = start
        self._ties = Random(seed)
        self._created = 0
        self.steps = 0

    def time(self) -> float:
        return self._virtual_time

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        if when > self._virtual_time:
            when += self._ties.randrange(64) * TIE_STEP
        return super().call_at(when, callback, *args, context=context)

    def create_task(
        self,
        coro: Coroutine[object, object, T] | Generator[object, None, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> asyncio.Task[T]:
        # asyncio numbers tasks per process; names must be the same in every run, because leftovers end in their
        # order.
        self._created += 1
        return super().create_task(coro, name=f"{name or 'task'}#{self._created:08d}", context=context)

    def stand_still(self, seconds: float) -> None:
        """Let time pass without running anything: the whole process is paused. Called from within a callback."""
        self._virtual_time += seconds

    def advance(self, timeout: float | None) -> None:
        """One loop iteration begins: jump to the first timer when nothing else is ready."""
        self.steps += 1
        if timeout is None:
            waiting = sorted(task.get_name() for task in asyncio.all_tasks(self))
            raise Deadlock(f"nothing is scheduled and {len(waiting)} tasks wait: {', '.join(waiting)}")
        if timeout > 0:
            # Exactly the timer's moment: adding the difference could round to just before it.
            timers = cast("list[asyncio.TimerHandle]", getattr(self, "_scheduled"))  # noqa: B009 (private to asyncio)
            self._virtual_time = max(self._virtual_time, timers[0].when())
        # asyncio runs timers before `time() + resolution`: the smallest step makes that "until now", not a moment
        # early
        self._clock_resolution = math.ulp(self._virtual_time)

    def _process_events(self, event_list: tuple[()]) -> None:
        """There are no sockets."""

    def _write_to_self(self) -> None:
        """There are no threads to wake the loop from."""

    def run_in_executor(self, executor: object, func: Callable[[*Ts], T], *args: *Ts) -> NoReturn:
        raise RuntimeError("threads would make the simulation depend on the machine")


def run_virtual(
    main: Callable[[], Coroutine[object, object, T]], *, seed: int = 0, start: float = 1_700_000_000.0
) -> T:
    """Run `main()` to its end on a fresh virtual loop; what it leaves behind is cancelled in the order of creation."""
    loop = VirtualLoop(seed=seed, start=start)
    try:
        asyncio.set_event_loop(loop)
        return loop.run_until_complete(main())
    finally:
        try:
            _cancel_leftovers(loop)
            loop.run_until_complete(loop.shutdown_asyncgens())
        finally:
            asyncio.set_event_loop(None)
            loop.close()


def _cancel_leftovers(loop: VirtualLoop) -> None:
    leftovers = sorted(asyncio.all_tasks(loop), key=lambda task: task.get_name().rpartition("#")[2])
    for task in leftovers:
        task.cancel()
    if leftovers:
        loop.run_until_complete(asyncio.gather(*leftovers, return_exceptions=True))
