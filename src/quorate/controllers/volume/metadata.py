"""reconcileMetadata: finalizer and class label of the volume."""

from __future__ import annotations

from quorate.api import labels, names
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.value import replace
from quorate.machinery.effects import Effect, Half, Patch


def ensure_metadata(volume: ReplicatedVolume) -> ReplicatedVolume:
    """The volume with the finalizer (never added while deleting) and the label that links it to its class."""
    meta = volume.metadata
    finalizers = meta.finalizers
    if labels.FINALIZER_VOLUME not in finalizers and not meta.deleting:
        finalizers = (*finalizers, labels.FINALIZER_VOLUME)
    class_name = volume.spec.replicated_storage_class_name
    if class_name:
        marks = meta.labels.with_entry(labels.LABEL_STORAGE_CLASS, names.label_value(class_name))
    else:
        marks = meta.labels.without(labels.LABEL_STORAGE_CLASS)
    if finalizers == meta.finalizers and marks == meta.labels:
        return volume
    return replace(volume, metadata=replace(meta, finalizers=finalizers, labels=marks))


def effects(before: ReplicatedVolume, after: ReplicatedVolume) -> tuple[Effect, ...]:
    """The main patch, if anything differs."""
    if before.metadata == after.metadata:
        return ()
    return (Patch(before=before, after=after, half=Half.MAIN, cause="finalizer and labels of the volume"),)
