"""What the class controller reads about one class."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import indexes
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.storage_class import StorageClass
from quorate.controllers.storage_class.pool import pool_name_of
from quorate.machinery.reader import Reader


@dataclass(frozen=True)
class Snapshot:
    """A class with its pool, its volumes and its Kubernetes StorageClass."""

    name: str
    storage_class: ReplicatedStorageClass | None
    legacy_pool: ReplicatedStoragePool | None = None
    """Pool named by the deprecated `spec.storagePool`."""
    pool: ReplicatedStoragePool | None = None
    """Pool that the spec asks for now."""
    used_pools: tuple[ReplicatedStoragePool, ...] = ()
    """Pools that list this class in `usedBy`, sorted by name."""
    volumes: tuple[ReplicatedVolume, ...] = ()
    """Volumes of the class, sorted by name."""
    kubernetes_class: StorageClass | None = None


def gather(reader: Reader, key: str) -> Snapshot:
    """One consistent snapshot for a class."""
    found = reader.get(ReplicatedStorageClass, key)
    used = reader.by_index(ReplicatedStoragePool, indexes.RSP_BY_USED_BY, key)
    volumes = reader.by_index(ReplicatedVolume, indexes.RV_BY_CLASS, key)
    legacy = found.spec.storage_pool if found is not None else ""
    pool_name = pool_name_of(found) if found is not None and found.spec.storage is not None else ""
    return Snapshot(
        name=key,
        storage_class=found,
        legacy_pool=reader.get(ReplicatedStoragePool, legacy) if legacy else None,
        pool=reader.get(ReplicatedStoragePool, pool_name) if pool_name else None,
        used_pools=tuple(sorted(used, key=lambda pool: pool.metadata.name)),
        volumes=tuple(sorted(volumes, key=lambda volume: volume.metadata.name)),
        kubernetes_class=reader.get(StorageClass, key),
    )
