"""Replica objects as the replica controllers would report the model's nodes.

Guarantees: a report is a function of what the node's agent can read (its own kernel, the connections it has, what its
peers tell it over them), of the replica object and of the published status; equal inputs give the very same object, so
passes can be remembered by it. A node that is down or whose agent is silent reports nothing new: only its last confirmed
revision and its wish stand in the object, marked as not ready.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from quorate.api.common import ConnectionState, DiskState, DrbdType
from quorate.api.meta import Condition, ObjectMeta
from quorate.api.names import replica_name
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import MembershipRequest, MemberType, Operation
from quorate.api.replicated_volume_replica import (
    BackingVolume,
    DRBDConfiguredCondition,
    PeerStatus,
    ReadyCondition,
    ReplicaAttachment,
    ReplicatedVolumeReplica,
    ReplicatedVolumeReplicaSpec,
    ReplicatedVolumeReplicaStatus,
    ReplicaType,
)
from quorate.api.value import replace
from quorate.verification.cluster import Cluster, disk_of
from quorate.verification.configuration import ACCESS, DISKFUL, GONE, LIMINAL, TIE_BREAKER
from quorate.verification.kernel import Kernels
from quorate.verification.perfect_cluster import GROUP, NETWORK, VOLUME, address_of
from quorate.verification.published import Published

NO_OBJECT: Final = 0
_TYPES: Final[dict[int, ReplicaType]] = {DISKFUL: "Diskful", TIE_BREAKER: "TieBreaker", ACCESS: "Access"}
_DISKS: Final = ("", DiskState.INCONSISTENT, DiskState.OUTDATED, DiskState.UP_TO_DATE, "")
_RESOLVED: Final = {DISKFUL: DISKFUL, LIMINAL: DISKFUL, TIE_BREAKER: TIE_BREAKER, ACCESS: ACCESS}
_SIZE: Final = Quantity.of(1 << 31)
_LATER: Final = "2001-09-09T01:46:41Z"


class ReplicaObject(NamedTuple):
    """A replica object: what its spec asks for, whether it is being deleted, whether ForceLeave was asked for."""

    kind: int
    deleting: bool = False
    force_leave: bool = False


class Reports:
    """Builds replica objects and remembers them."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._memory: dict[tuple[object, ...], ReplicatedVolumeReplica] = {}

    def of(
        self,
        cluster: Cluster,
        i: int,
        replica: ReplicaObject,
        revision: int,
        published: Published,
        *,
        silent: bool,
    ) -> ReplicatedVolumeReplica:
        """The replica object of node i."""
        node = cluster.nodes[i]
        target = published.targets[i]
        member = target.configuration.kind
        if not node.up or silent:
            key: tuple[object, ...] = (i, replica, revision, member)
            found = self._memory.get(key)
            if found is None:
                found = self._memory[key] = _silent(i, replica, revision, member)
            return found
        applied = node.configuration == target.configuration and node.primary == target.primary
        peers = tuple(
            (j, bool(cluster.links[i] >> j & 1), disk_of(cluster.nodes[j]))
            for j in range(len(cluster.nodes))
            if node.configuration.peers >> j & 1
        )
        enforced = self._kernels.enforced(cluster, i)
        key = (i, replica, revision, member, node.configuration.kind, disk_of(node), node.quorum, node.primary)
        key = (*key, applied, enforced, tuple((j, up, disk if up else -1) for j, up, disk in peers))
        found = self._memory.get(key)
        if found is None:
            status = _spoken(node.configuration.kind, disk_of(node), peers, revision)
            status = _with_conditions(status, node.quorum, member, applied=applied, enforced=enforced)
            status = _with_attachment(status, i, attached=node.primary)
            found = self._memory[key] = _object(i, replica, status, revision, member)
        return found


def _object(
    i: int, replica: ReplicaObject, status: ReplicatedVolumeReplicaStatus, revision: int, member: int
) -> ReplicatedVolumeReplica:
    diskful = replica.kind == DISKFUL
    request = _request(replica, status, revision, member)
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(
            name=replica_name(VOLUME, i), generation=1, deletion_timestamp=_LATER if replica.deleting else ""
        ),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=VOLUME,
            type=_TYPES[replica.kind],
            node_name=f"node-{i}",
            lvm_volume_group_name=GROUP if diskful else "",
        ),
        status=replace(status, datamesh_request=request),
    )


def _request(
    replica: ReplicaObject, status: ReplicatedVolumeReplicaStatus, revision: int, member: int
) -> MembershipRequest | None:
    """What the replica asks for (the rules of `quorate.controllers.replica.membership`)."""
    if replica.force_leave:
        return MembershipRequest(operation=Operation.FORCE_LEAVE)
    if replica.deleting:
        return MembershipRequest(operation=Operation.LEAVE) if revision or member != GONE else None
    diskful = replica.kind == DISKFUL
    group = GROUP if diskful else ""
    wanted = _TYPES[replica.kind]
    if not revision:
        return MembershipRequest(operation=Operation.JOIN, type=wanted, lvm_volume_group_name=group)
    if _RESOLVED.get(member, replica.kind) != replica.kind or (status.type == DrbdType.DISKFUL) != diskful:
        return MembershipRequest(operation=Operation.CHANGE_ROLE, type=wanted, lvm_volume_group_name=group)
    return None


def _silent(i: int, replica: ReplicaObject, revision: int, member: int) -> ReplicatedVolumeReplica:
    condition = Condition(
        type=DRBDConfiguredCondition.TYPE,
        status="False",
        reason=DRBDConfiguredCondition.AGENT_NOT_READY,
        observed_generation=1,
    )
    last = DrbdType.DISKFUL if member == DISKFUL else DrbdType.DISKLESS
    status = ReplicatedVolumeReplicaStatus(
        conditions=(condition,), addresses=(address_of(i),), type=last, datamesh_revision=revision
    )
    return _object(i, replica, status, revision, member)


def _spoken(
    kind: int, disk: int, peers: tuple[tuple[int, bool, int], ...], revision: int
) -> ReplicatedVolumeReplicaStatus:
    backing = BackingVolume(size=_SIZE, state=_DISKS[disk], lvm_volume_group_name=GROUP) if kind in (1, 2) else None
    return ReplicatedVolumeReplicaStatus(
        type=DrbdType.DISKFUL if kind == DISKFUL else DrbdType.DISKLESS,
        backing_volume=backing,
        datamesh_revision=revision,
        peers=tuple(_peer(*peer) for peer in peers),
    )


def _peer(j: int, connected: bool, disk: int) -> PeerStatus:
    return PeerStatus(
        name=replica_name(VOLUME, j),
        type=MemberType.DISKFUL if disk else "",
        connection_state=ConnectionState.CONNECTED if connected else ConnectionState.CONNECTING,
        connection_established_on=(NETWORK,) if connected else (),
        backing_volume_state=(_DISKS[disk] or DiskState.DISKLESS) if connected else DiskState.D_UNKNOWN,
    )


def _with_conditions(
    status: ReplicatedVolumeReplicaStatus, quorum: bool, member: int, *, applied: bool, enforced: bool
) -> ReplicatedVolumeReplicaStatus:
    C = DRBDConfiguredCondition
    if member == GONE:
        verdict, reason = "False", C.PENDING_DATAMESH_JOIN
    elif not applied:
        verdict, reason = "Unknown", C.APPLYING_CONFIGURATION
    elif not enforced:
        verdict, reason = "False", C.QUORUM_NOT_ENFORCED
    else:
        verdict, reason = "True", C.CONFIGURED
    configured = Condition(type=C.TYPE, status=verdict, reason=reason, observed_generation=1)
    ready = Condition(
        type=ReadyCondition.TYPE,
        status="True" if quorum and member != GONE else "False",
        reason=ReadyCondition.READY if quorum else ReadyCondition.QUORUM_LOST,
        observed_generation=1,
    )
    joined = member != GONE
    return replace(
        status,
        conditions=(configured, ready),
        quorum=quorum if joined else None,
        quorum_enforced=enforced if joined else None,
    )


def _with_attachment(status: ReplicatedVolumeReplicaStatus, i: int, *, attached: bool) -> ReplicatedVolumeReplicaStatus:
    device = ReplicaAttachment(device_path=f"/dev/sdsrv/{replica_name(VOLUME, i)}") if attached else None
    return replace(status, addresses=(address_of(i),), attachment=device)
