"""Which events concern the class controller."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api import indexes
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.storage_class import PROVISIONER, StorageClass
from quorate.controllers.storage_class import gauges
from quorate.controllers.storage_class.decide import decide
from quorate.controllers.storage_class.snapshot import Snapshot, gather
from quorate.controllers.storage_class.volumes import TRACKED_CONDITIONS, in_conflict
from quorate.machinery.controller import ControllerSpec, Watch
from quorate.machinery.reader import Reader

NAME = "rsc-controller"
VOLUMES_SETTLE = 5.0
"""Counters of volumes follow at a walking pace: a volume passes through several states while it forms, and many volumes
form at once; each change would otherwise be a write of the class."""


def spec() -> ControllerSpec[Snapshot]:
    """The controller as data."""
    return ControllerSpec(
        name=NAME,
        watches=(
            Watch(ReplicatedStorageClass, class_matters, class_keys),
            Watch(ReplicatedStoragePool, pool_matters, pool_keys),
            Watch(ReplicatedVolume, volume_matters, volume_keys, settle=VOLUMES_SETTLE),
            Watch(StorageClass, kubernetes_class_matters, kubernetes_class_keys),
        ),
        gather=gather,
        decide=decide,
        gauges=(gauges.GAUGES,),
    )


def class_matters(old: ReplicatedStorageClass | None, new: ReplicatedStorageClass | None) -> bool:
    """Everything."""
    return old != new


def class_keys(old: ReplicatedStorageClass | None, new: ReplicatedStorageClass | None, reader: Reader) -> Iterable[str]:
    """The class itself."""
    del reader
    found = new if new is not None else old
    return (found.metadata.name,) if found is not None else ()


def pool_matters(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None) -> bool:
    """Spec, eligible nodes, conditions, users and finalizers: all that the decision reads."""
    return _pool_facts(old) != _pool_facts(new)


def _pool_facts(pool: ReplicatedStoragePool | None) -> object:
    if pool is None:
        return None
    status, meta = pool.status, pool.metadata
    return (
        pool.spec,
        status.eligible_nodes_revision,
        status.conditions,
        status.used_by,
        meta.finalizers,
        meta.deletion_timestamp,
    )


def pool_keys(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None, reader: Reader) -> Iterable[str]:
    """Classes that name the pool, by spec or by status, and those that it lists as users."""
    names: set[str] = set()
    for pool in (old, new):
        if pool is None:
            continue
        names.update(pool.status.used_by.replicated_storage_class_names)
        for index in (indexes.RSC_BY_SPEC_POOL, indexes.RSC_BY_POOL):
            found = reader.by_index(ReplicatedStorageClass, index, pool.metadata.name)
            names.update(item.metadata.name for item in found)
    return sorted(names)


def volume_matters(old: ReplicatedVolume | None, new: ReplicatedVolume | None) -> bool:
    """What the counters read."""
    return _volume_facts(old) != _volume_facts(new)


def _volume_facts(volume: ReplicatedVolume | None) -> object:
    if volume is None:
        return None
    status = volume.status
    found = status.configuration
    return (
        volume.metadata.generation,
        volume.spec.replicated_storage_class_name,
        volume.spec.configuration_mode,
        status.configuration_generation,
        status.configuration_observed_generation,
        found.replicated_storage_pool_name if found is not None else "",
        tuple((c.type, c.status, c.observed_generation) for c in status.conditions if c.type in TRACKED_CONDITIONS),
        in_conflict(volume),
    )


def volume_keys(old: ReplicatedVolume | None, new: ReplicatedVolume | None, reader: Reader) -> Iterable[str]:
    """The old and the new class of the volume."""
    del reader
    names = {v.spec.replicated_storage_class_name for v in (old, new) if v is not None}
    return sorted(name for name in names if name)


def kubernetes_class_matters(old: StorageClass | None, new: StorageClass | None) -> bool:
    """Edits and deletions of our StorageClasses are repaired at once."""
    return old != new and any(c is not None and c.provisioner == PROVISIONER for c in (old, new))


def kubernetes_class_keys(old: StorageClass | None, new: StorageClass | None, reader: Reader) -> Iterable[str]:
    """The class of the same name."""
    del reader
    found = new if new is not None else old
    return (found.metadata.name,) if found is not None else ()
