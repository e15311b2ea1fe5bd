"""The port to the scheduler extender: who holds capacity. Implementations are in `quorate.extender.client`."""

from __future__ import annotations

from typing import Protocol

from quorate.api.scheduler_extender import FilterAndScore, NarrowReservation, Scores


class ExtenderUnavailable(Exception):
    """The extender did not answer, or refused; the message says why."""


class Extender(Protocol):
    """Scores places and reserves capacity."""

    async def filter_and_score(self, request: FilterAndScore) -> Scores:
        """The places that have room; raises ExtenderUnavailable."""
        ...

    async def narrow(self, request: NarrowReservation) -> None:
        """Keep one place; raises ExtenderUnavailable when it is not kept."""
        ...
