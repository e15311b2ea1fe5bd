"""Small objects for controller tests."""

from __future__ import annotations

from quorate.api import conditions, labels
from quorate.api.lvm_volume_group import (
    Local,
    LVMVolumeGroup,
    LVMVolumeGroupSpec,
    LVMVolumeGroupStatus,
    ThinPoolSpec,
    ThinPoolStatus,
)
from quorate.api.meta import Condition, ObjectMeta
from quorate.api.node import Node, NodeSpec, NodeStatus
from quorate.api.pod import Pod, PodSpec, PodStatus
from quorate.api.replicated_storage_class import LVMVolumeGroupRef
from quorate.api.replicated_storage_pool import (
    EligibleNode,
    EligibleNodeLVMVolumeGroup,
    ReplicatedStoragePool,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
)
from quorate.api.value import EMPTY_MAP, FrozenMap

NOW = 1_800_000_000.0
NAMESPACE = "d8-sds-replicated-volume"


def condition(type_: str, status: str, *, reason: str = "Because", since: str = "", generation: int = 0) -> Condition:
    """A condition with little in it."""
    return Condition(
        type=type_, status=status, reason=reason, last_transition_time=since, observed_generation=generation
    )


def node(name: str, *, zone: str = "", ready: str = conditions.TRUE, since: str = "", cordoned: bool = False) -> Node:
    """A node; `ready=""` leaves the Ready condition out."""
    marks = FrozenMap({labels.LABEL_ZONE: zone}) if zone else EMPTY_MAP
    found = (condition("Ready", ready, since=since),) if ready else ()
    return Node(
        metadata=ObjectMeta(name=name, labels=marks, creation_timestamp="2027-01-15T07:00:00Z"),
        spec=NodeSpec(unschedulable=cordoned),
        status=NodeStatus(conditions=found),
    )


def agent_pod(node_name: str, *, ready: bool = True, namespace: str = NAMESPACE) -> Pod:
    """The agent's pod on a node."""
    return Pod(
        metadata=ObjectMeta(name=f"agent-{node_name}", namespace=namespace, labels=FrozenMap({"app": "agent"})),
        spec=PodSpec(node_name=node_name),
        status=PodStatus(conditions=(condition("Ready", conditions.TRUE if ready else conditions.FALSE),)),
    )


def volume_group(
    name: str, node_name: str, *, thin: str = "", ready: bool = True, unschedulable: bool = False
) -> LVMVolumeGroup:
    """A volume group on a node, with at most one thin pool."""
    marks = FrozenMap({labels.ANNOTATION_UNSCHEDULABLE: ""}) if unschedulable else EMPTY_MAP
    return LVMVolumeGroup(
        metadata=ObjectMeta(name=name, annotations=marks),
        spec=LVMVolumeGroupSpec(
            type="Local",
            local=Local(node_name=node_name),
            actual_vg_name_on_the_node="data",
            thin_pools=(ThinPoolSpec(name=thin, size="50%"),) if thin else (),
        ),
        status=LVMVolumeGroupStatus(
            conditions=(condition("Ready", conditions.TRUE if ready else conditions.FALSE),),
            thin_pools=(ThinPoolStatus(name=thin, ready=ready),) if thin else (),
        ),
    )


def eligible(name: str, *, zone: str = "", groups: tuple[str, ...] = ("vg",)) -> EligibleNode:
    """An entry of a pool's eligible nodes."""
    entries = tuple(EligibleNodeLVMVolumeGroup(name=f"{group}-{name}", ready=True) for group in groups)
    return EligibleNode(node_name=name, zone_name=zone, lvm_volume_groups=entries, node_ready=True, agent_ready=True)


def pool(
    *nodes: EligibleNode, name: str = "pool", groups: tuple[str, ...] = (), thin: str = "", zones: tuple[str, ...] = ()
) -> ReplicatedStoragePool:
    """A ready pool."""
    names = groups or tuple(group.name for entry in nodes for group in entry.lvm_volume_groups) or ("vg-a",)
    return ReplicatedStoragePool(
        metadata=ObjectMeta(name=name, uid=f"uid-{name}", generation=1, resource_version="1"),
        spec=ReplicatedStoragePoolSpec(
            type="LVMThin" if thin else "LVM",
            lvm_volume_groups=tuple(LVMVolumeGroupRef(name=group, thin_pool_name=thin) for group in names),
            zones=zones,
        ),
        status=ReplicatedStoragePoolStatus(
            eligible_nodes=nodes,
            eligible_nodes_revision=1,
            conditions=(condition("Ready", conditions.TRUE, reason="Ready", generation=1),),
        ),
    )
