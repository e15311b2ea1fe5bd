"""Finalizer and labels of the replica, and of the children it owns.

The finalizer goes on before the first child and comes off after the last one is gone; it is never added to an object that is
already being deleted. Labels that the volume controller and the scheduling controller set at birth and placement are equal
to the ones computed here, so a replica normally costs no metadata write at all.
"""

from __future__ import annotations

from quorate.api.labels import (
    FINALIZER_REPLICA,
    LABEL_LVM_VOLUME_GROUP,
    LABEL_STORAGE_CLASS,
    LABEL_VOLUME,
)
from quorate.api.meta import ObjectMeta, ObjectRef
from quorate.api.names import label_value
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.resources import AnyObject, controller_of, controller_reference, ref_of
from quorate.api.value import FrozenMap, replace
from quorate.controllers.replica.situation import Situation


def compute_target_labels(situation: Situation) -> FrozenMap:
    """The replica's labels with ours in place; the volume group's label is never removed again."""
    replica = situation.replica
    labels = replica.metadata.labels.with_entry(LABEL_VOLUME, label_value(replica.spec.replicated_volume_name))
    labels = _with_class_label(labels, situation)
    group = _compute_volume_group(situation)
    return labels.with_entry(LABEL_LVM_VOLUME_GROUP, label_value(group)) if group else labels


def compute_child_labels(situation: Situation, existing: FrozenMap) -> FrozenMap:
    """Labels of a logical volume or DRBDResource of the replica."""
    labels = existing.with_entry(LABEL_VOLUME, label_value(situation.replica.spec.replicated_volume_name))
    return _with_class_label(labels, situation)


def _with_class_label(labels: FrozenMap, situation: Situation) -> FrozenMap:
    volume = situation.volume
    if volume is None:
        return labels
    name = volume.spec.replicated_storage_class_name
    # A volume in Manual mode has no class.
    if not name:
        return labels.without(LABEL_STORAGE_CLASS)
    return labels.with_entry(LABEL_STORAGE_CLASS, label_value(name))


def _compute_volume_group(situation: Situation) -> str:
    """The volume group the disk is on: of the volume in use, else of the first one, else the one chosen for it."""
    drbdr, volumes = situation.drbdr, situation.snapshot.volumes
    in_use = drbdr.spec.lvm_logical_volume_name if drbdr is not None else ""
    for volume in volumes:
        if volume.metadata.name == in_use:
            return volume.spec.lvm_volume_group_name
    return volumes[0].spec.lvm_volume_group_name if volumes else situation.replica.spec.lvm_volume_group_name


def ensure_replica_metadata(situation: Situation) -> ReplicatedVolumeReplica:
    """The replica with finalizer and labels in place; itself when nothing changes."""
    metadata = situation.replica.metadata
    finalizers = metadata.finalizers
    if not situation.deleting and FINALIZER_REPLICA not in finalizers:
        finalizers = (*finalizers, FINALIZER_REPLICA)
    labels = compute_target_labels(situation)
    if finalizers is metadata.finalizers and labels is metadata.labels:
        return situation.replica
    return replace(situation.replica, metadata=replace(metadata, finalizers=finalizers, labels=labels))


def children_are_gone(situation: Situation) -> bool:
    """Whether nothing is left that the finalizer protects."""
    return situation.drbdr is None and not situation.snapshot.volumes


def ensure_child_metadata(situation: Situation, existing: ObjectMeta) -> ObjectMeta:
    """Finalizer, labels and controller reference of a child; itself when nothing changes or the child is going away."""
    if existing.deletion_timestamp:
        return existing
    finalizers = existing.finalizers
    if FINALIZER_REPLICA not in finalizers:
        finalizers = (*finalizers, FINALIZER_REPLICA)
    labels = compute_child_labels(situation, existing.labels)
    owner = controller_reference(situation.replica)
    owners = existing.owner_references
    if owner not in owners:
        # At most one reference is the controller: one to an earlier replica of the same name is replaced.
        others = tuple(ref for ref in owners if not (ref.kind == owner.kind and ref.name == owner.name))
        owners = (*others, owner)
    if finalizers is existing.finalizers and labels is existing.labels and owners is existing.owner_references:
        return existing
    return replace(existing, finalizers=finalizers, labels=labels, owner_references=owners)


def without_finalizer(metadata: ObjectMeta) -> ObjectMeta:
    """Metadata without this controller's finalizer."""
    return replace(metadata, finalizers=tuple(item for item in metadata.finalizers if item != FINALIZER_REPLICA))


def owned_by_earlier_replica(child: AnyObject, replica: ReplicatedVolumeReplica) -> bool:
    """Whether a child belongs to an earlier replica of the same name."""
    owner = controller_of(child)
    return owner is not None and owner.kind == type(replica).__name__ and owner.uid != replica.metadata.uid


def refs(*objects: AnyObject | None) -> tuple[ObjectRef, ...]:
    """References to the incarnations a destructive effect was decided from (rule 3)."""
    return tuple(ref_of(obj) for obj in objects if obj is not None)


def absent(name: str) -> ObjectRef:
    """Demands that no replica of this name exists (rule 3)."""
    return ObjectRef(kind=ReplicatedVolumeReplica.__name__, name=name)


def audit(situation: Situation) -> tuple[tuple[str, str], ...]:
    """The values that allowed a destructive effect (rule 9)."""
    member = situation.member
    return (
        ("volume", situation.replica.spec.replicated_volume_name),
        ("replica", situation.replica.metadata.name),
        ("revision", str(situation.revision)),
        ("recordedRevision", str(situation.recorded_revision)),
        ("member", member.type if member is not None else "none"),
        ("deleting", str(situation.deleting).lower()),
    )
