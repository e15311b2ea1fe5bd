"""Named indexes: by which keys the caches find objects. A cache maintains the indexes of its kind."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from quorate.api.drbd_resource import DRBDResource
from quorate.api.drbd_resource_operation import DRBDResourceOperation
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.meta import Object
from quorate.api.pod import Pod
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume, TransitionType
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.resources import controller_of

K = TypeVar("K", bound=Object)


@dataclass(frozen=True)
class Index(Generic[K]):
    """Finds objects of a kind by a text; an object may have several keys or none."""

    name: str
    kind: type[K]
    keys: Callable[[K], tuple[str, ...]]


def volume_and_node(volume: str, node: str) -> str:
    """Key of RVR_BY_VOLUME_AND_NODE and RVA_BY_VOLUME_AND_NODE."""
    return f"{volume}/{node}"


def _optional(key: str) -> tuple[str, ...]:
    return (key,) if key else ()


def _pool_of_volume(volume: ReplicatedVolume) -> tuple[str, ...]:
    configuration = volume.status.configuration
    return _optional(configuration.replicated_storage_pool_name) if configuration else ()


FORMING, WAITING = "forming", "waiting"


def _formation_of_volume(volume: ReplicatedVolume) -> tuple[str, ...]:
    status = volume.status
    if any(transition.type == TransitionType.FORMATION for transition in status.datamesh_transitions):
        # A formation that was started again waits for something else than its turn.
        return (FORMING,) if status.formation is None or not status.formation.restarts else ()
    waiting = not status.datamesh_revision and status.configuration is not None and not volume.metadata.deleting
    return (WAITING,) if waiting else ()


def _owner_replica(volume: LVMLogicalVolume) -> tuple[str, ...]:
    owner = controller_of(volume)
    return (owner.name,) if owner and owner.kind == "ReplicatedVolumeReplica" else ()


def _replica_volume_and_node(replica: ReplicatedVolumeReplica) -> tuple[str, ...]:
    spec = replica.spec
    return (volume_and_node(spec.replicated_volume_name, spec.node_name),) if spec.node_name else ()


RV_BY_CLASS = Index("rv-by-class", ReplicatedVolume, lambda rv: _optional(rv.spec.replicated_storage_class_name))
"""Volumes of a class."""
RV_BY_POOL = Index("rv-by-pool", ReplicatedVolume, _pool_of_volume)
"""Volumes whose configuration in force uses a pool."""
RV_BY_FORMATION = Index("rv-by-formation", ReplicatedVolume, _formation_of_volume)
"""Volumes that form for the first time (`FORMING`), and configured ones that have not begun (`WAITING`)."""
RVR_BY_VOLUME = Index("rvr-by-volume", ReplicatedVolumeReplica, lambda rvr: (rvr.spec.replicated_volume_name,))
"""Replicas of a volume."""
RVR_BY_NODE = Index("rvr-by-node", ReplicatedVolumeReplica, lambda rvr: _optional(rvr.spec.node_name))
"""Replicas on a node."""
RVR_BY_VOLUME_AND_NODE = Index("rvr-by-volume-and-node", ReplicatedVolumeReplica, _replica_volume_and_node)
"""Replicas of a volume on a node; key by `volume_and_node`."""
RVA_BY_VOLUME = Index("rva-by-volume", ReplicatedVolumeAttachment, lambda rva: (rva.spec.replicated_volume_name,))
"""Attachments of a volume."""
RVA_BY_NODE = Index("rva-by-node", ReplicatedVolumeAttachment, lambda rva: (rva.spec.node_name,))
"""Attachments to a node."""
DRBDR_BY_NODE = Index("drbdr-by-node", DRBDResource, lambda drbdr: (drbdr.spec.node_name,))
"""DRBD resources on a node."""
DRBDROP_BY_NODE = Index("drbdrop-by-node", DRBDResourceOperation, lambda operation: (operation.spec.node_name,))
"""Operations on a node."""
DRBDROP_BY_RESOURCE = Index(
    "drbdrop-by-resource", DRBDResourceOperation, lambda operation: (operation.spec.drbd_resource_name,)
)
"""Operations on a DRBD resource."""
LLV_BY_OWNER_RVR = Index("llv-by-owner-rvr", LVMLogicalVolume, _owner_replica)
"""Logical volumes owned by a replica."""
LLV_BY_LVG = Index("llv-by-lvg", LVMLogicalVolume, lambda llv: (llv.spec.lvm_volume_group_name,))
"""Logical volumes in a volume group."""
LVG_BY_NODE = Index("lvg-by-node", LVMVolumeGroup, lambda lvg: (lvg.spec.local.node_name,) if lvg.spec.local else ())
"""Volume groups on a node."""
RSP_BY_LVG = Index(
    "rsp-by-lvg",
    ReplicatedStoragePool,
    lambda rsp: tuple(dict.fromkeys(group.name for group in rsp.spec.lvm_volume_groups)),
)
"""Pools that use a volume group."""
RSP_BY_ELIGIBLE_NODE = Index(
    "rsp-by-eligible-node",
    ReplicatedStoragePool,
    lambda rsp: tuple(dict.fromkeys(node.node_name for node in rsp.status.eligible_nodes)),
)
"""Pools in which a node is eligible."""
RSP_BY_USED_BY = Index(
    "rsp-by-used-by", ReplicatedStoragePool, lambda rsp: rsp.status.used_by.replicated_storage_class_names
)
"""Pools that a class uses."""
RSC_BY_POOL = Index("rsc-by-pool", ReplicatedStorageClass, lambda rsc: _optional(rsc.status.storage_pool_name))
"""Classes whose pool this is."""
RSC_BY_SPEC_POOL = Index("rsc-by-spec-pool", ReplicatedStorageClass, lambda rsc: _optional(rsc.spec.storage_pool))
"""Classes that name this pool in the deprecated field."""
POD_BY_NODE = Index("pod-by-node", Pod, lambda pod: _optional(pod.spec.node_name))
"""Pods on a node."""

INDEXES: tuple[Index[Object], ...] = (
    RV_BY_CLASS,
    RV_BY_POOL,
    RV_BY_FORMATION,
    RVR_BY_VOLUME,
    RVR_BY_NODE,
    RVR_BY_VOLUME_AND_NODE,
    RVA_BY_VOLUME,
    RVA_BY_NODE,
    DRBDR_BY_NODE,
    DRBDROP_BY_NODE,
    DRBDROP_BY_RESOURCE,
    LLV_BY_OWNER_RVR,
    LLV_BY_LVG,
    LVG_BY_NODE,
    RSP_BY_LVG,
    RSP_BY_ELIGIBLE_NODE,
    RSP_BY_USED_BY,
    RSC_BY_POOL,
    RSC_BY_SPEC_POOL,
    POD_BY_NODE,
)  # pyright: ignore[reportAssignmentType]
"""All indexes."""


def indexes_of(kind: type[Object]) -> tuple[Index[Object], ...]:
    """The indexes of a kind."""
    return tuple(index for index in INDEXES if index.kind is kind)
