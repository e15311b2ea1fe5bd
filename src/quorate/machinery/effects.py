"""Effects: what a decision wants done, as plain data.

A controller returns a `Decision`; one executor performs its effects in order, stops at the first conflict or failure
and requeues. Crash injection is "perform only the first k effects". Every effect says why it exists (`cause`),
because every destructive one leaves a log line and an Event (rule 9 of the design).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TypeAlias

from quorate.api.meta import ObjectRef
from quorate.api.resources import AnyObject


class Half(Enum):
    """The two halves of an object that are written separately."""

    MAIN = "main"
    STATUS = "status"


class Mode(Enum):
    """How a patch relates to what others wrote meanwhile (rule 5)."""

    DECISION = "decision"
    """Locked with the resource version it was decided from, never rebased."""
    REPORT = "report"
    """Own condition types and own fields only; rebased onto the newest cached object."""
    UNLOCKED = "unlocked"
    """One map key of a foreign, constantly changing object (a Node label); sent without a lock."""


@dataclass(frozen=True)
class Create:
    """Create `obj`; AlreadyExists requeues quietly after one live read."""

    obj: AnyObject
    cause: str


@dataclass(frozen=True)
class Patch:
    """Send the merge difference of two values of one object; no difference, no request."""

    before: AnyObject
    after: AnyObject
    half: Half
    cause: str
    mode: Mode = Mode.DECISION
    decided_from: tuple[ObjectRef, ...] = ()
    """Objects to re-read live first, when the patch destroys data or membership, or removes a finalizer (rule 3).

    A reference without resource version compares the uid only; one without uid demands that no such object exists.
    """
    audit: tuple[tuple[str, str], ...] = ()
    """Volume, plan, step, revision and the values that allowed it, for the log line and the Event (rule 9)."""


@dataclass(frozen=True)
class Delete:
    """Delete `obj` with its uid and resource version as preconditions; NotFound is success."""

    obj: AnyObject
    cause: str
    decided_from: tuple[ObjectRef, ...] = ()
    audit: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Emit:
    """Record a Kubernetes Event about `about`; deduplicated, never fails a reconcile."""

    about: AnyObject
    type: str
    """`Normal` or `Warning`."""
    reason: str
    message: str
    once: str = ""
    """Identity of a state that lasts: the Event is sent when the state is first seen, and not again however often it is
    decided and however its message changes. Empty = every emission happened and is counted."""


@dataclass(frozen=True)
class Observe:
    """Record a metric sample once the effects before it succeeded (lifecycle observations, facts/controllers 8.1)."""

    metric: str
    value: float
    labels: Mapping[str, str] = field(default_factory=dict[str, str])


Effect: TypeAlias = Create | Patch | Delete | Emit | Observe


@dataclass(frozen=True)
class Entropy:
    """Ask the shell for random bytes; the answer is `bytes` (rule 6: recorded, stored before first use)."""

    purpose: str
    size: int


Request: TypeAlias = object
"""What a decision may ask for: `Entropy`, or a frozen request type of a port (extender)."""
Answer: TypeAlias = object
Answers: TypeAlias = Mapping[Request, Answer]
"""Answers by the request that asked for them; requests are frozen and hashable."""


@dataclass(frozen=True)
class Decision:
    """What to do now, when to look again, and what must be known first.

    With `ask`, nothing of this decision is performed: the shell asks, adds the answers and decides again (rule 1).
    """

    effects: tuple[Effect, ...] = ()
    wake_after: float | None = None
    """Seconds until the key is worked on again without an event; None = only events."""
    ask: tuple[Request, ...] = ()
    requeue: bool = False
    """Work on the key again at once (rate-limited)."""
    error: str = ""
    """A failure that is visible as a metric and an Event and backs off; effects are performed first."""
