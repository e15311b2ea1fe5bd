"""Whether the replica is where its pool allows it (seed 001, ensureConditionSatisfyEligibleNodes).

One place answers "is this node, volume group and thin pool eligible", for the condition, for the membership request and for
the backing volume of a replica that has not joined yet. Members are never re-checked before keeping their volume.
"""

from __future__ import annotations

from enum import Enum

from quorate.api.replicated_storage_pool import EligibleNode, EligibleNodeLVMVolumeGroup
from quorate.api.replicated_volume import MemberType
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplicaSpec, SatisfyEligibleNodesCondition
from quorate.controllers.replica.situation import Situation
from quorate.controllers.replica.snapshot import PoolView
from quorate.controllers.replica.verdict import Verdict

LVM_THIN = "LVMThin"


class Eligibility(Enum):
    """What the pool says about a placement."""

    ELIGIBLE = "eligible"
    NODE_MISMATCH = "node"
    VOLUME_GROUP_MISMATCH = "volume group"
    THIN_POOL_MISMATCH = "thin pool"


def find_volume_group(node: EligibleNode, volume_group: str, thin_pool: str) -> EligibleNodeLVMVolumeGroup | None:
    """The entry of exactly this volume group and thin pool."""
    return next(
        (group for group in node.lvm_volume_groups if group.name == volume_group and group.thin_pool_name == thin_pool),
        None,
    )


def compute_storage_eligibility(pool: PoolView, volume_group: str, thin_pool: str) -> Eligibility:
    """Whether a disk may live on this volume group and thin pool of the replica's node."""
    if pool.node is None:
        return Eligibility.NODE_MISMATCH
    if not any(group.name == volume_group for group in pool.node.lvm_volume_groups):
        return Eligibility.VOLUME_GROUP_MISMATCH
    # An empty thin pool in a thin pool's world, or the reverse, is a mismatch of the pool type as well.
    if find_volume_group(pool.node, volume_group, thin_pool) is None or bool(thin_pool) != (pool.type == LVM_THIN):
        return Eligibility.THIN_POOL_MISMATCH
    return Eligibility.ELIGIBLE


def compute_eligibility(pool: PoolView, spec: ReplicatedVolumeReplicaSpec) -> Eligibility:
    """Whether the replica may be where its spec says; storage matters only for a placed diskful replica."""
    if pool.node is None:
        return Eligibility.NODE_MISMATCH
    if spec.type != MemberType.DISKFUL or not spec.lvm_volume_group_name:
        return Eligibility.ELIGIBLE
    return compute_storage_eligibility(pool, spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name)


def compute_satisfy_eligible_nodes(situation: Situation) -> Verdict | None:
    """The condition; absent while no node is assigned."""
    spec, reasons = situation.replica.spec, SatisfyEligibleNodesCondition
    if not spec.node_name:
        return None
    volume, pool = situation.volume, situation.snapshot.pool
    if volume is None:
        return Verdict.unknown(reasons.WAITING_FOR_REPLICATED_VOLUME, "Waiting for ReplicatedVolume")
    if volume.status.configuration is None:
        return Verdict.unknown(
            reasons.WAITING_FOR_REPLICATED_VOLUME, "Waiting for ReplicatedVolume to have a configuration"
        )
    if pool is None:
        name = volume.status.configuration.replicated_storage_pool_name
        return Verdict.unknown(reasons.WAITING_FOR_REPLICATED_VOLUME, f"Waiting for ReplicatedStoragePool {name}")
    node, group, thin = spec.node_name, spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name
    match compute_eligibility(pool, spec):
        case Eligibility.NODE_MISMATCH:
            return Verdict.false(
                reasons.NODE_MISMATCH, f"Node {node} is not in the eligible nodes of ReplicatedStoragePool {pool.name}"
            )
        case Eligibility.VOLUME_GROUP_MISMATCH:
            return Verdict.false(
                reasons.LVM_VOLUME_GROUP_MISMATCH,
                f"LVMVolumeGroup {group} is not eligible on node {node} in ReplicatedStoragePool {pool.name}",
            )
        case Eligibility.THIN_POOL_MISMATCH:
            return Verdict.false(
                reasons.THIN_POOL_MISMATCH,
                f"Thin pool {thin or '(none)'} of LVMVolumeGroup {group} is not eligible on node {node} in "
                f"ReplicatedStoragePool {pool.name} of type {pool.type}",
            )
        case Eligibility.ELIGIBLE:
            warnings = compute_eligibility_warnings(pool, spec)
            message = "Replica satisfies eligible nodes requirements"
            return Verdict.true(reasons.SATISFIED, f"{message}, however {warnings}" if warnings else message)


def compute_eligibility_warnings(pool: PoolView, spec: ReplicatedVolumeReplicaSpec) -> str:
    """What is not in order although the placement is allowed; empty when everything is."""
    node = pool.node
    if node is None:
        return ""
    warnings: list[str] = []
    if node.unschedulable:
        warnings.append("node is unschedulable")
    if not node.node_ready:
        warnings.append("node is not ready")
    if not node.agent_ready:
        warnings.append("agent is not ready")
    group = find_volume_group(node, spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name)
    if spec.type == MemberType.DISKFUL and group is not None:
        if group.unschedulable:
            warnings.append("LVMVolumeGroup is unschedulable")
        if not group.ready:
            warnings.append("LVMVolumeGroup is not ready")
    return join_with_serial_comma(warnings)


def join_with_serial_comma(items: list[str]) -> str:
    """`a`, `a and b`, `a, b, and c`."""
    if len(items) <= 2:
        return " and ".join(items)
    return ", ".join(items[:-1]) + f", and {items[-1]}"
