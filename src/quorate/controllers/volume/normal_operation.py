"""reconcileNormalOperation: the engine's pass, and the replica objects and attachments that follow from it."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.meta import ObjectRef
from quorate.api.replicated_volume import (
    MembershipLayoutConvergedCondition,
    MemberType,
    ReplicatedVolumeStatus,
)
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.controllers.volume import access_replicas, attachments, quiet, replicas, rollout, summary
from quorate.controllers.volume.outcome import Outcome
from quorate.controllers.volume.snapshot import Snapshot
from quorate.datamesh.contract import (
    Convergence,
    CreateReplica,
    DeleteReplica,
    PassInput,
    PassResult,
    ReplicaAction,
    RetypeReplica,
)
from quorate.datamesh.engine import run_pass
from quorate.machinery.effects import Create, Effect, Half, Patch

REPAIR_RECHECK = 5.0
"""Seconds until a volume that waits for a repair slot looks again."""


def reconcile(snapshot: Snapshot, status: ReplicatedVolumeStatus, now: float) -> Outcome:
    """One pass over the whole volume."""
    volume = replace(snapshot.existing_volume(), status=status)
    result = run_pass(
        PassInput(
            volume=volume,
            replicas=snapshot.replicas,
            attachments=snapshot.attachments,
            pool=snapshot.pool,
            features=snapshot.features,
            fenced_nodes=snapshot.fenced_nodes,
            now=now,
        )
    )
    repair = _repair(snapshot, result)
    waiting_for_repair = bool(result.status.eligible_nodes_violations) and repair is None
    repairing = repair is not None or rollout.is_repairing(volume)
    settled = _with_convergence(snapshot, result.status, result.convergence, now)
    settled = summary.ensure_summary(snapshot, settled, now, repairing=repairing)
    after = (
        *access_replicas.creations(snapshot, settled),
        *_action_effects(snapshot, settled, result.actions),
        *(repair or ()),
        *_attachment_effects(snapshot, result, now),
        *access_replicas.deletions(snapshot, settled),
    )
    outcome = Outcome(status=settled, after=after)
    return outcome.wake(REPAIR_RECHECK) if waiting_for_repair else outcome


def _with_convergence(
    snapshot: Snapshot, status: ReplicatedVolumeStatus, convergence: Convergence, now: float
) -> ReplicatedVolumeStatus:
    changed = conditions.set_(
        status.conditions,
        MembershipLayoutConvergedCondition.TYPE,
        status=convergence.status,
        reason=convergence.reason,
        message=convergence.message,
        generation=snapshot.existing_volume().metadata.generation,
        now=now,
    )
    return status if changed is status.conditions else replace(status, conditions=changed)


def _attachment_effects(snapshot: Snapshot, result: PassResult, now: float) -> tuple[Effect, ...]:
    """Conditions of the attachments; a change of texts alone waits until the step behind it is slow."""
    by_node = {node.node_name: node for node in result.attachments}
    members = {member.name: member.node_name for member in result.status.datamesh.members}
    replica_on: dict[str, ReplicatedVolumeReplica] = {}
    for replica in snapshot.replicas:
        node_name = replica.spec.node_name
        if node_name and (node_name not in replica_on or replica.metadata.name in members):
            replica_on[node_name] = replica
    effects = attachments.effects(snapshot.attachments, by_node, replica_on, now)
    if quiet.delay(result.status, now) <= 0:
        return effects
    return tuple(effect for effect in effects if not _is_text_only(effect))


def _is_text_only(effect: Effect) -> bool:
    if not isinstance(effect, Patch):
        return False
    before, after = effect.before, effect.after
    if not isinstance(before, ReplicatedVolumeAttachment) or not isinstance(after, ReplicatedVolumeAttachment):
        return False
    return quiet.is_quiet_attachment_change(before.status, after.status)


def _repair(snapshot: Snapshot, result: PassResult) -> tuple[Effect, ...] | None:
    """RollingRepair: replace one replica on a node that is no longer eligible; None while there is no slot for it.

    Deleting a diskful or tie-breaker replica object means "replace it" (decision 8); the replacement joins first.
    """
    volume = snapshot.existing_volume()
    violations = result.status.eligible_nodes_violations
    if not violations or volume.metadata.deleting or snapshot.pool is None:
        return ()
    if not rollout.may_repair(snapshot):
        return None
    if result.convergence.status != conditions.TRUE:
        return ()
    layout_types = (MemberType.DISKFUL, MemberType.TIE_BREAKER)
    wanted = tuple(violation.replica_name for violation in violations)
    for replica in snapshot.replicas:
        if replica.metadata.name in wanted and replica.spec.type in layout_types and not replica.metadata.deleting:
            cause = f"node {replica.spec.node_name} is no longer eligible (RollingRepair)"
            return replicas.deletion(replica, cause, decided_from=(volume, snapshot.pool))
    return ()


def _action_effects(
    snapshot: Snapshot, status: ReplicatedVolumeStatus, actions: tuple[ReplicaAction, ...]
) -> tuple[Effect, ...]:
    """Layout convergence: the engine decides, the controller creates, deletes and retypes replicas."""
    volume = snapshot.existing_volume()
    numbers = list(replicas.free_ids(status, snapshot.replicas))
    by_name = {replica.metadata.name: replica for replica in snapshot.replicas}
    effects: list[Effect] = []
    for action in actions:
        match action:
            case CreateReplica():
                if numbers:
                    created = replicas.new_replica(volume, numbers.pop(0), action.type)
                    effects.append(Create(obj=created, cause=action.reason))
            case DeleteReplica():
                if action.name in by_name:
                    effects.extend(replicas.deletion(by_name[action.name], action.reason, decided_from=(volume,)))
            case RetypeReplica():
                if action.name in by_name:
                    effects.append(_retype(by_name[action.name], action, replicas.references((volume,))))
    return tuple(effects)


def _retype(replica: ReplicatedVolumeReplica, action: RetypeReplica, decided_from: tuple[ObjectRef, ...]) -> Effect:
    """Becoming diskless clears volume group and thin pool in the same patch: the schema forbids them otherwise."""
    spec = replace(replica.spec, type=action.type)
    if action.type != MemberType.DISKFUL:
        spec = replace(spec, lvm_volume_group_name="", lvm_volume_group_thin_pool_name="")
    after = replace(replica, spec=spec)
    return Patch(before=replica, after=after, half=Half.MAIN, cause=action.reason, decided_from=decided_from)
