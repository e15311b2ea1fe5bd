"""Plays the acts in order on one cluster and keeps the record: what was checked and whether it held.

The tour is a function of the seed. It ends at the first act that cannot go on; whatever did not happen is not ok.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from quorate.demo.acts import ACTS, Act, Check, Checks
from quorate.demo.paced_loop import PacedLoop, run_paced
from quorate.demo.picture import Picture
from quorate.demo.stage import NotReached, Stage, build_stage
from quorate.local.io import IoRefused
from quorate.machinery import errors

FRAMES = 8.0
"""Pictures per second of the viewer's time."""
READING = 1.5
"""Seconds to read the two lines before an act."""
SEEING = 1.2
"""Seconds to see the checks after it."""


class Screen(Protocol):
    """Where the tour is shown."""

    def begin(self, number: int, total: int, act: Act) -> None: ...
    def show(self, picture: Picture) -> None: ...
    def end(self, act: Act, checks: Sequence[Check], seconds: float) -> None: ...


@dataclass(frozen=True)
class ActRecord:
    """How an act went."""

    name: str
    title: str
    seconds: float
    """Of the cluster's time."""
    checks: tuple[Check, ...]

    @property
    def ok(self) -> bool:
        return bool(self.checks) and all(check.ok for check in self.checks)


@dataclass(frozen=True)
class TourRecord:
    """How the tour went."""

    seed: int
    acts: tuple[ActRecord, ...]
    acknowledged: int
    planned: int
    """Acts that should have been played."""

    @property
    def ok(self) -> bool:
        return len(self.acts) == self.planned and all(act.ok for act in self.acts)


@dataclass
class Player:
    """One performance."""

    loop: PacedLoop
    stage: Stage
    screen: Screen
    pace: float
    """1 is for people; 0 is as fast as the machine can."""
    acts: tuple[Act, ...] = ACTS
    records: list[ActRecord] = field(default_factory=list[ActRecord])

    async def play(self) -> None:
        """All acts, or up to the first that cannot go on."""
        for number, act in enumerate(self.acts, 1):
            self.screen.begin(number, len(self.acts), act)
            await self._wait(READING)
            checks = Checks()
            began = self.stage.clock.monotonic()
            self.loop.speed = act.speed * self.pace
            drawing = asyncio.create_task(self._draw(act), name="picture")
            failed = await self._perform(act, checks)
            drawing.cancel()
            await asyncio.gather(drawing, return_exceptions=True)
            self.screen.show(await self.stage.picture())
            took = self.stage.clock.monotonic() - began
            self.records.append(ActRecord(act.name, act.title, round(took, 3), tuple(checks.done)))
            self.screen.end(act, checks.done, took)
            if failed:
                return
            await self._wait(SEEING)

    async def _perform(self, act: Act, checks: Checks) -> bool:
        """Whether the tour has to end here."""
        try:
            await act.play(self.stage, checks)
        except (NotReached, IoRefused, errors.ApiError) as error:
            checks.that("reached", False, str(error))
            return True
        return False

    async def _draw(self, act: Act) -> None:
        while True:
            self.screen.show(await self.stage.picture())
            await self.stage.clock.sleep(act.speed / FRAMES)

    async def _wait(self, seconds: float) -> None:
        """Let the viewer look: cluster time passes at its normal speed."""
        self.loop.speed = self.pace
        if self.pace > 0:
            await self.stage.clock.sleep(seconds)


def play_tour(screen: Screen, *, seed: int, pace: float, acts: tuple[Act, ...] = ACTS) -> TourRecord:
    """Play the tour to its end."""

    async def main(loop: PacedLoop) -> TourRecord:
        stage = await build_stage(seed)
        player = Player(loop, stage, screen, pace, acts)
        try:
            await player.play()
        finally:
            loop.speed = 0.0
            await stage.stop_writer()
            await stage.cluster.stop()
        return TourRecord(seed, tuple(player.records), stage.acknowledged, len(acts))

    return run_paced(main, seed=seed)
