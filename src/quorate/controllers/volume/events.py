"""Kubernetes Events for state changes a person cares about.

Formed; degraded and restored; quorum and I/O lost and back; replicas that joined, were removed or replaced; transitions that
wait for long. Guarantees: a change is told with the write that makes it, once; a lasting state is told once, by its identity
(`Emit.once`), so looking again costs nothing; a volume at rest asks for no wake-up.
"""

from __future__ import annotations

from quorate.api import conditions, times
from quorate.api.replicated_volume import (
    DatameshTransition,
    IOReadyCondition,
    MemberType,
    QuorumCondition,
    ReplicatedVolume,
    ReplicatedVolumeStatus,
    TransitionType,
)
from quorate.controllers.volume.formation import transition
from quorate.controllers.volume.gauges import active_step
from quorate.controllers.volume.outcome import earliest
from quorate.datamesh.layout import layout_of
from quorate.machinery.effects import Effect, Emit

LONG = 300.0
"""Seconds after which a step or a request that still waits is told."""
REMOVALS = (TransitionType.REMOVE_REPLICA, TransitionType.FORCE_REMOVE_REPLICA)
LAYOUT_TYPES = (MemberType.DISKFUL, MemberType.TIE_BREAKER)
"""Access replicas come and go with attachments; nobody needs to be told."""


def changes(before: ReplicatedVolume, after: ReplicatedVolumeStatus) -> tuple[Effect, ...]:
    """What happened between the stored status and the new one."""
    found: list[Emit] = []
    was_forming = transition.is_forming(before.status)
    if was_forming and not transition.is_forming(after):
        found.append(_normal(before, "Formed", f"The volume is formed as {after.membership_layout or 'requested'}"))
    if not was_forming:
        found.extend(_condition_changes(before, after))
        found.extend(_protection_changes(before, after))
        found.extend(_membership_changes(before, after))
    return tuple(found)


def waiting(volume: ReplicatedVolume, status: ReplicatedVolumeStatus, now: float) -> tuple[Effect, ...]:
    """Steps and requests that have waited for long: held by a reason (a guard, missing fencing evidence), or just slow."""
    found: list[Emit] = []
    for running in status.datamesh_transitions:
        step = active_step(running)
        if step is None or not _is_long(step.started_at, now):
            continue
        held = running.message or running.reason or step.reason
        what = f"{_title(running)} has been at step {step.name!r} since {step.started_at}"
        once = f"{running.type}/{running.replica_name}/{running.plan_id}/{step.name}/{step.started_at}"
        if held:
            found.append(Emit(volume, "Warning", "TransitionBlocked", f"{what}, held back: {held}", once))
        else:
            text = f"{what}: {step.message}" if step.message else what
            found.append(Emit(volume, "Normal", "TransitionWaiting", text, once))
    moving = tuple(running.replica_name for running in status.datamesh_transitions)
    for request in () if transition.is_forming(status) else status.datamesh_replica_requests:
        if request.name in moving or not request.message or not _is_long(request.first_observed_at, now):
            continue
        operation = request.request.operation
        text = f"{operation} of {request.name} has waited since {request.first_observed_at}: {request.message}"
        once = f"{operation}/{request.name}/{request.first_observed_at}"
        found.append(Emit(volume, "Warning", "TransitionBlocked", text, once))
    return tuple(found)


def wake_after(status: ReplicatedVolumeStatus, now: float) -> float | None:
    """Seconds until the next step or request has waited for long; None when all are told or nothing waits."""
    starts = [step.started_at for t in status.datamesh_transitions if (step := active_step(t)) is not None]
    if not transition.is_forming(status):
        starts.extend(request.first_observed_at for request in status.datamesh_replica_requests)
    found: float | None = None
    for start in starts:
        if start and not _is_long(start, now):
            found = earliest(found, times.parse(start) + LONG - now)
    return found


def _is_long(start: str, now: float) -> bool:
    return bool(start) and now - times.parse(start) >= LONG


def _title(running: DatameshTransition) -> str:
    return f"{running.type} of {running.replica_name}" if running.replica_name else running.type


def _condition_changes(before: ReplicatedVolume, after: ReplicatedVolumeStatus) -> list[Emit]:
    found: list[Emit] = []
    for type_, lost, back in (
        (QuorumCondition.TYPE, "QuorumLost", "QuorumRegained"),
        (IOReadyCondition.TYPE, "IOStopped", "IOResumed"),
    ):
        old, new = conditions.get(before.status.conditions, type_), conditions.get(after.conditions, type_)
        if old is None or new is None or old.status == new.status:
            continue
        if new.status == conditions.FALSE:
            found.append(Emit(about=before, type="Warning", reason=lost, message=new.message))
        elif new.status == conditions.TRUE and old.status == conditions.FALSE:
            found.append(_normal(before, back, new.message))
    return found


def _protection_changes(before: ReplicatedVolume, after: ReplicatedVolumeStatus) -> list[Emit]:
    """Degraded: fewer failures would be survived now than the committed level says."""
    old, new, promised = before.status.observed_protection, after.observed_protection, after.effective_layout
    if old is None or new is None or promised.failures_to_tolerate is None:
        return []
    was = old.failures_to_tolerate is not None and old.failures_to_tolerate < promised.failures_to_tolerate
    is_ = new.failures_to_tolerate is not None and new.failures_to_tolerate < promised.failures_to_tolerate
    if is_ and not was:
        return [Emit(about=before, type="Warning", reason="Degraded", message=new.message or "Protection is reduced")]
    if was and not is_:
        return [_normal(before, "ProtectionRestored", new.message or "Protection is as promised")]
    return []


def _membership_changes(before: ReplicatedVolume, after: ReplicatedVolumeStatus) -> list[Emit]:
    """Members of the layout that came or went: their transition is gone from the list, and done rather than taken back."""
    running = tuple((t.type, t.replica_name) for t in after.datamesh_transitions)
    members = {member.name: member for member in after.datamesh.members}
    found: list[Emit] = []
    for ended in before.status.datamesh_transitions:
        if (ended.type, ended.replica_name) in running or ended.replica_type not in LAYOUT_TYPES:
            continue
        where = f"{ended.replica_name} on {ended.node_name or 'an unknown node'}"
        if ended.type == TransitionType.ADD_REPLICA and ended.replica_name in members:
            text = f"{ended.replica_type} replica {where} joined; the volume is {after.membership_layout}"
            found.append(_normal(before, "ReplicaJoined", text))
        elif ended.type in REMOVALS and ended.replica_name not in members:
            found.append(_removed(before, after, ended, where))
    return found


def _removed(before: ReplicatedVolume, after: ReplicatedVolumeStatus, ended: DatameshTransition, where: str) -> Emit:
    """Replaced when the layout has all its members without the one that left; a loss when it was taken out by force."""
    text = f"{ended.replica_type} replica {where} left; the volume is {after.membership_layout}"
    if _is_complete(after):
        return _normal(before, "ReplicaReplaced", text)
    forced = ended.type == TransitionType.FORCE_REMOVE_REPLICA
    return Emit(before, "Warning", "ReplicaLost", text) if forced else _normal(before, "ReplicaRemoved", text)


def _is_complete(status: ReplicatedVolumeStatus) -> bool:
    wanted = status.configuration
    if wanted is None:
        return False
    layout = layout_of(wanted.failures_to_tolerate, wanted.guaranteed_minimum_data_redundancy)
    count = {type_: sum(1 for m in status.datamesh.members if m.type == type_) for type_ in LAYOUT_TYPES}
    return count[MemberType.DISKFUL] >= layout.diskful and count[MemberType.TIE_BREAKER] >= layout.tie_breakers


def _normal(about: ReplicatedVolume, reason: str, message: str) -> Emit:
    return Emit(about=about, type="Normal", reason=reason, message=message)
