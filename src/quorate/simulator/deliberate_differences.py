"""The one list of what the replay does not compare, each with its reason. Everything else is compared.

`UNCOMPARED` are fields of the recorded status that measure work or the machine instead of the state of DRBD.
`DELIBERATE` are single recorded outcomes that the model does not reproduce on purpose; each names what was recorded,
so that it stays visible in the documentation.
"""

from __future__ import annotations

from typing import Final, NamedTuple

_TRAFFIC = "a counter of work done; it depends on request splitting and on what else the machine read"
_PROGRESS = "the speed of a resync on the emulated machine; the replay compares that it runs and how it ends"
_MOMENT = "what was in flight in the instant of the snapshot"

UNCOMPARED: Final = {
    "read": _TRAFFIC,
    "written": _TRAFFIC,
    "al-writes": _TRAFFIC,
    "bm-writes": _TRAFFIC,
    "received": _TRAFFIC,
    "sent": _TRAFFIC,
    "upper-pending": _MOMENT,
    "lower-pending": _MOMENT,
    "pending": _MOMENT,
    "unacked": _MOMENT,
    "ap-in-flight": _MOMENT,
    "rs-in-flight": _MOMENT,
    "congested": _MOMENT,
    "rs-total": _PROGRESS,
    "rs-dt-start-ms": _PROGRESS,
    "rs-paused-ms": _PROGRESS,
    "rs-dt0-ms": _PROGRESS,
    "rs-db0-sectors": _PROGRESS,
    "rs-dt1-ms": _PROGRESS,
    "rs-db1-sectors": _PROGRESS,
    "rs-failed": _PROGRESS,
    "rs-same-csum": _PROGRESS,
    "want": _PROGRESS,
    "db0/dt0 [MiB/s]": _PROGRESS,
    "db1/dt1 [MiB/s]": _PROGRESS,
    "db/dt [MiB/s]": _PROGRESS,
    "estimated-seconds-to-finish": _PROGRESS,
    "percent-resync-done": _PROGRESS,
}

_LEFT = "shown while blocks are left, which is a matter of speed at the moment of the snapshot"

WHILE_SYNCING: Final = {
    "out-of-sync": _PROGRESS,
    "percent-in-sync": _PROGRESS,
    "has-sync-details": _LEFT,
}
"""Not compared between groups, where a resync may be half done; compared wherever the cluster has settled."""


UNFINISHED: Final = {
    "out-of-sync": _PROGRESS,
    "percent-in-sync": _PROGRESS,
    "has-sync-details": _LEFT,
}
"""Not compared for a peer whose recorded resync runs or was interrupted, until the recording shows it at its end: how
far a resync came, and what was in flight when it broke off, belong to the machine (both ends of one recorded resync
differ in these counters themselves, S3b)."""


WHILE_A_LOOP_WRITES: Final = {
    "open": "a shell loop in the background opens and closes the device several times a second (S8, S13)",
}
"""Not compared of a node's devices where the cluster has settled while such a loop runs on that node. On the way there the
recorded openings and closings are among the states the node must go through."""


PASSING: Final = frozenset(
    {"Disconnecting", "Unconnected", "Timeout", "BrokenPipe", "NetworkFailure", "ProtocolError", "TearDown"}
)
"""States in which a connection does not stay. A closing snapshot that shows one caught a connection between two tries that
go on for ever (a wrong node id, S15 #67): the cluster has not settled, and the node must have gone through that state
instead of being in it at the same instant."""


TORN_OVER: Final = 0.25
"""How long one reading may take, in seconds. `drbdsetup status` is not atomic: it asks the kernel for the resource, the
devices, the connections, the peer devices and the paths one after the other, so a snapshot taken while things move can
show a connection that is still Connecting with a peer device that is already Established (S13 #31, S5d #50, X8a #42).
Such a snapshot matches when each part is as the node had it, in this order, within this time. Where the cluster has
settled the whole state is compared as one."""


class Deliberate(NamedTuple):
    """One recorded outcome, over the steps that show it, on all nodes or on the named ones."""

    scenario: str
    first: int
    last: int
    nodes: tuple[str, ...]
    recorded: str
    reason: str

    def covers(self, scenario: str, step: int, what: str) -> bool:
        concerned = not self.nodes or any(f": {node}" in what for node in self.nodes)
        return self.scenario == scenario and self.first <= step <= self.last and concerned


DELIBERATE: Final = (
    Deliberate(
        "S12b",
        49,
        71,
        (),
        "an attach hung, its disk stayed Negotiating and both peers in WFBitMapS until the links were cut",
        "a bug of 9.3.2 that the recordings list as seen once and not reproduced; every other attach ends",
    ),
    Deliberate(
        "S3b",
        74,
        78,
        ("n0", "n2"),
        "a transport stood for ten seconds without a word, then broke (BrokenPipe while Connecting)",
        "seen once in 374 handshakes, on a machine busy with a resync; the model's handshakes answer or the line is dead",
    ),
    Deliberate(
        "S17b",
        54,
        54,
        ("n1",),
        "the Secondary is Connected for 30 ms in a meeting whose commit fails at the Primary (-25), then sees BrokenPipe",
        "a meeting is one step at both ends of the model; the outcome, both dialling again, is the same",
    ),
    Deliberate(
        "S3b",
        93,
        106,
        ("n1",),
        "the chosen source of an invalidation never learned of it; then the invalidated machine vanished",
        "listed as seen once, cause unknown; the same command alone behaves as modelled (S3c)",
    ),
    Deliberate(
        "X7",
        49,
        76,
        ("n1", "n2"),
        "64 KiB stay out of sync on an UpToDate disk after the first of two returning peers released a suspended write",
        "a bug of 9.3.2 (README, seen once): the block is missing on a disk that says UpToDate. The simulator promises "
        "that an UpToDate disk holds every acknowledged write, so it does not lose one",
    ),
)
"""Filled only after a mismatch was understood; an entry is not a way to make a number look better."""
