"""The words of an explanation: causes that rest on causes, down to who must act and what a person can do."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

HEALTHY = "healthy"
WORKING = "working"
"""Something is under way that ends by itself."""
DEGRADED = "degraded"
"""It works, with less protection than promised."""
BLOCKED = "blocked"
"""It does not work, or waits for something that does not come by itself."""
DELETING = "deleting"

VERDICTS = (HEALTHY, WORKING, DEGRADED, BLOCKED, DELETING)


@dataclass(frozen=True)
class Cause:
    """One link of a causal chain."""

    subject: str
    """The object or node this is about: `volume vol`, `replica vol-1`, `node node-3`."""
    text: str
    """What is the matter."""
    reason: str = ""
    """Condition, guard or wait behind it, as the API has it: `IOReady=False/NoQuorum`."""
    since: str = ""
    """RFC 3339; empty = not known."""
    actor: str = ""
    """Who must act for it to end."""
    remedy: str = ""
    """What a person can do; empty = nothing but waiting."""
    because: tuple[Cause, ...] = ()

    def walk(self, depth: int = 0) -> Iterator[tuple[int, Cause]]:
        """This cause and what it rests on, with depths."""
        yield depth, self
        for cause in self.because:
            yield from cause.walk(depth + 1)


@dataclass(frozen=True)
class Impact:
    """What stopping a node would do to a volume."""

    volume: str
    fatal: bool
    """Whether I/O of somebody else would stop, or data would be at stake."""
    text: str


@dataclass(frozen=True)
class Explanation:
    """The answer to `quorate explain`."""

    kind: str
    name: str
    verdict: str
    summary: str
    causes: tuple[Cause, ...] = ()
    keeps_healthy: tuple[str, ...] = ()
    survives: tuple[str, ...] = ()
    safe_to_stop: bool | None = None
    """For a node: whether it may be stopped now."""
    impacts: tuple[Impact, ...] = ()
    """For a node: what stopping it would do."""

    def all_causes(self) -> Iterator[Cause]:
        """Every cause, at any depth."""
        for cause in self.causes:
            yield from (found for _, found in cause.walk())


def listed(names: tuple[str, ...], word: str = "and") -> str:
    """`a, b and c`."""
    if len(names) <= 1:
        return "".join(names)
    return f"{', '.join(names[:-1])} {word} {names[-1]}"
