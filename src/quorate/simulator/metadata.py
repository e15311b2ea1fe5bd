"""DRBD metadata as it lies on a disk: layout, generation UUIDs, bitmap slots and flags.

Guarantees: it survives `down`, crash and reboot because it belongs to the block device, not to the node; sizes
follow facts/agent 6.4; the log is never left clean once attached (D12), so `apply-al` comes before every attach of
used metadata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from quorate.simulator.blocks import BLOCK
from quorate.simulator.ranges import BlockRanges

MAX_NODES: Final = 32
MAX_PEERS: Final = 31
HISTORY: Final = 32
JUST_CREATED: Final = 4
SUPERBLOCK: Final = 4096
ACTIVITY_LOG: Final = 32768

# Flags as `dump-md` prints them; the values are those seen in recorded dumps (S1, S9).
CONSISTENT: Final = 0x01
WAS_UP_TO_DATE: Final = 0x10
LOG_CLEAN: Final = 0x80
HAVE_QUORUM: Final = 0x400
PEER_SEEN: Final = 0x10
NODE_EXISTS: Final = 0x10000


@dataclass(slots=True)
class PeerEntry:
    """What one node id means to this disk."""

    slot: int = -1
    bitmap_uuid: int = 0
    seen: bool = False  # had a disk at some time
    exists: bool = False  # proven to be part of the cluster
    outdated: bool = False
    connected: bool = False
    on_change: Callable[[], None] | None = field(default=None, compare=False, repr=False)

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        notify(self)

    @property
    def known(self) -> bool:
        """Counts for quorum (Q2)."""
        return self.slot >= 0 or self.exists or self.seen

    @property
    def unused(self) -> bool:
        return not self.known and not self.outdated and not self.connected


def notify(watched: PeerEntry | Metadata) -> None:
    """Tell whoever watches that something was set; nobody does while it is being built."""
    on_change: Callable[[], None] | None = getattr(watched, "on_change", None)
    if on_change is not None:
        on_change()


def _entries() -> list[PeerEntry]:
    return [PeerEntry() for _ in range(MAX_NODES)]


LOG_EXTENT: Final = (4 << 20) // 4096
"""Blocks of an extent of the activity log."""


@dataclass(slots=True)
class Metadata:
    """One metadata block with its bitmaps; `bitmaps[slot]` are the blocks out of sync for the owner of that slot."""

    max_peers: int
    node_id: int = -1
    current: int = JUST_CREATED
    history: list[int] = field(default_factory=list[int])
    peers: list[PeerEntry] = field(default_factory=_entries)
    bitmaps: list[BlockRanges] = field(default_factory=list[BlockRanges])
    consistent: bool = False
    was_up_to_date: bool = False
    log_clean: bool = True
    crashed_primary: bool = False
    lost_quorum: bool = False
    log_in_use: bool = False  # writes were logged since attach and a Primary was still near
    have_quorum: bool = False
    members: frozenset[int] = frozenset()
    log_extents: frozenset[int] = frozenset()  # of 4 MiB, written since attach
    effective_blocks: int = 0  # last agreed size; 0 until some disk was UpToDate (Z2)
    device_uuid: int = 0
    on_change: Callable[[], None] | None = field(default=None, compare=False, repr=False)

    def __setattr__(self, name: str, value: object) -> None:
        object.__setattr__(self, name, value)
        notify(self)

    def watch(self, on_change: Callable[[], None] | None) -> None:
        """Hear of every later change, those of peers and bitmaps included."""
        for part in (*self.peers, *self.bitmaps):
            object.__setattr__(part, "on_change", on_change)
        object.__setattr__(self, "on_change", on_change)

    def __post_init__(self) -> None:
        if not self.bitmaps:
            self.bitmaps = [BlockRanges() for _ in range(self.max_peers)]

    def covers(self, start: int, end: int) -> bool:
        """Whether the log already names these blocks, so that a write to them needs no update of it."""
        return self.log_in_use and all(e in self.log_extents for e in range(start // LOG_EXTENT, -(-end // LOG_EXTENT)))

    def log(self, start: int, end: int) -> None:
        """Notes that these blocks are being written beside a Primary."""
        touched = range(start // LOG_EXTENT, (end - 1) // LOG_EXTENT + 1)
        if not self.log_in_use or any(extent not in self.log_extents for extent in touched):
            self.log_extents = self.log_extents.union(touched)
            self.log_in_use = True

    def apply_log(self) -> bool:
        """Whatever the log names may differ anywhere: it is marked for everybody (S7 #85, S13 #126, S17 #52)."""
        used = self.log_in_use and not self.log_clean
        for extent in sorted(self.log_extents) if used else ():
            start = extent * LOG_EXTENT
            for bitmap in self.bitmaps:
                bitmap.add(start, min(start + LOG_EXTENT, self.effective_blocks or start + LOG_EXTENT))
        self.log_clean, self.log_in_use, self.log_extents = True, False, frozenset()
        return used

    @property
    def size(self) -> int:
        return SUPERBLOCK

    @property
    def just_created(self) -> bool:
        return self.current == JUST_CREATED

    def free_slot(self) -> int | None:
        """The lowest slot no node owns (U3)."""
        used = {entry.slot for entry in self.peers}
        return next((slot for slot in range(self.max_peers) if slot not in used), None)

    def remember(self, uuid: int) -> None:
        """Puts a generation into the history unless it is still in use or already there."""
        if uuid in (0, JUST_CREATED) or uuid == self.current or uuid in self.history:
            return
        if any(entry.bitmap_uuid == uuid for entry in self.peers):
            return
        self.history = [uuid, *self.history][:HISTORY]

    def flags(self) -> int:
        value = CONSISTENT * self.consistent | WAS_UP_TO_DATE * self.was_up_to_date
        return value | LOG_CLEAN * self.log_clean | HAVE_QUORUM * self.have_quorum


def _round_up(value: int, step: int) -> int:
    return -(-value // step) * step


def compute_bitmap_bytes(device_bytes: int, max_peers: int) -> int:
    bits = _round_up(-(-device_bytes // BLOCK), 64)
    return _round_up(bits // 8 * max_peers, 4096)


def compute_metadata_bytes(device_bytes: int, max_peers: int) -> int:
    return compute_bitmap_bytes(device_bytes, max_peers) + ACTIVITY_LOG + SUPERBLOCK


def compute_offset(device_bytes: int) -> int:
    """Where internal metadata is looked for: the last whole 4 KiB of the device."""
    return device_bytes // SUPERBLOCK * SUPERBLOCK - SUPERBLOCK


def compute_usable_blocks(device_bytes: int, max_peers: int) -> int:
    """The blocks left for data beside internal metadata."""
    return max(0, device_bytes // BLOCK - compute_metadata_bytes(device_bytes, max_peers) // BLOCK)
