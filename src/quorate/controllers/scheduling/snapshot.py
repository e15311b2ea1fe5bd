"""What the scheduling controller reads: a volume, all its replicas, its pool and its attachments."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api.indexes import RVA_BY_VOLUME, RVR_BY_VOLUME
from quorate.api.names import replica_id
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.machinery.reader import Reader


@dataclass(frozen=True)
class Snapshot:
    """Everything that the placement of one volume's replicas is decided from."""

    name: str
    volume: ReplicatedVolume | None = None
    replicas: tuple[ReplicatedVolumeReplica, ...] = ()
    """All replicas of the volume by id, deleting ones included."""
    pool: ReplicatedStoragePool | None = None
    attachments: tuple[ReplicatedVolumeAttachment, ...] = ()


def gather(reader: Reader, key: str) -> Snapshot:
    """One consistent snapshot of the volume called `key`."""
    volume = reader.get(ReplicatedVolume, key)
    replicas = reader.by_index(ReplicatedVolumeReplica, RVR_BY_VOLUME, key)
    configuration = volume.status.configuration if volume is not None else None
    name = configuration.replicated_storage_pool_name if configuration is not None else ""
    return Snapshot(
        name=key,
        volume=volume,
        replicas=tuple(sorted(replicas, key=lambda replica: replica_id(replica.metadata.name))),
        pool=reader.get(ReplicatedStoragePool, name) if name else None,
        attachments=reader.by_index(ReplicatedVolumeAttachment, RVA_BY_VOLUME, key),
    )
