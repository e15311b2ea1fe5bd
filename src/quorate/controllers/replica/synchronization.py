"""Condition BackingVolumeUpToDate: whether the local data is current (seed 001)."""

from __future__ import annotations

from quorate.api.common import DiskState, ReplicationState
from quorate.api.drbd_resource import DRBDResource
from quorate.api.replicated_volume_replica import (
    BackingVolumeUpToDateCondition,
    PeerStatus,
    ReplicatedVolumeReplicaStatus,
)
from quorate.controllers.replica.drbd_resource import DrbdOutcome
from quorate.controllers.replica.situation import Situation
from quorate.controllers.replica.status_fields import is_attached
from quorate.controllers.replica.verdict import Verdict
from quorate.datamesh import members

R = BackingVolumeUpToDateCondition

MISSING_ACTIVE_CONFIGURATION = "agent reports the resource as processed, but no active configuration"


def compute_up_to_date(
    situation: Situation, status: ReplicatedVolumeReplicaStatus, outcome: DrbdOutcome
) -> Verdict | None:
    """The condition; absent for replicas that neither need nor have a disk, and for non-members."""
    drbdr, member = situation.drbdr, situation.member
    if drbdr is None or member is None:
        return None
    if not (members.needs_backing_volume(member.type) or status.backing_volume is not None):
        return None
    if not outcome.agent_ready:
        return Verdict.unknown(R.AGENT_NOT_READY, "Agent is not ready, state of the data is unknown")
    if outcome.pending or drbdr.status.active_configuration is None:
        return Verdict.unknown(R.APPLYING_CONFIGURATION, "Configuration is being applied")
    serving = is_attached(drbdr) and not drbdr.status.device_io_suspended
    return _evaluate(drbdr.status.disk_state, status.peers, serving)


def is_agent_inconsistent(drbdr: DRBDResource | None, outcome: DrbdOutcome) -> bool:
    """Whether the agent says "done" without saying what there is now: a bug in the agent, reported as an error."""
    return (
        drbdr is not None and outcome.agent_ready and not outcome.pending and drbdr.status.active_configuration is None
    )


def _evaluate(state: str, peers: tuple[PeerStatus, ...], serving: bool) -> Verdict:
    suffix = "; I/O is served from peers" if serving else ""
    match state:
        case DiskState.UP_TO_DATE:
            return Verdict.true(R.UP_TO_DATE, "Backing volume is up to date")
        case DiskState.DISKLESS | DiskState.ATTACHING | DiskState.DETACHING:
            return Verdict.false(R.ABSENT, f"Backing volume is not present ({state}){suffix}")
        case DiskState.FAILED:
            return Verdict.false(R.FAILED, f"Backing volume failed due to I/O errors{suffix}")
        case DiskState.NEGOTIATING:
            return Verdict.false(R.UNKNOWN, f"Backing volume state is being negotiated with peers{suffix}")
        case DiskState.OUTDATED:
            return Verdict.false(
                R.REQUIRES_SYNCHRONIZATION, f"Backing volume is outdated and requires synchronization{suffix}"
            )
        case DiskState.CONSISTENT:
            return Verdict.false(
                R.UNKNOWN, f"Backing volume is consistent, whether it is current is decided on connect{suffix}"
            )
        case DiskState.INCONSISTENT:
            return _evaluate_inconsistent(peers, suffix)
        case _:
            return Verdict.false(R.UNKNOWN, f"Backing volume state is unknown ({state or 'not reported'}){suffix}")


def _evaluate_inconsistent(peers: tuple[PeerStatus, ...], suffix: str) -> Verdict:
    source = next((peer for peer in peers if peer.replication_state == ReplicationState.SYNC_TARGET), None)
    if source is not None:
        progress = f" ({source.sync_progress}%)" if source.sync_progress else ""
        return Verdict.false(R.SYNCHRONIZING, f"Synchronizing from {source.name}{progress}{suffix}")
    current = [peer for peer in peers if peer.backing_volume_state == DiskState.UP_TO_DATE]
    if any(peer.replication_state == ReplicationState.ESTABLISHED for peer in current):
        return Verdict.false(R.SYNCHRONIZING, f"Waiting to synchronize via an intermediate peer{suffix}")
    if not current:
        return Verdict.false(
            R.REQUIRES_SYNCHRONIZATION, f"Requires synchronization, but no up-to-date peer is available{suffix}"
        )
    return Verdict.false(R.REQUIRES_SYNCHRONIZATION, f"Requires synchronization from an up-to-date peer{suffix}")
