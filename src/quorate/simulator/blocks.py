"""Block devices in memory: contents as numbers per 4 KiB block, with size, users and faults.

The content of a block is a number; 0 is a block never written. Numbers are drawn once per write, so equal
numbers mean the same data and a lost write is visible. Structures (DRBD metadata) lie at byte offsets and
vanish when something is written over them, as on a real disk.
"""

from __future__ import annotations

import errno
import hashlib
from collections.abc import Callable, Iterable
from typing import Protocol, runtime_checkable

BLOCK = 4096


class DeviceError(OSError):
    """An I/O error of a simulated device; ``errno`` says which."""


@runtime_checkable
class Structure(Protocol):
    """Something other than block contents that lies on a device, such as DRBD metadata."""

    @property
    def size(self) -> int: ...


@runtime_checkable
class WatchedStructure(Structure, Protocol):
    """A structure that is changed in place and tells so."""

    def watch(self, on_change: Callable[[], None] | None) -> None: ...


class DiskWatcher(Protocol):
    """Hears of every change of a disk, after it was made."""

    def wrote(self, disk: MemoryDisk, blocks: Iterable[int]) -> None: ...
    def structured(self, disk: MemoryDisk, offset: int) -> None: ...


@runtime_checkable
class BlockDevice(Protocol):
    """What a program or the DRBD model may do with a device."""

    name: str
    users: int

    @property
    def size(self) -> int: ...
    def read(self, block: int) -> int: ...
    def write(self, block: int, value: int) -> None: ...
    @property
    def seconds_per_block(self) -> float: ...
    def written(self, start: int, end: int) -> dict[int, int]: ...
    def erase(self, start: int, end: int) -> None: ...
    def structure(self, offset: int) -> Structure | None: ...
    def put_structure(self, offset: int, structure: Structure | None) -> None: ...


class MemoryDisk:
    """A device with its own contents; thin when nothing but the size limits it."""

    def __init__(self, name: str, size: int) -> None:
        self.name = name
        self.users = 0  # openers that forbid removal: an attached DRBD volume, a device mapping
        self.failed = False  # every access answers EIO
        self.seconds_per_block = 0.0  # a slow disk: extra simulated time per written block
        self._size = size
        self._contents: dict[int, int] = {}
        self._structures: dict[int, Structure] = {}
        self._watcher: DiskWatcher | None = None

    def watch(self, watcher: DiskWatcher) -> None:
        """Tell every later change."""
        self._watcher = watcher
        for offset, structure in self._structures.items():
            self._watch_structure(offset, structure)

    def structures(self) -> dict[int, Structure]:
        """All structures by offset, readable also on a failed disk (for keeping them)."""
        return dict(self._structures)

    def contents(self) -> dict[int, int]:
        """All written blocks, readable also on a failed disk (for keeping them)."""
        return dict(self._contents)

    def content(self, block: int) -> int:
        """What lies in a block, readable also on a failed disk; 0 outside of it."""
        return self._contents.get(block, 0)

    @property
    def size(self) -> int:
        return self._size

    def resize(self, size: int) -> None:
        self._size = size
        end = size // BLOCK
        beyond = [block for block in self._contents if block >= end]
        for block in beyond:
            del self._contents[block]
        if beyond and self._watcher is not None:
            self._watcher.wrote(self, beyond)
        self._drop_structures(size, max(self._structures, default=0) + 1)

    def read(self, block: int) -> int:
        self._check(block)
        return self._contents.get(block, 0)

    def write(self, block: int, value: int) -> None:
        self._check(block)
        self._contents[block] = value
        if self._watcher is not None:
            self._watcher.wrote(self, (block,))
        if self._structures:
            self._drop_structures(block * BLOCK, (block + 1) * BLOCK)

    def written(self, start: int, end: int) -> dict[int, int]:
        """The non-empty blocks of ``[start, end)``."""
        self._check(start)
        contents = self._contents
        if end - start < len(contents):
            return {block: contents[block] for block in range(start, end) if block in contents}
        return {block: value for block, value in contents.items() if start <= block < end}

    def erase(self, start: int, end: int) -> None:
        """Zeroes ``[start, end)``; what was there is gone, structures included."""
        erased = self.written(start, end)
        for block in erased:
            del self._contents[block]
        if self._watcher is not None:
            self._watcher.wrote(self, erased)
        self._drop_structures(start * BLOCK, end * BLOCK)

    def structure(self, offset: int) -> Structure | None:
        if self.failed:
            raise DeviceError(errno.EIO, "Input/output error")
        return self._structures.get(offset)

    def put_structure(self, offset: int, structure: Structure | None) -> None:
        if self.failed:
            raise DeviceError(errno.EIO, "Input/output error")
        if structure is None:
            self._structures.pop(offset, None)
        else:
            self._structures[offset] = structure
            self._watch_structure(offset, structure)
        self._tell_structure(offset)

    def _drop_structures(self, start: int, end: int) -> None:
        for offset in [offset for offset in self._structures if start <= offset < end]:
            del self._structures[offset]
            self._tell_structure(offset)

    def _watch_structure(self, offset: int, structure: Structure) -> None:
        if self._watcher is not None and isinstance(structure, WatchedStructure):
            structure.watch(lambda: self._tell_structure(offset))

    def _tell_structure(self, offset: int) -> None:
        if self._watcher is not None:
            self._watcher.structured(self, offset)

    def _check(self, block: int) -> None:
        if self.failed:
            raise DeviceError(errno.EIO, "Input/output error")
        if block < 0 or block * BLOCK >= self._size:
            raise DeviceError(errno.ENOSPC, "No space left on device")


def digest(device: BlockDevice, start: int, end: int) -> str:
    """A checksum of ``[start, end)``: equal exactly when the contents are equal."""
    body = ",".join(f"{block}:{value}" for block, value in sorted(device.written(start, end).items()))
    return hashlib.md5(body.encode(), usedforsecurity=False).hexdigest()
