"""The states of DRBD 9 in their order (facts/agent 4); comparisons between states use that order.

The text of a state is what `drbdsetup` prints. A replication state also fixes the range of both disks
(`DISK_RANGE`), so the coupling table of the facts is data here and not control flow in the model.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, NamedTuple


class Role(IntEnum):
    UNKNOWN = 0
    PRIMARY = 1
    SECONDARY = 2

    def __str__(self) -> str:
        return self.name.capitalize()


class Disk(IntEnum):
    DISKLESS = 0
    ATTACHING = 1
    DETACHING = 2
    FAILED = 3
    NEGOTIATING = 4
    INCONSISTENT = 5
    OUTDATED = 6
    UNKNOWN = 7  # of peers only
    CONSISTENT = 8
    UP_TO_DATE = 9

    def __str__(self) -> str:
        return _DISK_TEXT[self]


_DISK_TEXT: Final = (
    "Diskless",
    "Attaching",
    "Detaching",
    "Failed",
    "Negotiating",
    "Inconsistent",
    "Outdated",
    "DUnknown",
    "Consistent",
    "UpToDate",
)


class Link(IntEnum):
    """The state of a connection."""

    STAND_ALONE = 0
    DISCONNECTING = 1
    UNCONNECTED = 2
    TIMEOUT = 3
    BROKEN_PIPE = 4
    NETWORK_FAILURE = 5
    PROTOCOL_ERROR = 6
    TEAR_DOWN = 7
    CONNECTING = 8
    CONNECTED = 9

    def __str__(self) -> str:
        return self.name.title().replace("_", "")


class Replication(IntEnum):
    OFF = 0
    ESTABLISHED = 1
    STARTING_SYNC_S = 2
    STARTING_SYNC_T = 3
    WF_BITMAP_S = 4
    WF_BITMAP_T = 5
    WF_SYNC_UUID = 6
    SYNC_SOURCE = 7
    SYNC_TARGET = 8
    VERIFY_S = 9
    VERIFY_T = 10
    PAUSED_SYNC_S = 11
    PAUSED_SYNC_T = 12
    AHEAD = 13
    BEHIND = 14

    def __str__(self) -> str:
        return _REPLICATION_TEXT[self]


_REPLICATION_TEXT: Final = (
    "Off",
    "Established",
    "StartingSyncS",
    "StartingSyncT",
    "WFBitMapS",
    "WFBitMapT",
    "WFSyncUUID",
    "SyncSource",
    "SyncTarget",
    "VerifyS",
    "VerifyT",
    "PausedSyncS",
    "PausedSyncT",
    "Ahead",
    "Behind",
)


class DiskRange(NamedTuple):
    """The disk states that a replication state allows, here and at the peer."""

    own_low: Disk
    own_high: Disk
    peer_low: Disk
    peer_high: Disk


_ANY = DiskRange(Disk.DISKLESS, Disk.UP_TO_DATE, Disk.DISKLESS, Disk.UP_TO_DATE)
_TARGET_SOON = DiskRange(Disk.INCONSISTENT, Disk.OUTDATED, Disk.INCONSISTENT, Disk.UP_TO_DATE)
_TARGET = DiskRange(Disk.INCONSISTENT, Disk.INCONSISTENT, Disk.INCONSISTENT, Disk.UP_TO_DATE)
_SOURCE_SOON = DiskRange(Disk.INCONSISTENT, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.CONSISTENT)
_SOURCE = DiskRange(Disk.INCONSISTENT, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.INCONSISTENT)
_VERIFY = DiskRange(Disk.INCONSISTENT, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.UP_TO_DATE)

DISK_RANGE: Final = {
    # Off keeps what is known of an absent peer: Inconsistent, Outdated or nothing (D8).
    Replication.OFF: DiskRange(Disk.DISKLESS, Disk.UP_TO_DATE, Disk.INCONSISTENT, Disk.UNKNOWN),
    Replication.ESTABLISHED: _ANY,
    Replication.STARTING_SYNC_S: _SOURCE_SOON,
    Replication.STARTING_SYNC_T: _TARGET_SOON,
    Replication.WF_BITMAP_S: _SOURCE_SOON,
    Replication.WF_BITMAP_T: _TARGET_SOON,
    Replication.WF_SYNC_UUID: _TARGET_SOON,
    Replication.SYNC_SOURCE: _SOURCE,
    Replication.SYNC_TARGET: _TARGET,
    Replication.VERIFY_S: _VERIFY,
    Replication.VERIFY_T: _VERIFY,
    Replication.PAUSED_SYNC_S: _SOURCE_SOON,
    Replication.PAUSED_SYNC_T: _TARGET,
    Replication.AHEAD: _SOURCE_SOON,
    Replication.BEHIND: _TARGET_SOON,
}

SYNC_SOURCES: Final = frozenset({Replication.SYNC_SOURCE, Replication.PAUSED_SYNC_S})
SYNC_TARGETS: Final = frozenset({Replication.SYNC_TARGET, Replication.PAUSED_SYNC_T})
SYNCING: Final = SYNC_SOURCES | SYNC_TARGETS

MIRROR: Final = {
    Replication.OFF: Replication.OFF,
    Replication.ESTABLISHED: Replication.ESTABLISHED,
    Replication.STARTING_SYNC_S: Replication.STARTING_SYNC_T,
    Replication.STARTING_SYNC_T: Replication.STARTING_SYNC_S,
    Replication.WF_BITMAP_S: Replication.WF_BITMAP_T,
    Replication.WF_BITMAP_T: Replication.WF_BITMAP_S,
    Replication.VERIFY_S: Replication.VERIFY_T,
    Replication.VERIFY_T: Replication.VERIFY_S,
}
"""The state of the other end while a change is agreed upon."""
