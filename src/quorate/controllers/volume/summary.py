"""What the volume says about its replicas: five summary conditions, eligibility violations, usable size.

These are the conditions behind the printer columns; the volume controller is their only writer.
"""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.replicated_volume import (
    ConfiguredCondition,
    EligibleNodesViolation,
    IOReadyCondition,
    MemberType,
    QuorumCondition,
    ReplicatedVolumeStatus,
    SatisfyEligibleNodesCondition,
    ScheduledCondition,
    ViolationReason,
)
from quorate.api.replicated_volume_replica import ConfiguredCondition as ReplicaConfigured
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.controllers.volume import replica_view
from quorate.controllers.volume.formation import transition
from quorate.controllers.volume.snapshot import Snapshot


def ensure_summary(
    snapshot: Snapshot, status: ReplicatedVolumeStatus, now: float, *, repairing: bool, waiting: str = ""
) -> ReplicatedVolumeStatus:
    """The status with violations, size and the five conditions; `waiting` says why there are no replicas yet."""
    status = _with_violations(snapshot, status)
    status = _with_size(snapshot, status)
    for type_, (value, reason, message) in (
        (IOReadyCondition.TYPE, compute_io_ready(snapshot, status)),
        (QuorumCondition.TYPE, compute_quorum(snapshot, status)),
        (ScheduledCondition.TYPE, compute_scheduled(snapshot, waiting)),
        (ConfiguredCondition.TYPE, compute_configured(snapshot)),
        (SatisfyEligibleNodesCondition.TYPE, compute_satisfy(status, repairing=repairing)),
    ):
        changed = conditions.set_(
            status.conditions,
            type_,
            status=value,
            reason=reason,
            message=message,
            generation=snapshot.existing_volume().metadata.generation,
            now=now,
        )
        if changed is not status.conditions:
            status = replace(status, conditions=changed)
    return status


def _with_violations(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> ReplicatedVolumeStatus:
    found = tuple(
        EligibleNodesViolation(
            node_name=replica.spec.node_name,
            replica_name=replica.metadata.name,
            reason=ViolationReason.OUT_OF_ELIGIBLE_NODES,
        )
        for replica in snapshot.replicas
        if replica.spec.node_name and not replica.metadata.deleting and replica_view.is_misplaced(replica)
    )
    if found == status.eligible_nodes_violations:
        return status
    return replace(status, eligible_nodes_violations=found)


def _with_size(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> ReplicatedVolumeStatus:
    """The smallest usable size among the diskful members; absent without one that reports it."""
    names = tuple(member.name for member in status.datamesh.members if member.type == MemberType.DISKFUL)
    sizes = [r.status.size for r in snapshot.replicas if r.metadata.name in names and r.status.size is not None]
    size = min(sizes, key=lambda quantity: quantity.value) if sizes and not transition.is_forming(status) else None
    return status if size == status.size else replace(status, size=size)


def _voters(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> tuple[ReplicatedVolumeReplica, ...]:
    names = tuple(m.name for m in status.datamesh.members if m.type in (MemberType.DISKFUL, MemberType.LIMINAL_DISKFUL))
    return tuple(replica for replica in snapshot.replicas if replica.metadata.name in names)


def compute_io_ready(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> tuple[str, str, str]:
    """Whether the volume serves I/O, or could after attaching."""
    if transition.is_forming(status):
        return conditions.FALSE, IOReadyCondition.FORMING, "The volume is being formed"
    attached = tuple(member.name for member in status.datamesh.members if member.attached)
    devices = tuple((r, r.status.attachment) for r in snapshot.replicas if r.metadata.name in attached)
    frozen = replica_view.ids(r for r, device in devices if device is not None and device.io_suspended)
    if frozen:
        return conditions.FALSE, IOReadyCondition.IO_SUSPENDED, f"I/O is suspended on replicas [{frozen}]"
    fresh = tuple(r for r in _voters(snapshot, status) if replica_view.is_agent_ready(r))
    if not fresh:
        return conditions.UNKNOWN, IOReadyCondition.AGENT_NOT_READY, "No agent of a diskful member reports"
    if not any(replica.status.quorum for replica in fresh):
        return conditions.FALSE, IOReadyCondition.NO_QUORUM, "No diskful member has quorum"
    return conditions.TRUE, IOReadyCondition.IO_READY, "The volume serves I/O where it is attached"


def compute_quorum(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> tuple[str, str, str]:
    """Whether the diskful members have quorum."""
    if transition.is_forming(status):
        return conditions.FALSE, QuorumCondition.FORMING, "The volume is being formed"
    voters = _voters(snapshot, status)
    fresh = tuple(replica for replica in voters if replica_view.is_agent_ready(replica))
    if not fresh:
        return conditions.UNKNOWN, QuorumCondition.AGENT_NOT_READY, "No agent of a diskful member reports"
    without = replica_view.ids(replica for replica in fresh if not replica.status.quorum)
    if not without:
        return conditions.TRUE, QuorumCondition.QUORUM_REACHED, "Every reporting diskful member has quorum"
    if len(without) == len(fresh):
        return conditions.FALSE, QuorumCondition.QUORUM_LOST, f"No quorum on replicas [{without}]"
    return conditions.TRUE, QuorumCondition.QUORUM_DEGRADED, f"No quorum on replicas [{without}]"


def compute_scheduled(snapshot: Snapshot, waiting: str) -> tuple[str, str, str]:
    """Whether every replica has its place."""
    if waiting:
        return conditions.FALSE, ScheduledCondition.SCHEDULING_IN_PROGRESS, waiting
    unplaced = tuple(r for r in snapshot.replicas if not r.metadata.deleting and not replica_view.is_scheduled(r))
    failed = tuple(r for r in unplaced if replica_view.scheduling_failure(r))
    if failed:
        reasons = "; ".join(f"#{replica_view.replica_id(r)}: {replica_view.scheduling_failure(r)}" for r in failed)
        return conditions.FALSE, ScheduledCondition.REPLICAS_NOT_SCHEDULED, f"Replicas could not be placed: {reasons}"
    if unplaced or not snapshot.replicas:
        message = f"Replicas [{replica_view.ids(unplaced)}] are not placed yet"
        return conditions.FALSE, ScheduledCondition.SCHEDULING_IN_PROGRESS, message
    return conditions.TRUE, ScheduledCondition.ALL_REPLICAS_SCHEDULED, "Every replica has its place"


def compute_configured(snapshot: Snapshot) -> tuple[str, str, str]:
    """Whether every replica is configured as intended."""

    def settled(replica: ReplicatedVolumeReplica) -> bool:
        found = conditions.get(replica.status.conditions, ReplicaConfigured.TYPE)
        return found is not None and found.status == conditions.TRUE

    pending = replica_view.ids(r for r in snapshot.replicas if not settled(r))
    if pending or not snapshot.replicas:
        message = f"Replicas [{pending}] are not configured as intended yet"
        return conditions.FALSE, ConfiguredCondition.CONFIGURATION_IN_PROGRESS, message
    return conditions.TRUE, ConfiguredCondition.CONFIGURED, "Every replica is configured as intended"


def compute_satisfy(status: ReplicatedVolumeStatus, *, repairing: bool) -> tuple[str, str, str]:
    """Whether every replica stands on an eligible node."""
    violations = status.eligible_nodes_violations
    if not violations:
        message = "Every replica is on an eligible node"
        return conditions.TRUE, SatisfyEligibleNodesCondition.SATISFY_ELIGIBLE_NODES, message
    where = ", ".join(f"{violation.replica_name} on {violation.node_name}" for violation in violations)
    if repairing:
        reason = SatisfyEligibleNodesCondition.CONFLICT_RESOLUTION_IN_PROGRESS
        return conditions.FALSE, reason, f"Replicas are being replaced: {where}"
    reason = SatisfyEligibleNodesCondition.IN_CONFLICT_WITH_ELIGIBLE_NODES
    return conditions.FALSE, reason, f"Replicas are on nodes that are not eligible: {where}"
