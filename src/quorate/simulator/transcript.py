"""Reads recorded scenarios of a real cluster (JSON Lines) as frozen steps.

Guarantees: "same" is resolved to the value it stands for, so every step carries what was recorded of every node
at that moment; unknown fields are ignored; nothing depends on the name of a file. A *group* is a run of
consecutive `observe` steps: its last one is where the recorder saw the cluster settle.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, cast

Json = None | bool | int | float | str | list["Json"] | dict[str, "Json"]

SAME: Final = "same"
ABSENT: Final = frozenset({"node-down", "unreachable"})


@dataclass(frozen=True, slots=True)
class RecordedNode:
    """A machine of the lab: its DRBD node id and its address per network."""

    name: str
    node_id: int
    addresses: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Command:
    """A command line on one node; `exit_code` None means that it did not end in time."""

    index: int
    time: float
    node: str
    line: str
    exit_code: int | None
    stdout: str
    stderr: str
    duration: float
    status: Mapping[str, Json]
    show: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class LabAction:
    """Something the lab did to the machines or the network, or a section title."""

    index: int
    time: float
    action: str
    status: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class Observation:
    """A snapshot taken while waiting; `closes_group` marks the settled one."""

    index: int
    time: float
    note: str
    status: Mapping[str, Json]
    closes_group: bool


Step = Command | LabAction | Observation
EventLines = tuple[tuple[float, str], ...]


@dataclass(frozen=True, slots=True)
class Transcript:
    """One recorded scenario."""

    scenario: str
    title: str
    nodes: tuple[RecordedNode, ...]
    steps: tuple[Step, ...]
    events: Mapping[str, EventLines]


def read_transcript(path: Path) -> Transcript:
    """Reads one file; raises ValueError when it has no header."""
    header: dict[str, Json] | None = None
    events: dict[str, EventLines] = {}
    raw: list[dict[str, Json]] = []
    for record in _records(path):
        match record.get("kind"):
            case "header":
                header = record
            case "cmd" | "lab" | "observe":
                raw.append(record)
            case "events2":
                lines = cast("list[list[float | str]]", record["lines"])
                events[_text(record, "node")] = tuple((float(time), str(line)) for time, line in lines)
            case _:
                pass  # the kernel log explains a recording, it is not compared
    if header is None:
        raise ValueError(f"{path}: no header line")
    nodes = cast("dict[str, dict[str, Json]]", header["nodes"])
    return Transcript(
        scenario=_text(header, "scenario"),
        title=_text(header, "title"),
        nodes=tuple(_node(name, entry) for name, entry in sorted(nodes.items())),
        steps=tuple(_steps(raw)),
        events=events,
    )


def _records(path: Path) -> Iterator[dict[str, Json]]:
    with path.open(encoding="utf-8") as lines:
        for line in lines:
            if line.strip():
                yield cast("dict[str, Json]", json.loads(line))


def _node(name: str, entry: Mapping[str, Json]) -> RecordedNode:
    addresses = {key: str(value) for key, value in entry.items() if key != "node_id"}
    return RecordedNode(name, int(cast("int", entry["node_id"])), addresses)


def _steps(raw: list[dict[str, Json]]) -> Iterator[Step]:
    last: dict[str, Json] = {}
    for position, record in enumerate(raw):
        status = _resolve(cast("dict[str, Json]", record.get("status") or {}), last)
        index, time = int(cast("int", record["i"])), float(cast("float", record["t"]))
        match record["kind"]:
            case "cmd":
                yield Command(
                    index=index,
                    time=time,
                    node=_text(record, "node"),
                    line=_text(record, "cmd"),
                    exit_code=cast("int | None", record.get("rc")),
                    stdout=str(record.get("stdout") or ""),
                    stderr=str(record.get("stderr") or ""),
                    duration=float(cast("float | None", record.get("duration")) or 0.0),
                    status=status,
                    show=cast("dict[str, Json]", record.get("show") or {}),
                )
            case "lab":
                yield LabAction(index, time, _text(record, "action"), status)
            case _:
                following = raw[position + 1] if position + 1 < len(raw) else None
                closes = following is None or following["kind"] != "observe"
                yield Observation(index, time, str(record.get("note") or ""), status, closes)


def _resolve(recorded: Mapping[str, Json], last: dict[str, Json]) -> dict[str, Json]:
    """Replaces "same" by the last value recorded for that node."""
    last.update({node: value for node, value in recorded.items() if value != SAME})
    return {node: last[node] for node in recorded if node in last}


def _text(record: Mapping[str, Json], key: str) -> str:
    return str(record[key])
