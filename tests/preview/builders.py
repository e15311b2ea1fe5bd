"""Real states to preview from: a whole system runs on virtual time, and its objects are taken as a cluster's."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from quorate.explain.view import KINDS, ClusterView, view_of
from quorate.local.shape import Shape
from quorate.verification.system.system import System, SystemOptions, run_system


def state_of(story: Callable[[System], Awaitable[None]], shape: Shape) -> ClusterView:
    """The objects of a system after a story."""

    async def told(system: System) -> ClusterView:
        await story(system)
        return view_of([item for kind in KINDS for item in await system.list(kind)])

    return run_system(told, SystemOptions(shape=shape))
