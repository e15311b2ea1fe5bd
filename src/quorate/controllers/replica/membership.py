"""What the replica asks its volume for, and the condition Configured (seed 001).

Intended is the spec, actual is what the replica reported and what DRBD runs. "Member" is told by the recorded revision; a
deleted replica asks to leave also while it is listed as a member but never confirmed, so that nobody waits for it.
Access and TieBreaker look alike in DRBD: the member type tells them apart (decision 10).
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.api.common import MESSAGE_LIMIT
from quorate.api.drbd_resource import DrbdType
from quorate.api.messages import cut
from quorate.api.replicated_volume import MembershipRequest, MemberType, Operation
from quorate.api.replicated_volume_replica import ConfiguredCondition, ReplicatedVolumeReplicaStatus
from quorate.controllers.replica.eligibility import Eligibility, compute_storage_eligibility
from quorate.controllers.replica.situation import Situation
from quorate.controllers.replica.verdict import Verdict
from quorate.datamesh import members

R = ConfiguredCondition


class Membership(NamedTuple):
    """The request and the condition; they are two sides of one comparison."""

    request: MembershipRequest | None
    verdict: Verdict | None


def compute_membership(situation: Situation, status: ReplicatedVolumeReplicaStatus) -> Membership:
    """Compare the spec with what is, and say what is missing. `status` carries this pass's observations."""
    if situation.stale:
        verdict = Verdict.unknown(R.WAITING_FOR_REPLICATED_VOLUME, "Waiting for ReplicatedVolume to be up to date")
        return Membership(situation.replica.status.datamesh_request, verdict)
    if situation.deleting:
        return _compute_leave(situation, status)
    blocked = _compute_blocked(situation)
    if blocked is not None:
        return Membership(None, blocked)
    membership = _compute_change(situation, status)
    return membership._replace(verdict=enrich(situation, membership))


def _compute_leave(situation: Situation, status: ReplicatedVolumeReplicaStatus) -> Membership:
    if status.datamesh_revision == 0 and situation.member is None:
        return Membership(None, None)
    membership = Membership(
        MembershipRequest(operation=Operation.LEAVE),
        Verdict.false(R.PENDING_LEAVE, "Waiting to leave the datamesh"),
    )
    return membership._replace(verdict=enrich(situation, membership))


def _compute_blocked(situation: Situation) -> Verdict | None:
    """Why nothing can be asked for yet; None when the placement is complete and eligible."""
    spec, volume, pool = situation.replica.spec, situation.volume, situation.snapshot.pool
    if volume is None or situation.datamesh is None or volume.status.configuration is None:
        return Verdict.unknown(R.WAITING_FOR_REPLICATED_VOLUME, "Waiting for ReplicatedVolume to be ready")
    if not spec.node_name:
        return Verdict.false(R.PENDING_SCHEDULING, "Waiting for node assignment")
    if spec.type == MemberType.DISKFUL and not spec.lvm_volume_group_name:
        return Verdict.false(R.PENDING_SCHEDULING, "Waiting for storage assignment")
    if pool is None:
        name = volume.status.configuration.replicated_storage_pool_name
        return Verdict.unknown(R.WAITING_FOR_REPLICATED_VOLUME, f"Waiting for ReplicatedStoragePool {name}")
    if pool.node is None:
        return Verdict.false(
            R.NODE_NOT_ELIGIBLE,
            f"Node {spec.node_name} is not in the eligible nodes of ReplicatedStoragePool {pool.name}",
        )
    if spec.type == MemberType.DISKFUL:
        group, thin = spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name
        if compute_storage_eligibility(pool, group, thin) is not Eligibility.ELIGIBLE:
            place = f"{group}/{thin}" if thin else group
            return Verdict.false(
                R.STORAGE_NOT_ELIGIBLE,
                f"Storage {place} is not eligible on node {spec.node_name} in ReplicatedStoragePool {pool.name}",
            )
    return None


def _compute_change(situation: Situation, status: ReplicatedVolumeReplicaStatus) -> Membership:
    spec = situation.replica.spec
    diskful = spec.type == MemberType.DISKFUL
    group = spec.lvm_volume_group_name if diskful else ""
    thin = spec.lvm_volume_group_thin_pool_name if diskful else ""
    if status.datamesh_revision == 0:
        request = MembershipRequest(
            operation=Operation.JOIN, type=spec.type, lvm_volume_group_name=group, thin_pool_name=thin
        )
        return Membership(request, Verdict.false(R.PENDING_JOIN, f"Waiting to join the datamesh as {spec.type}"))
    if not _is_type_in_sync(situation, status):
        request = MembershipRequest(
            operation=Operation.CHANGE_ROLE, type=spec.type, lvm_volume_group_name=group, thin_pool_name=thin
        )
        return Membership(request, Verdict.false(R.PENDING_ROLE_CHANGE, f"Waiting to change role to {spec.type}"))
    if diskful and _compute_actual_place(situation, status) != (group, thin):
        request = MembershipRequest(
            operation=Operation.CHANGE_BACKING_VOLUME, lvm_volume_group_name=group, thin_pool_name=thin
        )
        place = f"{group}/{thin}" if thin else group
        return Membership(
            request, Verdict.false(R.PENDING_BACKING_VOLUME_CHANGE, f"Waiting to move the backing volume to {place}")
        )
    return Membership(None, Verdict.true(R.CONFIGURED, "Replica is configured as intended"))


def _is_type_in_sync(situation: Situation, status: ReplicatedVolumeReplicaStatus) -> bool:
    intended, member = situation.replica.spec.type, situation.member
    if member is not None and members.resolved(member.type) != intended:
        return False
    # A liminal member is on its way: DRBD still runs without the disk.
    return (status.type == DrbdType.DISKFUL) == members.has_disk(intended)


def _compute_actual_place(situation: Situation, status: ReplicatedVolumeReplicaStatus) -> tuple[str, str]:
    observed, member = status.backing_volume, situation.member
    if observed is not None and observed.lvm_volume_group_name:
        return observed.lvm_volume_group_name, observed.lvm_volume_group_thin_pool_name
    if member is not None:
        return member.lvm_volume_group_name, member.lvm_volume_group_thin_pool_name
    return "", ""


def enrich(situation: Situation, membership: Membership) -> Verdict | None:
    """Append what the volume says about this request (ruling on 001: with `; `)."""
    verdict = membership.verdict
    text = find_volume_message(situation)
    if verdict is None or membership.request is None or not text:
        return verdict
    return verdict._replace(message=cut(f"{verdict.message}; {text}", MESSAGE_LIMIT))


def find_volume_message(situation: Situation) -> str:
    """The volume's message on this replica's request."""
    volume, name = situation.volume, situation.replica.metadata.name
    for entry in volume.status.datamesh_replica_requests if volume is not None else ():
        if entry.name == name:
            return entry.message
    return ""
