"""Durations and races of connections that belong to the environment; a replay supplies recorded ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from quorate.simulator.model import Connection

HANDSHAKE = 0.05
"""How long authentication, settings and the agreement of both ends take once the transport stands."""


class Timing(Protocol):
    """Durations that belong to the environment; replay and tests may supply their own."""

    def notice_loss(self, node: str, connection: Connection) -> float: ...
    def dial(self, node: str, connection: Connection) -> float: ...
    def transport(self, node: str, connection: Connection, dial: float) -> float: ...
    def first_words(self, node: str, connection: Connection) -> float | None: ...
    def hangs_up_first(self, node: str, connection: Connection) -> bool: ...
    def news(self, node: str, connection: Connection, disk: str) -> float: ...


@dataclass(slots=True)
class DefaultTiming:
    """What an idle link and a retry take with the connection's own options (N4, N5)."""

    jitter: Callable[[], float]

    def notice_loss(self, node: str, connection: Connection) -> float:
        interval, timeout = connection.net["ping-int"], connection.net["ping-timeout"]
        assert isinstance(interval, int)
        assert isinstance(timeout, int)
        return interval * self.jitter() + timeout / 10

    def dial(self, node: str, connection: Connection) -> float:
        return 0.2 + 0.8 * self.jitter()

    def transport(self, node: str, connection: Connection, dial: float) -> float:
        return max(dial - HANDSHAKE, 0.0)

    def first_words(self, node: str, connection: Connection) -> float | None:
        """When two ends compare what they have, if that is known apart from the moment they are Connected."""
        return None

    def hangs_up_first(self, node: str, connection: Connection) -> bool:
        """The race between closing the transport and the probe of the others: the harder outcome (X0a)."""
        return False

    def news(self, node: str, connection: Connection, disk: str) -> float:
        """When a node hears of this state of a peer's disk, next to the same news of another peer: no difference."""
        return 0.0
