"""What of a recorded status is compared, and what depends on the speed of the recorded machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple, cast

from quorate.simulator.deliberate_differences import (
    PASSING,
    TORN_OVER,
    UNCOMPARED,
    UNFINISHED,
    WHILE_A_LOOP_WRITES,
    WHILE_SYNCING,
)
from quorate.simulator.transcript import Json

_QUIET: Final = frozenset({"Off", "Established"})
_INNER: Final = frozenset({"devices", "connections", "peer_devices", "paths"})


@dataclass(slots=True)
class Progress:
    """Which peers of a node have a resync behind them that has not come to its end in the recording."""

    open: dict[str, set[int]] = field(default_factory=dict[str, set[int]])

    def follow(self, status: Mapping[str, Json]) -> None:
        for node, recorded in status.items():
            for resource in recorded if isinstance(recorded, list) else ():
                for connection in cast("list[dict[str, Json]]", cast("dict[str, Json]", resource)["connections"]):
                    self._follow_peer(node, connection)

    def _follow_peer(self, node: str, connection: dict[str, Json]) -> None:
        peer = cast("int", connection["peer-node-id"])
        devices = cast("list[dict[str, Json]]", connection["peer_devices"])
        known = self.open.setdefault(node, set())
        if any(d["replication-state"] not in _QUIET or d["resync-suspended"] != "no" for d in devices):
            known.add(peer)
        elif all(not device["out-of-sync"] for device in devices):
            known.discard(peer)

    def unfinished(self, node: str) -> frozenset[int]:
        return frozenset(self.open.get(node, ()))


def comparable(value: Json, *, settled: bool, unfinished: frozenset[int] = frozenset(), looping: bool = False) -> Json:
    """A status without the fields that are not compared; `looping` while a shell loop writes on that node."""
    if isinstance(value, dict):
        hidden = UNCOMPARED if settled else {**UNCOMPARED, **WHILE_SYNCING}
        hidden = {**hidden, **WHILE_A_LOOP_WRITES} if looping else hidden
        if value.get("peer-node-id") in unfinished:
            devices = cast("list[dict[str, Json]]", value["peer_devices"])
            shown: list[Json] = [{k: v for k, v in device.items() if k not in UNFINISHED} for device in devices]
            value = {**value, "peer_devices": shown}
        return {
            key: comparable(item, settled=settled, unfinished=unfinished, looping=looping)
            for key, item in value.items()
            if key not in hidden
        }
    if isinstance(value, list):
        return [comparable(item, settled=settled, unfinished=unfinished, looping=looping) for item in value]
    return value


class Passed(NamedTuple):
    """A state a node went through, and when it entered it."""

    moment: float
    state: Json


def find_passed(history: Sequence[Passed], position: int, wanted: Json) -> int | None:
    """Where a recorded snapshot fits into what a node went through, from `position` on; None when nowhere.

    One whole state, or a reading torn over a short time (`READ_IN_PARTS`): each part as it was at some moment, in the
    order in which the tool asks for them. The answer is where the reading began.
    """
    whole = next((at for at in range(position, len(history)) if history[at].state == wanted), None)
    if whole is not None:
        return whole
    parts = _split(wanted)
    torn = [_split(passed.state) for passed in history]
    for first in range(position, len(history)):
        if torn[first][0] == parts[0] and _reads_on(history, torn, first, parts):
            return first
    return None


def in_passing(state: Json) -> bool:
    """Whether a snapshot shows a connection in a state in which none stays (`PASSING`)."""
    resources = cast("list[dict[str, Json]]", state) if isinstance(state, list) else []
    links = [link for resource in resources for link in cast("list[dict[str, Json]]", resource["connections"])]
    return any(link["connection-state"] in PASSING for link in links)


def _reads_on(history: Sequence[Passed], torn: Sequence[Sequence[Json]], first: int, parts: Sequence[Json]) -> bool:
    """Whether the later parts follow soon enough; taking each as early as possible loses nothing."""
    at = first
    for number, part in enumerate(parts):
        while torn[at][number] != part:
            at += 1
            if at == len(history) or history[at].moment > history[min(first + 1, len(history) - 1)].moment + TORN_OVER:
                return False
    return True


def _split(state: Json) -> tuple[Json, ...]:
    """Resource, devices, connections, peer devices, paths: what `drbdsetup status` asks for one after the other."""
    if not isinstance(state, list):
        return (state,) * 5
    resources = cast("list[dict[str, Json]]", state)
    links = [cast("list[dict[str, Json]]", resource["connections"]) for resource in resources]
    tops: list[Json] = [{k: v for k, v in resource.items() if k not in _INNER} for resource in resources]
    devices: list[Json] = [resource["devices"] for resource in resources]
    connections: list[Json] = [[{k: v for k, v in link.items() if k not in _INNER} for link in each] for each in links]
    peers: list[Json] = [[link["peer_devices"] for link in each] for each in links]
    paths: list[Json] = [[link["paths"] for link in each] for each in links]
    return tops, devices, connections, peers, paths


def count_differences(one: Json, other: Json) -> int:
    """In how many leaves two states differ."""
    if isinstance(one, dict) and isinstance(other, dict):
        return sum(count_differences(one.get(key), other.get(key)) for key in sorted({*one, *other}))
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return sum(count_differences(mine, theirs) for mine, theirs in zip(one, other, strict=True))
    return int(one != other)


def nearest(history: Sequence[Passed], wanted: Json) -> Json:
    """Of the states a node went through, the one that comes closest to what was recorded."""
    return min((passed.state for passed in history), key=lambda state: count_differences(state, wanted), default=None)
