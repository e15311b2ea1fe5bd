"""The placement of one replica: the pipeline of seed 002, step by step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.api.names import llv_name
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.scheduler_extender import (
    NARROWED_TTL,
    SCORING_TTL,
    FilterAndScore,
    NarrowReservation,
    Scores,
    format_go_duration,
)
from quorate.controllers.scheduling.context import SchedulingContext
from quorate.controllers.scheduling.pipeline import Candidate, Pipeline
from quorate.controllers.scheduling.zones import ZONAL, compute_zone_filter
from quorate.machinery.effects import Answers

ATTACH_TO_BONUS = 1000
MULTI_VOLUME_GROUP_BONUS = 2
ZONE_CAPACITY_PENALTY = -800
ANY_ACCESS = "Any"
NO_CAPACITY_LABEL = "scoring (no capacity)"


@dataclass(frozen=True)
class ExtenderFailure:
    """The extender did not answer a question, or refused."""

    message: str


@dataclass(frozen=True)
class Unanswered:
    """The extender must be asked first."""

    request: FilterAndScore


@dataclass(frozen=True)
class Unavailable:
    """The extender does not help."""

    message: str


@dataclass(frozen=True)
class Failed:
    """No candidate survived."""

    summary: str
    no_capacity: bool
    """Whether room was missing: room comes back without an event."""


@dataclass(frozen=True)
class Chosen:
    """The best candidate."""

    candidate: Candidate


Outcome = Unanswered | Unavailable | Failed | Chosen


def place_diskful(context: SchedulingContext, replica: ReplicatedVolumeReplica, answers: Answers) -> Outcome:
    """The best node and volume group for a replica with a disk."""
    pipeline = _filter(context, replica, context.view.with_disk)
    if not pipeline.candidates:
        return Failed(pipeline.summary, no_capacity=False)
    request = FilterAndScore(
        reservation_id=context.reservation_id(replica),
        reservation_ttl=format_go_duration(SCORING_TTL),
        size=context.size,
        lvgs=tuple([candidate.ref for candidate in pipeline.candidates]),
    )
    answer = answers.get(request)
    match answer:
        case Scores():
            scores = {(item.name, item.thin_pool_name): item.score for item in answer.lvgs}
        case ExtenderFailure(message):
            return Unavailable(message)
        case _:
            return Unanswered(request)
    pipeline = _score(context, pipeline.with_extender_scores(scores))
    best = pipeline.select_best()
    if best is None:
        return Failed(pipeline.summary, no_capacity=any(x.label == NO_CAPACITY_LABEL for x in pipeline.exclusions))
    return Chosen(best)


def place_tie_breaker(context: SchedulingContext, replica: ReplicatedVolumeReplica) -> Failed | Chosen:
    """The best node for a replica without a disk."""
    pipeline = _filter(context, replica, context.view.without_disk)
    best = pipeline.select_best()
    return Chosen(best) if best is not None else Failed(pipeline.summary, no_capacity=False)


def narrow_request(
    context: SchedulingContext, replica: ReplicatedVolumeReplica, candidate: Candidate
) -> NarrowReservation:
    """Keep the chosen place; from now on under the name of the logical volume that will use it."""
    place, id = candidate.place, context.reservation_id(replica)
    name = llv_name(replica.metadata.name, place.volume_group, place.thin_pool)
    return NarrowReservation(
        reservation_id=id,
        reservation_ttl=format_go_duration(NARROWED_TTL),
        lvg=candidate.ref,
        # The annotated id belongs to the claim's own scheduling and keeps its name.
        new_reservation_id="" if id in (name, context.annotated_reservation) else name,
    )


def _filter(context: SchedulingContext, replica: ReplicatedVolumeReplica, pipeline: Pipeline) -> Pipeline:
    """Steps 4 and 5: occupancy or the assigned place, then the zone. Readiness is in the pool's view already."""
    spec = replica.spec
    if spec.node_name:
        pipeline = pipeline.with_predicate("node mismatch (assigned)", lambda item: item.node_name == spec.node_name)
        if spec.lvm_volume_group_name:
            pipeline = pipeline.with_predicate(
                "LVG mismatch (assigned)", lambda item: item.place.volume_group == spec.lvm_volume_group_name
            )
    else:
        occupied = context.occupied_nodes
        pipeline = pipeline.with_predicate("node occupied", lambda item: item.node_name not in occupied)
    zone_filter = compute_zone_filter(context.topology, spec.type, context.zones)
    if zone_filter is None:
        return pipeline
    return pipeline.with_predicate(zone_filter.label, lambda item: item.zone_name in zone_filter.zones)


def _score(context: SchedulingContext, pipeline: Pipeline) -> Pipeline:
    """Steps 7 to 9: attach-to bonus, multi-LVG bonus, zone capacity penalty."""
    if context.attach_to_nodes:
        wanted = context.attach_to_nodes
        pipeline = pipeline.with_score(lambda item: ATTACH_TO_BONUS if item.node_name in wanted else 0)
    if context.volume_access != ANY_ACCESS and context.view.has_nodes_with_several_groups:
        pipeline = pipeline.with_node_score(lambda items: MULTI_VOLUME_GROUP_BONUS if len(items) > 1 else 0)
    demand = context.remaining_demand
    if context.topology == ZONAL and demand > 0:
        pipeline = pipeline.with_zone_score(lambda items: ZONE_CAPACITY_PENALTY if _count_nodes(items) < demand else 0)
    return pipeline


def _count_nodes(items: Sequence[Candidate]) -> int:
    return len({item.node_name for item in items})
