"""The objects of a cluster, read at about the same time, with the lookups that explanations need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

from quorate.api import conditions, labels, names
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.meta import Object
from quorate.api.node import OUT_OF_SERVICE_TAINT, Node, ReadyCondition
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_storage_pool import EligibleNode, ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica

KINDS: tuple[type[Object], ...] = (
    Node,
    LVMVolumeGroup,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolume,
    ReplicatedVolumeReplica,
    ReplicatedVolumeAttachment,
)
"""Kinds that a view is made of."""


@dataclass(frozen=True)
class ClusterView:
    """Everything that status, explain and plan read."""

    nodes: tuple[Node, ...] = ()
    groups: tuple[LVMVolumeGroup, ...] = ()
    classes: tuple[ReplicatedStorageClass, ...] = ()
    pools: tuple[ReplicatedStoragePool, ...] = ()
    volumes: tuple[ReplicatedVolume, ...] = ()
    replicas: tuple[ReplicatedVolumeReplica, ...] = ()
    attachments: tuple[ReplicatedVolumeAttachment, ...] = ()

    def node(self, name: str) -> Node | None:
        """The node of that name."""
        return self._nodes_by_name.get(name)

    def group(self, name: str) -> LVMVolumeGroup | None:
        """The volume group of that name."""
        return self._groups_by_name.get(name)

    def storage_class(self, name: str) -> ReplicatedStorageClass | None:
        """The class of that name."""
        return next((found for found in self.classes if found.metadata.name == name), None)

    def pool(self, name: str) -> ReplicatedStoragePool | None:
        """The pool of that name."""
        return next((pool for pool in self.pools if pool.metadata.name == name), None)

    def pool_of(self, volume: ReplicatedVolume) -> ReplicatedStoragePool | None:
        """The pool of the volume's configuration."""
        configuration = volume.status.configuration
        return None if configuration is None else self.pool(configuration.replicated_storage_pool_name)

    def volume(self, name: str) -> ReplicatedVolume | None:
        """The volume of that name."""
        return self._volumes_by_name.get(name)

    def replica(self, name: str) -> ReplicatedVolumeReplica | None:
        """The replica of that name."""
        return self._replicas_by_name.get(name)

    def attachment(self, name: str) -> ReplicatedVolumeAttachment | None:
        """The attachment of that name."""
        return next((found for found in self.attachments if found.metadata.name == name), None)

    def replicas_of(self, volume: str) -> tuple[ReplicatedVolumeReplica, ...]:
        """Replicas of a volume by id."""
        return self._replicas_by_volume.get(volume, ())

    def attachments_of(self, volume: str) -> tuple[ReplicatedVolumeAttachment, ...]:
        """Attachments of a volume."""
        return self._attachments_by_volume.get(volume, ())

    def eligible(self, node: str) -> tuple[EligibleNode, ...]:
        """What the pools say about a node."""
        return self._eligible_by_node.get(node, ())

    @cached_property
    def _nodes_by_name(self) -> dict[str, Node]:
        return {node.metadata.name: node for node in self.nodes}

    @cached_property
    def _groups_by_name(self) -> dict[str, LVMVolumeGroup]:
        return {group.metadata.name: group for group in self.groups}

    @cached_property
    def _volumes_by_name(self) -> dict[str, ReplicatedVolume]:
        return {volume.metadata.name: volume for volume in self.volumes}

    @cached_property
    def _replicas_by_name(self) -> dict[str, ReplicatedVolumeReplica]:
        return {replica.metadata.name: replica for replica in self.replicas}

    @cached_property
    def _replicas_by_volume(self) -> dict[str, tuple[ReplicatedVolumeReplica, ...]]:
        found: dict[str, list[ReplicatedVolumeReplica]] = {}
        for replica in sorted(self.replicas, key=lambda replica: _id(replica.metadata.name)):
            found.setdefault(replica.spec.replicated_volume_name, []).append(replica)
        return {name: tuple(replicas) for name, replicas in found.items()}

    @cached_property
    def _attachments_by_volume(self) -> dict[str, tuple[ReplicatedVolumeAttachment, ...]]:
        found: dict[str, list[ReplicatedVolumeAttachment]] = {}
        for attachment in self.attachments:
            found.setdefault(attachment.spec.replicated_volume_name, []).append(attachment)
        return {name: tuple(attachments) for name, attachments in found.items()}

    @cached_property
    def _eligible_by_node(self) -> dict[str, tuple[EligibleNode, ...]]:
        found: dict[str, tuple[EligibleNode, ...]] = {}
        for pool in self.pools:
            for node in pool.status.eligible_nodes:
                found[node.node_name] = (*found.get(node.node_name, ()), node)
        return found


def _id(name: str) -> int:
    try:
        return names.replica_id(name)
    except ValueError:
        return 32


def view_of(objects: Iterable[Object]) -> ClusterView:
    """A view of these objects; other kinds are left out."""
    items = tuple(sorted(objects, key=lambda item: item.metadata.name))
    return ClusterView(
        nodes=tuple(item for item in items if isinstance(item, Node)),
        groups=tuple(item for item in items if isinstance(item, LVMVolumeGroup)),
        classes=tuple(item for item in items if isinstance(item, ReplicatedStorageClass)),
        pools=tuple(item for item in items if isinstance(item, ReplicatedStoragePool)),
        volumes=tuple(item for item in items if isinstance(item, ReplicatedVolume)),
        replicas=tuple(item for item in items if isinstance(item, ReplicatedVolumeReplica)),
        attachments=tuple(item for item in items if isinstance(item, ReplicatedVolumeAttachment)),
    )


def is_ready(node: Node) -> bool:
    """Whether Kubernetes calls the node ready."""
    return conditions.is_true(node.status.conditions, ReadyCondition.TYPE)


def zone_of(node: Node) -> str:
    """The zone of a node; empty without one."""
    return node.metadata.labels.get(labels.LABEL_ZONE, "")


def fencing_evidence(node: Node) -> str:
    """What proves that nothing runs on the node (decision 6); empty = nothing does."""
    if labels.ANNOTATION_FENCED in node.metadata.annotations:
        return f"annotation {labels.ANNOTATION_FENCED}"
    if any(taint.key == OUT_OF_SERVICE_TAINT for taint in node.spec.taints):
        return f"taint {OUT_OF_SERVICE_TAINT}"
    return ""


def agent_ready(view: ClusterView, node: str) -> bool | None:
    """Whether the pools see the node's agent ready; None when no pool has the node."""
    found = view.eligible(node)
    return any(entry.agent_ready for entry in found) if found else None
