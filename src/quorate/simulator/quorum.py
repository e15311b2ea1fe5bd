"""The kernel's quorum rule as pure functions.

Guarantees: `have_quorum` computes what the stock DRBD 9.3.2 module computes for one node from what that node sees
(rules R1 and R2 of the kernel facts), and `flag_after` says what becomes of the node's quorum flag in one state
change. Both are total, allocate little, and know nothing of commands, networks or time; the DRBD model, the model
checker and the tests of the agent share them. `dynamic_voters=False` is the patched module: the same rule without
striking missing voters (no recording covers it).

Theory of operation

* A node sorts itself and every peer it knows into the classes of `Tally`. A peer without a bitmap slot is
  intentionally diskless: it never votes, it is a tie-breaker unless `peer-tiebreaker=no`. A peer behind
  `allow-remote-read=no` is invisible.
* A connected peer with a slot votes whatever its disk says: a slot without a disk (D∅) and an Inconsistent disk are
  `present`.
* A missing voter is *outdated* (its disk is known stale), *quorumless* (this node has quorum, and a committed
  cluster-wide change dropped the peer from the member set: wherever it is, it was not part of the quorate side) or
  *unknown*.
* If all missing voters together could reach the quorum, quorumless ones are treated as unknown again.
* If no missing voter is unknown, all missing voters are struck from the count (R1). `majority` follows the struck
  count, a number does not (R2): two diskful and a tie-breaker with `quorum=2` become "1 of 1, need 2" and have no
  failover (X0a, X8a).
* The tie-break bridges exactly one missing vote when the (struck) voter count is even, the majority of the diskless
  nodes is connected and the node had quorum until now. It ignores quorum-minimum-redundancy (S17b).
* A node without a disk has quorum as soon as one connected UpToDate peer says that it has quorum (S6, S7).
* A Primary refuses a voluntary state change (option, connect, graceful leave) that would cost it its quorum: the
  option is stored, the flag stays (S12, X7). A loss is not voluntary and is evaluated with the stored options.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

OFF: Final = 0
"""`quorum=off`, `quorum-minimum-redundancy=off`; the kernel accepts the number 0 with the same meaning (S12)."""

MAJORITY: Final = -1
"""`majority`: recomputed from the voters that count at the moment."""

ALL: Final = -2
"""`all`: every voter that counts at the moment."""

UP_TO_DATE: Final = "UpToDate"
OUTDATED: Final = "Outdated"
DISKLESS: Final = "Diskless"
UNKNOWN: Final = "DUnknown"

_WITHOUT_DISK: Final = frozenset({"Diskless", "Attaching"})
"""Own disk states in which the kernel counts by connections instead of by the slots of its metadata."""

_KNOWN_STALE: Final = frozenset(
    {"Diskless", "Attaching", "Detaching", "Failed", "Negotiating", "Inconsistent", "Outdated"}
)
"""Disk states up to Outdated: a missing peer last known in one of these cannot serve current data."""


class QuorumOptions(NamedTuple):
    """The options of one node that the rule reads."""

    quorum: int = MAJORITY
    minimum_redundancy: int = OFF
    dynamic_voters: bool = True


class OwnView(NamedTuple):
    """The node itself: its disk, and whether it was told to be diskless (`--diskless`)."""

    disk: str = UP_TO_DATE
    intentional_diskless: bool = False
    votes: bool = True  # False: `non-voting` of the patched module, the own disk is not counted (Q1)


class PeerView(NamedTuple):
    """One known peer as this node sees it; a peer counts until `forget-peer` (S9).

    `has_bitmap`: a bitmap slot is kept for it (`bitmap=yes`). `outdated`: recorded as outdated in this node's
    metadata. `quorumless`: dropped from the member set by a committed cluster-wide change. `quorate`: says that it
    has quorum. `remembered`: seen at least once; a diskless peer that never connected is ignored by a node with a
    disk.
    """

    connected: bool
    disk: str = UP_TO_DATE
    has_bitmap: bool = True
    tiebreaker: bool = True
    quorumless: bool = False
    outdated: bool = False
    quorate: bool = False
    allow_remote_read: bool = True
    remembered: bool = True


class Tally(NamedTuple):
    """Nodes by class, this node included."""

    up_to_date: int = 0
    present: int = 0
    outdated: int = 0
    quorumless: int = 0
    unknown: int = 0
    diskless: int = 0
    missing_diskless: int = 0
    quorate_peers: int = 0


class Verdict(NamedTuple):
    """The outcome with the numbers the kernel prints when it refuses ("1 of 2 nodes visible, need 2 for quorum")."""

    have_quorum: bool
    by_tie_break: bool
    visible: int
    up_to_date: int
    voters: int
    quorum_at: int
    minimum_redundancy_at: int


def compute_threshold(setting: int, voters: int) -> int:
    """The number of nodes that a `quorum` or `quorum-minimum-redundancy` setting asks for."""
    if setting == MAJORITY:
        return voters // 2 + 1
    if setting == ALL:
        return voters
    return setting


def compute_tally(own: OwnView, peers: Iterable[PeerView], *, had_quorum: bool) -> Tally:
    """Sort this node and its peers into classes; quorumless peers exist only for a node that has quorum."""
    with_disk = own.disk not in _WITHOUT_DISK
    up_to_date = present = outdated = quorumless = unknown = diskless = missing_diskless = quorate_peers = 0
    if with_disk and own.votes:
        if own.disk == UP_TO_DATE:
            up_to_date = 1
        else:
            present = 1
    elif own.disk == DISKLESS:
        # A node that lost its disk without being told to is no tie-breaker of its own.
        if own.intentional_diskless:
            diskless = 1
        else:
            unknown = 1
    for peer in peers:
        if not peer.allow_remote_read:
            continue
        if not peer.has_bitmap and (not peer.tiebreaker or (with_disk and not peer.remembered)):
            continue
        if not peer.connected:
            if not peer.has_bitmap:
                missing_diskless += 1
            elif peer.disk in _KNOWN_STALE or (with_disk and peer.outdated):
                outdated += 1
            elif had_quorum and peer.quorumless:
                quorumless += 1
            else:
                unknown += 1
        elif peer.disk == DISKLESS and not (with_disk and peer.has_bitmap):
            diskless += 1
        elif peer.disk == UP_TO_DATE:
            up_to_date += 1
            quorate_peers += peer.quorate and not with_disk
        else:
            present += 1
    return Tally(up_to_date, present, outdated, quorumless, unknown, diskless, missing_diskless, quorate_peers)


def compute_verdict(tally: Tally, options: QuorumOptions, *, had_quorum: bool) -> Verdict:
    """Apply R1, R2 and the tie-break to a tally. `quorum=off` always has quorum."""
    up_to_date, present, outdated, quorumless, unknown, diskless, missing_diskless, quorate_peers = tally
    visible = up_to_date + present
    missing = outdated + quorumless + unknown
    voters = visible + missing
    if options.dynamic_voters:
        if missing >= compute_threshold(options.quorum, voters):
            # The missing nodes may be the quorate side themselves.
            unknown += quorumless
        if not unknown:
            voters = visible
    quorum_at = compute_threshold(options.quorum, voters)
    redundancy_at = compute_threshold(options.minimum_redundancy, voters)
    if options.quorum == OFF:
        return Verdict(True, False, visible, up_to_date, voters, 0, redundancy_at)
    if quorate_peers or (visible >= quorum_at and up_to_date >= redundancy_at):
        return Verdict(True, False, visible, up_to_date, voters, quorum_at, redundancy_at)
    tie_break = (
        had_quorum
        and voters != 0
        and voters % 2 == 0
        and visible == quorum_at - 1
        and diskless >= (diskless + missing_diskless) // 2 + 1
    )
    return Verdict(tie_break, tie_break, visible, up_to_date, voters, quorum_at, redundancy_at)


def have_quorum(own: OwnView, peers: Iterable[PeerView], options: QuorumOptions, had_quorum: bool) -> bool:
    """Whether a node that sees this has quorum; `had_quorum` is its flag until now."""
    tally = compute_tally(own, peers, had_quorum=had_quorum)
    return compute_verdict(tally, options, had_quorum=had_quorum).have_quorum


def flag_after(*, computed: bool, had_quorum: bool, primary: bool, forced: bool) -> bool:
    """The quorum flag after one state change whose rule says `computed`.

    A Primary with quorum refuses a voluntary change that ends without it, an option change included: the option is
    stored, the flag stays (S12, X7). A loss (`forced`) is enforced on every node; a Secondary follows at once.
    """
    return computed or (had_quorum and primary and not forced)
