"""When the nodes of a recording noticed what happened around them, for the replay. Moments only, never outcomes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quorate.simulator.model import Connection
from quorate.simulator.replay_loops import Openings
from quorate.simulator.scheduler import SimulatedTime
from quorate.simulator.timing import DefaultTiming
from quorate.simulator.transcript import Command, Transcript

_CHANGE: Final = re.compile(r"change connection .*peer-node-id:(\d+) .*connection:(\w+)")
_PATH: Final = re.compile(r"change path .*peer-node-id:(\d+) .*established:yes")
_STATES_OF_LOSS: Final = frozenset({"NetworkFailure", "BrokenPipe", "Timeout", "ProtocolError"})
_OPENED: Final = re.compile(r"change device .*minor:(\d+) .*open:(yes|no)")
_DISK: Final = re.compile(r"change peer-device .*peer-node-id:(\d+) .*(peer-disk:\w+)")
_TRANSPORT: Final = "a path is established"
_WINDOW: Final = 40.0
_AT_ONCE: Final = 0.5
_SOON: Final = 0.06


@dataclass(slots=True)
class RecordedTiming:
    """When the recorded nodes noticed things; the default where the recording says nothing."""

    fallback: DefaultTiming
    moments: Mapping[str, tuple[tuple[float, int, str], ...]]
    clock: SimulatedTime

    def notice_loss(self, node: str, connection: Connection) -> float:
        return self._next(node, connection.peer_id, _STATES_OF_LOSS) or self.fallback.notice_loss(node, connection)

    def dial(self, node: str, connection: Connection) -> float:
        return self._next(node, connection.peer_id, frozenset({"Connected"})) or self.fallback.dial(node, connection)

    def transport(self, node: str, connection: Connection, dial: float) -> float:
        """When the recorded path was established, if that was before the connection stood."""
        moment = self._next(node, connection.peer_id, frozenset({_TRANSPORT}))
        earlier = moment is not None and moment <= dial
        return moment if earlier and moment is not None else dial

    def first_words(self, node: str, connection: Connection) -> float | None:
        """Shortly after the recorded transport stood."""
        moment = self._next(node, connection.peer_id, frozenset({_TRANSPORT}))
        connected = self._next(node, connection.peer_id, frozenset({"Connected"}))
        if moment is None or (connected is not None and connected <= moment + 2 * _SOON):
            return None
        return moment + _SOON

    def hangs_up_first(self, node: str, connection: Connection) -> bool:
        """Whether the recorded end was dialling again at once, before the others had answered its probe (S17b)."""
        moment = self._next(node, connection.peer_id, frozenset({"Unconnected"}))
        return moment is not None and moment < _AT_ONCE

    def news(self, node: str, connection: Connection, disk: str) -> float:
        """The recorded order in which a node heard of its peers; refused news left no line and came last (S19)."""
        moment = self._next(node, connection.peer_id, frozenset({f"peer-disk:{disk}"}))
        return moment if moment is not None else _WINDOW

    def _next(self, node: str, peer_id: int, states: frozenset[str]) -> float | None:
        now = self.clock.time()
        for moment, peer, state in self.moments.get(node, ()):
            if moment > now and peer == peer_id and state in states:
                return moment - now if moment - now < _WINDOW else None
        return None


def last_signs_of_life(transcript: Transcript) -> dict[int, list[str]]:
    """By step: the machines that are gone after it; what killed them is an event of the environment.

    A command whose own snapshot misses the machine may be what killed it, so it still ran with it.
    """
    found: dict[int, list[str]] = {}
    alive: dict[str, int] = {}
    for step in transcript.steps:
        for node, recorded in step.status.items():
            if recorded == "unreachable" and node in alive:
                last = alive.pop(node)
                found.setdefault(step.index if isinstance(step, Command) else last, []).append(node)
            elif not isinstance(recorded, str):
                alive[node] = step.index
    return found


def recorded_moments(transcript: Transcript) -> dict[str, tuple[tuple[float, int, str], ...]]:
    found: dict[str, tuple[tuple[float, int, str], ...]] = {}
    for node, lines in transcript.events.items():
        moments: list[tuple[float, int, str]] = []
        for time, line in lines:
            match = _CHANGE.search(line)
            if match is not None:
                moments.append((time, int(match.group(1)), match.group(2)))
            path = _PATH.search(line)
            if path is not None:
                moments.append((time, int(path.group(1)), _TRANSPORT))
            disk = _DISK.search(line)
            if disk is not None:
                moments.append((time, int(disk.group(1)), disk.group(2)))
        found[node] = tuple(moments)
    return found


def recorded_openings(transcript: Transcript) -> Openings:
    """When a device became open and when its last opener left."""
    found: dict[str, list[tuple[float, int, bool]]] = {}
    for node, lines in transcript.events.items():
        for time, line in lines:
            match = _OPENED.search(line)
            if match is not None:
                found.setdefault(node, []).append((time, int(match.group(1)), match.group(2) == "yes"))
    return Openings(found)
