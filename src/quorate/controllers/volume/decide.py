"""The volume decision: seed 000's root algorithm as a sequence of pure functions.

Reads beside the seed's "Algorithm": deleted volume, deletion branch, metadata, configuration, requests, formation or
normal operation, finalizers, one status patch.
"""

from __future__ import annotations

from quorate.api import times
from quorate.api.replicated_volume import ReplicatedVolume, ReplicatedVolumeStatus
from quorate.api.value import replace
from quorate.controllers.volume import (
    attachments,
    configuration,
    deletion,
    events,
    finalizers,
    metadata,
    normal_operation,
    quiet,
    summary,
)
from quorate.controllers.volume.formation import formation, transition, turn
from quorate.controllers.volume.outcome import Outcome, earliest
from quorate.controllers.volume.snapshot import Snapshot
from quorate.datamesh.requests import sync_requests
from quorate.machinery.effects import Answers, Decision, Effect, Half, Patch

FORMING_MESSAGE = "Datamesh formation is in progress"
UNCONFIGURED_MESSAGE = "ReplicatedVolume has no configuration yet"


def decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    """What to do about one volume now."""
    if snapshot.volume is None:
        return deletion.decide_orphaned(snapshot, now)
    if deletion.should_not_exist(snapshot):
        return deletion.decide(snapshot, now)
    volume = metadata.ensure_metadata(snapshot.volume)
    status = volume.status
    wake: float | None = None
    if status.configuration is None:
        configured = configuration.reconcile(snapshot, status, now)
        status, wake = configured.status, configured.wake_after
    requests = sync_requests(status.datamesh_replica_requests, snapshot.replicas, times.format(now))
    if requests is not status.datamesh_replica_requests:
        status = replace(status, datamesh_replica_requests=requests)
    outcome = _operate(snapshot, status, answers, now).wake(wake)
    if outcome.ask:
        return Decision(ask=outcome.ask)
    return _finish(snapshot, volume, outcome, now)


def _operate(snapshot: Snapshot, status: ReplicatedVolumeStatus, answers: Answers, now: float) -> Outcome:
    """Formation or normal operation; a formation that completes goes on in the same pass (one status write)."""
    if status.configuration is None:
        summarized = summary.ensure_summary(snapshot, status, now, repairing=False)
        waiting = attachments.waiting_effects(snapshot.attachments, UNCONFIGURED_MESSAGE, now)
        return Outcome(status=summarized, after=waiting)
    if transition.is_forming(status):
        if turn.waits(snapshot, status, now):
            summarized = summary.ensure_summary(snapshot, status, now, repairing=False, waiting=turn.MESSAGE)
            waiting = attachments.waiting_effects(snapshot.attachments, FORMING_MESSAGE, now)
            return Outcome(status=summarized, after=waiting).wake(turn.LOOK_AGAIN)
        formed = formation.reconcile(snapshot, status, answers, now)
        if isinstance(formed, Outcome):
            summarized = summary.ensure_summary(snapshot, formed.status, now, repairing=False)
            waiting = attachments.waiting_effects(snapshot.attachments, FORMING_MESSAGE, now)
            return formed.with_status(summarized).then(*waiting)
        status = formed
    configured = configuration.reconcile(snapshot, status, now)
    return normal_operation.reconcile(snapshot, configured.status, now).wake(configured.wake_after)


def _finish(snapshot: Snapshot, volume: ReplicatedVolume, outcome: Outcome, now: float) -> Decision:
    """Order the effects: intent before act, the finalizer before the child, the condition before the finalizer goes."""
    before = snapshot.existing_volume()
    status_effects: tuple[Effect, ...] = ()
    wake = outcome.wake_after
    if outcome.status != before.status:
        postponed = _postponed(before.status, outcome, now)
        if postponed is None:
            after = replace(volume, status=outcome.status)
            status_effects = (Patch(before=volume, after=after, half=Half.STATUS, cause="state of the volume"),)
        else:
            wake = earliest(wake, postponed)
    effects = (
        *metadata.effects(before, volume),
        *finalizers.attachment_additions(snapshot),
        *outcome.before,
        *status_effects,
        *outcome.after,
        *finalizers.attachment_removals(snapshot, outcome.status),
        *finalizers.replica_effects(snapshot, outcome.status),
        *(events.changes(before, outcome.status) if status_effects else ()),
        *events.waiting(before, outcome.status, now),
    )
    return Decision(effects=effects, wake_after=earliest(wake, events.wake_after(outcome.status, now)))


def _postponed(before: ReplicatedVolumeStatus, outcome: Outcome, now: float) -> float | None:
    """How long a change of texts may wait; None when the status is written now."""
    if outcome.loud or not quiet.is_quiet_change(before, outcome.status):
        return None
    left = quiet.delay(outcome.status, now)
    return left if left > 0 else None
