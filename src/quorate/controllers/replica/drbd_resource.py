"""The DRBDResource of the replica: its spec from the datamesh, the reconciliation cache, and the condition DRBDConfigured.

Guarantees
* the spec is the projection of the published datamesh (`quorate.datamesh.projection`), written in one patch together with the
  metadata and the revision it was written for;
* the cache stores the generation that the patch will produce, so a patch is not followed by a write that only corrects it;
* a revision is recorded only when the agent reports the current generation as configured, the kernel enforces its quorum
  (decision 5), and disk, size and type are the intended ones; it returns to 0 after the replica left (decision 11);
* a refused promotion or demotion does not hold the revision back: what would give the node its quorum may wait for exactly
  this revision. Attach and Detach look at the device as well (`quorate.datamesh.confirm`);
* a new replica with a disk gets its DRBDResource when the disk is ready: one bring-up instead of two. A member never waits,
  because its vote counts without a disk too.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as replace_outcome

from quorate.api import conditions
from quorate.api.drbd_resource import ConfiguredCondition, DRBDResource, DRBDResourceSpec, DrbdType
from quorate.api.labels import FINALIZER_REPLICA
from quorate.api.meta import Condition, ObjectMeta
from quorate.api.replicated_volume_replica import DRBDConfiguredCondition, DRBDRReconciliationCache
from quorate.api.value import replace
from quorate.controllers.replica.backing_volume import BackingVolumeOutcome
from quorate.controllers.replica.metadata import (
    audit,
    ensure_child_metadata,
    owned_by_earlier_replica,
    refs,
    without_finalizer,
)
from quorate.controllers.replica.situation import REVISION_ANNOTATION, Situation
from quorate.controllers.replica.verdict import Verdict
from quorate.datamesh import members, projection
from quorate.machinery.effects import Create, Delete, Effect, Half, Patch

R = DRBDConfiguredCondition

ROLE_REASONS = (ConfiguredCondition.PRIMARY_FAILED, ConfiguredCondition.SECONDARY_FAILED)
"""Told by the agent only when all the rest is as intended and in force."""
UNSATISFIED_BY_VOLUME = "Waiting for ReplicatedVolume to be ready"


@dataclass(frozen=True)
class DrbdOutcome:
    """What to do about the DRBDResource, and what it is known to be."""

    verdict: Verdict
    effects: tuple[Effect, ...] = ()
    cache: DRBDRReconciliationCache | None = None
    revision: int = 0
    """Revision to record as fully configured."""
    observed_revision: int = 0
    """Revision whose generation the agent has processed, whatever the outcome."""
    agent_ready: bool = True
    pending: bool = False
    """Whether what the DRBDResource reports is older than its spec."""


@dataclass(frozen=True)
class Target:
    """The DRBDResource as it will be after this pass."""

    generation: int
    configured: Condition | None
    """The agent's condition, if it is about this generation."""
    member_type: str
    effects: tuple[Effect, ...]
    cache: DRBDRReconciliationCache | None
    spec: DRBDResourceSpec


def reconcile_drbd_resource(situation: Situation, backing: BackingVolumeOutcome) -> DrbdOutcome:
    """What to do about the DRBDResource now, in the order of the seed's ladder."""
    status = situation.replica.status
    kept = DrbdOutcome(
        verdict=Verdict.false(R.NOT_APPLICABLE, "Replica is being deleted"),
        cache=status.drbdr_reconciliation_cache,
        revision=status.datamesh_revision,
        observed_revision=status.datamesh_revision_observed_by_agent,
        agent_ready=situation.snapshot.agent.ready,
        pending=is_pending(situation.drbdr),
    )
    if situation.should_not_exist:
        return replace_outcome(kept, effects=_remove(situation))
    datamesh = situation.datamesh
    if datamesh is None or not datamesh.system_network_names:
        verdict = Verdict.unknown(R.WAITING_FOR_REPLICATED_VOLUME, UNSATISFIED_BY_VOLUME)
        return replace_outcome(kept, verdict=verdict)
    if situation.stale:
        known = max(situation.recorded_revision, situation.applied_revision)
        text = (
            f"Waiting for ReplicatedVolume: seen at datamesh revision {situation.revision}, {known} was already applied"
        )
        return replace_outcome(kept, verdict=Verdict.unknown(R.WAITING_FOR_REPLICATED_VOLUME, text))
    if not situation.replica.spec.node_name:
        return replace_outcome(kept, verdict=Verdict.false(R.PENDING_SCHEDULING, "Waiting for node assignment"))
    if situation.member is None and situation.drbdr is None and situation.deleting:
        # Nothing runs any more, so there is nothing left to leave with.
        return replace_outcome(kept, cache=None, revision=0, observed_revision=0)
    if situation.member is None and situation.drbdr is not None and _is_leftover(situation, situation.drbdr):
        verdict = Verdict.unknown(R.APPLYING_CONFIGURATION, "Waiting for the old DRBDResource to be removed")
        return replace_outcome(kept, verdict=verdict, effects=_remove(situation), pending=True)
    if _waits_for_first_disk(situation, backing):
        return _wait_for_first_disk(situation, kept)
    return _configure(situation, backing, kept)


def is_pending(drbdr: DRBDResource | None) -> bool:
    """Whether the agent has not reported on the current generation yet; without a DRBDResource nothing is being applied."""
    return drbdr is not None and _current_condition(drbdr, drbdr.metadata.generation) is None


def _current_condition(drbdr: DRBDResource, generation: int) -> Condition | None:
    condition = conditions.get(drbdr.status.conditions, ConfiguredCondition.TYPE)
    return condition if condition is not None and condition.observed_generation == generation else None


def _is_leftover(situation: Situation, drbdr: DRBDResource) -> bool:
    """Whether a DRBDResource must be gone before its name is used again.

    Asked for non-members only: a member's DRBDResource keeps running for as long as it is a member, also when somebody
    deleted the object (our finalizer holds it) or the replica object was made anew.
    """
    return drbdr.metadata.deleting or owned_by_earlier_replica(drbdr, situation.replica)


def _waits_for_first_disk(situation: Situation, backing: BackingVolumeOutcome) -> bool:
    intended = projection.intended_member_type(situation.member, situation.replica)
    return (
        situation.drbdr is None and situation.member is None and members.has_disk(intended) and backing.target is None
    )


def _wait_for_first_disk(situation: Situation, kept: DrbdOutcome) -> DrbdOutcome:
    if not situation.snapshot.agent.ready:
        return replace_outcome(kept, verdict=compute_agent_not_ready(situation), cache=None)
    verdict = Verdict.false(R.WAITING_FOR_BACKING_VOLUME, "Waiting for the backing volume to be created")
    return replace_outcome(kept, verdict=verdict, cache=None)


def compute_agent_not_ready(situation: Situation) -> Verdict:
    """The agent does not work; the node's own word helps to tell why. A missing Node counts as not ready."""
    node = situation.replica.spec.node_name
    word = "Ready" if situation.snapshot.agent.node_ready else "NotReady"
    return Verdict.false(R.AGENT_NOT_READY, f"Agent is not ready on node {node} (node is {word})")


def _configure(situation: Situation, backing: BackingVolumeOutcome, kept: DrbdOutcome) -> DrbdOutcome:
    target = compute_target(situation, backing)
    outcome = replace_outcome(kept, effects=target.effects, cache=target.cache, pending=target.configured is None)
    if not situation.snapshot.agent.ready:
        return replace_outcome(outcome, verdict=compute_agent_not_ready(situation))
    if target.configured is None:
        verdict = Verdict.unknown(R.APPLYING_CONFIGURATION, "Waiting for agent to apply DRBD configuration")
        return replace_outcome(outcome, verdict=verdict)
    observed = situation.revision if situation.member is not None else outcome.observed_revision
    outcome = replace_outcome(outcome, observed_revision=observed)
    waiting = _compute_wait(situation, backing, target, target.configured)
    if waiting is not None:
        return replace_outcome(outcome, verdict=waiting)
    concluded = _conclude(situation, outcome)
    if target.configured.status != conditions.TRUE:
        return replace_outcome(concluded, verdict=compute_failed(target.configured))
    return concluded


def compute_failed(configured: Condition) -> Verdict:
    """What the agent could not do, in its words."""
    return Verdict.false(R.CONFIGURATION_FAILED, f"{configured.reason}: {configured.message}")


def _compute_wait(
    situation: Situation, backing: BackingVolumeOutcome, target: Target, configured: Condition
) -> Verdict | None:
    """What still separates the DRBD resource from the intended one; None when nothing does."""
    drbdr = situation.drbdr
    assert drbdr is not None
    if configured.reason == ConfiguredCondition.IN_MAINTENANCE:
        return Verdict.false(R.IN_MAINTENANCE, configured.message or "DRBD resource is in maintenance mode")
    if configured.reason == ConfiguredCondition.QUORUM_NOT_ENFORCED:
        return Verdict.false(R.QUORUM_NOT_ENFORCED, configured.message or "Kernel does not enforce the quorum yet")
    if configured.status != conditions.TRUE and configured.reason not in ROLE_REASONS:
        return compute_failed(configured)
    if not drbdr.status.addresses:
        return Verdict.unknown(R.APPLYING_CONFIGURATION, "Waiting for agent to report DRBD addresses")
    intended_type = projection.intended_member_type(situation.member, situation.replica)
    if target.member_type != intended_type:
        return Verdict.false(R.WAITING_FOR_BACKING_VOLUME, "Waiting for the backing volume to be ready")
    intended, usable = backing.intended, backing.target
    if members.has_disk(intended_type) and intended is not None and usable is not None:
        if not usable.same_place(intended):
            return Verdict.false(R.WAITING_FOR_BACKING_VOLUME, "Waiting for the backing volume to be replaced")
        if usable.size < intended.size:
            return Verdict.false(R.WAITING_FOR_BACKING_VOLUME, "Waiting for the backing volume to be resized")
    offered, wanted = drbdr.status.size, target.spec.size
    if wanted is not None and (offered is None or offered < wanted):
        text = f"Waiting for DRBD to offer {wanted}, now {offered if offered is not None else 'unknown'}"
        return Verdict.false(R.WAITING_FOR_DRBD_RESIZE, text)
    return None


def _conclude(situation: Situation, outcome: DrbdOutcome) -> DrbdOutcome:
    if situation.member is not None:
        verdict = Verdict.true(R.CONFIGURED, "DRBD resource is configured")
        return replace_outcome(outcome, verdict=verdict, revision=situation.revision)
    # Not a member: the agent has applied the configuration without peers, so what was a member has left (decision 11).
    verdict = (
        Verdict.true(R.CONFIGURED, "DRBD resource is configured outside of the datamesh")
        if situation.deleting
        else Verdict.false(R.PENDING_DATAMESH_JOIN, "DRBD is preconfigured, waiting for datamesh membership")
    )
    return replace_outcome(outcome, verdict=verdict, revision=0, observed_revision=0)


def compute_target(situation: Situation, backing: BackingVolumeOutcome) -> Target:
    """The DRBDResource after this pass, and how to get there."""
    volume, replica, drbdr = situation.volume, situation.replica, situation.drbdr
    assert volume is not None
    intended = projection.intended_member_type(situation.member, replica)
    disk = backing.target.name if backing.target is not None else ""
    member_type = projection.target_member_type(intended, has_backing_volume=bool(disk))
    if drbdr is None:
        spec = projection.intended_drbd(volume, replica, logical_volume=disk)
        metadata = ensure_child_metadata(situation, ObjectMeta(name=replica.metadata.name))
        created = DRBDResource(metadata=_with_revision(metadata, situation.revision), spec=spec)
        cache = _cache(situation, 1, member_type)
        return Target(1, None, member_type, (Create(created, "DRBD resource of the replica"),), cache, spec)
    cached = replica.status.drbdr_reconciliation_cache
    if cached == _cache(situation, drbdr.metadata.generation, member_type) and disk_is(drbdr.spec, disk):
        spec = drbdr.spec
    else:
        spec = projection.intended_drbd(volume, replica, logical_volume=disk, existing=drbdr.spec)
    metadata = ensure_child_metadata(situation, drbdr.metadata)
    generation = drbdr.metadata.generation
    if spec != drbdr.spec:
        generation += 1
        metadata = _with_revision(metadata, situation.revision)
        cached = _cache(situation, generation, member_type)
    elif situation.member is not None:
        # An unchanged spec is good for the new revision too; the note goes along with the revision itself.
        cached = _cache(situation, generation, member_type)
    effects: tuple[Effect, ...] = ()
    if spec != drbdr.spec or metadata is not drbdr.metadata:
        after = replace(drbdr, metadata=metadata, spec=spec)
        effects = (Patch(drbdr, after, Half.MAIN, f"DRBD configuration of datamesh revision {situation.revision}"),)
    return Target(generation, _current_condition(drbdr, generation), member_type, effects, cached, spec)


def disk_is(spec: DRBDResourceSpec, logical_volume: str) -> bool:
    """Whether the spec already names this backing volume, or none where it has none."""
    return spec.type != DrbdType.DISKFUL or spec.lvm_logical_volume_name == logical_volume


def _cache(situation: Situation, generation: int, member_type: str) -> DRBDRReconciliationCache:
    return DRBDRReconciliationCache(
        datamesh_revision=situation.revision, drbdr_generation=generation, target_type=member_type
    )


def _with_revision(metadata: ObjectMeta, revision: int) -> ObjectMeta:
    return replace(metadata, annotations=metadata.annotations.with_entry(REVISION_ANNOTATION, str(revision)))


def _remove(situation: Situation) -> tuple[Effect, ...]:
    """Delete, and once deleted let go: the agent takes DRBD down and removes its own finalizer last."""
    drbdr = situation.drbdr
    if drbdr is None:
        return ()
    if not drbdr.metadata.deleting:
        cause = "replica is being deleted" if situation.should_not_exist else "DRBDResource of an earlier replica"
        return (Delete(drbdr, cause, refs(situation.replica, situation.volume), audit(situation)),)
    return _release(situation, drbdr, "DRBDResource is being deleted")


def _release(situation: Situation, drbdr: DRBDResource, cause: str) -> tuple[Effect, ...]:
    if FINALIZER_REPLICA not in drbdr.metadata.finalizers:
        return ()
    released = replace(drbdr, metadata=without_finalizer(drbdr.metadata))
    decided_from = refs(situation.replica, situation.volume)
    return (Patch(drbdr, released, Half.MAIN, cause, decided_from=decided_from, audit=audit(situation)),)
