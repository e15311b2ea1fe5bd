"""DRBDResource (drbdr): what DRBD shall be on one node (spec, by the replica controller) and is (status, by the
agent)."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

import msgspec

from quorate.api.common import (
    MAX_PEERS,
    MAX_SYSTEM_NETWORKS,
    NETWORK_NAME_LIMIT,
    VOLUME_NAME_PATTERN,
    Address,
    Addresses,
    DiskState,
    DrbdRole,
    DrbdType,
    Endpoint,
    NodeName,
)
from quorate.api.meta import Conditions, Object
from quorate.api.quantity import Quantity
from quorate.api.schema import AGE, IMMUTABLE, Column, Crd, Rule, Schema, condition_column, unique_by
from quorate.api.value import SharedSecret, Value, always

__all__ = ["Address", "Addresses", "DiskState", "DrbdRole", "DrbdType", "Endpoint"]

UNREACHABLE_QUORUM = 32
"""q and qmr of non-members (and q of non-voters): a value no set of voters can reach."""

DrbdState: TypeAlias = Literal["Up", "Down"]
Role: TypeAlias = Literal["Primary", "Secondary"]
Type: TypeAlias = Literal["Diskful", "Diskless"]
Protocol: TypeAlias = Literal["A", "B", "C"]
SharedSecretAlg: TypeAlias = Literal["SHA256", "SHA1", "DummyForTest", ""]
Maintenance: TypeAlias = Literal["NoResourceReconciliation", ""]


class QuorumPolicy:
    """How the kernel's quorum option is set (open vocabulary)."""

    OFF = "off"
    """No quorum."""
    MAJORITY = "majority"
    """The majority of the voters as the kernel counts them."""
    ALL = "all"
    """All voters."""
    NUMBER = "number"
    """The number in `activeConfiguration.quorum`."""


class VoterMode:
    """How the kernel counts absent voters (open vocabulary)."""

    DYNAMIC = "dynamic"
    """Stock module: absent voters known to be outdated or quorumless are struck from the count."""
    STATIC = "static"
    """Patched module: every voter always counts."""


class ConfiguredCondition:
    """Condition `Configured`: whether DRBD on the node is as the spec says."""

    TYPE = "Configured"
    """Condition type."""
    CONFIGURED = "Configured"
    """True: DRBD is as the spec says."""
    QUORUM_NOT_ENFORCED = "QuorumNotEnforced"
    """False: q or qmr is stored, but the kernel's flag does not follow it yet (decision 5)."""
    IN_MAINTENANCE = "InMaintenance"
    """False: maintenance mode, nothing is reconciled."""
    FAILED = "Failed"
    """False: a failure without a more precise reason."""
    APPLY_AL_FAILED = "ApplyALFailed"
    """False: applying the activity log failed."""
    ATTACH_FAILED = "AttachFailed"
    """False: attaching the disk failed."""
    BACKING_VOLUME_DELETING = "BackingVolumeDeleting"
    """False: the backing volume is being deleted."""
    BACKING_VOLUME_UNAVAILABLE = "BackingVolumeUnavailable"
    """False: the backing volume does not exist on the node."""
    CONNECT_FAILED = "ConnectFailed"
    """False: connecting to a peer failed."""
    CREATE_METADATA_FAILED = "CreateMetadataFailed"
    """False: creating metadata failed."""
    DEL_PATH_FAILED = "DelPathFailed"
    """False: deleting a path failed."""
    DEL_PEER_FAILED = "DelPeerFailed"
    """False: deleting a peer failed."""
    DETACH_FAILED = "DetachFailed"
    """False: detaching the disk failed."""
    DISCONNECT_FAILED = "DisconnectFailed"
    """False: disconnecting from a peer failed."""
    DISK_OPTIONS_FAILED = "DiskOptionsFailed"
    """False: changing disk options failed."""
    DOWN_FAILED = "DownFailed"
    """False: taking the resource down failed."""
    FOREIGN_DISK_DETECTED = "ForeignDiskDetected"
    """False: the disk belongs to another resource."""
    FORGET_PEER_FAILED = "ForgetPeerFailed"
    """False: forgetting a peer failed."""
    NET_OPTIONS_FAILED = "NetOptionsFailed"
    """False: changing network options failed."""
    NEW_MINOR_FAILED = "NewMinorFailed"
    """False: creating the minor failed."""
    NEW_PATH_FAILED = "NewPathFailed"
    """False: creating a path failed."""
    NEW_PEER_FAILED = "NewPeerFailed"
    """False: creating a peer failed."""
    NEW_RESOURCE_FAILED = "NewResourceFailed"
    """False: creating the resource failed."""
    PEER_DEVICE_OPTIONS_FAILED = "PeerDeviceOptionsFailed"
    """False: changing peer device options failed."""
    PRIMARY_FAILED = "PrimaryFailed"
    """False: promoting failed."""
    READ_DEV_UUID_FAILED = "ReadDevUUIDFailed"
    """False: reading the device uuid failed."""
    RENAME_FAILED = "RenameFailed"
    """False: renaming the resource failed."""
    RESIZE_FAILED = "ResizeFailed"
    """False: resizing failed."""
    RESOURCE_OPTIONS_FAILED = "ResourceOptionsFailed"
    """False: changing resource options failed."""
    SECONDARY_FAILED = "SecondaryFailed"
    """False: demoting failed."""
    STATE_QUERY_FAILED = "StateQueryFailed"
    """False: reading the state failed."""
    SYMLINK_FAILED = "SymlinkFailed"
    """False: making the device link failed."""
    WRITE_DEV_UUID_FAILED = "WriteDevUUIDFailed"
    """False: writing the device uuid failed."""


class PeerPath(Value):
    """A path to a peer: where the peer listens on one system network."""

    system_network_name: Annotated[str, Schema(min_length=1, max_length=NETWORK_NAME_LIMIT)]
    """Name of the system network."""
    address: Endpoint
    """The peer's address on it."""


class Peer(Value):
    """A peer that DRBD shall have."""

    name: Annotated[str, Schema(min_length=1, max_length=253, pattern=VOLUME_NAME_PATTERN)]
    """Name of the peer's replica."""
    node_id: Annotated[int, Schema(minimum=0, maximum=31)] = msgspec.field(name="nodeID")
    """DRBD node id of the peer."""
    type: Annotated[Type, Schema(default="Diskful")] = always("Diskful")
    """Whether the peer has (or may get) a disk, that is a bitmap slot here."""
    allow_remote_read: Annotated[bool, Schema(default=True)] = always(True)
    """Whether the peer counts for quorum and may be read from. The server's default is true, so it is always sent."""
    tie_breaker: Annotated[bool, Schema(default=True)] = always(True)
    """Whether a diskless peer has a vote in ties (`peer-tiebreaker`); false while tie-breakers are suspended."""
    protocol: Annotated[Protocol, Schema(default="C", rules=(IMMUTABLE,))] = always("C")
    """Replication protocol."""
    shared_secret: Annotated[SharedSecret | None, Schema(max_length=256)] = None
    """Secret of the connection."""
    shared_secret_alg: SharedSecretAlg = ""
    """Hash algorithm of the authentication."""
    pause_sync: Annotated[bool, Schema(default=False)] = False
    """Whether synchronisation with this peer is paused."""
    paths: Annotated[
        tuple[PeerPath, ...],
        Schema(
            required=True,
            min_items=1,
            max_items=MAX_SYSTEM_NETWORKS,
            list_type="map",
            list_keys=("systemNetworkName",),
        ),
    ] = always(())
    """Paths to the peer, one per system network."""


class DRBDResourceSpec(Value):
    """What DRBD shall be on the node."""

    node_name: Annotated[NodeName, Schema(rules=(IMMUTABLE,))]
    """The node."""
    node_id: Annotated[int, Schema(minimum=0, maximum=31, rules=(IMMUTABLE,))] = msgspec.field(name="nodeID")
    """DRBD node id: the replica's id."""
    system_networks: Annotated[
        tuple[str, ...],
        Schema(
            min_items=1,
            max_items=MAX_SYSTEM_NETWORKS,
            list_type="set",
            item=Schema(max_length=NETWORK_NAME_LIMIT),
        ),
    ]
    """System networks to listen on."""
    actual_name_on_the_node: Annotated[str, Schema(min_length=1, max_length=253, pattern=VOLUME_NAME_PATTERN)] = ""
    """Name of an existing DRBD resource to be renamed to the standard name; cleared by the agent afterwards."""
    state: Annotated[DrbdState, Schema(default="Up")] = always("Up")
    """Whether the resource shall exist in the kernel."""
    quorum: Annotated[int | None, Schema(minimum=0, maximum=32)] = None
    """q; 0 = off, 32 = unreachable."""
    quorum_minimum_redundancy: Annotated[int | None, Schema(minimum=0, maximum=32)] = None
    """qmr; 0 = off, 32 = unreachable."""
    size: Quantity | None = None
    """Usable size; Diskful only, a multiple of 4 KiB, never lowered."""
    role: Annotated[Role, Schema(default="Secondary")] = always("Secondary")
    """Primary or Secondary."""
    allow_two_primaries: Annotated[bool, Schema(default=False)] = False
    """Whether a second Primary is possible."""
    non_voting: Annotated[bool, Schema(default=False)] = False
    """Whether the own disk has no vote (patched module only)."""
    type: Annotated[Type, Schema(default="Diskful")] = always("Diskful")
    """Diskful or Diskless; always sent."""
    lvm_logical_volume_name: Annotated[str, Schema(min_length=1, max_length=128)] = ""
    """LVMLogicalVolume of the disk; Diskful only."""
    peers: Annotated[tuple[Peer, ...], Schema(max_items=MAX_PEERS, list_type="map", list_keys=("name",))] = ()
    """Peers, sorted by name."""
    maintenance: Maintenance = ""
    """NoResourceReconciliation: the agent only observes."""


class ActiveConfiguration(Value):
    """The configuration as the kernel has it."""

    state: str = ""
    """Up or Down."""
    role: str = ""
    """Primary or Secondary."""
    type: str = ""
    """Diskful or Diskless (from `show`, never from the transient disk state)."""
    quorum: int | None = None
    """q; absent = off. With policy majority: the number of the spec that is the majority of the voters."""
    quorum_policy: Annotated[str, Schema(max_length=16)] = ""
    """How the kernel's quorum option is set: off, majority, all or number."""
    quorum_minimum_redundancy: int | None = None
    """qmr; absent = off."""
    allow_two_primaries: bool | None = None
    """Whether a second Primary is possible."""
    non_voting: bool | None = None
    """Whether the own disk has no vote."""
    lvm_logical_volume_name: Annotated[str, Schema(max_length=128)] = ""
    """LVMLogicalVolume of the disk."""
    llv_finalizers_to_release: Annotated[
        tuple[str, ...], Schema(list_type="set", max_items=64, item=Schema(max_length=253))
    ] = ()
    """LVMLogicalVolumes whose agent finalizer is still to be removed."""


class PeerPathStatus(Value):
    """A path as the kernel has it."""

    system_network_name: Annotated[str, Schema(max_length=NETWORK_NAME_LIMIT)]
    """Name of the system network."""
    address: Endpoint | None = None
    """The peer's address on it."""
    established: bool = False
    """Whether the path is established."""


class PeerStatus(Value):
    """A peer as the kernel has it."""

    name: Annotated[str, Schema(min_length=1, max_length=253)]
    """Name of the peer: the spec's, else the kernel's, else `peer-<nodeID>`."""
    node_id: Annotated[int, Schema(minimum=0, maximum=31)] = msgspec.field(name="nodeID")
    """DRBD node id."""
    type: str = ""
    """Diskful or Diskless, by the peer's disk state."""
    allow_remote_read: bool | None = None
    """Whether the peer counts for quorum and may be read from."""
    bitmap: bool | None = None
    """Whether the peer has a bitmap slot here, that is counts as a voter."""
    tie_breaker: bool | None = None
    """Whether a diskless peer has a vote in ties."""
    quorate: bool | None = None
    """Whether the peer reports quorum itself."""
    paths: Annotated[tuple[PeerPathStatus, ...], Schema(max_items=MAX_SYSTEM_NETWORKS, list_type="atomic")] = ()
    """Paths, one per network."""
    connection_state: str = ""
    """DRBD connection state."""
    disk_state: str = ""
    """The peer's disk state."""
    replication_state: str = ""
    """DRBD replication state."""
    role: str = ""
    """The peer's role."""
    sync_progress: Annotated[str, Schema(max_length=16)] = ""
    """Progress of the synchronisation with this peer in per cent, as DRBD prints it (`42.17`)."""
    out_of_sync: Annotated[int | None, Schema(format="int64")] = None
    """Bytes that differ from this peer as far as known; reported while synchronising."""


class VoterFacts(Value):
    """What the kernel's quorum flag is computed from (decision 5, rules R1 and R2 of facts/kernel-quorum)."""

    mode: Annotated[str, Schema(max_length=16)] = ""
    """dynamic or static, see `VoterMode`."""
    voters: Annotated[int, Schema(default=0)] = 0
    """Voters this node knows of, itself included."""
    present: Annotated[int, Schema(default=0)] = 0
    """Voters that are attached here or connected."""
    up_to_date: Annotated[int, Schema(default=0)] = 0
    """Present voters with current data."""
    outdated: Annotated[int, Schema(default=0)] = 0
    """Absent voters known to be outdated."""
    quorumless: Annotated[int, Schema(default=0)] = 0
    """Absent voters known to have no quorum."""
    unknown: Annotated[int, Schema(default=0)] = 0
    """Absent voters that nothing is known about."""
    connected_tie_breakers: Annotated[int, Schema(default=0)] = 0
    """Connected tie-breakers that have a vote."""
    missing_tie_breakers: Annotated[int, Schema(default=0)] = 0
    """Absent tie-breakers that have a vote."""
    expected_quorum: bool | None = None
    """The flag computed from these values and the options; differs from `quorum` while a raise is not in force."""


class DRBDResourceStatus(Value):
    """What DRBD is on the node."""

    conditions: Conditions = ()
    """Conditions."""
    device: Annotated[str, Schema(max_length=256)] = ""
    """Path of the block device."""
    device_io_suspended: bool | None = msgspec.field(default=None, name="deviceIOSuspended")
    """Whether I/O is suspended; Primary only."""
    device_open: bool | None = None
    """Whether somebody has the device open; Primary only."""
    size: Quantity | None = None
    """Usable capacity."""
    addresses: Addresses = ()
    """Where DRBD listens."""
    active_configuration: ActiveConfiguration | None = None
    """The configuration as the kernel has it."""
    peers: Annotated[
        tuple[PeerStatus, ...], Schema(max_items=MAX_PEERS, list_type="atomic", rules=(unique_by("nodeID"),))
    ] = ()
    """Peers as the kernel has them, by name."""
    disk_state: str = ""
    """State of the own disk."""
    quorum: bool | None = None
    """The kernel's quorum flag."""
    voter_facts: VoterFacts | None = None
    """What the quorum flag is computed from."""
    device_uuid: Annotated[
        str,
        Schema(
            max_length=16,
            pattern=r"^([0-9A-F]{16})?$",
            rules=(Rule("oldSelf == '' || self == oldSelf", "deviceUUID cannot be changed once it is set."),),
        ),
    ] = msgspec.field(default="", name="deviceUUID")
    """Identity of the disk."""


class DRBDResource(Object):
    """DRBD on one node."""

    spec: DRBDResourceSpec
    """What it shall be."""
    status: DRBDResourceStatus = DRBDResourceStatus()
    """What it is."""


CRD = Crd(
    columns=(
        Column("Node", ".spec.nodeName"),
        Column("State", ".status.activeConfiguration.state"),
        condition_column("Configured", ConfiguredCondition.TYPE),
        Column("Role", ".status.activeConfiguration.role"),
        Column("Type", ".status.activeConfiguration.type"),
        Column("DiskState", ".status.diskState"),
        Column("Quorum", ".status.quorum", type="boolean"),
        AGE,
        condition_column("Message", ConfiguredCondition.TYPE, wide=True, field="message"),
    ),
    selectable_fields=(".spec.nodeName",),
    rules=(
        Rule(
            "self.spec.type != 'Diskful' || (has(self.spec.lvmLogicalVolumeName) && has(self.spec.size))",
            "spec.lvmLogicalVolumeName and spec.size are required when spec.type is Diskful.",
        ),
        Rule(
            "self.spec.type != 'Diskless' || (!has(self.spec.lvmLogicalVolumeName) && !has(self.spec.size))",
            "spec.lvmLogicalVolumeName and spec.size must not be set when spec.type is Diskless.",
        ),
        Rule(
            "!has(self.spec.size) || !has(oldSelf.spec.size) || "
            "quantity(string(self.spec.size)).compareTo(quantity(string(oldSelf.spec.size))) >= 0",
            "spec.size cannot be decreased.",
        ),
        Rule(
            "!has(self.spec.size) || (quantity(string(self.spec.size)).isInteger() && "
            "quantity(string(self.spec.size)).asInteger() % 4096 == 0)",
            "spec.size must be a multiple of 4096 bytes.",
        ),
        Rule(
            "self.spec.type != 'Diskless' || !has(self.spec.nonVoting) || !self.spec.nonVoting",
            "spec.nonVoting must be false when spec.type is Diskless.",
        ),
    ),
)
"""What the CRD says beyond the fields."""
