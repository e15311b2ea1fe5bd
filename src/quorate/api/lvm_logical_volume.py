"""LVMLogicalVolume (llv): one logical volume on one node. Ours to create; the LVM operator of the node carries it out.

We ship the CRD for clusters without that operator. A size given in per cent is not ours and makes the object
undecodable on purpose: it is quarantined rather than misread.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec

from quorate.api.common import LVG_NAME_PATTERN, Generation, LvgName
from quorate.api.meta import Conditions, Object
from quorate.api.quantity import Quantity
from quorate.api.schema import AGE, IMMUTABLE, Column, Crd, Rule, Schema
from quorate.api.value import Value

VolumeType: TypeAlias = Literal["Thick", "Thin"]


class Phase:
    """Phases of a logical volume (open vocabulary)."""

    CREATED = "Created"
    """Exists with at least the asked size: ready."""
    PENDING = "Pending"
    """Not made yet."""
    CLEANING = "Cleaning"
    """Being wiped before removal."""
    RESIZING = "Resizing"
    """Being grown."""
    FAILED = "Failed"
    """Failed; `reason` says why."""


class ReadyCondition:
    """Condition `Ready` of newer operators."""

    TYPE = "Ready"
    """Condition type."""


class Thin(Value):
    """Parameters of a thin volume."""

    pool_name: Annotated[str, Schema(min_length=1, max_length=128)]
    """Thin pool."""


class Thick(Value):
    """Parameters of a thick volume."""

    contiguous: bool = False
    """Whether extents must be contiguous."""


class LVMLogicalVolumeSpec(Value):
    """What the logical volume shall be."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("(self.type == 'Thin') == has(self.thin)", "thin is required when type is Thin, and forbidden otherwise."),
        Rule("self.type != 'Thin' || !has(self.thick)", "thick must not be set when type is Thin."),
        Rule("has(self.thin) == has(oldSelf.thin)", "thin is immutable."),
    )

    actual_lv_name_on_the_node: Annotated[
        str, Schema(min_length=1, max_length=253, pattern=LVG_NAME_PATTERN, rules=(IMMUTABLE,))
    ] = msgspec.field(name="actualLVNameOnTheNode")
    """Name of the logical volume on the node; ours: the name of the object."""
    type: Annotated[VolumeType, Schema(rules=(IMMUTABLE,))]
    """Thick or Thin."""
    size: Annotated[
        Quantity,
        Schema(pattern=r"^[0-9]+(\.[0-9]+)?(E|P|T|G|M|k|Ei|Pi|Ti|Gi|Mi|Ki)?$|^[1-9][0-9]?%$|100%"),
    ]
    """Size."""
    lvm_volume_group_name: Annotated[LvgName, Schema(rules=(IMMUTABLE,))]
    """Name of the LVMVolumeGroup."""
    thin: Annotated[Thin | None, Schema(rules=(IMMUTABLE,))] = None
    """Parameters of a thin volume."""
    thick: Thick | None = None
    """Parameters of a thick volume."""


class LVMLogicalVolumeStatus(Value):
    """What the logical volume is."""

    phase: Annotated[str, Schema(max_length=32)] = ""
    """Phase."""
    reason: str = ""
    """Why it failed."""
    actual_size: Quantity | None = None
    """Size it really has."""
    contiguous: bool | None = None
    """Whether extents are contiguous."""
    conditions: Conditions = ()
    """Conditions of newer operators."""
    observed_generation: Generation = 0
    """Generation that the operator has processed (newer operators)."""


class LVMLogicalVolume(Object):
    """A logical volume."""

    spec: LVMLogicalVolumeSpec
    """What it shall be."""
    status: LVMLogicalVolumeStatus = LVMLogicalVolumeStatus()
    """What it is."""


CRD = Crd(
    columns=(
        Column("LV Name", ".spec.actualLVNameOnTheNode", wide=True),
        Column("Phase", ".status.phase"),
        Column("LVMVolumeGroup", ".spec.lvmVolumeGroupName"),
        Column("ThinPool", ".spec.thin.poolName", wide=True),
        Column("Size", ".status.actualSize"),
        AGE,
    ),
)
"""What the CRD says beyond the fields."""
