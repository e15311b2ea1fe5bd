"""ReplicatedStoragePool (rsp): a set of volume groups and the nodes that may hold replicas."""

from __future__ import annotations

from typing import Annotated, ClassVar

from quorate.api.common import MAX_ZONES, Generation
from quorate.api.meta import Conditions, LabelSelector, Object
from quorate.api.replicated_storage_class import (
    CLUSTER_CONFIG_LABELS,
    INTERNAL_NETWORK,
    MAX_LVM_VOLUME_GROUPS,
    THIN_POOL_RULES,
    EligibleNodesPolicy,
    LVMVolumeGroupRef,
    PoolType,
)
from quorate.api.schema import AGE, IMMUTABLE, Column, Crd, Rule, Schema
from quorate.api.value import Value, always

__all__ = ["EligibleNodesPolicy", "LVMVolumeGroupRef", "PoolType"]


class Phase:
    """Phases of a pool (open vocabulary)."""

    READY = "Ready"
    """All volume groups are fine."""
    WAITING_FOR_LVM_VOLUME_GROUPS = "WaitingForLVMVolumeGroups"
    """A volume group is missing."""
    INVALID_CONFIGURATION = "InvalidConfiguration"
    """The spec cannot work."""


class ReadyCondition:
    """Condition `Ready`: whether the pool can be used."""

    TYPE = "Ready"
    """Condition type."""
    READY = "Ready"
    """True: the pool can be used."""
    LVM_VOLUME_GROUP_NOT_FOUND = "LVMVolumeGroupNotFound"
    """False: a volume group does not exist."""
    INVALID_LVM_VOLUME_GROUP = "InvalidLVMVolumeGroup"
    """False: a volume group or thin pool is unsuitable."""
    INVALID_NODE_LABEL_SELECTOR = "InvalidNodeLabelSelector"
    """False: the node selector cannot be parsed."""


class ReplicatedStoragePoolSpec(Value):
    """Where replicas may live."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        *THIN_POOL_RULES,
        Rule(
            "has(self.zones) == has(oldSelf.zones) && has(self.nodeLabelSelector) == has(oldSelf.nodeLabelSelector)",
            "zones and nodeLabelSelector are immutable.",
        ),
    )

    type: Annotated[PoolType, Schema(rules=(IMMUTABLE,))]
    """LVM (thick) or LVMThin."""
    lvm_volume_groups: Annotated[
        tuple[LVMVolumeGroupRef, ...],
        Schema(min_items=1, max_items=MAX_LVM_VOLUME_GROUPS, list_type="atomic", rules=(IMMUTABLE,)),
    ]
    """The volume groups."""
    zones: Annotated[
        tuple[str, ...],
        Schema(list_type="set", max_items=MAX_ZONES, item=Schema(max_length=63), rules=(IMMUTABLE,)),
    ] = ()
    """Zones to use; empty = all."""
    node_label_selector: Annotated[LabelSelector | None, Schema(rules=(IMMUTABLE,))] = None
    """Nodes to use; absent = all."""
    system_network_names: Annotated[
        tuple[str, ...],
        Schema(
            list_type="atomic",
            min_items=1,
            max_items=1,
            default=[INTERNAL_NETWORK],
            item=Schema(max_length=64, enum=(INTERNAL_NETWORK,)),
        ),
    ] = always((INTERNAL_NETWORK,))
    """Networks of the replication; only Internal."""
    eligible_nodes_policy: Annotated[EligibleNodesPolicy, Schema(default={})] = always(EligibleNodesPolicy())
    """When a node stops being eligible."""


class EligibleNodeLVMVolumeGroup(Value):
    """A volume group on an eligible node."""

    name: Annotated[str, Schema(max_length=253)]
    """Name of the LVMVolumeGroup."""
    thin_pool_name: Annotated[str, Schema(max_length=128)] = ""
    """Thin pool; LVMThin only."""
    unschedulable: Annotated[bool, Schema(required=True)] = always(False)
    """Whether new replicas are unwanted."""
    ready: Annotated[bool, Schema(required=True)] = always(False)
    """Whether the volume group (and its thin pool) is ready."""


class EligibleNode(Value):
    """A node that may hold replicas."""

    node_name: Annotated[str, Schema(max_length=253)]
    """Name of the node."""
    zone_name: Annotated[str, Schema(max_length=63)] = ""
    """Zone of the node."""
    lvm_volume_groups: Annotated[tuple[EligibleNodeLVMVolumeGroup, ...], Schema(list_type="atomic", max_items=50)] = ()
    """Volume groups of the pool on the node, sorted by (name, thinPoolName)."""
    unschedulable: Annotated[bool, Schema(required=True)] = always(False)
    """Whether the node is cordoned."""
    node_ready: Annotated[bool, Schema(required=True)] = always(False)
    """Whether the node is Ready."""
    agent_ready: Annotated[bool, Schema(required=True)] = always(False)
    """Whether the node agent is ready."""


class UsedBy(Value):
    """Who uses the pool."""

    replicated_storage_class_names: Annotated[
        tuple[str, ...], Schema(list_type="atomic", max_items=100, item=Schema(max_length=253))
    ] = ()
    """Names of the classes, sorted."""


class ReplicatedStoragePoolStatus(Value):
    """Who may hold replicas now."""

    conditions: Conditions = ()
    """Conditions."""
    phase: Annotated[str, Schema(max_length=32)] = ""
    """Summary in one word."""
    message: str = ""
    """Message of the Ready condition."""
    eligible_nodes_revision: Generation = 0
    """Grows with every change of eligibleNodes."""
    eligible_nodes: Annotated[tuple[EligibleNode, ...], Schema(list_type="atomic", max_items=1000)] = ()
    """Nodes that may hold replicas, sorted by name."""
    used_by: UsedBy = UsedBy()
    """Who uses the pool."""


class ReplicatedStoragePool(Object):
    """A set of volume groups and the nodes that may hold replicas."""

    spec: ReplicatedStoragePoolSpec
    """Where replicas may live."""
    status: ReplicatedStoragePoolStatus = ReplicatedStoragePoolStatus()
    """Who may hold replicas now."""


CRD = Crd(
    columns=(
        Column("Type", ".spec.type"),
        Column("Phase", ".status.phase"),
        AGE,
        Column("Message", ".status.message", wide=True),
    ),
    selectable_fields=(".status.phase",),
    labels=CLUSTER_CONFIG_LABELS,
    spec_map_type="atomic",
)
"""What the CRD says beyond the fields."""
