"""Verdicts: what a condition shall say. A guard, a reason and its message stand together; `None` means "absent"."""

from __future__ import annotations

from typing import NamedTuple

from quorate.api import conditions
from quorate.api.meta import Condition


class Verdict(NamedTuple):
    """Status, reason and message of a condition."""

    status: str
    reason: str
    message: str

    @staticmethod
    def true(reason: str, message: str) -> Verdict:
        """A condition that holds."""
        return Verdict(conditions.TRUE, reason, message)

    @staticmethod
    def false(reason: str, message: str) -> Verdict:
        """A condition that does not hold."""
        return Verdict(conditions.FALSE, reason, message)

    @staticmethod
    def unknown(reason: str, message: str) -> Verdict:
        """A condition that cannot be told."""
        return Verdict(conditions.UNKNOWN, reason, message)


def ensure_condition(
    existing: tuple[Condition, ...], type: str, verdict: Verdict | None, *, generation: int, now: float
) -> tuple[Condition, ...]:
    """The conditions with this one as the verdict says; itself when nothing changes."""
    if verdict is None:
        return conditions.remove(existing, type)
    return conditions.set_(
        existing,
        type,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message,
        generation=generation,
        now=now,
    )
