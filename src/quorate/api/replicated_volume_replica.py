"""ReplicatedVolumeReplica (rvr): one replica of a volume on one node.

The volume controller creates it, the scheduling controller places it, the replica controller reports its state.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, TypeAlias

from quorate.api.common import (
    MAX_PEERS,
    VOLUME_NAME_PATTERN,
    Address,
    Addresses,
    Endpoint,
    Generation,
    LvgName,
    Message,
    NodeName,
    SystemNetworkNames,
    ThinPoolName,
    Time,
)
from quorate.api.datamesh_structures import MembershipRequest, MemberType, Operation
from quorate.api.meta import Conditions, Object
from quorate.api.quantity import Quantity
from quorate.api.schema import AGE, IMMUTABLE, Column, Crd, Rule, Schema, condition_column, unique_by
from quorate.api.value import Value, always

__all__ = ["Address", "Endpoint", "MemberType", "MembershipRequest", "Operation"]

ReplicaType: TypeAlias = Literal["Diskful", "ShadowDiskful", "Access", "TieBreaker"]


class Phase:
    """Phases of a replica (open vocabulary)."""

    PENDING = "Pending"
    """Not placed yet."""
    PROVISIONING = "Provisioning"
    """The backing volume is being made or resized."""
    CONFIGURING = "Configuring"
    """DRBD is being configured."""
    WAITING_FOR_DATAMESH = "WaitingForDatamesh"
    """Preconfigured, waits to become a member."""
    SYNCHRONIZING = "Synchronizing"
    """Member whose data is being synchronised."""
    HEALTHY = "Healthy"
    """Member, everything is as it should be."""
    PARTIALLY_DEGRADED = "PartiallyDegraded"
    """Member with quorum whose paths are not all established."""
    DEGRADED = "Degraded"
    """Member with quorum that misses peers or current data."""
    CRITICAL = "Critical"
    """Member without quorum, or attached with suspended I/O."""
    PROGRESSING = "Progressing"
    """Member that never had quorum yet, or is being reconfigured."""
    AGENT_NOT_READY = "AgentNotReady"
    """The node agent does not report."""
    TERMINATING = "Terminating"
    """Being deleted."""


class ScheduledCondition:
    """Condition `Scheduled`: whether the replica has its node, volume group and thin pool."""

    TYPE = "Scheduled"
    """Condition type."""
    SCHEDULED = "Scheduled"
    """True: node, volume group and thin pool (if applicable) are all assigned."""
    SCHEDULING_FAILED = "SchedulingFailed"
    """False: no suitable candidate was found; the message has the pipeline summary."""
    EXTENDER_UNAVAILABLE = "ExtenderUnavailable"
    """False: the scheduler extender is unreachable or the reservation failed."""
    WAITING_FOR_REPLICATED_VOLUME = "WaitingForReplicatedVolume"
    """Unknown: volume not found, without configuration, or its pool not found."""


class ConfiguredCondition:
    """Condition `Configured`: whether the replica is what its spec asks for."""

    TYPE = "Configured"
    """Condition type."""
    CONFIGURED = "Configured"
    """True: member, and the actual configuration matches the spec."""
    NODE_NOT_ELIGIBLE = "NodeNotEligible"
    """False: the node is not in the eligible nodes of the pool."""
    PENDING_BACKING_VOLUME_CHANGE = "PendingBackingVolumeChange"
    """False: waiting to change the backing volume."""
    PENDING_JOIN = "PendingJoin"
    """False: waiting to join the datamesh."""
    PENDING_LEAVE = "PendingLeave"
    """False: waiting to leave the datamesh (during deletion)."""
    PENDING_ROLE_CHANGE = "PendingRoleChange"
    """False: waiting to change the role in the datamesh."""
    PENDING_SCHEDULING = "PendingScheduling"
    """False: waiting for node or storage assignment."""
    STORAGE_NOT_ELIGIBLE = "StorageNotEligible"
    """False: the intended volume group or thin pool is not eligible on the node."""
    WAITING_FOR_REPLICATED_VOLUME = "WaitingForReplicatedVolume"
    """Unknown: waiting for the volume to be ready."""


class BackingVolumeReadyCondition:
    """Condition `BackingVolumeReady`: whether the LVMLogicalVolume is ready."""

    TYPE = "BackingVolumeReady"
    """Condition type."""
    READY = "Ready"
    """True: the backing volume exists and is ready."""
    NOT_APPLICABLE = "NotApplicable"
    """False: the replica is diskless or being deleted."""
    NOT_READY = "NotReady"
    """False: the backing volume exists but is not ready yet."""
    PENDING_SCHEDULING = "PendingScheduling"
    """False: waiting for node or storage assignment."""
    PROVISIONING = "Provisioning"
    """False: a new backing volume is being made, or an old one still being removed."""
    PROVISIONING_FAILED = "ProvisioningFailed"
    """False: making the backing volume failed (validation error)."""
    REPROVISIONING = "Reprovisioning"
    """False: a new backing volume is being made to replace the existing one."""
    RESIZE_FAILED = "ResizeFailed"
    """False: resizing the backing volume failed (validation error)."""
    RESIZING = "Resizing"
    """False: the backing volume is being resized."""
    WAITING_FOR_REPLICATED_VOLUME = "WaitingForReplicatedVolume"
    """Unknown: waiting for the volume or its pool to be ready."""


class DRBDConfiguredCondition:
    """Condition `DRBDConfigured`: whether the DRBD resource of the replica is configured."""

    TYPE = "DRBDConfigured"
    """Condition type."""
    CONFIGURED = "Configured"
    """True: fully configured, and the replica is a member."""
    AGENT_NOT_READY = "AgentNotReady"
    """False: the agent on the node is not ready."""
    CONFIGURATION_FAILED = "ConfigurationFailed"
    """False: configuring DRBD failed."""
    NOT_APPLICABLE = "NotApplicable"
    """False: the replica is being deleted."""
    PENDING_DATAMESH_JOIN = "PendingDatameshJoin"
    """False: preconfigured, waiting for membership."""
    PENDING_SCHEDULING = "PendingScheduling"
    """False: waiting for node assignment."""
    WAITING_FOR_BACKING_VOLUME = "WaitingForBackingVolume"
    """False: waiting for the backing volume (creating, resizing or replacing)."""
    IN_MAINTENANCE = "InMaintenance"
    """False: the DRBD resource is in maintenance mode."""
    WAITING_FOR_DRBD_RESIZE = "WaitingForDRBDResize"
    """False: DRBD does not offer the intended size yet."""
    QUORUM_NOT_ENFORCED = "QuorumNotEnforced"
    """False: the kernel's quorum flag is not the one of the published configuration yet (decision 5)."""
    APPLYING_CONFIGURATION = "ApplyingConfiguration"
    """Unknown: waiting for the agent to apply the configuration."""
    WAITING_FOR_REPLICATED_VOLUME = "WaitingForReplicatedVolume"
    """Unknown: waiting for the volume or its pool to be ready."""


class AttachedCondition:
    """Condition `Attached`: whether the replica is attached (Primary) and ready for I/O."""

    TYPE = "Attached"
    """Condition type."""
    ATTACHED = "Attached"
    """True: attached and ready for I/O."""
    DETACHMENT_FAILED = "DetachmentFailed"
    """True: expected detached but still attached."""
    ATTACHMENT_FAILED = "AttachmentFailed"
    """False: expected attached but not attached."""
    IO_SUSPENDED = "IOSuspended"
    """False: attached, but I/O is suspended."""
    AGENT_NOT_READY = "AgentNotReady"
    """Unknown: the agent is not ready."""
    APPLYING_CONFIGURATION = "ApplyingConfiguration"
    """Unknown: configuration is being applied."""


class BackingVolumeUpToDateCondition:
    """Condition `BackingVolumeUpToDate`: whether the local data is current."""

    TYPE = "BackingVolumeUpToDate"
    """Condition type."""
    UP_TO_DATE = "UpToDate"
    """True: fully up to date."""
    ABSENT = "Absent"
    """False: no backing volume in DRBD (diskless, attaching or detaching)."""
    FAILED = "Failed"
    """False: failed after I/O errors."""
    REQUIRES_SYNCHRONIZATION = "RequiresSynchronization"
    """False: needs synchronisation from a peer."""
    SYNCHRONIZING = "Synchronizing"
    """False: is being synchronised."""
    UNKNOWN = "Unknown"
    """False: the state is unknown or not yet determined."""
    AGENT_NOT_READY = "AgentNotReady"
    """Unknown: the agent is not ready."""
    APPLYING_CONFIGURATION = "ApplyingConfiguration"
    """Unknown: configuration is being applied."""


class FullyConnectedCondition:
    """Condition `FullyConnected`: whether the replica is connected to all its peers."""

    TYPE = "FullyConnected"
    """Condition type."""
    FULLY_CONNECTED = "FullyConnected"
    """True: connected to all peers on all paths."""
    CONNECTED_TO_ALL_PEERS = "ConnectedToAllPeers"
    """True: connected to all peers, but not on all paths."""
    SOLE_MEMBER = "SoleMember"
    """True: the only member, no peers expected."""
    NO_PEERS = "NoPeers"
    """False: no peers configured in a datamesh of several members."""
    NOT_CONNECTED = "NotConnected"
    """False: connected to no peer."""
    PARTIALLY_CONNECTED = "PartiallyConnected"
    """False: connected to some but not all peers."""
    AGENT_NOT_READY = "AgentNotReady"
    """Unknown: the agent is not ready."""


class ReadyCondition:
    """Condition `Ready`: whether the replica is ready for I/O (by quorum)."""

    TYPE = "Ready"
    """Condition type."""
    READY = "Ready"
    """True: ready for I/O."""
    QUORUM_VIA_PEERS = "QuorumViaPeers"
    """True or False: diskless replica; connected peers provide the quorum."""
    DELETING = "Deleting"
    """False: the replica is being deleted."""
    TERMINATING = "Terminating"
    """False: the same as Deleting, as written by later versions of the API."""
    PENDING_DATAMESH_JOIN = "PendingDatameshJoin"
    """False: waiting to join the datamesh."""
    PENDING_SCHEDULING = "PendingScheduling"
    """False: waiting for node assignment."""
    QUORUM_LOST = "QuorumLost"
    """False: quorum is lost."""
    AGENT_NOT_READY = "AgentNotReady"
    """Unknown: the agent is not ready."""
    APPLYING_CONFIGURATION = "ApplyingConfiguration"
    """Unknown: configuration is being applied."""
    WAITING_FOR_REPLICATED_VOLUME = "WaitingForReplicatedVolume"
    """Unknown: waiting for the volume to be ready."""


class SatisfyEligibleNodesCondition:
    """Condition `SatisfyEligibleNodes`: whether the replica is where its pool allows it."""

    TYPE = "SatisfyEligibleNodes"
    """Condition type."""
    SATISFIED = "Satisfied"
    """True: the replica satisfies the eligible nodes requirements."""
    NODE_MISMATCH = "NodeMismatch"
    """False: the node is not in the eligible nodes list."""
    LVM_VOLUME_GROUP_MISMATCH = "LVMVolumeGroupMismatch"
    """False: the node is eligible, but the volume group is not allowed for it."""
    THIN_POOL_MISMATCH = "ThinPoolMismatch"
    """False: node and volume group are eligible, but the thin pool is not allowed."""
    WAITING_FOR_REPLICATED_VOLUME = "WaitingForReplicatedVolume"
    """Unknown: waiting for the volume or its pool to be ready."""


class ReplicatedVolumeReplicaSpec(Value):
    """What the replica shall be."""

    RULES: ClassVar[tuple[Rule, ...]] = (
        Rule("self.type != 'Access' || has(self.nodeName)", "nodeName is required for Access replicas."),
        Rule("!has(self.lvmVolumeGroupName) || has(self.nodeName)", "lvmVolumeGroupName requires nodeName."),
        Rule(
            "!has(self.lvmVolumeGroupName) || self.type == 'Diskful'",
            "lvmVolumeGroupName may be set only for Diskful replicas.",
        ),
        Rule(
            "!has(self.lvmVolumeGroupThinPoolName) || has(self.lvmVolumeGroupName)",
            "lvmVolumeGroupThinPoolName requires lvmVolumeGroupName.",
        ),
    )

    replicated_volume_name: Annotated[
        str, Schema(min_length=1, max_length=120, pattern=VOLUME_NAME_PATTERN, rules=(IMMUTABLE,))
    ]
    """Name of the volume."""
    type: ReplicaType
    """Type of the replica."""
    node_name: Annotated[
        NodeName, Schema(rules=(Rule("self == oldSelf", "nodeName cannot be changed once it is set."),))
    ] = ""
    """Node of the replica; empty = not placed."""
    lvm_volume_group_name: LvgName = ""
    """LVMVolumeGroup of the backing volume."""
    lvm_volume_group_thin_pool_name: ThinPoolName = ""
    """Thin pool of the backing volume."""


class BackingVolume(Value):
    """The backing volume as observed."""

    size: Quantity | None = None
    """Size of the LVM logical volume."""
    state: str = ""
    """DRBD disk state."""
    lvm_volume_group_name: Annotated[str, Schema(max_length=253)] = ""
    """Its LVMVolumeGroup."""
    lvm_volume_group_thin_pool_name: Annotated[str, Schema(max_length=253)] = ""
    """Its thin pool; empty when thick."""


class ReplicaAttachment(Value):
    """The device of an attached replica."""

    device_path: Annotated[str, Schema(min_length=1, max_length=256)]
    """Path of the block device."""
    io_suspended: Annotated[bool, Schema(required=True)] = always(False)
    """Whether I/O is suspended."""
    in_use: Annotated[bool, Schema(required=True)] = always(False)
    """Whether somebody has the device open."""


class QuorumSummary(Value):
    """Why the replica has quorum or not."""

    connected_diskful_peers: Annotated[int, Schema(required=True, default=0)] = always(0)
    """Connected diskful peers."""
    connected_tie_breaker_peers: Annotated[int, Schema(required=True, default=0)] = always(0)
    """Connected tie-breakers."""
    connected_up_to_date_peers: Annotated[int, Schema(required=True, default=0)] = always(0)
    """Connected peers with current data."""
    quorum: int | None = None
    """q as DRBD has it."""
    quorum_minimum_redundancy: int | None = None
    """qmr as DRBD has it."""


class PeerStatus(Value):
    """A peer as this replica sees it."""

    name: Annotated[str, Schema(min_length=1, max_length=253, pattern=r"^.+-([0-9]|[12][0-9]|3[01])$")]
    """Name of the peer replica."""
    type: Annotated[str, Schema(max_length=32)] = ""
    """Type of the peer; empty for an orphan."""
    attached: bool = False
    """Whether the peer is Primary."""
    connection_established_on: SystemNetworkNames = ()
    """System networks with an established path."""
    connection_state: str = ""
    """DRBD connection state."""
    backing_volume_state: str = ""
    """The peer's disk state."""
    replication_state: str = ""
    """DRBD replication state."""
    sync_progress: Annotated[str, Schema(max_length=16)] = ""
    """Progress of the synchronisation with this peer in per cent, as DRBD prints it (`42.17`)."""
    out_of_sync: Annotated[int | None, Schema(format="int64")] = None
    """Bytes that differ from this peer as far as known; reported while synchronising."""


class DRBDRReconciliationCache(Value):
    """The target that the DRBDResource spec was last computed for."""

    datamesh_revision: Generation = 0
    """Datamesh revision of the target."""
    drbdr_generation: Generation = 0
    """Generation of the DRBDResource after writing the target."""
    target_type: Annotated[str, Schema(max_length=32)] = ""
    """Member type of the target."""


class ReplicatedVolumeReplicaStatus(Value):
    """What is observed about the replica."""

    conditions: Conditions = ()
    """Conditions."""
    phase: Annotated[str, Schema(max_length=32)] = ""
    """Summary in one word."""
    message: Message = ""
    """What the replica waits for."""
    addresses: Addresses = ()
    """DRBD addresses of the replica."""
    type: Annotated[str, Schema(max_length=32)] = ""
    """Diskful or Diskless, as observed in DRBD."""
    size: Quantity | None = None
    """Usable DRBD capacity."""
    backing_volume: BackingVolume | None = None
    """The backing volume."""
    datamesh_request: MembershipRequest | None = None
    """What the replica asks the volume for."""
    datamesh_revision: Generation = 0
    """Revision that the replica is fully configured for; 0 = not a member."""
    datamesh_revision_observed_by_agent: Generation = 0
    """Revision whose DRBDResource generation the agent has processed, whatever the outcome."""
    attachment: ReplicaAttachment | None = None
    """The device, while attached."""
    quorum: bool | None = None
    """The kernel's quorum flag."""
    quorum_enforced: bool | None = None
    """Whether the kernel's flag equals the one computed from its status and configuration (decision 5)."""
    quorum_summary: QuorumSummary | None = None
    """Why there is quorum or not."""
    initial_quorum_reached_at: Time = ""
    """Latch: when the replica first had quorum; cleared when it leaves."""
    peers: Annotated[
        tuple[PeerStatus, ...], Schema(max_items=MAX_PEERS, list_type="atomic", rules=(unique_by("name"),))
    ] = ()
    """Peers."""
    drbdr_reconciliation_cache: DRBDRReconciliationCache | None = None
    """What the DRBDResource spec was last computed for."""


class ReplicatedVolumeReplica(Object):
    """A replica of a volume."""

    spec: ReplicatedVolumeReplicaSpec
    """What the replica shall be."""
    status: ReplicatedVolumeReplicaStatus = ReplicatedVolumeReplicaStatus()
    """What is observed."""


CRD = Crd(
    columns=(
        Column("Node", ".spec.nodeName"),
        Column("Type", ".spec.type"),
        Column("Phase", ".status.phase"),
        condition_column("Attached", AttachedCondition.TYPE),
        condition_column("DataUpToDate", BackingVolumeUpToDateCondition.TYPE),
        AGE,
        condition_column("Configured", ConfiguredCondition.TYPE, wide=True),
        Column("Message", ".status.message", wide=True),
    ),
    selectable_fields=(".spec.nodeName", ".spec.replicatedVolumeName", ".status.phase"),
    rules=(
        Rule("size(self.metadata.name) <= 123", "metadata.name must be no longer than 123 characters."),
        Rule(
            "self.metadata.name.startsWith(self.spec.replicatedVolumeName + '-')",
            "metadata.name must start with spec.replicatedVolumeName + '-'.",
        ),
        Rule(
            "self.metadata.name.substring(size(self.spec.replicatedVolumeName) + 1)"
            ".matches('^([0-9]|[12][0-9]|3[01])$')",
            "metadata.name must end with the replica id: a number from 0 to 31 without leading zeros.",
        ),
    ),
)
"""What the CRD says beyond the fields."""
