"""What goes into a pass and what comes out of it (docs/interfaces.md)."""

from __future__ import annotations

from typing import Literal, TypeAlias

from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume, ReplicatedVolumeStatus
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicaType
from quorate.api.value import Value
from quorate.datamesh.features import Features


class PassInput(Value):
    """Everything a pass reads. Equal inputs give equal results (E5)."""

    volume: ReplicatedVolume
    """The volume with the status as last written."""
    replicas: tuple[ReplicatedVolumeReplica, ...] = ()
    """Its replicas, in any order."""
    attachments: tuple[ReplicatedVolumeAttachment, ...] = ()
    """Its attachments, in any order."""
    pool: ReplicatedStoragePool | None = None
    """The pool of the volume's configuration."""
    features: Features = Features()
    """What the members' kernels can do."""
    fenced_nodes: tuple[str, ...] = ()
    """Nodes proven not to run (decision 6)."""
    now: float = 0.0
    """Epoch seconds."""


class NodeAttachment(Value):
    """What the attachments of one node are told. `attached` iff `reason` is `Attached`."""

    node_name: str
    """The node."""
    reason: str
    """Reason of the `Attached` condition."""
    message: str
    """Message of the `Attached` condition."""
    attached: bool = False
    """Whether the `Attached` condition is True."""


class CreateReplica(Value, tag=True, tag_field="action"):
    """Create a replica of this type; scheduling chooses where."""

    type: ReplicaType
    """Diskful or TieBreaker."""
    reason: str
    """Why, for the Event."""


class DeleteReplica(Value, tag=True, tag_field="action"):
    """Delete this replica object; its membership ends through a Leave request."""

    name: str
    """The replica."""
    reason: str
    """Why, for the Event."""


class RetypeReplica(Value, tag=True, tag_field="action"):
    """Change the type in this replica's spec; becoming diskless clears volume group and thin pool in the same patch."""

    name: str
    """The replica."""
    type: ReplicaType
    """The new type."""
    reason: str
    """Why, for the Event."""


ReplicaAction: TypeAlias = CreateReplica | DeleteReplica | RetypeReplica

ConvergenceStatus: TypeAlias = Literal["True", "False", "Unknown"]


class Convergence(Value):
    """The condition `MembershipLayoutConverged`."""

    status: ConvergenceStatus
    """True, False or Unknown."""
    reason: str
    """Converged, Converging, CannotConverge or VolumeDeleting."""
    message: str = ""
    """What is being done, or what stands in the way."""


class PassResult(Value):
    """What a pass decided."""

    status: ReplicatedVolumeStatus
    """The new status; the very object of the input when nothing changed."""
    attachments: tuple[NodeAttachment, ...]
    """One entry for every node that has attachments, sorted by node name (E11)."""
    actions: tuple[ReplicaAction, ...]
    """At most one change of the replica objects."""
    convergence: Convergence
    """Whether the members are what the configuration asks for."""
    changed: bool
    """Whether `status` differs from the input's."""
    notes: tuple[str, ...] = ()
    """Where changes of the whole volume (quorum, multiattach, networks, resize) stand, for people."""
