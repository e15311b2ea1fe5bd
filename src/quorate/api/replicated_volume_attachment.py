"""ReplicatedVolumeAttachment (rva): the wish to use a volume on a node.

Several attachments may target the same volume and node; there is no uniqueness rule.
"""

from __future__ import annotations

from typing import Annotated

from quorate.api.common import VOLUME_NAME_PATTERN, Message, NodeName
from quorate.api.meta import Conditions, Object
from quorate.api.schema import AGE, IMMUTABLE, Column, Crd, Schema, condition_column
from quorate.api.value import Value


class Phase:
    """Phases of an attachment (open vocabulary)."""

    PENDING = "Pending"
    """Waiting."""
    ATTACHING = "Attaching"
    """Being attached."""
    ATTACHED = "Attached"
    """Attached."""
    DETACHING = "Detaching"
    """Being detached."""
    TERMINATING = "Terminating"
    """Being deleted."""


class AttachedCondition:
    """Condition `Attached`: whether the volume is attached to the node."""

    TYPE = "Attached"
    """Condition type."""
    ATTACHED = "Attached"
    """True: attached and ready to serve I/O on the node."""
    ATTACHING = "Attaching"
    """False: an Attach transition is in progress."""
    DETACHING = "Detaching"
    """False: a Detach transition is in progress."""
    DETACHED = "Detached"
    """False: the volume has been detached from the node."""
    PENDING = "Pending"
    """False: waiting for a slot, quorum, node readiness and so on."""
    WAITING_FOR_REPLICA = "WaitingForReplica"
    """False: the replica has not joined the datamesh or is not Ready."""
    WAITING_FOR_REPLICATED_VOLUME = "WaitingForReplicatedVolume"
    """False: the volume is deleted, not found, or forming."""
    NODE_NOT_ELIGIBLE = "NodeNotEligible"
    """False: the node is not among the pool's eligible nodes."""
    REPLICATED_VOLUME_DELETING = "ReplicatedVolumeDeleting"
    """False: the volume is being deleted; new attachments are blocked."""
    REPLICATED_VOLUME_TERMINATING = "ReplicatedVolumeTerminating"
    """False: the same as ReplicatedVolumeDeleting, as written by later versions of the API."""
    VOLUME_ACCESS_LOCALITY_NOT_SATISFIED = "VolumeAccessLocalityNotSatisfied"
    """False: no Diskful replica on the node (volumeAccess Local)."""


class ReplicaReadyCondition:
    """Condition `ReplicaReady`: mirror of the replica's Ready condition."""

    TYPE = "ReplicaReady"
    """Condition type."""
    WAITING_FOR_REPLICA = "WaitingForReplica"
    """Unknown: no replica, or it has no Ready condition."""


class ReadyCondition:
    """Condition `Ready`: Attached and ReplicaReady are True, and the attachment is not being deleted."""

    TYPE = "Ready"
    """Condition type."""
    READY = "Ready"
    """True: attached, and the replica is ready."""
    NOT_ATTACHED = "NotAttached"
    """False: Attached is not True."""
    REPLICA_NOT_READY = "ReplicaNotReady"
    """False or Unknown: ReplicaReady is not True."""
    DELETING = "Deleting"
    """False: the attachment is being deleted."""
    TERMINATING = "Terminating"
    """False: the same as Deleting, as written by later versions of the API."""


class ReplicatedVolumeAttachmentSpec(Value):
    """Which volume on which node."""

    replicated_volume_name: Annotated[
        str, Schema(min_length=1, max_length=127, pattern=VOLUME_NAME_PATTERN, rules=(IMMUTABLE,))
    ]
    """Name of the volume."""
    node_name: Annotated[NodeName, Schema(rules=(IMMUTABLE,))]
    """Name of the node."""


class ReplicatedVolumeAttachmentStatus(Value):
    """How far attaching has come."""

    phase: Annotated[str, Schema(max_length=32)] = ""
    """Summary in one word."""
    message: Message = ""
    """What the attachment waits for."""
    device_path: Annotated[str, Schema(max_length=256)] = ""
    """Path of the block device on the node."""
    io_suspended: bool | None = None
    """Whether I/O is suspended; absent without device."""
    in_use: bool | None = None
    """Whether somebody has the device open; absent without device."""
    conditions: Conditions = ()
    """Conditions."""


class ReplicatedVolumeAttachment(Object):
    """The wish to use a volume on a node."""

    spec: ReplicatedVolumeAttachmentSpec
    """Which volume on which node."""
    status: ReplicatedVolumeAttachmentStatus = ReplicatedVolumeAttachmentStatus()
    """How far it has come."""


CRD = Crd(
    columns=(
        Column("Volume", ".spec.replicatedVolumeName"),
        Column("Node", ".spec.nodeName"),
        Column("Phase", ".status.phase"),
        condition_column("ReplicaReady", ReplicaReadyCondition.TYPE),
        AGE,
        Column("Message", ".status.message", wide=True),
    ),
    selectable_fields=(".spec.nodeName", ".spec.replicatedVolumeName", ".status.phase"),
)
"""What the CRD says beyond the fields."""
