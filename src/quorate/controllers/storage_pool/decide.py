"""The pool decision: which nodes are eligible, with their zones, volume groups and readiness.

Whatever is wrong with the pool, the eligible nodes stay as they were: a broken pool must not uproot volumes.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import conditions, labels, times
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.node import Node
from quorate.api.replicated_storage_pool import (
    EligibleNode,
    EligibleNodeLVMVolumeGroup,
    Phase,
    ReadyCondition,
    ReplicatedStoragePool,
    ReplicatedStoragePoolStatus,
)
from quorate.api.value import replace
from quorate.controllers.storage_pool.snapshot import ZONE_LABEL, Snapshot
from quorate.machinery.effects import Answers, Decision, Half, Mode, Patch

SMALLEST_WAIT = 1.0
"""A grace period that ends right now is looked at again after this long (trap 15)."""


def decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    """One status patch, and a wake-up when a grace period ends."""
    del answers
    pool = snapshot.pool
    if pool is None:
        return Decision()
    problem = _find_problem(snapshot, pool)
    if problem is not None:
        return _decision(pool, _with_ready(pool, pool.status, problem, now), None)
    members = tuple(_judge(pool, node, now) for node in snapshot.nodes)
    eligible = tuple(_entry(snapshot, pool, m.node) for m in members if m.eligible)
    status = pool.status
    if eligible != status.eligible_nodes:
        status = replace(status, eligible_nodes=eligible, eligible_nodes_revision=status.eligible_nodes_revision + 1)
    verdict = Verdict(conditions.TRUE, ReadyCondition.READY, Phase.READY, f"{len(eligible)} eligible nodes")
    expiries = [m.expires_in for m in members if m.eligible and m.expires_in is not None]
    wake = max(min(expiries), SMALLEST_WAIT) if expiries else None
    return _decision(pool, _with_ready(pool, status, verdict, now), wake)


@dataclass(frozen=True)
class Verdict:
    """The Ready condition and the phase that goes with it."""

    status: str
    reason: str
    phase: str
    message: str


@dataclass(frozen=True)
class Judged:
    """A node and whether its readiness allows it into the pool."""

    node: Node
    eligible: bool
    expires_in: float | None = None
    """Seconds until the grace period ends."""


def _find_problem(snapshot: Snapshot, pool: ReplicatedStoragePool) -> Verdict | None:
    found = {group.metadata.name: group for group in snapshot.volume_groups}
    missing = sorted({ref.name for ref in pool.spec.lvm_volume_groups if ref.name not in found})
    if missing:
        message = f"LVMVolumeGroups do not exist: {', '.join(missing)}"
        reason = ReadyCondition.LVM_VOLUME_GROUP_NOT_FOUND
        return Verdict(conditions.FALSE, reason, Phase.WAITING_FOR_LVM_VOLUME_GROUPS, message)
    if pool.spec.type == "LVMThin":
        wrong = [
            f"{ref.name} has no thin pool {ref.thin_pool_name or '(none named)'}"
            for ref in pool.spec.lvm_volume_groups
            if ref.thin_pool_name not in tuple(thin.name for thin in found[ref.name].spec.thin_pools)
        ]
        if wrong:
            reason = ReadyCondition.INVALID_LVM_VOLUME_GROUP
            return Verdict(conditions.FALSE, reason, Phase.INVALID_CONFIGURATION, "; ".join(sorted(wrong)))
    selector = pool.spec.node_label_selector
    known = ("In", "NotIn", "Exists", "DoesNotExist")
    bad = [e.operator for e in selector.match_expressions if e.operator not in known] if selector is not None else []
    if bad:
        message = f"nodeLabelSelector has unknown operators: {', '.join(sorted(bad))}"
        reason = ReadyCondition.INVALID_NODE_LABEL_SELECTOR
        return Verdict(conditions.FALSE, reason, Phase.INVALID_CONFIGURATION, message)
    return None


def _judge(pool: ReplicatedStoragePool, node: Node, now: float) -> Judged:
    """Ready nodes belong; others until their grace period is over. A node that never reported Ready counts from birth."""
    ready = conditions.get(node.status.conditions, "Ready")
    if ready is not None and ready.status == conditions.TRUE:
        return Judged(node=node, eligible=True)
    grace = times.parse_duration(pool.spec.eligible_nodes_policy.not_ready_grace_period)
    since = (ready.last_transition_time if ready is not None else "") or node.metadata.creation_timestamp
    left = times.parse(since) + grace - now if since else grace
    return Judged(node=node, eligible=left >= 0, expires_in=left)


def _entry(snapshot: Snapshot, pool: ReplicatedStoragePool, node: Node) -> EligibleNode:
    """Nodes without volume groups stay in the list: they host tie-breakers and clients."""
    name = node.metadata.name
    ready = conditions.get(node.status.conditions, "Ready")
    groups = {group.metadata.name: group for group in snapshot.volume_groups}
    entries = sorted(
        (
            _group_entry(groups[ref.name], ref.thin_pool_name)
            for ref in pool.spec.lvm_volume_groups
            if ref.name in groups and _node_of(groups[ref.name]) == name
        ),
        key=lambda entry: (entry.name, entry.thin_pool_name),
    )
    return EligibleNode(
        node_name=name,
        zone_name=node.metadata.labels.get(ZONE_LABEL, ""),
        lvm_volume_groups=tuple(entries),
        unschedulable=node.spec.unschedulable,
        node_ready=ready is not None and ready.status == conditions.TRUE,
        agent_ready=name in snapshot.ready_agents,
    )


def _node_of(group: LVMVolumeGroup) -> str:
    return group.spec.local.node_name if group.spec.local is not None else ""


def _group_entry(group: LVMVolumeGroup, thin_pool_name: str) -> EligibleNodeLVMVolumeGroup:
    ready = conditions.is_true(group.status.conditions, "Ready")
    if thin_pool_name:
        ready = ready and any(thin.name == thin_pool_name and thin.ready for thin in group.status.thin_pools)
    return EligibleNodeLVMVolumeGroup(
        name=group.metadata.name,
        thin_pool_name=thin_pool_name,
        unschedulable=labels.ANNOTATION_UNSCHEDULABLE in group.metadata.annotations,
        ready=ready,
    )


def _with_ready(
    pool: ReplicatedStoragePool, status: ReplicatedStoragePoolStatus, verdict: Verdict, now: float
) -> ReplicatedStoragePoolStatus:
    changed = conditions.set_(
        status.conditions,
        ReadyCondition.TYPE,
        status=verdict.status,
        reason=verdict.reason,
        message=verdict.message,
        generation=pool.metadata.generation,
        now=now,
    )
    return replace(status, conditions=changed, phase=verdict.phase, message=verdict.message)


def _decision(pool: ReplicatedStoragePool, status: ReplicatedStoragePoolStatus, wake: float | None) -> Decision:
    """`usedBy` in the same status belongs to the class controller, so this is a report of our own fields (rule 5)."""
    if status == pool.status:
        return Decision(wake_after=wake)
    after = replace(pool, status=status)
    patch = Patch(before=pool, after=after, half=Half.STATUS, cause="eligible nodes of the pool", mode=Mode.REPORT)
    return Decision(effects=(patch,), wake_after=wake)
