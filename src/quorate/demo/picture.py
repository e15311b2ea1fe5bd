"""The picture of the tour: nodes × volumes, what each replica is and how it feels, as values and as lines of text.

Pure: from API objects and the progress of running copies to cells, from cells to lines of at most 80 columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quorate.api.common import DiskState
from quorate.api.datamesh_structures import DatameshMember
from quorate.api.replicated_volume import MemberType, ReplicatedVolume
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica

_STATES = {DiskState.INCONSISTENT: "blank", DiskState.OUTDATED: "outdated", DiskState.FAILED: "failed"}
WIDTH = 80
NAME = 9
COLUMN = 11


@dataclass(frozen=True)
class NodeView:
    """A column."""

    name: str
    zone: str
    running: bool


@dataclass(frozen=True)
class Cell:
    """A replica on a node."""

    text: str
    mood: str
    """good, busy, bad or quiet: what colours tell."""


@dataclass(frozen=True)
class VolumeView:
    """A row."""

    name: str
    cells: Mapping[str, Cell]
    """By node name."""
    note: str
    mood: str


@dataclass(frozen=True)
class Picture:
    """Everything that is shown at one moment."""

    nodes: tuple[NodeView, ...]
    volumes: tuple[VolumeView, ...]
    footer: str = ""


def compute_row(
    volume: ReplicatedVolume,
    replicas: Mapping[str, ReplicatedVolumeReplica],
    running: Mapping[str, bool],
    copied: Mapping[str, int],
) -> VolumeView:
    """One volume; `replicas` and `copied` (per cent) by replica name, `running` by node name."""
    members = {member.name: member for member in volume.status.datamesh.members}
    cells: dict[str, Cell] = {}
    for name, replica in replicas.items():
        node = replica.spec.node_name
        if node and replica.spec.replicated_volume_name == volume.metadata.name:
            cells[node] = _cell(members.get(name), replica, running.get(node, True), copied.get(name))
    note, mood = _note(volume, whole=all(cell.mood != "bad" for cell in cells.values()))
    return VolumeView(volume.metadata.name, cells, note, mood)


def _cell(member: DatameshMember | None, replica: ReplicatedVolumeReplica, running: bool, copied: int | None) -> Cell:
    mark = "*" if member is not None and member.attached else ""
    if not running:
        return Cell("lost", "bad")
    if replica.metadata.deletion_timestamp:
        return Cell("leaving", "busy")
    if member is None:
        return Cell("joining", "busy")
    if copied is not None:
        return Cell(f"copy {copied}%{mark}", "busy")
    if member.type == MemberType.TIE_BREAKER:
        return Cell(f"tie-break{mark}", "good")
    if member.type == MemberType.ACCESS:
        return Cell(f"access{mark}", "good")
    backing = replica.status.backing_volume
    state = backing.state if backing is not None else ""
    if state == DiskState.UP_TO_DATE:
        return Cell(f"copy{mark}", "good")
    return Cell(_STATES.get(state, "starting"), "busy")


def _note(volume: ReplicatedVolume, *, whole: bool) -> tuple[str, str]:
    status = volume.status
    if volume.metadata.deletion_timestamp:
        return "deleting", "busy"
    if not status.membership_layout:
        return "forming", "busy"
    if status.datamesh_transitions:
        return f"{status.membership_layout} …", "busy"
    observed = status.observed_protection
    whole = whole and observed is not None and observed.up_to_date_voters == observed.total_voters
    return f"{status.membership_layout}{'' if whole else ' !'}", "good" if whole else "bad"


def lines(picture: Picture) -> Iterator[list[tuple[str, str]]]:
    """Lines as pieces of text with a mood; never wider than the width."""
    yield [(" " * NAME, "quiet"), *((f"{_head(node):{COLUMN}}"[:COLUMN], _mood(node)) for node in picture.nodes)]
    yield [(" " * NAME, "quiet"), *((f"{node.zone:{COLUMN}}"[:COLUMN], "quiet") for node in picture.nodes)]
    for volume in picture.volumes:
        pieces = [(f"{volume.name:{NAME}}"[:NAME], "name")]
        for node in picture.nodes:
            cell = volume.cells.get(node.name, Cell("·", "quiet"))
            pieces.append((f"{cell.text:{COLUMN}}"[:COLUMN], cell.mood))
        pieces.append((volume.note, volume.mood))
        yield pieces
    if picture.footer:
        yield [(picture.footer[: WIDTH - 1], "quiet")]


def plain_row(picture: Picture, volume: VolumeView) -> str:
    """A volume in one line of words, for places without a terminal."""
    shown = [(node.name.removeprefix("node-"), volume.cells.get(node.name)) for node in picture.nodes]
    nodes = [f"{name}:{cell.text.replace(' ', '-')}" for name, cell in shown if cell is not None]
    return f"    {volume.name:{NAME}}{volume.note:9}{' '.join(nodes)}".rstrip()[:WIDTH]


def _head(node: NodeView) -> str:
    return node.name if node.running else f"{node.name} X"


def _mood(node: NodeView) -> str:
    return "name" if node.running else "bad"
