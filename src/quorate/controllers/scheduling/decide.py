"""The placement of all replicas of one volume in one pass (seed 002).

```
guards 1-3                     → Scheduled=Unknown/WaitingForReplicatedVolume on all replicas
Access replicas                → no Scheduled condition
replicas that have their place → Scheduled=True
phase 2: diskful, by id        → ask for scores → best candidate → ... → keep the chosen places → place
phase 3: tie-breakers, by id   → best candidate → place
```
Nothing is written before the extender holds every chosen place: all scores are asked for one by one, because each placement
changes the next, and then all chosen places are kept at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.api import conditions
from quorate.api.labels import LABEL_LVM_VOLUME_GROUP
from quorate.api.names import label_value
from quorate.api.replicated_volume import MemberType
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ScheduledCondition
from quorate.api.value import replace
from quorate.controllers.scheduling.context import SchedulingContext, compute_context, is_scheduled
from quorate.controllers.scheduling.pipeline import Candidate
from quorate.controllers.scheduling.placement import (
    Chosen,
    ExtenderFailure,
    Failed,
    Unanswered,
    Unavailable,
    narrow_request,
    place_diskful,
    place_tie_breaker,
)
from quorate.controllers.scheduling.snapshot import Snapshot
from quorate.machinery.effects import Answers, Decision, Effect, Half, Mode, Patch, Request

R = ScheduledCondition

CAPACITY_RETRY = 30.0
"""Seconds until room is looked for again: capacity that becomes free is no event of any object."""
DISKFUL_PER_PASS = 5
"""Diskful replicas placed in one pass; the largest layout has as many. Bounds the rounds of questions."""


@dataclass
class _Pass:
    """What this pass has decided so far."""

    now: float
    effects: list[Effect] = field(default_factory=list[Effect])
    no_capacity: bool = False
    more: bool = False

    def condition(
        self, replica: ReplicatedVolumeReplica, status: str, reason: str, message: str, *, placed: bool = False
    ) -> None:
        """Report the outcome on a replica; a placement raises the generation the condition speaks about."""
        found = conditions.set_(
            replica.status.conditions,
            R.TYPE,
            status=status,
            reason=reason,
            message=message,
            generation=replica.metadata.generation + (1 if placed else 0),
            now=self.now,
        )
        self._report(replica, found)

    def remove_condition(self, replica: ReplicatedVolumeReplica) -> None:
        """Take the condition away."""
        self._report(replica, conditions.remove(replica.status.conditions, R.TYPE))

    def _report(self, replica: ReplicatedVolumeReplica, found: tuple[conditions.Condition, ...]) -> None:
        if found is not replica.status.conditions:
            after = replace(replica, status=replace(replica.status, conditions=found))
            self.effects.append(Patch(replica, after, Half.STATUS, "outcome of scheduling", Mode.REPORT))

    def place(self, replica: ReplicatedVolumeReplica, candidate: Candidate) -> None:
        """Write the placement, then report it."""
        place, metadata = candidate.place, replica.metadata
        spec = replace(
            replica.spec,
            node_name=candidate.node_name,
            lvm_volume_group_name=place.volume_group,
            lvm_volume_group_thin_pool_name=place.thin_pool,
        )
        if place.volume_group:
            # The label follows from the placement; set here, it costs no write of its own.
            group = label_value(place.volume_group)
            metadata = replace(metadata, labels=metadata.labels.with_entry(LABEL_LVM_VOLUME_GROUP, group))
        placed = replace(replica, spec=spec, metadata=metadata)
        self.effects.append(Patch(replica, placed, Half.MAIN, "placement of the replica"))
        self.condition(replica, conditions.TRUE, R.SCHEDULED, scheduled_message(placed), placed=True)


def decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    """Where the replicas of one volume go."""
    work = _Pass(now)
    volume, pool = snapshot.volume, snapshot.pool
    configuration = volume.status.configuration if volume is not None else None
    if volume is None or configuration is None or pool is None:
        for replica in snapshot.replicas:
            work.condition(replica, conditions.UNKNOWN, R.WAITING_FOR_REPLICATED_VOLUME, _guard_message(snapshot))
        return Decision(effects=tuple(work.effects))
    context = compute_context(snapshot, volume, configuration, pool)
    for replica in snapshot.replicas:
        if replica.spec.type == MemberType.ACCESS:
            work.remove_condition(replica)
        elif is_scheduled(replica, context.pool_type):
            work.condition(replica, conditions.TRUE, R.SCHEDULED, scheduled_message(replica))
    return _schedule(context, compute_unscheduled(snapshot.replicas, context.pool_type), work, answers)


def _guard_message(snapshot: Snapshot) -> str:
    if snapshot.volume is None:
        return f"Waiting for ReplicatedVolume {snapshot.name}"
    configuration = snapshot.volume.status.configuration
    if configuration is None:
        return f"Waiting for ReplicatedVolume {snapshot.name} to have a configuration"
    return f"Waiting for ReplicatedStoragePool {configuration.replicated_storage_pool_name or '(none)'}"


def scheduled_message(replica: ReplicatedVolumeReplica) -> str:
    """Where the replica is."""
    spec = replica.spec
    if not spec.lvm_volume_group_name:
        return f"Replica is placed on node {spec.node_name}"
    thin = f"/{spec.lvm_volume_group_thin_pool_name}" if spec.lvm_volume_group_thin_pool_name else ""
    return f"Replica is placed on node {spec.node_name}, LVMVolumeGroup {spec.lvm_volume_group_name}{thin}"


def compute_unscheduled(
    replicas: tuple[ReplicatedVolumeReplica, ...], pool_type: str
) -> tuple[ReplicatedVolumeReplica, ...]:
    """All − Scheduled − Deleting, by id (seed 002 stands against facts/controllers 6.1.5 and 6.4 no. 72)."""
    return tuple(
        replica for replica in replicas if not replica.metadata.deleting and not is_scheduled(replica, pool_type)
    )


def _schedule(
    context: SchedulingContext, unscheduled: tuple[ReplicatedVolumeReplica, ...], work: _Pass, answers: Answers
) -> Decision:
    diskful = [replica for replica in unscheduled if replica.spec.type == MemberType.DISKFUL]
    work.more = len(diskful) > DISKFUL_PER_PASS
    chosen: list[tuple[ReplicatedVolumeReplica, Candidate, Request]] = []
    error = ""
    for replica in diskful[:DISKFUL_PER_PASS]:
        match place_diskful(context, replica, answers):
            case Unanswered(request):
                return Decision(ask=(request,))
            case Unavailable(message):
                work.condition(replica, conditions.FALSE, R.EXTENDER_UNAVAILABLE, message)
                error = message
                break
            case Failed(summary, no_capacity):
                work.condition(replica, conditions.FALSE, R.SCHEDULING_FAILED, summary)
                work.no_capacity |= no_capacity
            case Chosen(candidate):
                chosen.append((replica, candidate, narrow_request(context, replica, candidate)))
                context = context.placed(replica, candidate)
    open_requests = tuple(request for _, _, request in chosen if request not in answers)
    if open_requests:
        return Decision(ask=open_requests)
    error = _place_chosen(chosen, work, answers) or error
    if not error:
        _schedule_tie_breakers(context, unscheduled, work)
    return Decision(
        effects=tuple(work.effects),
        wake_after=CAPACITY_RETRY if work.no_capacity else None,
        requeue=work.more and not error,
        error=f"scheduler extender: {error}" if error else "",
    )


def _place_chosen(
    chosen: list[tuple[ReplicatedVolumeReplica, Candidate, Request]], work: _Pass, answers: Answers
) -> str:
    """Place what the extender holds, up to the first that it does not hold; why it does not."""
    for replica, candidate, request in chosen:
        answer = answers.get(request)
        if isinstance(answer, ExtenderFailure):
            work.condition(replica, conditions.FALSE, R.EXTENDER_UNAVAILABLE, answer.message)
            return answer.message
        work.place(replica, candidate)
    return ""


def _schedule_tie_breakers(
    context: SchedulingContext, unscheduled: tuple[ReplicatedVolumeReplica, ...], work: _Pass
) -> None:
    for replica in unscheduled:
        if replica.spec.type != MemberType.TIE_BREAKER:
            continue
        match place_tie_breaker(context, replica):
            case Failed(summary):
                work.condition(replica, conditions.FALSE, R.SCHEDULING_FAILED, summary)
            case Chosen(candidate):
                work.place(replica, candidate)
                context = context.placed(replica, candidate)
