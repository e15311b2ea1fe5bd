"""Which events concern the volume controller.

The seed's table is the minimum (ruling of the design): whatever the decision reads of an object, a change of it passes.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorate.api import indexes, labels
from quorate.api.drbd_resource_operation import DRBDResourceOperation
from quorate.api.node import Node
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.controllers.volume import gauges, lifecycle
from quorate.controllers.volume.decide import decide
from quorate.controllers.volume.snapshot import Snapshot, gather, is_fenced
from quorate.machinery.controller import ControllerSpec, changed, for_, owns, watches
from quorate.machinery.reader import Reader

NAME = "rv-controller"


def spec() -> ControllerSpec[Snapshot]:
    """The controller as data."""
    return ControllerSpec(
        name=NAME,
        watches=(
            for_(ReplicatedVolume, changed(volume_facts)),
            watches(ReplicatedVolume, next_in_line, turn_ended),
            watches(ReplicatedStorageClass, class_keys, changed(class_facts)),
            watches(ReplicatedStoragePool, pool_keys, changed(pool_facts)),
            watches(ReplicatedVolumeAttachment, attachment_keys, changed(attachment_facts)),
            watches(ReplicatedVolumeReplica, replica_keys, changed(replica_facts)),
            owns(DRBDResourceOperation, ReplicatedVolume, changed(operation_facts)),
            watches(Node, node_keys, changed(node_facts)),
        ),
        gather=gather,
        decide=lifecycle.observed(decide),
        gauges=(gauges.GAUGES,),
    )


def volume_facts(volume: ReplicatedVolume) -> object:
    """Spec, status and the metadata that the decision reads."""
    meta = volume.metadata
    return meta.generation, meta.deletion_timestamp, meta.labels, meta.finalizers, volume.spec, volume.status


def turn_ended(old: ReplicatedVolume | None, new: ReplicatedVolume | None) -> bool:
    """Whether a volume does not form any more: formed, started again, or gone."""
    forms = indexes.RV_BY_FORMATION.keys
    return old is not None and indexes.FORMING in forms(old) and (new is None or indexes.FORMING not in forms(new))


def next_in_line(old: ReplicatedVolume | None, new: ReplicatedVolume | None, reader: Reader) -> Iterable[str]:
    """The oldest volume that waits for its turn to form."""
    del old, new
    waiting = reader.by_index(ReplicatedVolume, indexes.RV_BY_FORMATION, indexes.WAITING)
    oldest = min(waiting, key=lambda v: (v.metadata.creation_timestamp, v.metadata.name), default=None)
    return (oldest.metadata.name,) if oldest is not None else ()


def class_facts(found: ReplicatedStorageClass) -> object:
    """Accepted configuration and the strategies that govern its rollout."""
    status, spec_ = found.status, found.spec
    return (
        found.metadata.generation,
        status.configuration_generation,
        status.configuration,
        status.conditions,
        spec_.configuration_rollout_strategy,
        spec_.eligible_nodes_conflict_resolution_strategy,
    )


def class_keys(old: ReplicatedStorageClass | None, new: ReplicatedStorageClass | None, reader: Reader) -> Iterable[str]:
    """mapRSCToRVs: the volumes of the class."""
    found = new if new is not None else old
    if found is None:
        return ()
    volumes = reader.by_index(ReplicatedVolume, indexes.RV_BY_CLASS, found.metadata.name)
    return tuple(volume.metadata.name for volume in volumes)


def pool_facts(pool: ReplicatedStoragePool) -> object:
    """What placement and attachment depend on."""
    return pool.spec, pool.status.eligible_nodes


def pool_keys(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None, reader: Reader) -> Iterable[str]:
    """Volumes that run on the pool, and volumes that wait for it."""
    found = new if new is not None else old
    if found is None:
        return ()
    names = {v.metadata.name for v in reader.by_index(ReplicatedVolume, indexes.RV_BY_POOL, found.metadata.name)}
    if old is None or new is None:
        names.update(v.metadata.name for v in reader.list(ReplicatedVolume) if v.status.configuration is None)
    return sorted(names)


def attachment_facts(attachment: ReplicatedVolumeAttachment) -> object:
    """The wish, what holds it, and what we last said about it."""
    meta = attachment.metadata
    return meta.generation, meta.deletion_timestamp, meta.finalizers, meta.labels, attachment.spec, attachment.status


def attachment_keys(
    old: ReplicatedVolumeAttachment | None, new: ReplicatedVolumeAttachment | None, reader: Reader
) -> Iterable[str]:
    """mapRVAToRV."""
    del reader
    found = new if new is not None else old
    return (found.spec.replicated_volume_name,) if found is not None else ()


def replica_facts(replica: ReplicatedVolumeReplica) -> object:
    """Everything but the replica controller's own bookkeeping."""
    meta, status = replica.metadata, replica.status
    return (
        meta.generation,
        meta.deletion_timestamp,
        meta.finalizers,
        replica.spec,
        status.conditions,
        status.addresses,
        status.size,
        status.backing_volume,
        status.datamesh_request,
        status.datamesh_revision,
        status.attachment,
        status.quorum,
        status.quorum_enforced,
        status.quorum_summary,
        status.peers,
        status.type,
    )


def replica_keys(
    old: ReplicatedVolumeReplica | None, new: ReplicatedVolumeReplica | None, reader: Reader
) -> Iterable[str]:
    """mapRVRToRV."""
    del reader
    found = new if new is not None else old
    return (found.spec.replicated_volume_name,) if found is not None else ()


def operation_facts(operation: DRBDResourceOperation) -> object:
    """The bootstrap operation and its outcome."""
    return operation.metadata.deletion_timestamp, operation.spec, operation.status


def node_facts(node: Node) -> object:
    """Fencing evidence and what the agent says about the kernel."""
    marks = node.metadata.annotations
    return is_fenced(node), marks.get(labels.ANNOTATION_VOTER_MODE), marks.get(labels.ANNOTATION_PEER_TIEBREAKER)


def node_keys(old: Node | None, new: Node | None, reader: Reader) -> Iterable[str]:
    """Volumes with a replica, or with an orphaned member, on the node."""
    found = new if new is not None else old
    if found is None:
        return ()
    name = found.metadata.name
    replicas = reader.by_index(ReplicatedVolumeReplica, indexes.RVR_BY_NODE, name)
    names = {replica.spec.replicated_volume_name for replica in replicas}
    names.update(
        volume.metadata.name
        for volume in reader.list(ReplicatedVolume)
        if any(member.node_name == name for member in volume.status.datamesh.members)
    )
    return sorted(names)
