"""What one part of the volume decision hands to the next."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as replace_dataclass

from quorate.api.replicated_volume import ReplicatedVolumeStatus
from quorate.machinery.effects import Effect, Request


@dataclass(frozen=True)
class Outcome:
    """The new status, and the effects around writing it.

    Intent before act (rule 4): `after` is performed once the status that names those things is stored. `before` holds what
    must exist first: finalizers on attachments, and the destruction that a restart of formation begins with.
    """

    status: ReplicatedVolumeStatus
    before: tuple[Effect, ...] = ()
    after: tuple[Effect, ...] = ()
    wake_after: float | None = None
    ask: tuple[Request, ...] = ()
    loud: bool = False
    """Whether the status is written even if only texts changed."""

    def with_status(self, status: ReplicatedVolumeStatus) -> Outcome:
        """The same with another status."""
        return replace_dataclass(self, status=status)

    def then(self, *effects: Effect) -> Outcome:
        """The same with further effects after the status is written."""
        return replace_dataclass(self, after=(*self.after, *effects))

    def wake(self, seconds: float | None) -> Outcome:
        """The same, looked at again after `seconds` at the latest."""
        return replace_dataclass(self, wake_after=earliest(self.wake_after, seconds))


def earliest(first: float | None, second: float | None) -> float | None:
    """The smaller of two delays; None means never."""
    if first is None:
        return second
    return first if second is None else min(first, second)
