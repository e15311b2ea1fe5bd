"""What of a recorded status is compared, and what depends on the speed of the recorded machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, cast

from quorate.simulator.deliberate_differences import UNCOMPARED, UNFINISHED, WHILE_SYNCING
from quorate.simulator.transcript import Json

_QUIET: Final = frozenset({"Off", "Established"})


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


def comparable(value: Json, *, settled: bool, unfinished: frozenset[int] = frozenset()) -> Json:
    """A status without the fields that are not compared."""
    if isinstance(value, dict):
        hidden = UNCOMPARED if settled else {**UNCOMPARED, **WHILE_SYNCING}
        if value.get("peer-node-id") in unfinished:
            devices = cast("list[dict[str, Json]]", value["peer_devices"])
            shown: list[Json] = [{k: v for k, v in device.items() if k not in UNFINISHED} for device in devices]
            value = {**value, "peer_devices": shown}
        return {
            key: comparable(item, settled=settled, unfinished=unfinished)
            for key, item in value.items()
            if key not in hidden
        }
    if isinstance(value, list):
        return [comparable(item, settled=settled, unfinished=unfinished) for item in value]
    return value
