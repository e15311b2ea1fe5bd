"""What a preview says."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Edit:
    """The change to preview; None = as it is."""

    ftt: int | None = None
    gmdr: int | None = None
    size: int | None = None
    """Bytes."""
    replace_node: str = ""
    """Move the replica on this node somewhere else."""


@dataclass(frozen=True)
class Guard:
    """A condition that is checked."""

    name: str
    text: str


@dataclass(frozen=True)
class Level:
    """FTT and GMDR."""

    ftt: int | None
    gmdr: int | None


@dataclass(frozen=True)
class Step:
    """One thing that happens, in order."""

    number: int
    kind: str
    """`replica` for a replica object that is created, deleted or retyped; `transition` for a step of a transition."""
    what: str
    """`AddReplica data-3`, `create replica data-3 (Diskful)`."""
    step: str
    """Name and position of the transition's step: `D∅ → D (3/3)`."""
    plan: str
    replica: str
    node: str
    why: str
    guards: tuple[Guard, ...]
    """Checked before the transition starts, with the gates of this step."""
    confirmed_by: tuple[str, ...]
    """Replicas that must confirm, as `data-0 on node-1`."""
    waits: tuple[str, ...]
    """What it waited for on the way, besides the confirmations."""
    protection: Level
    """Observed when the step began."""
    after_seconds: float
    """Simulated time since the edit; copying is cut short, so this is no forecast."""


@dataclass(frozen=True)
class Placement:
    """Where a replica is before and after."""

    replica: str
    type: str
    node: str
    change: str
    """`kept`, `added`, `removed` or `retyped`."""


@dataclass(frozen=True)
class Preview:
    """The answer to `quorate plan`."""

    volume: str
    possible: bool
    reason: str
    """Why the change is impossible; empty when it is possible."""
    steps: tuple[Step, ...] = ()
    lowest_protection: Level | None = None
    promised_before: Level | None = None
    promised_after: Level | None = None
    bytes_to_copy: int = 0
    nodes: tuple[Placement, ...] = ()
    notes: tuple[str, ...] = ()
    """What differs between the copy and the real volume."""


class CannotPreview(Exception):
    """The present state cannot be reproduced; the text says why."""
