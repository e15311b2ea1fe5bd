"""reconcileRVAFinalizers and reconcileRVRFinalizers: what holds attachments and replicas back, and what lets them go."""

from __future__ import annotations

from quorate.api import labels
from quorate.api.meta import ObjectRef
from quorate.api.replicated_volume import ReplicatedVolume, ReplicatedVolumeStatus, TransitionType
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.controllers.volume import replicas as replica_objects
from quorate.controllers.volume.snapshot import Snapshot
from quorate.machinery.effects import Effect, Half, Patch

FINALIZER = labels.FINALIZER_VOLUME


def attachment_additions(snapshot: Snapshot) -> tuple[Effect, ...]:
    """The finalizer (and the labels) of attachments that are not being deleted: before the attach they hold."""
    volume = snapshot.existing_volume()
    effects: list[Effect] = []
    for attachment in snapshot.attachments:
        meta = attachment.metadata
        if meta.deleting:
            continue
        finalizers = meta.finalizers if FINALIZER in meta.finalizers else (*meta.finalizers, FINALIZER)
        marks = meta.labels.with_entries(replica_objects.volume_labels(volume))
        if finalizers == meta.finalizers and marks == meta.labels:
            continue
        after = replace(attachment, metadata=replace(meta, finalizers=finalizers, labels=marks))
        effects.append(Patch(before=attachment, after=after, half=Half.MAIN, cause="finalizer of the attachment"))
    return tuple(effects)


def attachment_removals(snapshot: Snapshot, status: ReplicatedVolumeStatus | None) -> tuple[Effect, ...]:
    """Deleting attachments whose node is neither attached nor detaching, or is held by a sibling attachment."""
    effects: list[Effect] = []
    for attachment in snapshot.attachments:
        meta = attachment.metadata
        if not meta.deleting or FINALIZER not in meta.finalizers:
            continue
        if status is not None and not may_release(snapshot.attachments, attachment, status):
            continue
        after = replace(attachment, metadata=replace(meta, finalizers=_without(meta.finalizers)))
        effects.append(
            Patch(
                before=attachment,
                after=after,
                half=Half.MAIN,
                cause="the node is detached",
                decided_from=_volume_reference(snapshot),
            )
        )
    return tuple(effects)


def may_release(
    attachments: tuple[ReplicatedVolumeAttachment, ...],
    attachment: ReplicatedVolumeAttachment,
    status: ReplicatedVolumeStatus,
) -> bool:
    """hasOtherNonDeletingRVAOnNode or not isNodeAttachedOrDetaching (S38)."""
    node_name = attachment.spec.node_name
    duplicate = any(
        other.spec.node_name == node_name
        and not other.metadata.deleting
        and other.metadata.name != attachment.metadata.name
        for other in attachments
    )
    return duplicate or not is_attached_or_detaching(status, node_name)


def is_attached_or_detaching(status: ReplicatedVolumeStatus, node_name: str) -> bool:
    """Whether the node may still be Primary."""
    on_node = tuple(member for member in status.datamesh.members if member.node_name == node_name)
    if any(member.attached for member in on_node):
        return True
    names = tuple(member.name for member in on_node)
    moving = (TransitionType.ATTACH, TransitionType.DETACH)
    return any(
        t.type in moving and (t.replica_name in names or t.node_name == node_name) for t in status.datamesh_transitions
    )


def replica_effects(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> tuple[Effect, ...]:
    """Hold live replicas; release deleting ones that are neither member nor leaving (S42)."""
    effects: list[Effect] = []
    for replica in snapshot.replicas:
        meta = replica.metadata
        if not meta.deleting and FINALIZER not in meta.finalizers:
            after = replace(replica, metadata=replace(meta, finalizers=(*meta.finalizers, FINALIZER)))
            effects.append(Patch(before=replica, after=after, half=Half.MAIN, cause="finalizer of the replica"))
        if meta.deleting and FINALIZER in meta.finalizers and not is_member_or_leaving(status, replica):
            after = replace(replica, metadata=replace(meta, finalizers=_without(meta.finalizers)))
            effects.append(
                Patch(
                    before=replica,
                    after=after,
                    half=Half.MAIN,
                    cause="the replica is no member any more",
                    decided_from=_volume_reference(snapshot),
                )
            )
    return tuple(effects)


def is_member_or_leaving(status: ReplicatedVolumeStatus, replica: ReplicatedVolumeReplica) -> bool:
    """isRVRMemberOrLeavingDatamesh: a member, or the subject of a membership transition that still runs."""
    name = replica.metadata.name
    if any(member.name == name for member in status.datamesh.members):
        return True
    return any(t.replica_name == name for t in status.datamesh_transitions)


def _without(finalizers: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(finalizer for finalizer in finalizers if finalizer != FINALIZER)


def _volume_reference(snapshot: Snapshot) -> tuple[ObjectRef, ...]:
    volume: ReplicatedVolume | None = snapshot.volume
    return replica_objects.references((volume,)) if volume is not None else ()
