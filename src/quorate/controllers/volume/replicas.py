"""Replica objects: how the volume controller makes them and lets them go."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api import labels, names
from quorate.api.meta import ObjectMeta, ObjectRef
from quorate.api.replicated_volume import ReplicatedVolume, ReplicatedVolumeStatus
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec, ReplicaType
from quorate.api.resources import AnyObject, controller_reference, ref_of
from quorate.api.value import FrozenMap, replace
from quorate.machinery.effects import Delete, Effect, Half, Patch

MAX_REPLICA_ID = 31


def volume_labels(volume: ReplicatedVolume) -> FrozenMap:
    """Labels that link a child to its volume and class."""
    entries = {labels.LABEL_VOLUME: names.label_value(volume.metadata.name)}
    if volume.spec.replicated_storage_class_name:
        entries[labels.LABEL_STORAGE_CLASS] = names.label_value(volume.spec.replicated_storage_class_name)
    return FrozenMap(entries)


def used_ids(status: ReplicatedVolumeStatus, replicas: Iterable[ReplicatedVolumeReplica]) -> frozenset[int]:
    """Ids that must not be given out (decision 13): an RVR, member, request or transition still names them."""
    taken = {names.replica_id(replica.metadata.name) for replica in replicas}
    taken.update(names.replica_id(member.name) for member in status.datamesh.members)
    taken.update(names.replica_id(request.name) for request in status.datamesh_replica_requests)
    taken.update(names.replica_id(t.replica_name) for t in status.datamesh_transitions if t.replica_name)
    return frozenset(taken)


def free_ids(status: ReplicatedVolumeStatus, replicas: Iterable[ReplicatedVolumeReplica]) -> tuple[int, ...]:
    """Ids that a new replica may take, lowest first."""
    taken = used_ids(status, replicas)
    return tuple(number for number in range(MAX_REPLICA_ID + 1) if number not in taken)


def new_replica(
    volume: ReplicatedVolume, number: int, type_: ReplicaType, node_name: str = ""
) -> ReplicatedVolumeReplica:
    """A replica object, complete from birth: both finalizers and all labels that are known by now (few writes)."""
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(
            name=names.replica_name(volume.metadata.name, number),
            labels=volume_labels(volume),
            finalizers=(labels.FINALIZER_VOLUME, labels.FINALIZER_REPLICA),
            owner_references=(controller_reference(volume),),
        ),
        spec=ReplicatedVolumeReplicaSpec(replicated_volume_name=volume.metadata.name, type=type_, node_name=node_name),
    )


def deletion(
    replica: ReplicatedVolumeReplica, cause: str, decided_from: Iterable[AnyObject] = ()
) -> tuple[Effect, ...]:
    """Ask for the replica's deletion; it leaves the datamesh before it goes."""
    if replica.metadata.deleting:
        return ()
    return (Delete(obj=replica, cause=cause, decided_from=references(decided_from)),)


def forced_deletion(
    replica: ReplicatedVolumeReplica, cause: str, decided_from: Iterable[AnyObject] = ()
) -> tuple[Effect, ...]:
    """deleteRVRWithForcedFinalizerRemoval: the volume no longer holds the replica back; its own controller cleans up."""
    sources = references(decided_from)
    effects: list[Effect] = []
    if labels.FINALIZER_VOLUME in replica.metadata.finalizers:
        rest = tuple(f for f in replica.metadata.finalizers if f != labels.FINALIZER_VOLUME)
        after = replace(replica, metadata=replace(replica.metadata, finalizers=rest))
        effects.append(Patch(before=replica, after=after, half=Half.MAIN, cause=cause, decided_from=sources))
        replica = after
    return (*effects, *deletion(replica, cause, decided_from))


def references(objects: Iterable[AnyObject]) -> tuple[ObjectRef, ...]:
    """The objects a destructive effect was decided from (rule 3)."""
    return tuple(ref_of(obj) for obj in objects)
