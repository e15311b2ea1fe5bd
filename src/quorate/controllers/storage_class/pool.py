"""The pool of a class: its name, its object, who uses it, and letting it go."""

from __future__ import annotations

from quorate.api import labels, names
from quorate.api.meta import ObjectMeta
from quorate.api.replicated_storage_class import EligibleNodesPolicy, ReplicatedStorageClass
from quorate.api.replicated_storage_pool import ReplicatedStoragePool, ReplicatedStoragePoolSpec, UsedBy
from quorate.api.resources import ref_of
from quorate.api.value import replace
from quorate.machinery.effects import Create, Delete, Effect, Half, Mode, Patch

INTERNAL_NETWORKS = ("Internal",)


def pool_name_of(found: ReplicatedStorageClass) -> str:
    """Equal storage, equal pool; kept while the name was computed for the present generation."""
    status, spec = found.status, found.spec
    if status.storage_pool_name and status.storage_pool_based_on_generation == found.metadata.generation:
        return status.storage_pool_name
    assert spec.storage is not None
    return names.auto_pool_name(
        spec.storage.type,
        spec.storage.lvm_volume_groups,
        spec.zones,
        spec.node_label_selector,
        spec.system_network_names or INTERNAL_NETWORKS,
    )


def new_pool(found: ReplicatedStorageClass, name: str) -> ReplicatedStoragePool:
    """The pool object that the class asks for."""
    spec = found.spec
    assert spec.storage is not None
    policy = spec.eligible_nodes_policy or EligibleNodesPolicy()
    return ReplicatedStoragePool(
        metadata=ObjectMeta(name=name, finalizers=(labels.FINALIZER_STORAGE_CLASS,)),
        spec=ReplicatedStoragePoolSpec(
            type=spec.storage.type,
            lvm_volume_groups=spec.storage.lvm_volume_groups,
            zones=spec.zones,
            node_label_selector=spec.node_label_selector,
            system_network_names=spec.system_network_names or INTERNAL_NETWORKS,
            eligible_nodes_policy=policy,
        ),
    )


def ensure_effects(found: ReplicatedStorageClass, pool: ReplicatedStoragePool | None, name: str) -> tuple[Effect, ...]:
    """Create the pool, hold it, and say that this class uses it. An existing spec is never corrected: it is immutable."""
    if pool is None:
        return (Create(obj=new_pool(found, name), cause="the class needs the pool"),)
    effects: list[Effect] = []
    if labels.FINALIZER_STORAGE_CLASS not in pool.metadata.finalizers and not pool.metadata.deleting:
        finalizers = (*pool.metadata.finalizers, labels.FINALIZER_STORAGE_CLASS)
        after = replace(pool, metadata=replace(pool.metadata, finalizers=finalizers))
        effects.append(Patch(before=pool, after=after, half=Half.MAIN, cause="finalizer of the pool"))
        pool = after
    users = pool.status.used_by.replicated_storage_class_names
    if found.metadata.name not in users:
        effects.append(_used_by(pool, tuple(sorted((*users, found.metadata.name)))))
    return tuple(effects)


def release_effects(class_name: str, pool: ReplicatedStoragePool) -> tuple[Effect, ...]:
    """The class no longer uses the pool; the last user takes the pool away."""
    users = tuple(u for u in pool.status.used_by.replicated_storage_class_names if u != class_name)
    effects: list[Effect] = []
    if users != pool.status.used_by.replicated_storage_class_names:
        released = replace(pool, status=replace(pool.status, used_by=UsedBy(replicated_storage_class_names=users)))
        effects.append(_used_by(pool, users))
        pool = released
    if users:
        return tuple(effects)
    cause = f"class {class_name} was its last user"
    if labels.FINALIZER_STORAGE_CLASS in pool.metadata.finalizers:
        rest = tuple(f for f in pool.metadata.finalizers if f != labels.FINALIZER_STORAGE_CLASS)
        after = replace(pool, metadata=replace(pool.metadata, finalizers=rest))
        effects.append(Patch(before=pool, after=after, half=Half.MAIN, cause=cause, decided_from=(ref_of(pool),)))
        pool = after
    if not pool.metadata.deleting:
        effects.append(Delete(obj=pool, cause=cause))
    return tuple(effects)


def _used_by(pool: ReplicatedStoragePool, users: tuple[str, ...]) -> Patch:
    after = replace(pool, status=replace(pool.status, used_by=UsedBy(replicated_storage_class_names=users)))
    # Two classes may write the same list: a decision, locked, never rebased.
    return Patch(before=pool, after=after, half=Half.STATUS, cause="users of the pool", mode=Mode.DECISION)
