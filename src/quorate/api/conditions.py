"""Reading and writing conditions.

`set_` keeps the order and the time of the last transition while the status does not change, stamps the generation,
cuts the message to its limit, and returns the very same tuple when nothing changes, so that "no change, no write" is
an identity test.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api import times
from quorate.api.common import CONDITION_MESSAGE_LIMIT
from quorate.api.messages import cut
from quorate.api.meta import Condition

TRUE = "True"
FALSE = "False"
UNKNOWN = "Unknown"


def get(conditions: tuple[Condition, ...], type_: str) -> Condition | None:
    """The condition of that type, if present."""
    for condition in conditions:
        if condition.type == type_:
            return condition
    return None


def set_(
    conditions: tuple[Condition, ...],
    type_: str,
    *,
    status: str,
    reason: str,
    message: str,
    generation: int,
    now: float,
) -> tuple[Condition, ...]:
    """The conditions with this one set; the same tuple when it is set already."""
    old = get(conditions, type_)
    unchanged_status = old is not None and old.status == status
    new = Condition(
        type=type_,
        status=status,
        reason=reason,
        message=cut(message, CONDITION_MESSAGE_LIMIT),
        observed_generation=generation,
        last_transition_time=old.last_transition_time if old and unchanged_status else times.format(now),
    )
    if old is None:
        return (*conditions, new)
    if new == old:
        return conditions
    return tuple(new if condition.type == type_ else condition for condition in conditions)


def remove(conditions: tuple[Condition, ...], *types: str) -> tuple[Condition, ...]:
    """The conditions without these types; the same tuple when none is present."""
    if not any(condition.type in types for condition in conditions):
        return conditions
    return tuple(condition for condition in conditions if condition.type not in types)


def status_of(conditions: tuple[Condition, ...], type_: str) -> str | None:
    """Status of the condition; None when absent."""
    condition = get(conditions, type_)
    return condition.status if condition else None


def reason_of(conditions: tuple[Condition, ...], type_: str) -> str:
    """Reason of the condition; empty when absent."""
    condition = get(conditions, type_)
    return condition.reason if condition else ""


def _has(conditions: tuple[Condition, ...], type_: str, status: str, generation: int | None) -> bool:
    condition = get(conditions, type_)
    return (
        condition is not None
        and condition.status == status
        and (generation is None or condition.observed_generation == generation)
    )


def is_true(conditions: tuple[Condition, ...], type_: str, generation: int | None = None) -> bool:
    """Whether the condition is True (and current, when a generation is given)."""
    return _has(conditions, type_, TRUE, generation)


def is_false(conditions: tuple[Condition, ...], type_: str, generation: int | None = None) -> bool:
    """Whether the condition is False (and current, when a generation is given)."""
    return _has(conditions, type_, FALSE, generation)


def same(a: Condition | None, b: Condition | None) -> bool:
    """Whether two conditions say the same, whenever that was; both absent is the same."""
    if a is None or b is None:
        return a is b
    return (a.type, a.status, a.reason, a.message, a.observed_generation) == (
        b.type,
        b.status,
        b.reason,
        b.message,
        b.observed_generation,
    )


def all_same(a: tuple[Condition, ...], b: tuple[Condition, ...], types: Iterable[str]) -> bool:
    """Whether all these types say the same on both sides."""
    return all(same(get(a, type_), get(b, type_)) for type_ in types)
