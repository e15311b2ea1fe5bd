"""The scheduling controller as data. The watch table of seed 002 is the minimum (ruling): also freed nodes, new attachments,
a configuration that appears, and whatever else changes a placement wake the volume."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable

from quorate.api import conditions
from quorate.api.indexes import RV_BY_POOL
from quorate.api.labels import ANNOTATION_RESERVATION_ID
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import (
    ReplicatedVolumeReplica,
    SatisfyEligibleNodesCondition,
    ScheduledCondition,
)
from quorate.api.scheduler_extender import FilterAndScore, NarrowReservation
from quorate.controllers.scheduling.decide import decide
from quorate.controllers.scheduling.placement import ExtenderFailure
from quorate.controllers.scheduling.snapshot import Snapshot, gather
from quorate.machinery.controller import ControllerSpec, changed, for_, watches
from quorate.machinery.effects import Answer, Request
from quorate.machinery.extender import Extender, ExtenderUnavailable
from quorate.machinery.reader import Reader

NAME = "rvr-scheduling-controller"


def spec(extender: Extender) -> ControllerSpec[Snapshot]:
    """The controller; `extender` scores and reserves capacity."""
    return ControllerSpec(
        name=NAME,
        watches=(
            for_(ReplicatedVolume, changed(_volume_facts)),
            watches(ReplicatedVolumeReplica, keys_of_replica, changed(_replica_facts)),
            watches(ReplicatedStoragePool, keys_of_pool, changed(_pool_facts)),
            watches(ReplicatedVolumeAttachment, keys_of_attachment, changed(_attachment_facts)),
        ),
        gather=gather,
        decide=decide,
        answer=answer_with(extender),
    )


def answer_with(extender: Extender) -> Callable[[Request], Awaitable[Answer]]:
    """Asks the extender; a failure is an answer, too."""

    async def answer(request: Request) -> Answer:
        try:
            match request:
                case FilterAndScore():
                    return await extender.filter_and_score(request)
                case NarrowReservation():
                    return await extender.narrow(request)
                case _:
                    raise TypeError(f"the scheduling controller does not ask for {type(request).__name__}")
        except ExtenderUnavailable as error:
            return ExtenderFailure(str(error))

    return answer


def _volume_facts(volume: ReplicatedVolume) -> tuple[object, ...]:
    status = volume.status
    return (
        status.configuration_generation,
        status.configuration,
        volume.spec.size,
        status.datamesh.size,
        volume.metadata.annotations.get(ANNOTATION_RESERVATION_ID, ""),
        tuple(member.node_name for member in status.datamesh.members),
    )


def _replica_facts(replica: ReplicatedVolumeReplica) -> tuple[object, ...]:
    metadata = replica.metadata
    scheduled = conditions.get(replica.status.conditions, ScheduledCondition.TYPE)
    # A replica that is not where it may be any more is looked at again (seed 002).
    misplaced = conditions.is_false(replica.status.conditions, SatisfyEligibleNodesCondition.TYPE)
    return metadata.generation, replica.spec, metadata.deletion_timestamp, scheduled, misplaced


def _pool_facts(pool: ReplicatedStoragePool) -> tuple[object, ...]:
    return pool.spec.type, pool.status.eligible_nodes_revision, pool.status.eligible_nodes


def _attachment_facts(attachment: ReplicatedVolumeAttachment) -> tuple[object, ...]:
    return attachment.spec, attachment.metadata.deletion_timestamp


def keys_of_replica(
    old: ReplicatedVolumeReplica | None, new: ReplicatedVolumeReplica | None, reader: Reader
) -> Iterable[str]:
    """The replica's volume; a replica that goes frees a node."""
    del reader
    return {item.spec.replicated_volume_name: None for item in (old, new) if item is not None}


def keys_of_pool(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None, reader: Reader) -> Iterable[str]:
    """The volumes whose configuration uses the pool."""
    found = new if new is not None else old
    if found is None:
        return ()
    volumes = reader.by_index(ReplicatedVolume, RV_BY_POOL, found.metadata.name)
    return tuple(volume.metadata.name for volume in volumes)


def keys_of_attachment(
    old: ReplicatedVolumeAttachment | None, new: ReplicatedVolumeAttachment | None, reader: Reader
) -> Iterable[str]:
    """The attachment's volume."""
    del reader
    return {item.spec.replicated_volume_name: None for item in (old, new) if item is not None}
