"""The fields that we add to `storage.deckhouse.io/v1alpha1`, in one list.

Clients of the original API never see a field missing that they know; they may see these in addition. A test keeps the list
complete: a schema field is either one of the original API or stands here. `docs/api-additions.md` shows the same list.
"""

from __future__ import annotations

from typing import NamedTuple


class Addition(NamedTuple):
    """One added field; everything below it is added, too."""

    kind: str
    path: str
    why: str


_TRANSITION = ".status.datameshTransitions[]"
_E15 = "A transition carries everything its later steps need (E15)."
_TAKE_BACK = "What taking the transition back restores (decision 8)."
_FLAG = "Input of the quorum flag that the agent recomputes (decision 5)."
_SYNC = "Progress of a synchronisation, for people and for formation timeouts (decision 7)."

ADDITIONS: tuple[Addition, ...] = (
    Addition(
        "ReplicatedVolume", ".status.observedProtection", "Observed protection; effectiveLayout is committed (2)."
    ),
    Addition(
        "ReplicatedVolume", ".status.formation", "Restarts and progress survive a restart of formation (decision 7)."
    ),
    Addition("ReplicatedVolume", ".status.datamesh.dataPresent", "Latch: the volume may hold data (decision 9)."),
    Addition(
        "ReplicatedVolume", ".status.datamesh.tieBreakersSuspended", "M1: tie-breakers lose their vote (decision 4)."
    ),
    Addition(
        "ReplicatedVolume",
        ".status.datamesh.members[].tieBreakersDisconnected",
        "Emergency removal from two voters: tie-breakers drop the member first (decision 6).",
    ),
    Addition("ReplicatedVolume", f"{_TRANSITION}.nodeName", _E15),
    Addition("ReplicatedVolume", f"{_TRANSITION}.lvmVolumeGroupName", _E15),
    Addition("ReplicatedVolume", f"{_TRANSITION}.lvmVolumeGroupThinPoolName", _E15),
    Addition("ReplicatedVolume", f"{_TRANSITION}.quorum", _E15),
    Addition("ReplicatedVolume", f"{_TRANSITION}.quorumMinimumRedundancy", _E15),
    Addition("ReplicatedVolume", f"{_TRANSITION}.size", _E15),
    Addition("ReplicatedVolume", f"{_TRANSITION}.previousQuorum", _TAKE_BACK),
    Addition("ReplicatedVolume", f"{_TRANSITION}.previousQuorumMinimumRedundancy", _TAKE_BACK),
    Addition("ReplicatedVolume", f"{_TRANSITION}.reverting", "The transition is being taken back (decision 8)."),
    Addition("ReplicatedVolume", f"{_TRANSITION}.reason", "Why the transition waits: a guard, fencing (decision 6)."),
    Addition("ReplicatedVolume", f"{_TRANSITION}.message", "The same for people."),
    Addition("ReplicatedVolume", f"{_TRANSITION}.steps[].reason", "Machine-readable form of what the step waits for."),
    Addition(
        "ReplicatedVolumeReplica", ".status.quorumEnforced", "The kernel enforces the stored q and qmr (decision 5)."
    ),
    Addition("ReplicatedVolumeReplica", ".status.peers[].syncProgress", _SYNC),
    Addition("ReplicatedVolumeReplica", ".status.peers[].outOfSync", _SYNC),
    Addition("DRBDResource", ".spec.peers[].tieBreaker", "M1: the peer has a vote in ties (decision 4)."),
    Addition("DRBDResource", ".status.activeConfiguration.quorumPolicy", "`majority` or a number (decision 15)."),
    Addition("DRBDResource", ".status.peers[].bitmap", _FLAG),
    Addition("DRBDResource", ".status.peers[].tieBreaker", _FLAG),
    Addition("DRBDResource", ".status.peers[].quorate", _FLAG),
    Addition("DRBDResource", ".status.peers[].syncProgress", _SYNC),
    Addition("DRBDResource", ".status.peers[].outOfSync", _SYNC),
    Addition("DRBDResource", ".status.voterFacts", "What the quorum flag is computed from (decision 5)."),
    Addition(
        "DRBDResourceOperation", ".spec.formationID", "Operations of earlier formations are recognised (decision 7)."
    ),
)
"""All added fields."""


LEFT_OUT: tuple[Addition, ...] = (
    Addition("ReplicatedVolume", ".status.actuallyAttachedTo[]", "Written by nobody; members[].attached says it."),
    Addition("ReplicatedVolume", ".status.effectiveLayout.totalVoters", "Moved to observedProtection (decision 2)."),
    Addition("ReplicatedVolume", ".status.effectiveLayout.reachableVoters", "Moved to observedProtection."),
    Addition("ReplicatedVolume", ".status.effectiveLayout.upToDateVoters", "Moved to observedProtection."),
    Addition("ReplicatedVolume", ".status.effectiveLayout.totalTieBreakers", "Moved to observedProtection."),
    Addition("ReplicatedVolume", ".status.effectiveLayout.reachableTieBreakers", "Moved to observedProtection."),
    Addition("ReplicatedVolume", ".status.effectiveLayout.staleAgents", "Moved to observedProtection."),
    Addition("ReplicatedVolume", ".status.effectiveLayout.message", "Moved to observedProtection."),
    Addition("LVMLogicalVolume", ".spec.source", "Snapshots and clones are not ours."),
    Addition("LVMLogicalVolume", ".spec.volumeCleanup", "Wiping is not ours."),
)
"""Fields of the original API that our schemas do not have. Received values are ignored."""


def as_markdown() -> str:
    """The list as the document `docs/api-additions.md`."""
    lines = [
        "# Fields added to v1alpha1",
        "",
        "Generated from `src/quorate/api/additions.py`. The numbers are those of the decisions in the design.",
        "",
        "| kind | field | why |",
        "|---|---|---|",
        *(f"| {addition.kind} | `{addition.path}` | {addition.why} |" for addition in ADDITIONS),
        "",
        "# Fields left out",
        "",
        "Fields of the original API that our schemas do not have. Received values are ignored.",
        "",
        "| kind | field | why |",
        "|---|---|---|",
        *(f"| {left.kind} | `{left.path}` | {left.why} |" for left in LEFT_OUT),
    ]
    return "\n".join(lines) + "\n"
