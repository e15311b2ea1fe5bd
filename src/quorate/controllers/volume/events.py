"""Kubernetes Events for state changes a person cares about: formed, degraded, quorum lost and back, transitions."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.replicated_volume import (
    IOReadyCondition,
    QuorumCondition,
    ReplicatedVolume,
    ReplicatedVolumeStatus,
)
from quorate.controllers.volume.formation import transition
from quorate.machinery.effects import Effect, Emit


def changes(before: ReplicatedVolume, after: ReplicatedVolumeStatus) -> tuple[Effect, ...]:
    """What happened between the stored status and the new one."""
    found: list[Emit] = []
    was_forming = transition.is_forming(before.status)
    if was_forming and not transition.is_forming(after):
        found.append(_normal(before, "Formed", f"The volume is formed as {after.membership_layout or 'requested'}"))
    if not was_forming:
        found.extend(_condition_changes(before, after))
        found.extend(_protection_changes(before, after))
    return tuple(found)


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


def _normal(about: ReplicatedVolume, reason: str, message: str) -> Emit:
    return Emit(about=about, type="Normal", reason=reason, message=message)
