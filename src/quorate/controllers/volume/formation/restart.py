"""Waiting with a time limit, and starting formation from scratch when it has stalled."""

from __future__ import annotations

from quorate.api.replicated_volume import Datamesh, EffectiveLayout, ReplicatedVolumeStatus
from quorate.api.value import replace
from quorate.controllers.volume import replicas
from quorate.controllers.volume.formation import progress, transition
from quorate.controllers.volume.outcome import Outcome
from quorate.controllers.volume.snapshot import Snapshot
from quorate.machinery.effects import Delete, Effect, Emit


def wait(snapshot: Snapshot, status: ReplicatedVolumeStatus, message: str, timeout: float, now: float) -> Outcome:
    """Say what is waited for; restart when nothing has progressed for `timeout` (reconcileFormationRestartIfTimeoutPassed)."""
    said = transition.with_message(progress.ensure_progress(status, snapshot.replicas, now), message)
    left = progress.remaining(said, timeout, now)
    if left > 0:
        return Outcome(status=said, wake_after=left)
    if said.datamesh.data_present:
        # Decision 7: no restart once the data latch is set; somebody may already have written.
        return Outcome(status=transition.with_message(said, f"{message} (kept waiting: the volume holds data)"))
    return restart(snapshot, said, message)


def restart(snapshot: Snapshot, status: ReplicatedVolumeStatus, why: str) -> Outcome:
    """Delete the operation and all replicas, then reset the status.

    Destruction comes first: until the reset is stored, every further pass sees the same stalled formation and repeats
    the rest of it. Configuration and its generations are kept, because a missing configuration marks a volume that was
    never configured (NewVolumesOnly relies on it); they are derived anew as soon as the next formation starts.
    """
    volume = snapshot.existing_volume()
    cause = f"formation stalled: {why}"
    effects: list[Effect] = [
        Emit(about=volume, type="Warning", reason="FormationRestarted", message=f"Formation starts again: {why}")
    ]
    if snapshot.operation is not None and not snapshot.operation.metadata.deleting:
        effects.append(Delete(obj=snapshot.operation, cause=cause))
    for replica in snapshot.replicas:
        effects.extend(replicas.forced_deletion(replica, cause, decided_from=(volume,)))
    record = status.formation
    restarts = (record.restarts if record is not None else 0) + 1
    kept = replace(record, restarts=restarts) if record is not None else None
    reset = replace(
        status,
        datamesh_revision=0,
        datamesh=Datamesh(),
        effective_layout=EffectiveLayout(),
        baseline_guaranteed_minimum_data_redundancy=0,
        membership_layout="",
        datamesh_transitions=(),
        datamesh_replica_requests=(),
        formation=kept,
    )
    return Outcome(status=reset, before=tuple(effects), wake_after=1.0, loud=True)
