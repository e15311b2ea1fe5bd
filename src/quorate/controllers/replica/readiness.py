"""Condition Ready: whether the replica is ready for I/O, by quorum (seed 001)."""

from __future__ import annotations

from quorate.api.common import DiskState
from quorate.api.drbd_resource import DrbdType
from quorate.api.replicated_volume_replica import QuorumSummary, ReadyCondition, ReplicatedVolumeReplicaStatus
from quorate.controllers.replica.drbd_resource import UNSATISFIED_BY_VOLUME, DrbdOutcome
from quorate.controllers.replica.situation import Situation
from quorate.controllers.replica.verdict import Verdict

R = ReadyCondition


def compute_ready(situation: Situation, status: ReplicatedVolumeReplicaStatus, outcome: DrbdOutcome) -> Verdict:
    """The condition, which every replica has."""
    datamesh = situation.datamesh
    if situation.deleting:
        return Verdict.false(R.DELETING, "Replica is being deleted")
    if datamesh is None or not datamesh.system_network_names:
        return Verdict.unknown(R.WAITING_FOR_REPLICATED_VOLUME, UNSATISFIED_BY_VOLUME)
    if not situation.replica.spec.node_name:
        return Verdict.false(R.PENDING_SCHEDULING, "Waiting for node assignment")
    if not outcome.agent_ready:
        return Verdict.unknown(R.AGENT_NOT_READY, "Agent is not ready")
    if outcome.pending:
        return Verdict.unknown(R.APPLYING_CONFIGURATION, "Configuration is being applied")
    if situation.member is None:
        return Verdict.false(R.PENDING_DATAMESH_JOIN, "Waiting to join the datamesh")
    if status.type == DrbdType.DISKLESS:
        return _diskless(status)
    return _diskful(status)


def _diskless(status: ReplicatedVolumeReplicaStatus) -> Verdict:
    summary = status.quorum_summary or QuorumSummary()
    threshold = _threshold(summary.quorum_minimum_redundancy)
    message = f"data quorum {summary.connected_up_to_date_peers}/{threshold}"
    if status.quorum:
        return Verdict.true(R.QUORUM_VIA_PEERS, f"Quorum via peers: {message}")
    return Verdict.false(R.QUORUM_VIA_PEERS, f"No quorum via peers: {message}")


def _diskful(status: ReplicatedVolumeReplicaStatus) -> Verdict:
    summary = status.quorum_summary or QuorumSummary()
    state = status.backing_volume.state if status.backing_volume is not None else ""
    vote = bool(state) and state not in (DiskState.DISKLESS, DiskState.ATTACHING)
    current = state == DiskState.UP_TO_DATE
    message = (
        f"diskful {summary.connected_diskful_peers + vote}/{_threshold(summary.quorum)}"
        f" + tie-breakers {summary.connected_tie_breaker_peers}"
        f", data quorum {summary.connected_up_to_date_peers + current}/{_threshold(summary.quorum_minimum_redundancy)}"
    )
    if status.quorum:
        return Verdict.true(R.READY, f"Ready for I/O: {message}")
    return Verdict.false(R.QUORUM_LOST, f"Quorum is lost: {message}")


def _threshold(value: int | None) -> str:
    return "unknown" if value is None else str(value)
