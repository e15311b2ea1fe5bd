"""Sets of replica ids (0..31): immutable, hashable, iterated in ascending order; text form `#0, #3`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

MAX_ID = 31
_FULL = (1 << (MAX_ID + 1)) - 1


class IDSet:
    """A set of replica ids in 32 bits."""

    __slots__ = ("_bits",)

    def __init__(self, ids: Iterable[int] = ()) -> None:
        bits = 0
        for id_ in ids:
            if not 0 <= id_ <= MAX_ID:
                raise ValueError(f"replica id out of range 0..{MAX_ID}: {id_}")
            bits |= 1 << id_
        self._bits = bits

    @classmethod
    def of(cls, *ids: int) -> IDSet:
        """A set of these ids."""
        return cls(ids)

    @classmethod
    def _from_bits(cls, bits: int) -> IDSet:
        result = cls.__new__(cls)
        result._bits = bits & _FULL
        return result

    @property
    def bits(self) -> int:
        """The set as a bit mask."""
        return self._bits

    def __contains__(self, id_: int) -> bool:
        return 0 <= id_ <= MAX_ID and bool(self._bits >> id_ & 1)

    def __iter__(self) -> Iterator[int]:
        bits = self._bits
        while bits:
            lowest = bits & -bits
            yield lowest.bit_length() - 1
            bits ^= lowest

    def __len__(self) -> int:
        return self._bits.bit_count()

    def __bool__(self) -> bool:
        return self._bits != 0

    def __or__(self, other: IDSet) -> IDSet:
        return self._from_bits(self._bits | other._bits)

    def __and__(self, other: IDSet) -> IDSet:
        return self._from_bits(self._bits & other._bits)

    def __sub__(self, other: IDSet) -> IDSet:
        return self._from_bits(self._bits & ~other._bits)

    def __le__(self, other: IDSet) -> bool:
        return self._bits & ~other._bits == 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, IDSet) and self._bits == other._bits

    def __hash__(self) -> int:
        return hash(self._bits)

    def __str__(self) -> str:
        return ", ".join(f"#{id_}" for id_ in self)

    def __repr__(self) -> str:
        return f"IDSet({list(self)})"

    def add(self, id_: int) -> IDSet:
        """The set with one id more."""
        return self | IDSet((id_,))

    def remove(self, id_: int) -> IDSet:
        """The set without one id."""
        return self - IDSet((id_,))

    def min(self) -> int | None:
        """The smallest id, None when empty."""
        return next(iter(self), None)

    def max(self) -> int | None:
        """The largest id, None when empty."""
        return self._bits.bit_length() - 1 if self._bits else None

    def min_missing(self) -> int | None:
        """The smallest id that is not in the set, None when all 32 are."""
        return (self._from_bits(~self._bits)).min()


EMPTY = IDSet()
