"""LVMVolumeGroup (lvg): a volume group on a node. Foreign and read-only; we ship the CRD for clusters without it."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec

from quorate.api.meta import Conditions, LabelSelector, Object
from quorate.api.quantity import Quantity
from quorate.api.schema import AGE, IMMUTABLE, Column, Crd, Rule, Schema
from quorate.api.value import Value, always

GroupType: TypeAlias = Literal["Local"]


class ReadyCondition:
    """Condition `Ready`: whether the volume group can be used."""

    TYPE = "Ready"
    """Condition type."""
    READY = "Ready"
    """True: can be used."""
    NOT_READY = "NotReady"
    """False: cannot be used."""


class Local(Value):
    """Parameters of a local volume group."""

    node_name: Annotated[str, Schema(min_length=1, max_length=253, rules=(IMMUTABLE,))]
    """Node of the volume group."""


class ThinPoolSpec(Value):
    """A thin pool that the volume group shall have."""

    name: Annotated[str, Schema(min_length=1, max_length=128)]
    """Name of the thin pool."""
    size: Annotated[int | str, Schema(int_or_string=True)] = ""
    """Size, as quantity or in per cent."""
    allocation_limit: Annotated[str, Schema(default="150%", max_length=16)] = ""
    """How far it may be overcommitted."""


class LVMVolumeGroupSpec(Value):
    """What the volume group shall be."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("self.type != 'Local' || has(self.local)", "local is required when type is Local."),
    )

    actual_vg_name_on_the_node: Annotated[str, Schema(min_length=1, max_length=253, rules=(IMMUTABLE,))] = (
        msgspec.field(name="actualVGNameOnTheNode")
    )
    """Name of the volume group on the node."""
    type: Annotated[GroupType, Schema(rules=(IMMUTABLE,))] = always("Local")
    """Local."""
    local: Local | None = None
    """Parameters of a local volume group."""
    thin_pools: Annotated[tuple[ThinPoolSpec, ...], Schema(list_type="map", list_keys=("name",), max_items=100)] = ()
    """Thin pools it shall have."""
    block_device_selector: LabelSelector | None = None
    """Block devices it is made of."""


class ThinPoolStatus(Value):
    """A thin pool as it is."""

    name: Annotated[str, Schema(max_length=128)]
    """Name of the thin pool."""
    ready: bool = False
    """Whether it can be used."""
    actual_size: Quantity | None = None
    """Size it really has."""
    used_size: Quantity | None = None
    """Space that data takes."""
    allocated_size: Quantity | None = None
    """Sum of the sizes of its volumes."""
    available_space: Quantity | None = None
    """Space that volumes may still allocate."""
    allocation_limit: str = ""
    """How far it may be overcommitted."""
    message: str = ""
    """Why it is not ready."""


class NodeStatus(Value):
    """A node that has the volume group."""

    name: Annotated[str, Schema(max_length=253)]
    """Name of the node."""


class LVMVolumeGroupStatus(Value):
    """What the volume group is."""

    conditions: Conditions = ()
    """Conditions."""
    phase: str = ""
    """Phase."""
    nodes: Annotated[tuple[NodeStatus, ...], Schema(list_type="atomic")] = ()
    """Nodes that have the volume group."""
    thin_pools: Annotated[tuple[ThinPoolStatus, ...], Schema(list_type="atomic")] = ()
    """Thin pools as they are."""
    vg_size: Quantity | None = None
    """Size of the volume group."""
    vg_free: Quantity | None = None
    """Free space of the volume group."""
    allocated_size: Quantity | None = None
    """Space allocated to logical volumes."""
    vg_uuid: str = msgspec.field(default="", name="vgUUID")
    """LVM's identity of the volume group."""
    thin_pool_ready: str = ""
    """Ready thin pools of all (`1/1`)."""
    configuration_applied: str = ""
    """Whether the spec has been applied."""


class LVMVolumeGroup(Object):
    """A volume group on a node."""

    spec: LVMVolumeGroupSpec
    """What it shall be."""
    status: LVMVolumeGroupStatus = LVMVolumeGroupStatus()
    """What it is."""


CRD = Crd(
    columns=(
        Column("ThinPools", ".status.thinPoolReady"),
        Column("Configuration applied", ".status.configurationApplied"),
        Column("Phase", ".status.phase"),
        Column("Node", ".spec.local.nodeName"),
        Column("Size", ".status.vgSize"),
        Column("Allocated size", ".status.allocatedSize"),
        Column("VG", ".spec.actualVGNameOnTheNode"),
        AGE,
    ),
)
"""What the CRD says beyond the fields."""
