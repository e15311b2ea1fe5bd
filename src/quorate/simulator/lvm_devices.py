"""Devices of thin logical volumes: chunks are taken from the pool at the first write and given back by erasing.

Guarantees: the sum of the chunks of all volumes of a pool never exceeds the pool; a write that would need one more
fails with an I/O error and changes nothing, as a full pool does after its queueing time.
"""

from __future__ import annotations

import copy
import errno

from quorate.simulator.blocks import BLOCK, DeviceError, MemoryDisk, Structure

CHUNK = 65536
BLOCKS_PER_CHUNK = CHUNK // BLOCK


class PoolSpace:
    """The data space of a thin pool, counted in chunks."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.used = 0

    @property
    def capacity(self) -> int:
        return self.size // CHUNK

    @property
    def full(self) -> bool:
        return self.used >= self.capacity

    def take(self, chunks: int) -> None:
        if self.used + chunks > self.capacity:
            raise DeviceError(errno.EIO, "Input/output error")
        self.used += chunks

    def give_back(self, chunks: int) -> None:
        self.used -= chunks

    def percent(self) -> float:
        return 100.0 * self.used / self.capacity if self.capacity else 100.0


class ThinDisk(MemoryDisk):
    """A thin volume: as large as it says, as full as it was written."""

    def __init__(self, name: str, size: int, pool: PoolSpace) -> None:
        super().__init__(name, size)
        self.pool = pool
        self._chunks: set[int] = set()

    def allocated(self) -> int:
        """Bytes taken from the pool."""
        return len(self._chunks) * CHUNK

    def percent(self) -> float:
        return 100.0 * self.allocated() / self.size if self.size else 0.0

    def write(self, block: int, value: int) -> None:
        self._check(block)
        self._provision(block // BLOCKS_PER_CHUNK, block // BLOCKS_PER_CHUNK + 1)
        super().write(block, value)

    def put_structure(self, offset: int, structure: Structure | None) -> None:
        if structure is not None:
            end = min(offset + max(structure.size, 1), self.size)
            self._provision(offset // CHUNK, -(-end // CHUNK))
        super().put_structure(offset, structure)

    def erase(self, start: int, end: int) -> None:
        """Zeroes the range; chunks that lie wholly inside go back to the pool (discards)."""
        super().erase(start, end)
        first, last = -(-start // BLOCKS_PER_CHUNK), end // BLOCKS_PER_CHUNK
        freed = [chunk for chunk in self._chunks if first <= chunk < last]
        self._chunks.difference_update(freed)
        self.pool.give_back(len(freed))

    def release(self) -> None:
        """The volume is removed: all its chunks return to the pool."""
        self.pool.give_back(len(self._chunks))
        self._chunks.clear()

    def copy_from(self, origin: ThinDisk) -> None:
        """Become a snapshot of ``origin``; shared chunks are counted for both, the worst case of later writes."""
        self.pool.take(len(origin._chunks))
        self._chunks = set(origin._chunks)
        self._contents = dict(origin._contents)
        self._structures = copy.deepcopy(origin._structures)

    def _provision(self, first: int, end: int) -> None:
        missing = [chunk for chunk in range(first, end) if chunk not in self._chunks]
        if missing:
            self.pool.take(len(missing))
            self._chunks.update(missing)
