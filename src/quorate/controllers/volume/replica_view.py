"""What the volume controller reads off one replica: small predicates with the names the documents use."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api import conditions, names
from quorate.api.common import ConnectionState, DiskState, ReplicationState
from quorate.api.id_set import IDSet
from quorate.api.meta import Condition
from quorate.api.replicated_volume import MemberType, Operation
from quorate.api.replicated_volume_replica import (
    DRBDConfiguredCondition,
    ReplicatedVolumeReplica,
    SatisfyEligibleNodesCondition,
    ScheduledCondition,
)
from quorate.api.replicated_volume_replica import PeerStatus as Peer


def replica_id(replica: ReplicatedVolumeReplica) -> int:
    """The numeric id in the replica's name."""
    return names.replica_id(replica.metadata.name)


def ids(replicas: Iterable[ReplicatedVolumeReplica]) -> IDSet:
    """The ids of some replicas, for messages."""
    return IDSet.of(*(replica_id(replica) for replica in replicas))


def current_condition(replica: ReplicatedVolumeReplica, type_: str) -> Condition | None:
    """The condition, if it was written for the replica's present generation."""
    found = conditions.get(replica.status.conditions, type_)
    if found is None or found.observed_generation != replica.metadata.generation:
        return None
    return found


def is_misplaced(replica: ReplicatedVolumeReplica) -> bool:
    """Whether the replica stands where the pool does not want it (SatisfyEligibleNodes=False)."""
    found = current_condition(replica, SatisfyEligibleNodesCondition.TYPE)
    return found is not None and found.status == conditions.FALSE


def is_scheduled(replica: ReplicatedVolumeReplica) -> bool:
    """Whether the replica has its place: a node, and a volume group where it needs one."""
    if not replica.spec.node_name:
        return False
    return replica.spec.type != MemberType.DISKFUL or bool(replica.spec.lvm_volume_group_name)


def scheduling_failure(replica: ReplicatedVolumeReplica) -> str:
    """Why the replica could not be placed; empty when scheduling has not failed."""
    found = current_condition(replica, ScheduledCondition.TYPE)
    if found is None or found.status != conditions.FALSE:
        return ""
    return found.message or found.reason


def is_preconfigured(replica: ReplicatedVolumeReplica) -> bool:
    """DRBD is set up and the replica asks to join: all that can be done before membership."""
    request = replica.status.datamesh_request
    if request is None or request.operation != Operation.JOIN:
        return False
    found = current_condition(replica, DRBDConfiguredCondition.TYPE)
    return found is not None and found.reason == DRBDConfiguredCondition.PENDING_DATAMESH_JOIN


def is_configured(replica: ReplicatedVolumeReplica, revision: int) -> bool:
    """Whether the replica runs exactly this revision."""
    found = current_condition(replica, DRBDConfiguredCondition.TYPE)
    return replica.status.datamesh_revision == revision and found is not None and found.status == conditions.TRUE


def peer_of(replica: ReplicatedVolumeReplica, name: str) -> Peer | None:
    """What the replica reports about a peer."""
    return next((peer for peer in replica.status.peers if peer.name == name), None)


def is_connected_to(replica: ReplicatedVolumeReplica, name: str) -> bool:
    """Whether the replica reports an established connection to a peer."""
    peer = peer_of(replica, name)
    return peer is not None and peer.connection_state == ConnectionState.CONNECTED


def replicates_to(replica: ReplicatedVolumeReplica, name: str) -> bool:
    """Whether replication to a peer is established."""
    peer = peer_of(replica, name)
    return peer is not None and peer.replication_state == ReplicationState.ESTABLISHED


def disk_state(replica: ReplicatedVolumeReplica) -> str:
    """State of the replica's own disk."""
    backing = replica.status.backing_volume
    return backing.state if backing is not None else ""


def is_up_to_date(replica: ReplicatedVolumeReplica) -> bool:
    """Whether the replica's disk has current data."""
    return disk_state(replica) == DiskState.UP_TO_DATE


def is_agent_ready(replica: ReplicatedVolumeReplica) -> bool:
    """Whether what the replica reports is fresh (H27: one helper)."""
    found = conditions.get(replica.status.conditions, DRBDConfiguredCondition.TYPE)
    return found is not None and found.reason != DRBDConfiguredCondition.AGENT_NOT_READY
