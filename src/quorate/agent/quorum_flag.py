"""The quorum flag computed from the node's own status and configuration, to be compared with the kernel's (decision 5).

Exit code 0 of an option change proves nothing: a Primary stores a higher q without enforcing it (S12, X7). So the agent
computes which flags the kernel's rule (R1, R2 and the tie-break of facts/kernel-quorum) allows for what it sees. Two
things are not visible in `status`: whether a missing voter is *quorumless* or *unknown*, and whether the node had
quorum until now (the tie-break keeps quorum, it never gives it). Both are tried; the result is the set of possible
flags. The kernel's flag outside of that set means: the stored options are not in force.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent.actual import ActualPeer, ActualResource, ActualVolume
from quorate.api.common import DiskState

_STALE = frozenset(
    {
        DiskState.DISKLESS,
        DiskState.ATTACHING,
        DiskState.DETACHING,
        DiskState.FAILED,
        DiskState.NEGOTIATING,
        DiskState.INCONSISTENT,
        DiskState.OUTDATED,
    }
)


@dataclass(frozen=True, slots=True)
class Tally:
    """Voters and tie-breakers by what is known of them, this node included."""

    up_to_date: int = 0
    present: int = 0
    """Attached or connected, but not UpToDate."""
    outdated: int = 0
    absent: int = 0
    """Missing and not known to be outdated: quorumless or unknown."""
    unknown_self: int = 0
    """This node lost its disk without being told to: it counts as unknown."""
    connected_tie_breakers: int = 0
    missing_tie_breakers: int = 0
    readable_peers: int = 0
    """Connected UpToDate peers that a diskless node can get its quorum from."""

    @property
    def visible(self) -> int:
        return self.up_to_date + self.present

    @property
    def voters(self) -> int:
        return self.visible + self.outdated + self.absent + self.unknown_self


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the kernel's flag may be."""

    flag: bool
    """The kernel's."""
    possible: frozenset[bool]
    tally: Tally

    @property
    def enforced(self) -> bool:
        return self.flag in self.possible

    @property
    def expected(self) -> bool:
        """The flag as it should be: the kernel's own where that is possible."""
        return self.flag if self.enforced else not self.flag

    @property
    def stale_loss(self) -> bool:
        """The kernel still says "no quorum" although everything it asks for is there, as after `forget-peer` (S9)."""
        return not self.enforced and not self.flag


def compute_threshold(option: str, voters: int) -> int:
    """The number of nodes a quorum option asks for."""
    match option:
        case "off" | "":
            return 0
        case "majority":
            return voters // 2 + 1
        case "all":
            return voters
        case _:
            return int(option)


def compute_verdict(resource: ActualResource, *, dynamic_voters: bool) -> Verdict | None:
    """Compare; None while there is no volume."""
    volume = resource.volume
    if volume is None:
        return None
    tally = compute_tally(resource, volume)
    if compute_threshold(resource.quorum_option, tally.voters) == 0:
        return Verdict(volume.quorum, frozenset({True}), tally)
    possible = {
        _have_quorum(resource, tally, quorumless=quorumless, had_quorum=had_quorum, dynamic_voters=dynamic_voters)
        for quorumless in range(tally.absent + 1)
        for had_quorum in (True, False)
        if had_quorum or quorumless == 0
    }
    if not volume.attached and tally.readable_peers:
        possible.add(True)
    return Verdict(volume.quorum, frozenset(possible), tally)


def compute_tally(resource: ActualResource, volume: ActualVolume) -> Tally:
    """Sort this node and its peers (Q1 to Q7 of facts/agent 5.1)."""
    with_disk = volume.disk_state not in (DiskState.DISKLESS, DiskState.ATTACHING)
    counts = {"up_to_date": 0, "present": 0, "outdated": 0, "absent": 0, "tie": 0, "missing_tie": 0, "readable": 0}
    if with_disk:
        counts["up_to_date" if volume.disk_state == DiskState.UP_TO_DATE else "present"] += 1
    for peer in resource.peers:
        kind = _classify(peer, with_disk)
        if kind:
            counts[kind] += 1
        if kind == "up_to_date":
            counts["readable"] += 1
    own_tie = 1 if volume.disk_state == DiskState.DISKLESS and volume.client else 0
    own_unknown = 1 if volume.disk_state == DiskState.DISKLESS and not volume.client else 0
    return Tally(
        up_to_date=counts["up_to_date"],
        present=counts["present"],
        outdated=counts["outdated"],
        absent=counts["absent"],
        unknown_self=own_unknown,
        connected_tie_breakers=counts["tie"] + own_tie,
        missing_tie_breakers=counts["missing_tie"],
        readable_peers=counts["readable"],
    )


def _classify(peer: ActualPeer, with_disk: bool) -> str:
    if not peer.allow_remote_read or (not peer.bitmap and not peer.tie_breaker):
        return ""
    if not peer.replicating:
        if not peer.bitmap:
            return "missing_tie"
        return "outdated" if peer.disk_state in _STALE else "absent"
    if peer.disk_state == DiskState.DISKLESS and not (with_disk and peer.bitmap):
        return "tie"
    return "up_to_date" if peer.disk_state == DiskState.UP_TO_DATE else "present"


def _have_quorum(
    resource: ActualResource, tally: Tally, *, quorumless: int, had_quorum: bool, dynamic_voters: bool
) -> bool:
    """R1, R2 and the tie-break for one assumption about what cannot be seen."""
    unknown = tally.absent - quorumless + tally.unknown_self
    voters = tally.voters
    if dynamic_voters:
        if tally.outdated + tally.absent + tally.unknown_self >= compute_threshold(resource.quorum_option, voters):
            unknown += quorumless
        if not unknown:
            voters = tally.visible
    needed = compute_threshold(resource.quorum_option, voters)
    redundancy = compute_threshold(resource.redundancy_option, voters)
    if tally.visible >= needed and tally.up_to_date >= redundancy:
        return True
    connected, missing = tally.connected_tie_breakers, tally.missing_tie_breakers
    return (
        had_quorum
        and voters > 0
        and voters % 2 == 0
        and tally.visible == needed - 1
        and connected >= (connected + missing) // 2 + 1
    )
