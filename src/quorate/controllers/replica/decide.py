"""The decision about one replica, in the order of the seed's algorithm.

```
replica gone                → let go of children that are already being deleted, nothing else
only our finalizer is left  → delete children → remove the finalizer
otherwise                   → metadata → backing volume → DRBD resource → status fields and conditions → publish
```
Every step is a pure function; later ones read what earlier ones computed. The status is a report: own fields and own
condition types only, rebased by the executor onto whatever the scheduling controller wrote meanwhile (rule 5).
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as replace_outcome

from quorate.api import conditions, times
from quorate.api.labels import FINALIZER_REPLICA
from quorate.api.replicated_volume_replica import (
    AttachedCondition,
    BackingVolumeReadyCondition,
    BackingVolumeUpToDateCondition,
    ConfiguredCondition,
    DRBDConfiguredCondition,
    FullyConnectedCondition,
    ReadyCondition,
    ReplicatedVolumeReplicaStatus,
    SatisfyEligibleNodesCondition,
    ScheduledCondition,
)
from quorate.api.value import replace
from quorate.controllers.replica.abandoned import release_abandoned
from quorate.controllers.replica.attachment import compute_attached
from quorate.controllers.replica.backing_volume import BackingVolumeOutcome, reconcile_backing_volume
from quorate.controllers.replica.connectivity import compute_fully_connected
from quorate.controllers.replica.drbd_resource import DrbdOutcome, reconcile_drbd_resource
from quorate.controllers.replica.eligibility import compute_satisfy_eligible_nodes
from quorate.controllers.replica.lifecycle import observe_deletion, observe_status
from quorate.controllers.replica.membership import compute_membership
from quorate.controllers.replica.metadata import (
    absent,
    audit,
    children_are_gone,
    ensure_replica_metadata,
    refs,
    without_finalizer,
)
from quorate.controllers.replica.phase import compute_summary
from quorate.controllers.replica.publish import PATIENCE, HeldSince, Urgency, compute_urgency
from quorate.controllers.replica.readiness import compute_ready
from quorate.controllers.replica.refusal import RETRY_AFTER, find_question, was_tried
from quorate.controllers.replica.situation import Situation
from quorate.controllers.replica.snapshot import Snapshot
from quorate.controllers.replica.status_fields import (
    compute_backing_volume,
    compute_peers,
    ensure_addresses_type_and_size,
    ensure_attachment,
    ensure_quorum,
)
from quorate.controllers.replica.synchronization import (
    MISSING_ACTIVE_CONFIGURATION,
    compute_up_to_date,
    is_agent_inconsistent,
)
from quorate.controllers.replica.verdict import Verdict, ensure_condition
from quorate.machinery.effects import Answers, Decision, Effect, Half, Mode, Patch

PLACEMENT_GRACE = 3.0
"""Seconds a new replica may be without status before "waiting for placement" is worth a write of its own."""


@dataclass(frozen=True)
class Report:
    """The status as computed in this pass, and what is wrong with its inputs."""

    status: ReplicatedVolumeReplicaStatus
    foreign_peers: tuple[str, ...] = ()
    error: str = ""


def decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    """What to do about one replica."""
    if snapshot.replica is None:
        return Decision(effects=_let_go_of_orphans(snapshot))
    situation = Situation(snapshot, snapshot.replica)
    if situation.should_not_exist and children_are_gone(situation):
        return Decision(effects=_finish_deletion(situation, now))
    effects: list[Effect] = []
    labelled = ensure_replica_metadata(situation)
    if labelled is not situation.replica:
        effects.append(Patch(situation.replica, labelled, Half.MAIN, "finalizer and labels of the replica"))
    backing = reconcile_backing_volume(situation)
    question = find_question(backing.effects)
    if question is not None and was_tried(situation, answers, now):
        if question not in answers:
            return Decision(ask=(question,))
        reasons = answers[question]
        if isinstance(reasons, str) and reasons:
            backing = replace_outcome(reconcile_backing_volume(situation, reasons), retry_after=RETRY_AFTER)
    drbd = reconcile_drbd_resource(situation, backing)
    abandoned = release_abandoned(situation, now)
    effects += [*backing.effects, *drbd.effects, *abandoned.effects]
    report = compute_report(situation, backing, drbd, now)
    decision = _publish(situation, report, tuple(effects), answers, now)
    wakes = [after for after in (backing.retry_after, abandoned.wake_after, decision.wake_after) if after is not None]
    return replace_outcome(decision, wake_after=min(wakes, default=None)) if not decision.ask else decision


def _let_go_of_orphans(snapshot: Snapshot) -> tuple[Effect, ...]:
    """Children of a missing replica are left to owner references; ours is only to not hold what is being deleted."""
    effects: list[Effect] = []
    for child in (*snapshot.volumes, *((snapshot.drbdr,) if snapshot.drbdr is not None else ())):
        if child.metadata.deleting and FINALIZER_REPLICA in child.metadata.finalizers:
            released = replace(child, metadata=without_finalizer(child.metadata))
            decided_from = (absent(snapshot.name), *refs(child))
            effects.append(Patch(child, released, Half.MAIN, "the replica is gone", decided_from=decided_from))
    return tuple(effects)


def _finish_deletion(situation: Situation, now: float) -> tuple[Effect, ...]:
    replica = situation.replica
    if FINALIZER_REPLICA not in replica.metadata.finalizers:
        return ()
    released = replace(replica, metadata=without_finalizer(replica.metadata))
    patch = Patch(
        replica, released, Half.MAIN, "all children are gone", decided_from=refs(replica), audit=audit(situation)
    )
    return (patch, *observe_deletion(situation, now))


def compute_report(situation: Situation, backing: BackingVolumeOutcome, drbd: DrbdOutcome, now: float) -> Report:
    """The whole status. Order matters: fields first, then conditions that read them, phase and message last."""
    drbdr = situation.drbdr
    stamp = times.format(now)
    peers = compute_peers(situation)
    volume = compute_backing_volume(situation)
    status = replace(
        situation.replica.status,
        datamesh_revision=drbd.revision,
        datamesh_revision_observed_by_agent=drbd.observed_revision,
        drbdr_reconciliation_cache=drbd.cache,
        peers=peers.peers,
        backing_volume=volume.backing_volume,
    )
    status = ensure_addresses_type_and_size(status, drbdr)
    status = ensure_attachment(status, drbdr, drbd)
    status = ensure_quorum(status, drbdr, stamp)
    membership = compute_membership(situation, status)
    status = replace(status, datamesh_request=membership.request)
    verdicts: tuple[tuple[str, Verdict | None], ...] = (
        (BackingVolumeReadyCondition.TYPE, backing.verdict),
        (DRBDConfiguredCondition.TYPE, drbd.verdict),
        (AttachedCondition.TYPE, compute_attached(situation, drbd)),
        (FullyConnectedCondition.TYPE, compute_fully_connected(situation, status, drbd, peers.foreign)),
        (BackingVolumeUpToDateCondition.TYPE, compute_up_to_date(situation, status, drbd)),
        (ReadyCondition.TYPE, compute_ready(situation, status, drbd)),
        (SatisfyEligibleNodesCondition.TYPE, compute_satisfy_eligible_nodes(situation)),
        (ConfiguredCondition.TYPE, membership.verdict),
    )
    found = status.conditions
    for type, verdict in verdicts:
        found = ensure_condition(found, type, verdict, generation=situation.generation, now=now)
    status = replace(status, conditions=found)
    notes = _compute_notes(peers.foreign, volume.missing)
    summary = compute_summary(situation, status, notes)
    error = f"LVMLogicalVolume {volume.missing} is used by DRBD but not found" if volume.missing else ""
    if is_agent_inconsistent(drbdr, drbd):
        error = MISSING_ACTIVE_CONFIGURATION
    return Report(replace(status, phase=summary.phase, message=summary.message), peers.foreign, error)


def _compute_notes(foreign: tuple[str, ...], missing: str) -> tuple[str, ...]:
    notes: list[str] = []
    if foreign:
        notes.append(f"Foreign DRBD peers: {', '.join(foreign)}")
    if missing:
        notes.append(f"LVMLogicalVolume {missing} is not found")
    return tuple(notes)


def _publish(
    situation: Situation, report: Report, effects: tuple[Effect, ...], answers: Answers, now: float
) -> Decision:
    """Write the status now, or say when to look again (`publish` says why)."""
    replica, old, new = situation.replica, situation.replica.status, report.status
    birth = _compute_placement_wait(situation, now)
    if birth is not None:
        return Decision(effects=effects, wake_after=birth, error=report.error)
    urgency = compute_urgency(situation.volume, replica.metadata.name, old, new)
    if urgency is Urgency.NONE:
        return Decision(effects=effects, error=report.error)
    if urgency is not Urgency.AWAITED:
        request = HeldSince(replica.metadata.uid, replica.metadata.resource_version)
        since = answers.get(request)
        if not isinstance(since, float):
            return Decision(ask=(request,))
        left = since + PATIENCE[urgency] - now
        if left > 0:
            return Decision(effects=effects, wake_after=left, error=report.error)
    patch = Patch(replica, replace(replica, status=new), Half.STATUS, "state of the replica", Mode.REPORT)
    observations = observe_status(situation, new, report.foreign_peers, now)
    return Decision(effects=(*effects, patch, *observations), error=report.error)


def _compute_placement_wait(situation: Situation, now: float) -> float | None:
    """Seconds to leave a newborn replica alone: the scheduling controller is about to place it or to say why not."""
    replica = situation.replica
    placed = bool(replica.spec.node_name) or replica.metadata.deleting
    seen = conditions.get(replica.status.conditions, ScheduledCondition.TYPE) is not None
    if placed or seen or not replica.metadata.creation_timestamp:
        return None
    left = times.parse(replica.metadata.creation_timestamp) + PLACEMENT_GRACE - now
    return left if left > 0 else None
