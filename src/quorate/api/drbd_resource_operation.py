"""DRBDResourceOperation (drbdrop): one command to run once on one DRBD resource. Terminal phases never re-run."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

import msgspec

from quorate.api.common import VOLUME_NAME_PATTERN, NodeName, Time
from quorate.api.meta import Object
from quorate.api.schema import AGE, Column, Crd, Rule, Schema
from quorate.api.value import Value

OperationType: TypeAlias = Literal["CreateNewUUID", "ForcePrimary", "Invalidate", "Outdate", "Verify", "CreateSnapshot"]


class Phase:
    """Phases of an operation (open vocabulary); empty = not started."""

    PENDING = "Pending"
    """Seen, not started."""
    RUNNING = "Running"
    """Started."""
    SUCCEEDED = "Succeeded"
    """Done."""
    FAILED = "Failed"
    """Failed; not repeated."""

    TERMINAL = (SUCCEEDED, FAILED)


class CreateNewUUID(Value):
    """Parameters of CreateNewUUID."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule(
            "!(has(self.clearBitmap) && self.clearBitmap && has(self.forceResync) && self.forceResync)",
            "clearBitmap and forceResync are mutually exclusive.",
        ),
    )

    clear_bitmap: Annotated[bool, Schema(default=False)] = False
    """Declare all copies equal: no initial synchronisation."""
    force_resync: Annotated[bool, Schema(default=False)] = False
    """Synchronise everything from this node."""


class DRBDResourceOperationSpec(Value):
    """What to run where."""

    # On the whole: a rule on an optional field would not see it being added or removed.
    RULES: ClassVar[tuple[Rule, ...]] = (Rule("self == oldSelf", "spec is immutable."),)

    node_name: NodeName
    """Node of the resource."""
    drbd_resource_name: Annotated[str, Schema(min_length=1, max_length=253, pattern=VOLUME_NAME_PATTERN)]
    """Name of the DRBDResource."""
    type: OperationType
    """The command."""
    create_new_uuid: CreateNewUUID | None = msgspec.field(default=None, name="createNewUUID")
    """Parameters of CreateNewUUID."""
    formation_id: Annotated[str, Schema(max_length=64)] = msgspec.field(default="", name="formationID")
    """Identity of the formation that this operation belongs to (decision 7)."""


class DRBDResourceOperationStatus(Value):
    """What came of it."""

    phase: Annotated[str, Schema(max_length=32)] = ""
    """Phase."""
    message: Annotated[str, Schema(max_length=1024)] = ""
    """Error, if it failed."""
    started_at: Time = ""
    """When it was started."""
    completed_at: Time = ""
    """When it ended."""


class DRBDResourceOperation(Object):
    """A command to run once."""

    spec: DRBDResourceOperationSpec
    """What to run where."""
    status: DRBDResourceOperationStatus = DRBDResourceOperationStatus()
    """What came of it."""


CRD = Crd(
    columns=(
        Column("Node", ".spec.nodeName"),
        Column("Resource", ".spec.drbdResourceName"),
        Column("Type", ".spec.type"),
        Column("Phase", ".status.phase"),
        AGE,
    ),
    selectable_fields=(".spec.nodeName", ".spec.drbdResourceName", ".status.phase"),
)
"""What the CRD says beyond the fields."""
