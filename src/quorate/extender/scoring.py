"""Scores: how good a place is, as one small number the scheduler adds its own preferences to."""

from __future__ import annotations

import math

MINIMUM_SCORE = 1
MAXIMUM_SCORE = 10
DEFAULT_DIVISOR = 1.0


def compute_free_percent_after(total: int, available: int, size: int) -> int:
    """Whole percent of the place that stays free once `size` is placed, 0 to 100."""
    rest = available - size
    if rest <= 0 or total <= 0:
        return 0
    return 100 if rest >= total else rest * 100 // total


def compute_score_table(divisor: float = DEFAULT_DIVISOR) -> tuple[int, ...]:
    """The score of every percentage from 0 to 100."""
    return tuple(compute_score(percent, divisor) for percent in range(101))


def compute_score(free_percent_after: int, divisor: float = DEFAULT_DIVISOR) -> int:
    """`clamp(round(log2(percent / divisor)), 1..10)`; a place that gets full still scores the minimum, because it fits."""
    if free_percent_after <= 0:
        return MINIMUM_SCORE
    return max(MINIMUM_SCORE, min(MAXIMUM_SCORE, round(math.log2(free_percent_after / divisor))))
