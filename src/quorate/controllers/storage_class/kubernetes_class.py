"""The Kubernetes StorageClass of the same name, through which claims reach the class."""

from __future__ import annotations

from quorate.api import labels
from quorate.api.meta import ObjectMeta
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.resources import ref_of
from quorate.api.storage_class import (
    IMMEDIATE,
    PARAMETER_BINDING_MODE,
    PARAMETER_CLASS_NAME,
    PROVISIONER,
    WAIT_FOR_FIRST_CONSUMER,
    StorageClass,
)
from quorate.api.value import FrozenMap, replace
from quorate.machinery.effects import Create, Delete, Effect, Emit, Half, Patch


def intended(found: ReplicatedStorageClass) -> StorageClass:
    """What claims shall find."""
    binding = IMMEDIATE if found.spec.volume_access == "Any" else WAIT_FOR_FIRST_CONSUMER
    name = found.metadata.name
    return StorageClass(
        metadata=ObjectMeta(
            name=name,
            labels=FrozenMap({labels.LABEL_MANAGED_BY: labels.MANAGED_BY}),
            finalizers=(labels.FINALIZER_KUBERNETES_STORAGE_CLASS,),
        ),
        provisioner=PROVISIONER,
        parameters=FrozenMap({PARAMETER_CLASS_NAME: name, PARAMETER_BINDING_MODE: binding}),
        reclaim_policy=found.spec.reclaim_policy,
        volume_binding_mode=binding,
        allow_volume_expansion=True,
    )


def ensure_effects(found: ReplicatedStorageClass, actual: StorageClass | None) -> tuple[Effect, ...]:
    """Create it; recreate it when an immutable part drifted; repair labels and finalizer and keep what is foreign."""
    target = intended(found)
    if actual is None:
        return (Create(obj=target, cause="claims reach the class through it"),)
    if actual.provisioner != PROVISIONER:
        message = f"StorageClass {actual.metadata.name} belongs to provisioner {actual.provisioner}; rename the class"
        return (Emit(about=found, type="Warning", reason="StorageClassTaken", message=message),)
    fixed = (actual.parameters, actual.reclaim_policy, actual.volume_binding_mode)
    if fixed != (target.parameters, target.reclaim_policy, target.volume_binding_mode):
        return delete_effects(actual, "the StorageClass differs from the class and must be made anew")
    if actual.metadata.deleting:
        return ()
    marks = actual.metadata.labels.with_entries(target.metadata.labels)
    finalizers = actual.metadata.finalizers
    if labels.FINALIZER_KUBERNETES_STORAGE_CLASS not in finalizers:
        finalizers = (*finalizers, labels.FINALIZER_KUBERNETES_STORAGE_CLASS)
    if marks == actual.metadata.labels and finalizers == actual.metadata.finalizers:
        return ()
    after = replace(actual, metadata=replace(actual.metadata, labels=marks, finalizers=finalizers))
    return (Patch(before=actual, after=after, half=Half.MAIN, cause="labels and finalizer of the StorageClass"),)


def delete_effects(actual: StorageClass | None, cause: str) -> tuple[Effect, ...]:
    """Release and delete the StorageClass, if it is ours."""
    if actual is None or actual.provisioner != PROVISIONER:
        return ()
    effects: list[Effect] = []
    if labels.FINALIZER_KUBERNETES_STORAGE_CLASS in actual.metadata.finalizers:
        rest = tuple(f for f in actual.metadata.finalizers if f != labels.FINALIZER_KUBERNETES_STORAGE_CLASS)
        after = replace(actual, metadata=replace(actual.metadata, finalizers=rest))
        effects.append(Patch(before=actual, after=after, half=Half.MAIN, cause=cause, decided_from=(ref_of(actual),)))
        actual = after
    if not actual.metadata.deleting:
        effects.append(Delete(obj=actual, cause=cause))
    return tuple(effects)
