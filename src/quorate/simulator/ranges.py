"""Sets of block numbers kept as sorted disjoint half-open ranges.

A bitmap of a volume is either nearly empty or nearly full, so ranges make the operations of a resync
(take the lowest blocks, clear them) independent of the volume's size.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator


class BlockRanges:
    """A mutable set of block numbers; every operation keeps the ranges sorted, disjoint and merged."""

    __slots__ = ("_count", "_ends", "_starts", "on_change")

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        self._count = 0
        self.on_change: Callable[[], None] | None = None
        for start, end in ranges:
            self.add(start, end)

    def __len__(self) -> int:
        return self._count

    def __bool__(self) -> bool:
        return self._count > 0

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BlockRanges):
            return NotImplemented
        return self._starts == other._starts and self._ends == other._ends

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"BlockRanges({list(self)!r})"

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(tuple(self._starts), tuple(self._ends), strict=True)

    def __contains__(self, block: int) -> bool:
        index = bisect_right(self._starts, block) - 1
        return index >= 0 and block < self._ends[index]

    def copy(self) -> BlockRanges:
        twin = BlockRanges()
        twin._starts = self._starts.copy()
        twin._ends = self._ends.copy()
        twin._count = self._count
        return twin

    def clear(self) -> None:
        self._starts.clear()
        self._ends.clear()
        self._count = 0
        if self.on_change is not None:
            self.on_change()

    def add(self, start: int, end: int) -> int:
        """Adds ``[start, end)`` and answers how many blocks were not in the set before."""
        if start >= end:
            return 0
        low = bisect_left(self._ends, start)
        high = bisect_right(self._starts, end)
        before = self._count
        if low < high:
            start = min(start, self._starts[low])
            end = max(end, self._ends[high - 1])
            for index in range(low, high):
                self._count -= self._ends[index] - self._starts[index]
        self._starts[low:high] = [start]
        self._ends[low:high] = [end]
        self._count += end - start
        if self.on_change is not None and self._count != before:
            self.on_change()
        return self._count - before

    def discard(self, start: int, end: int) -> int:
        """Removes ``[start, end)`` and answers how many blocks were in the set."""
        if start >= end:
            return 0
        low = bisect_right(self._ends, start)
        high = bisect_left(self._starts, end)
        if low >= high:
            return 0
        starts: list[int] = []
        ends: list[int] = []
        before = self._count
        for index in range(low, high):
            first, last = self._starts[index], self._ends[index]
            self._count -= last - first
            if first < start:
                starts.append(first)
                ends.append(start)
                self._count += start - first
            if last > end:
                starts.append(end)
                ends.append(last)
                self._count += last - end
        self._starts[low:high] = starts
        self._ends[low:high] = ends
        if self.on_change is not None and self._count != before:
            self.on_change()
        return before - self._count

    def update(self, other: BlockRanges) -> None:
        for start, end in other:
            self.add(start, end)

    def truncate(self, end: int) -> None:
        """Forgets everything at and beyond ``end``."""
        if self._ends and self._ends[-1] > end:
            self.discard(end, self._ends[-1])

    def take(self, limit: int) -> list[tuple[int, int]]:
        """Removes and returns the lowest blocks, at most ``limit`` of them."""
        taken: list[tuple[int, int]] = []
        while limit > 0 and self._starts:
            start, end = self._starts[0], min(self._ends[0], self._starts[0] + limit)
            taken.append((start, end))
            limit -= end - start
            self.discard(start, end)
        return taken

    def intersects(self, start: int, end: int) -> bool:
        index = bisect_right(self._ends, start)
        return index < len(self._starts) and self._starts[index] < end
