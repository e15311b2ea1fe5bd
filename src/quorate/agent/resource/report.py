"""What is written after the host did its part: released volumes, status, condition, finalizer. Pure."""

from __future__ import annotations

from quorate.agent.converge import Outcome
from quorate.agent.plan import Problem
from quorate.agent.resource.snapshot import Snapshot, up_and_live
from quorate.agent.status import Report, compute_status
from quorate.api import conditions, times
from quorate.api.common import Address
from quorate.api.drbd_resource import ConfiguredCondition, DRBDResource, DRBDResourceStatus
from quorate.api.labels import FINALIZER_AGENT
from quorate.api.resources import ref_of
from quorate.api.value import replace
from quorate.machinery.effects import Decision, Effect, Emit, Half, Mode, Observe, Patch

RETRY_SOFT = 10.0
"""Seconds until a step without effect (a size a peer cannot follow yet) is tried again."""
CONFIGURED_DURATION = "sds_drbdr_configured_duration_seconds"
DELETION_DURATION = "sds_drbdr_deletion_duration_seconds"
WAITING = (
    ConfiguredCondition.BACKING_VOLUME_UNAVAILABLE,
    ConfiguredCondition.BACKING_VOLUME_DELETING,
    ConfiguredCondition.PRIMARY_FAILED,
    ConfiguredCondition.SECONDARY_FAILED,
)
"""Problems that end with an event, or wait for their own time: repeating the command at once would not help."""


def compute_effects(
    snapshot: Snapshot,
    resource: DRBDResource,
    addresses: tuple[Address, ...],
    outcome: Outcome,
    problems: tuple[Problem, ...],
    now: float,
) -> Decision:
    """Release what is not needed, report, and let go of the object when nothing of it is left."""
    everything = (*outcome.problems, *problems)
    backing, certain = _backing_volume(snapshot, outcome)
    keep, release = _split_volumes(snapshot, resource, outcome, backing if certain else None)
    gone = outcome.observed and outcome.actual is None
    effects = [*release]
    if gone and not keep and not up_and_live(resource) and resource.metadata.deleting:
        return Decision(effects=(*effects, *_let_go(resource, now)))
    status = resource.status
    if outcome.observed:
        report = Report(outcome.actual, outcome.verdict, addresses, backing, keep, outcome.device_uuid)
        status = compute_status(resource, report, snapshot.settings)
    status = replace(status, conditions=_conditions(resource, status, everything, outcome, now))
    if status != resource.status:
        effects.append(
            Patch(resource, replace(resource, status=status), Half.STATUS, "what is on the node", Mode.REPORT)
        )
    effects += _events(resource, status, now)
    if gone and not keep and not up_and_live(resource) and FINALIZER_AGENT in resource.metadata.finalizers:
        effects += _drop_finalizer(resource, "nothing of it is left on the node")
    return Decision(effects=tuple(effects), wake_after=_wake(outcome), error=_error(everything))


def compute_failure_effects(resource: DRBDResource, problem: Problem, now: float) -> Decision:
    """Only the condition changes."""
    updated = _set_condition(resource, resource.status, conditions.FALSE, problem.reason, problem.message, now)
    status = replace(resource.status, conditions=updated)
    effects: list[Effect] = []
    if status != resource.status:
        effects.append(Patch(resource, replace(resource, status=status), Half.STATUS, problem.message, Mode.REPORT))
    return Decision(effects=tuple(effects), error=f"{problem.reason}: {problem.message}")


# --- volumes -----------------------------------------------------------------------------------------------------


def _backing_volume(snapshot: Snapshot, outcome: Outcome) -> tuple[str, bool]:
    """The volume behind the disk, and whether that is certain: a disk nobody can name keeps everything (T14)."""
    if not outcome.observed:
        return "", False
    actual = outcome.actual
    device = actual.volume.backing_disk if actual and actual.volume else ""
    attached = actual is not None and actual.volume is not None and actual.volume.attached
    name = snapshot.volume_of(device) if device else ""
    return name, bool(name) or not attached


def _split_volumes(
    snapshot: Snapshot, resource: DRBDResource, outcome: Outcome, backing: str | None
) -> tuple[tuple[str, ...], list[Effect]]:
    """Volumes that stay listed, and the effects that take the finalizer off the others."""
    active = resource.status.active_configuration
    listed = active.llv_finalizers_to_release if active else ()
    if backing is None or not outcome.observed:
        return listed, []
    spec = resource.spec
    wanted = spec.lvm_logical_volume_name if up_and_live(resource) and spec.type == "Diskful" else ""
    keep = tuple(name for name in listed if name in (wanted, backing))
    effects: list[Effect] = []
    for name in listed:
        volume = snapshot.volume(name).volume
        if name in keep or volume is None or FINALIZER_AGENT not in volume.metadata.finalizers:
            continue
        rest = tuple(each for each in volume.metadata.finalizers if each != FINALIZER_AGENT)
        freed = replace(volume, metadata=replace(volume.metadata, finalizers=rest))
        cause = f"{name} is not attached and not wanted by {resource.metadata.name}"
        effects.append(Patch(volume, freed, Half.MAIN, cause, decided_from=(ref_of(resource),)))
    return keep, effects


# --- condition ---------------------------------------------------------------------------------------------------


def _conditions(
    resource: DRBDResource,
    status: DRBDResourceStatus,
    problems: tuple[Problem, ...],
    outcome: Outcome,
    now: float,
) -> tuple[conditions.Condition, ...]:
    """The first problem names the reason, all of them the message; maintenance is False in any case."""
    message = "; ".join(dict.fromkeys(problem.message for problem in problems))
    if problems:
        return _set_condition(resource, status, conditions.FALSE, problems[0].reason, message, now)
    if resource.spec.maintenance:
        text = "maintenance mode: the agent only observes"
        return _set_condition(resource, status, conditions.FALSE, ConfiguredCondition.IN_MAINTENANCE, text, now)
    waiting = f"waiting for: {', '.join(outcome.soft)}" if outcome.soft else ""
    return _set_condition(resource, status, conditions.TRUE, ConfiguredCondition.CONFIGURED, waiting, now)


def _set_condition(
    resource: DRBDResource, status: DRBDResourceStatus, value: str, reason: str, message: str, now: float
) -> tuple[conditions.Condition, ...]:
    return conditions.set_(
        status.conditions,
        ConfiguredCondition.TYPE,
        status=value,
        reason=reason,
        message=message,
        generation=resource.metadata.generation,
        now=now,
    )


def _events(resource: DRBDResource, status: DRBDResourceStatus, now: float) -> list[Effect]:
    """Tell when the condition turned, and how long it took the first time."""
    before = conditions.get(resource.status.conditions, ConfiguredCondition.TYPE)
    after = conditions.get(status.conditions, ConfiguredCondition.TYPE)
    if after is None or (before is not None and (before.status, before.reason) == (after.status, after.reason)):
        return []
    effects: list[Effect] = []
    if after.status == conditions.TRUE:
        effects.append(Emit(resource, "Normal", after.reason, "DRBD is as the spec says"))
        if resource.status.active_configuration is None or not resource.status.active_configuration.state:
            created = times.parse(resource.metadata.creation_timestamp) if resource.metadata.creation_timestamp else now
            effects.append(Observe(CONFIGURED_DURATION, max(now - created, 0.0)))
    elif after.reason != ConfiguredCondition.IN_MAINTENANCE:
        effects.append(Emit(resource, "Warning", after.reason, after.message))
    return effects


def _wake(outcome: Outcome) -> float | None:
    waits = [wait for wait in (outcome.wait, RETRY_SOFT if outcome.soft else None) if wait is not None]
    return min(waits) if waits else None


def _error(problems: tuple[Problem, ...]) -> str:
    """Problems that only repeating can solve; those that wait for another object are no errors."""
    real = [problem for problem in problems if problem.reason not in WAITING]
    return f"{real[0].reason}: {real[0].message}" if real else ""


# --- the end -----------------------------------------------------------------------------------------------------


def _let_go(resource: DRBDResource, now: float) -> list[Effect]:
    """The object is being deleted and nothing of it is left: no report to a dying object, only the finalizer goes."""
    if FINALIZER_AGENT not in resource.metadata.finalizers:
        return []
    since = times.parse(resource.metadata.deletion_timestamp)
    return [
        *_drop_finalizer(resource, "torn down: nothing of it is left on the node"),
        Observe(DELETION_DURATION, max(now - since, 0.0)),
    ]


def _drop_finalizer(resource: DRBDResource, cause: str) -> list[Effect]:
    rest = tuple(each for each in resource.metadata.finalizers if each != FINALIZER_AGENT)
    freed = replace(resource, metadata=replace(resource.metadata, finalizers=rest))
    return [Patch(resource, freed, Half.MAIN, cause)]
