"""The shape of a cluster that lives in a directory: chosen once, kept in `cluster.json`, only ever grown.

A directory is continued with the shape it was made with. More nodes may be asked for; anything else that differs would
take disks away from data, and is refused with a sentence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from quorate.local.kubeconfig import write_private
from quorate.local.shape import Shape

FILE = "cluster.json"


class ShapeMismatch(Exception):
    """Why a directory cannot be continued as asked, as a sentence for people."""


@dataclass(frozen=True)
class ShapeWish:
    """What a person asked for; None means "as it is, or the default"."""

    nodes: int | None = None
    zones: int | None = None
    groups: tuple[str, ...] | None = None
    thin: bool | None = None


DEFAULT = Shape()


def choose_shape(directory: Path | None, wish: ShapeWish) -> Shape:
    """The shape to run: the directory's own, grown if asked, or a new one."""
    stored = read_shape(directory) if directory is not None else None
    base = stored or DEFAULT
    chosen = replace(
        base,
        nodes=base.nodes if wish.nodes is None else wish.nodes,
        zones=base.zones if wish.zones is None else wish.zones,
        groups=base.groups if wish.groups is None else wish.groups,
        thin=base.thin if wish.thin is None else wish.thin,
    )
    if stored is not None:
        _check_continues(directory, stored, chosen)
    return chosen


def read_shape(directory: Path) -> Shape | None:
    """The shape that a directory was made with."""
    try:
        text = (directory / FILE).read_bytes()
    except OSError:
        return None
    try:
        return msgspec.json.decode(text, type=Shape)
    except msgspec.MsgspecError as error:
        raise ShapeMismatch(f"Cannot use {directory}: {FILE} is damaged ({error}).") from error


def write_shape(directory: Path, shape: Shape) -> None:
    """Keep a shape for the next start."""
    write_private(directory / FILE, msgspec.json.encode(shape).decode() + "\n")


def _check_continues(directory: Path | None, stored: Shape, chosen: Shape) -> None:
    if chosen.nodes < stored.nodes:
        raise ShapeMismatch(
            f"{directory} holds a cluster of {stored.nodes} nodes; it can grow but not shrink to {chosen.nodes}."
        )
    for name, old, new in (
        ("--zones", stored.zones, chosen.zones),
        ("--vgs", ",".join(stored.groups), ",".join(chosen.groups)),
        ("--thin/--thick", "thin" if stored.thin else "thick", "thin" if chosen.thin else "thick"),
    ):
        if old != new:
            raise ShapeMismatch(f"{directory} holds a cluster made with {name} {old}; {new} needs another directory.")
