"""What the replicas of a perfect cluster do in one round (facts/datamesh 2.3, seen from the volume).

A replica that lives is placed, asks to join, confirms the newest revision, reports connections, disk, quorum flag and sizes,
asks for what its spec wants, resets its revision to 0 when it left, and goes away when it is deleted and no member. A disk
is Inconsistent in the round in which it is attached and UpToDate in the next one, if an UpToDate peer is connected.
"""

from __future__ import annotations

from dataclasses import replace as replace_cluster

from quorate.api import sizes
from quorate.api.common import ConnectionState, DiskState, DrbdType
from quorate.api.meta import Condition
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import DatameshMember, MembershipRequest, MemberType, Operation, TransitionType
from quorate.api.replicated_volume_replica import (
    BackingVolume,
    DRBDConfiguredCondition,
    PeerStatus,
    QuorumSummary,
    ReadyCondition,
    ReplicaAttachment,
    ReplicatedVolumeReplica,
    ReplicatedVolumeReplicaStatus,
)
from quorate.api.value import replace
from quorate.datamesh import members, projection
from quorate.datamesh.members import id_of
from quorate.verification.perfect_cluster import GROUP, NETWORK, Cluster, address_of


def react(cluster: Cluster, only: tuple[int, ...] | None = None, *, synced: bool = False) -> Cluster:
    """Every replica (or those named) does its round. `synced`: disks that appear are UpToDate at once (formation)."""
    placed = tuple(_placed(cluster, rvr) for rvr in cluster.replicas)
    cluster = replace_cluster(cluster, replicas=placed)
    answering = tuple(
        rvr
        for rvr in placed
        if rvr.spec.node_name not in cluster.dead and (only is None or id_of(rvr.metadata.name) in only)
    )
    disks = {rvr.metadata.name: _disk(cluster, rvr, synced, answers=rvr in answering) for rvr in placed}
    result: list[ReplicatedVolumeReplica] = []
    for rvr in placed:
        if rvr.spec.node_name in cluster.dead:
            rvr = replace(rvr, status=_silent(rvr.status))
        elif rvr in answering:
            rvr = replace(rvr, status=_status(cluster, rvr, disks))
        if not _is_gone(cluster, rvr):
            result.append(rvr)
    return replace_cluster(cluster, replicas=tuple(result))


def _placed(cluster: Cluster, rvr: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
    """Scheduling: the first free node; a volume group for a Diskful that has none."""
    spec = rvr.spec
    if not spec.node_name and not rvr.metadata.deletion_timestamp:
        taken = [other.spec.node_name for other in cluster.replicas]
        taken += [member.node_name for member in cluster.volume.status.datamesh.members]
        free = [n.node_name for n in cluster.pool.status.eligible_nodes if n.node_name not in (*taken, *cluster.dead)]
        if not free:
            return rvr
        spec = replace(spec, node_name=free[0])
        # Two new replicas in one round would take the same node; the cluster makes one at a time.
    if spec.type == MemberType.DISKFUL and spec.node_name and not spec.lvm_volume_group_name:
        spec = replace(spec, lvm_volume_group_name=GROUP)
    return rvr if spec is rvr.spec else replace(rvr, spec=spec, metadata=replace(rvr.metadata, generation=2))


def _silent(status: ReplicatedVolumeReplicaStatus) -> ReplicatedVolumeReplicaStatus:
    """The agent of a dead node: its last report stays, marked as stale."""
    condition = Condition(
        type=DRBDConfiguredCondition.TYPE, status="False", reason=DRBDConfiguredCondition.AGENT_NOT_READY
    )
    return replace(status, conditions=(condition,))


def _is_gone(cluster: Cluster, rvr: ReplicatedVolumeReplica) -> bool:
    """A deleted object goes once it is no member and no RemoveReplica names it (S42)."""
    if not rvr.metadata.deletion_timestamp:
        return False
    status = cluster.volume.status
    if projection.find_member(status.datamesh, rvr.metadata.name) is not None:
        return False
    return not any(
        t.replica_name == rvr.metadata.name and t.type == TransitionType.REMOVE_REPLICA
        for t in status.datamesh_transitions
    )


def _disk(cluster: Cluster, rvr: ReplicatedVolumeReplica, synced: bool, *, answers: bool) -> str:
    """The disk state at the end of the round."""
    before = rvr.status.backing_volume.state if rvr.status.backing_volume is not None else ""
    if not answers:
        return before
    member = projection.find_member(cluster.volume.status.datamesh, rvr.metadata.name)
    if member is None or not members.has_disk(member.type):
        return ""
    if synced or before == DiskState.UP_TO_DATE:
        return DiskState.UP_TO_DATE
    if before == DiskState.INCONSISTENT and any(
        peer.backing_volume_state == DiskState.UP_TO_DATE for peer in rvr.status.peers
    ):
        return DiskState.UP_TO_DATE
    return DiskState.INCONSISTENT


def _status(cluster: Cluster, rvr: ReplicatedVolumeReplica, disks: dict[str, str]) -> ReplicatedVolumeReplicaStatus:
    volume = cluster.volume
    member = projection.find_member(volume.status.datamesh, rvr.metadata.name)
    if not rvr.spec.node_name:
        return rvr.status
    peers = _peers(cluster, member, disks) if member is not None else ()
    quorum = _has_quorum(cluster, member, disks, peers) if member is not None else None
    joined = member is not None
    configured = Condition(
        type=DRBDConfiguredCondition.TYPE,
        status="True" if joined else "False",
        reason=DRBDConfiguredCondition.CONFIGURED if joined else DRBDConfiguredCondition.PENDING_DATAMESH_JOIN,
        observed_generation=rvr.metadata.generation,
    )
    ready = Condition(
        type=ReadyCondition.TYPE,
        status="True" if quorum else "False",
        reason=ReadyCondition.READY if quorum else ReadyCondition.QUORUM_LOST,
        observed_generation=rvr.metadata.generation,
    )
    needs = members.needs_backing_volume(member.type) if member is not None else rvr.spec.type == MemberType.DISKFUL
    wanted = max(volume.spec.size.value, volume.status.datamesh.size.value)
    status = ReplicatedVolumeReplicaStatus(
        conditions=(configured, ready),
        addresses=(address_of(id_of(rvr.metadata.name)),),
        type=DrbdType.DISKFUL if member is not None and members.has_disk(member.type) else DrbdType.DISKLESS,
        backing_volume=_backing(member, rvr, disks[rvr.metadata.name], wanted) if needs else None,
        datamesh_revision=volume.status.datamesh_revision if joined else 0,
        quorum=quorum,
        quorum_enforced=None if quorum is None else True,
        quorum_summary=QuorumSummary() if joined else None,
        attachment=ReplicaAttachment(device_path=f"/dev/sdsrv/{rvr.metadata.name}")
        if member is not None and member.attached
        else None,
        peers=peers,
    )
    return replace(status, datamesh_request=_request(rvr, member, status))


def _backing(member: DatameshMember | None, rvr: ReplicatedVolumeReplica, state: str, wanted: int) -> BackingVolume:
    group = member.lvm_volume_group_name if member is not None else ""
    return BackingVolume(
        size=Quantity.of(sizes.lower_size(sizes.align_4ki(wanted))),
        state=state,
        lvm_volume_group_name=group or rvr.spec.lvm_volume_group_name,
    )


def _peers(cluster: Cluster, member: DatameshMember, disks: dict[str, str]) -> tuple[PeerStatus, ...]:
    """Expected peers; connected when they exist and live."""
    living = [rvr.metadata.name for rvr in cluster.replicas if rvr.spec.node_name not in cluster.dead]
    return tuple(
        PeerStatus(
            name=other.name,
            type=members.resolved(other.type),
            attached=other.attached,
            connection_state=ConnectionState.CONNECTED if other.name in living else ConnectionState.CONNECTING,
            connection_established_on=(NETWORK,) if other.name in living else (),
            backing_volume_state=(disks.get(other.name, "") or DiskState.DISKLESS)
            if other.name in living
            else DiskState.D_UNKNOWN,
        )
        for other in projection.expected_peers(cluster.volume.status.datamesh, member)
    )


def _has_quorum(cluster: Cluster, member: DatameshMember, disks: dict[str, str], peers: tuple[PeerStatus, ...]) -> bool:
    """The rule of facts/datamesh 1.2 and 1.3 with static voters, every node at the newest revision."""
    datamesh = cluster.volume.status.datamesh
    types = {other.name: other.type for other in datamesh.members}
    connected = [peer for peer in peers if peer.connection_state == ConnectionState.CONNECTED]
    copies = sum(peer.backing_volume_state == DiskState.UP_TO_DATE for peer in connected)
    if not members.is_voter(member.type):
        return copies >= 1
    copies += disks.get(member.name) == DiskState.UP_TO_DATE
    voters = 1 + sum(members.is_voter(types[peer.name]) for peer in connected)
    if voters >= datamesh.quorum and copies >= datamesh.quorum_minimum_redundancy:
        return True
    total = sum(members.is_voter(kind) for kind in types.values())
    breakers = [name for name, kind in types.items() if kind == MemberType.TIE_BREAKER]
    seen = sum(peer.name in breakers for peer in connected)
    tie = not datamesh.tie_breakers_suspended and seen > len(breakers) // 2
    return total % 2 == 0 and voters == datamesh.quorum - 1 and tie and bool(breakers)


def _request(
    rvr: ReplicatedVolumeReplica, member: DatameshMember | None, status: ReplicatedVolumeReplicaStatus
) -> MembershipRequest | None:
    """What the replica asks for: the comparison of its spec with what it is."""
    spec = rvr.spec
    if rvr.metadata.deletion_timestamp:
        return MembershipRequest(operation=Operation.LEAVE) if member is not None else None
    diskful = spec.type == MemberType.DISKFUL
    group = spec.lvm_volume_group_name if diskful else ""
    if diskful and not group:
        return None
    if member is None:
        return MembershipRequest(operation=Operation.JOIN, type=spec.type, lvm_volume_group_name=group)
    if members.resolved(member.type) != spec.type or (status.type == DrbdType.DISKFUL) != diskful:
        return MembershipRequest(operation=Operation.CHANGE_ROLE, type=spec.type, lvm_volume_group_name=group)
    if diskful and member.lvm_volume_group_name != group:
        return MembershipRequest(operation=Operation.CHANGE_BACKING_VOLUME, lvm_volume_group_name=group)
    return None
