"""The words in which plans are written: guards, gates, steps, confirmations, plans.

All of them are frozen data holding pure functions. A plan reads like its row in facts/datamesh 3: type, group, guards in
order, steps with what they publish and who must confirm. The engine interprets them and knows none of them by name.

* A *guard* is asked once, before a transition is created; the first that blocks decides.
* A *gate* is a guard of a step: asked right before the step is applied, however long the transition has been running
  (S10, S14, S15: copies and connections are judged at apply time, not at creation).
* A *step* publishes at most one revision. It is done when everybody who must confirm has confirmed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, TypeAlias

from quorate.api.replicated_volume import Datamesh
from quorate.api.replicated_volume_replica import DRBDConfiguredCondition
from quorate.datamesh.context import Context


class Slot(Enum):
    """The two places that a replica has for transitions (facts/datamesh 4.1), and the volume as a whole."""

    MEMBERSHIP = "membership"
    ATTACHMENT = "attachment"
    VOLUME = "volume"


class Kind(Enum):
    """What a step does to the mesh. `INVERSE` says which step takes it back (decision 8)."""

    JOIN = "join"
    """✦ → A, ✦ → TB."""
    LEAVE = "leave"
    """A → ✕, TB → ✕."""
    JOIN_VOTER = "join voter"
    """✦ → D∅."""
    LEAVE_VOTER = "leave voter"
    """D∅ → ✕."""
    GAIN_VOTE = "gain vote"
    """A → D∅, TB → D∅."""
    LOSE_VOTE = "lose vote"
    """D∅ → A, D∅ → TB."""
    VOTE_OFF = "tie-breaker vote off"
    """M1, first half."""
    VOTE_ON = "tie-breaker vote on"
    """M1, last step."""
    RAISE_QUORUM = "raise quorum"
    """M2 before a gain."""
    LOWER_QUORUM = "lower quorum"
    """M2 after a loss."""
    ATTACH_DISK = "attach disk"
    """D∅ → D."""
    DETACH_DISK = "detach disk"
    """D → D∅."""
    CHANGE_VOLUME = "change volume"
    """Another volume group on a D∅."""
    RETYPE = "retype"
    """A → TB, TB → A."""
    FORCE = "force"
    """A step of an emergency."""
    OTHER = "other"
    """No membership at all."""


INVERSE: dict[Kind, tuple[Kind, ...]] = {
    Kind.JOIN: (Kind.LEAVE,),
    Kind.JOIN_VOTER: (Kind.LEAVE_VOTER, Kind.LOSE_VOTE),
    Kind.GAIN_VOTE: (Kind.LOSE_VOTE, Kind.LEAVE_VOTER),
    Kind.LOSE_VOTE: (Kind.GAIN_VOTE,),
    Kind.VOTE_OFF: (Kind.VOTE_ON,),
    Kind.VOTE_ON: (Kind.VOTE_OFF,),
    Kind.RAISE_QUORUM: (Kind.LOWER_QUORUM,),
    Kind.LOWER_QUORUM: (Kind.RAISE_QUORUM,),
    Kind.ATTACH_DISK: (Kind.DETACH_DISK,),
    Kind.DETACH_DISK: (Kind.ATTACH_DISK,),
    Kind.RETYPE: (Kind.RETYPE,),
}
"""Steps that lead back to the configuration before a step."""


class Block(NamedTuple):
    """Why something may not happen now."""

    text: str
    """For people. Lower case without the plan's name, unless `sentence`."""
    reason: str = ""
    """Machine-readable."""
    sentence: bool = False
    """Whether `text` is a whole sentence that is shown as it is (the texts of seed 000)."""
    protective: bool = False
    """Whether a guard that protects copies or failures to tolerate said it: a further replica would lift it."""


Check: TypeAlias = Callable[[Context], Block | None]


@dataclass(frozen=True, slots=True)
class Guard:
    """A named condition; `name` is the one of facts/datamesh 3.3 where it has one."""

    name: str
    check: Check
    protects_copies: bool = False
    """Whether it keeps copies or failures to tolerate. Such guards do not stand in the way of taking a join back."""
    takes_back: bool = False
    """Whether a member that it stops half-way (D∅) goes back to D instead of waiting (hazard H2)."""


def guard(name: str, *, protects_copies: bool = False, takes_back: bool = False) -> Callable[[Check], Guard]:
    """Make a guard of a function."""

    def named(check: Check) -> Guard:
        return Guard(name, check, protects_copies, protects_copies or takes_back)

    return named


class Confirmation(NamedTuple):
    """Who must confirm a step, and who of them has."""

    must: int
    confirmed: int


Apply: TypeAlias = Callable[[Context], Datamesh]
Confirm: TypeAlias = Callable[[Context, int], Confirmation]


@dataclass(frozen=True, slots=True)
class Step:
    """One published revision and its confirmation."""

    name: str
    kind: Kind
    apply: Apply
    confirm: Confirm
    gates: tuple[Guard, ...] = ()
    voting: bool = False
    """Whether it changes what quorum is computed from: voters, q, qmr, tie-breakers. One unconfirmed at a time (S4)."""
    raises: bool = False
    """Whether it may raise q or qmr or take a tie-breaker's vote: confirmed only where the kernel enforces it (S12)."""
    message_prefix: str = ""
    """Start of the text shown while the step is active; empty = the plan's display name."""
    condition_reason: str = ""
    """Reason of the attachments' `Attached` condition while the step is active."""
    diagnostic_conditions: tuple[str, ...] = (DRBDConfiguredCondition.TYPE,)
    """Conditions of waiting replicas that are shown as errors while False."""
    expected_reasons: tuple[str, ...] = ()
    """Reasons of the subject's diagnostic conditions that are no errors during this step."""


@dataclass(frozen=True, slots=True)
class Plan:
    """A way to make one kind of change. Immutable; a change of steps or of what they publish needs a new version."""

    type: str
    plan_id: str
    group: str
    slot: Slot
    display: str
    guards: tuple[Guard, ...]
    steps: tuple[Step, ...]
    done: str = ""
    """Text for the request once the transition is complete."""

    @property
    def voting(self) -> bool:
        """Whether some step changes what quorum is computed from."""
        return any(step.voting for step in self.steps)
