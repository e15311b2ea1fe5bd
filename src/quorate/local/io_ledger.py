"""What `quorate io` was acknowledged, per volume: the promise that every later look at the data is held against.

Kept apart from the disks: with a directory each acknowledgement is appended to a file of its own before anybody is told
(one `os.write`, so it survives kill -9), which makes the check after a restart an independent one. A torn last line is
a write nobody was told about.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

FILE = "io-ledger.jsonl"
_LINE = msgspec.json.Decoder(tuple[str, int, int])
_ENCODER = msgspec.json.Encoder()


class IoLedger:
    """By uid of the volume: block → number of the newest acknowledged write."""

    def __init__(self, directory: Path | None = None) -> None:
        self._blocks: dict[str, dict[int, int]] = {}
        self._descriptor: int | None = None
        if directory is not None:
            self._load(directory / FILE)

    def _load(self, path: Path) -> None:
        """Read the file and write it anew with one line per block."""
        for line in path.read_bytes().splitlines() if path.exists() else ():
            try:
                uid, block, value = _LINE.decode(line)
            except msgspec.MsgspecError:
                continue
            self._blocks.setdefault(uid, {})[block] = value
        fresh = path.with_suffix(".new")
        lines = [_line(uid, block, value) for uid, blocks in self._blocks.items() for block, value in blocks.items()]
        fresh.write_bytes(b"".join(lines))
        fresh.replace(path)
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)

    def note(self, uid: str, block: int, value: int) -> None:
        """A write was acknowledged."""
        if self._descriptor is not None:
            os.write(self._descriptor, _line(uid, block, value))
        self._blocks.setdefault(uid, {})[block] = value

    def of(self, uid: str) -> Mapping[int, int]:
        """What a volume must hold."""
        return self._blocks.get(uid, {})

    def highest(self) -> int:
        """The highest number ever acknowledged; numbers of later writes must be larger."""
        return max((value for blocks in self._blocks.values() for value in blocks.values()), default=0)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def _line(uid: str, block: int, value: int) -> bytes:
    return _ENCODER.encode((uid, block, value)) + b"\n"
