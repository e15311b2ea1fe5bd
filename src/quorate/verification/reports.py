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
from quorate.verification.cluster import INCONSISTENT, NO_STORE, UP_TO_DATE, bits, disk_of
from quorate.verification.configuration import ACCESS, DISKFUL, GONE, LIMINAL, TIE_BREAKER
from quorate.verification.perfect_cluster import GROUP, NETWORK, VOLUME, address_of
from quorate.verification.world import Target, Worlds

NO_OBJECT: Final = 0
_TYPES: Final[dict[int, ReplicaType]] = {DISKFUL: "Diskful", TIE_BREAKER: "TieBreaker", ACCESS: "Access"}
_DISKS: Final = ("", DiskState.INCONSISTENT, DiskState.OUTDATED, DiskState.UP_TO_DATE, "")
_SHOWN: Final = (NO_STORE, INCONSISTENT, INCONSISTENT, UP_TO_DATE, NO_STORE)
_RESOLVED: Final = {DISKFUL: DISKFUL, LIMINAL: DISKFUL, TIE_BREAKER: TIE_BREAKER, ACCESS: ACCESS}
_SIZE: Final = Quantity.of(1 << 31)
_LATER: Final = "2001-09-09T01:46:41Z"


class ReplicaObject(NamedTuple):
    """A replica object: what its spec asks for, whether it is being deleted, whether ForceLeave was asked for."""

    kind: int
    deleting: bool = False
    force_leave: bool = False


class Seen(NamedTuple):
    """What an agent can read on its node, its peers as (node, connected, disk).

    Of a peer's disk the engine asks only whether it is UpToDate, so Outdated is reported as Inconsistent.
    """

    kind: int
    disk: int
    quorum: bool
    primary: bool
    enforced: bool
    peers: tuple[tuple[int, bool, int], ...]


class Reports:
    """Builds replica objects and remembers them."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self._seen: dict[tuple[int, int], tuple[int, Seen]] = {}
        self._numbers: dict[tuple[int, Seen], int] = {}
        self._memory: dict[tuple[object, ...], ReplicatedVolumeReplica] = {}

    def of(
        self, number: int, i: int, replica: ReplicaObject, revision: int, target: Target, *, silent: bool
    ) -> ReplicatedVolumeReplica:
        """The replica object of node i in a cluster."""
        if silent or not self._worlds.clusters[number].nodes[i].up:
            key: tuple[object, ...] = (i, replica, revision, target.configuration.kind)
            found = self._memory.get(key)
            if found is None:
                found = self._memory[key] = _silent(i, replica, revision, target.configuration.kind)
            return found
        known = self._seen.get((number, i))
        if known is None:
            known = self._seen[number, i] = self._look(number, i)
        node, member = self._worlds.clusters[number].nodes[i], target.configuration.kind
        applied = node.configuration == target.configuration and node.primary == target.primary
        key = (known[0], replica, revision, member, applied)
        found = self._memory.get(key)
        if found is None:
            found = self._memory[key] = _spoken(i, replica, revision, member, known[1], applied=applied)
        return found

    def _look(self, number: int, i: int) -> tuple[int, Seen]:
        cluster = self._worlds.clusters[number]
        node, links = cluster.nodes[i], cluster.links[i]
        peers = tuple(
            (j, bool(links >> j & 1), _SHOWN[disk_of(cluster.nodes[j])] if links >> j & 1 else NO_STORE)
            for j in bits(node.configuration.peers)
        )
        enforced = self._worlds.kernels.enforced(cluster, i)
        seen = Seen(node.configuration.kind, _SHOWN[disk_of(node)], node.quorum, node.primary, enforced, peers)
        return self._numbers.setdefault((i, seen), len(self._numbers)), seen


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
    i: int, replica: ReplicaObject, revision: int, member: int, seen: Seen, *, applied: bool
) -> ReplicatedVolumeReplica:
    kind = seen.kind
    diskful = kind in (DISKFUL, LIMINAL)
    backing = BackingVolume(size=_SIZE, state=_DISKS[seen.disk], lvm_volume_group_name=GROUP) if diskful else None
    device = ReplicaAttachment(device_path=f"/dev/sdsrv/{replica_name(VOLUME, i)}") if seen.primary else None
    status = ReplicatedVolumeReplicaStatus(
        type=DrbdType.DISKFUL if kind == DISKFUL else DrbdType.DISKLESS,
        addresses=(address_of(i),),
        backing_volume=backing,
        datamesh_revision=revision,
        peers=tuple(_peer(*peer) for peer in seen.peers),
        attachment=device,
    )
    status = _with_conditions(status, seen.quorum, member, applied=applied, enforced=seen.enforced)
    return _object(i, replica, status, revision, member)


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
