"""What the volume controller reads: one frozen record per volume, gathered from the caches.

Caches of different kinds are not ordered against each other (rule 8), so every part of the decision tolerates any of
these objects being older or newer than the others.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import indexes, labels, names
from quorate.api.drbd_resource_operation import DRBDResourceOperation
from quorate.api.node import Node
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume, VolumeConfiguration
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.datamesh.features import Features
from quorate.machinery.reader import Reader

DEFAULT_FEATURES = Features()

OUT_OF_SERVICE_TAINT = "node.kubernetes.io/out-of-service"
"""Set by a person or an operator who made sure that the node is down: fencing evidence (decision 6)."""


@dataclass(frozen=True)
class Snapshot:
    """Everything one decision about a volume depends on."""

    name: str
    volume: ReplicatedVolume | None
    storage_class: ReplicatedStorageClass | None = None
    pool: ReplicatedStoragePool | None = None
    """Pool of the configuration in force, or of the intended one while there is none."""
    intended_pool: ReplicatedStoragePool | None = None
    """Pool of the intended configuration."""
    replicas: tuple[ReplicatedVolumeReplica, ...] = ()
    """Sorted by id."""
    attachments: tuple[ReplicatedVolumeAttachment, ...] = ()
    """Sorted by node, creation time and name."""
    operation: DRBDResourceOperation | None = None
    siblings: tuple[ReplicatedVolume, ...] = ()
    """The other volumes of the class, only while a rollout or a repair must be shared with them."""
    forming: tuple[ReplicatedVolume, ...] = ()
    """The volumes that form now, only for one that has not begun."""
    fenced_nodes: tuple[str, ...] = ()
    features: Features = DEFAULT_FEATURES

    def existing_volume(self) -> ReplicatedVolume:
        """The volume; asked for only on paths that have one."""
        assert self.volume is not None
        return self.volume


def intended_configuration(
    volume: ReplicatedVolume, storage_class: ReplicatedStorageClass | None
) -> VolumeConfiguration | None:
    """Auto: from the class, and only what the class published for its present generation. Manual: from the spec."""
    if volume.spec.configuration_mode == "Manual":
        return volume.spec.manual_configuration
    if storage_class is None or storage_class.status.configuration is None:
        return None
    if storage_class.status.configuration_generation != storage_class.metadata.generation:
        return None
    return storage_class.status.configuration


def gather(reader: Reader, name: str) -> Snapshot:
    """One consistent snapshot for a volume."""
    volume = reader.get(ReplicatedVolume, name)
    attachments = tuple(
        sorted(
            reader.by_index(ReplicatedVolumeAttachment, indexes.RVA_BY_VOLUME, name),
            key=lambda a: (a.spec.node_name, a.metadata.creation_timestamp, a.metadata.name),
        )
    )
    if volume is None:
        return Snapshot(name=name, volume=None, attachments=attachments)
    class_name = volume.spec.replicated_storage_class_name
    storage_class = reader.get(ReplicatedStorageClass, class_name) if class_name else None
    intended = intended_configuration(volume, storage_class)
    intended_pool = reader.get(ReplicatedStoragePool, intended.replicated_storage_pool_name) if intended else None
    in_force = volume.status.configuration
    pool = reader.get(ReplicatedStoragePool, in_force.replicated_storage_pool_name) if in_force else intended_pool
    replicas = tuple(
        sorted(
            reader.by_index(ReplicatedVolumeReplica, indexes.RVR_BY_VOLUME, name),
            key=lambda replica: names.replica_id(replica.metadata.name),
        )
    )
    nodes = _nodes_of(reader, volume, replicas)
    return Snapshot(
        name=name,
        volume=volume,
        storage_class=storage_class,
        pool=pool,
        intended_pool=intended_pool,
        replicas=replicas,
        attachments=attachments,
        operation=reader.get(DRBDResourceOperation, names.formation_operation_name(name)),
        siblings=_siblings(reader, volume, intended),
        forming=_forming(reader, volume),
        fenced_nodes=tuple(node.metadata.name for node in nodes if is_fenced(node)),
        features=compute_features(nodes),
    )


def _forming(reader: Reader, volume: ReplicatedVolume) -> tuple[ReplicatedVolume, ...]:
    if volume.status.datamesh_revision or volume.status.datamesh_transitions:
        return ()
    return tuple(reader.by_index(ReplicatedVolume, indexes.RV_BY_FORMATION, indexes.FORMING))


def _nodes_of(
    reader: Reader, volume: ReplicatedVolume, replicas: tuple[ReplicatedVolumeReplica, ...]
) -> tuple[Node, ...]:
    wanted = {member.node_name for member in volume.status.datamesh.members}
    wanted.update(replica.spec.node_name for replica in replicas if replica.spec.node_name)
    found = (reader.get(Node, name) for name in sorted(wanted))
    return tuple(node for node in found if node is not None)


def is_fenced(node: Node) -> bool:
    """Evidence that nothing runs on the node; a deleted Node object or a silent agent is none (decision 6)."""
    if labels.ANNOTATION_FENCED in node.metadata.annotations:
        return True
    return any(taint.key == OUT_OF_SERVICE_TAINT for taint in node.spec.taints)


def compute_features(nodes: tuple[Node, ...]) -> Features:
    """The volume follows its weakest member (decision 15): static voters only if every node says so."""
    modes = tuple(node.metadata.annotations.get(labels.ANNOTATION_VOTER_MODE, "") for node in nodes)
    static = bool(modes) and all(mode == "static" for mode in modes)
    lacking = any(node.metadata.annotations.get(labels.ANNOTATION_PEER_TIEBREAKER, "true") != "true" for node in nodes)
    return Features(voter_mode="static" if static else "dynamic", peer_tiebreaker_option=not lacking)


def _siblings(
    reader: Reader, volume: ReplicatedVolume, intended: VolumeConfiguration | None
) -> tuple[ReplicatedVolume, ...]:
    """Rollout and repair budgets are shared by the class; volumes that need neither do not look at the others."""
    class_name = volume.spec.replicated_storage_class_name
    in_force = volume.status.configuration
    rolling_out = in_force is not None and intended is not None and in_force != intended
    if not class_name or not (rolling_out or volume.status.eligible_nodes_violations):
        return ()
    others = reader.by_index(ReplicatedVolume, indexes.RV_BY_CLASS, class_name)
    return tuple(sorted((o for o in others if o.metadata.name != volume.metadata.name), key=lambda o: o.metadata.name))
