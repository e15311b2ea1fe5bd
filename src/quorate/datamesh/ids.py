"""Sets of replica ids as 32-bit integers: cheap to build, intersect and compare in every pass.

`quorate.api.id_set` is the type for interfaces; inside the engine a plain integer mask is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator


def bit(replica_id: int) -> int:
    """The set of one id."""
    return 1 << replica_id


def mask_of(ids: Iterable[int]) -> int:
    """The set of these ids."""
    mask = 0
    for replica_id in ids:
        mask |= 1 << replica_id
    return mask


def iterate(mask: int) -> Iterator[int]:
    """The ids of a set in ascending order."""
    while mask:
        low = mask & -mask
        yield low.bit_length() - 1
        mask ^= low


def count(mask: int) -> int:
    """How many ids a set has."""
    return mask.bit_count()


def text(mask: int) -> str:
    """A set for people: `#0, #3`."""
    return ", ".join(f"#{replica_id}" for replica_id in iterate(mask))
