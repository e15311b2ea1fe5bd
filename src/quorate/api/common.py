"""Shapes and field types that several kinds share."""

from __future__ import annotations

from typing import Annotated

from quorate.api.schema import UNIQUE, Schema, unique_by
from quorate.api.value import Value

LVG_NAME_PATTERN = r"^[a-z0-9]([a-z0-9-.]{0,251}[a-z0-9])?$"
VOLUME_NAME_PATTERN = r"^[0-9A-Za-z.+_-]*$"
REPLICA_NAME_PATTERN = r"^.+-([0-9]|[12][0-9]|3[01])$"
THIN_POOL_NAME_PATTERN = r"^[a-zA-Z0-9][a-zA-Z0-9_.+-]*$"

NodeName = Annotated[str, Schema(min_length=1, max_length=253)]
LvgName = Annotated[str, Schema(min_length=1, max_length=253, pattern=LVG_NAME_PATTERN)]
ThinPoolName = Annotated[str, Schema(min_length=1, max_length=128, pattern=THIN_POOL_NAME_PATTERN)]
ReplicaName = Annotated[str, Schema(min_length=1, max_length=123, pattern=REPLICA_NAME_PATTERN)]
Message = Annotated[str, Schema(max_length=512)]
Time = Annotated[str, Schema(format="date-time")]
Generation = Annotated[int, Schema(format="int64")]
Count = Annotated[int, Schema(format="int32", minimum=0)]

MESSAGE_LIMIT = 512
"""Status messages of RVR, RVA, steps and requests."""
OPERATION_MESSAGE_LIMIT = 1024
"""Status message of a DRBDResourceOperation."""
CONDITION_MESSAGE_LIMIT = 32768
"""Message of a condition."""

NETWORK_NAME_LIMIT = 64
MAX_SYSTEM_NETWORKS = 10
MAX_REPLICAS = 32
MAX_PEERS = 31
MAX_DISK_MEMBERS = 8
"""Members that carry a disk, liminal ones included: metadata has seven bitmap slots."""
MAX_ZONES = 10

SystemNetworkNames = Annotated[
    tuple[str, ...],
    Schema(
        max_items=MAX_SYSTEM_NETWORKS,
        list_type="atomic",
        item=Schema(max_length=NETWORK_NAME_LIMIT),
        rules=(UNIQUE,),
    ),
]


class Endpoint(Value):
    """Where DRBD listens."""

    ipv4: Annotated[str, Schema(max_length=15, pattern=r"^([0-9]{1,3}\.){3}[0-9]{1,3}$")]
    """IPv4 address in dotted form."""
    port: Annotated[int, Schema(minimum=1025, maximum=65535)]
    """TCP port."""


class Address(Value):
    """A DRBD address on one system network."""

    system_network_name: Annotated[str, Schema(max_length=NETWORK_NAME_LIMIT)]
    """Name of the system network."""
    address: Endpoint
    """Address and port on that network."""


Addresses = Annotated[
    tuple[Address, ...],
    Schema(max_items=MAX_SYSTEM_NETWORKS, list_type="atomic", rules=(unique_by("systemNetworkName"),)),
]


class DiskState:
    """DRBD disk states (open vocabulary)."""

    DISKLESS = "Diskless"
    """No backing device."""
    ATTACHING = "Attaching"
    """Reading metadata while attaching."""
    DETACHING = "Detaching"
    """Being detached."""
    FAILED = "Failed"
    """Failed after an I/O error."""
    NEGOTIATING = "Negotiating"
    """Attached, comparing generations with a connected peer."""
    INCONSISTENT = "Inconsistent"
    """Data is unusable: a fresh disk or an unfinished synchronisation."""
    OUTDATED = "Outdated"
    """Consistent but known to be old."""
    D_UNKNOWN = "DUnknown"
    """A peer's disk while there is no connection."""
    CONSISTENT = "Consistent"
    """Consistent; whether it is current is decided on connect."""
    UP_TO_DATE = "UpToDate"
    """Current data."""


class ConnectionState:
    """DRBD connection states (open vocabulary)."""

    STAND_ALONE = "StandAlone"
    """No connection, none attempted."""
    DISCONNECTING = "Disconnecting"
    """Being disconnected."""
    UNCONNECTED = "Unconnected"
    """Before the next attempt."""
    TIMEOUT = "Timeout"
    """Lost after a timeout."""
    BROKEN_PIPE = "BrokenPipe"
    """Lost with a broken pipe."""
    NETWORK_FAILURE = "NetworkFailure"
    """Lost with a network failure."""
    PROTOCOL_ERROR = "ProtocolError"
    """Lost with a protocol error."""
    CONNECTING = "Connecting"
    """Waiting for the peer."""
    TEAR_DOWN = "TearDown"
    """The peer is leaving."""
    CONNECTED = "Connected"
    """Established."""
    UNKNOWN = "Unknown"
    """Not reported."""


class ReplicationState:
    """DRBD replication states (open vocabulary)."""

    OFF = "Off"
    """Not replicating."""
    ESTABLISHED = "Established"
    """In normal replication."""
    STARTING_SYNC_S = "StartingSyncS"
    """Full synchronisation is being started by an administrator, as source."""
    STARTING_SYNC_T = "StartingSyncT"
    """Full synchronisation is being started by an administrator, as target."""
    WF_BIT_MAP_S = "WFBitMapS"
    """Exchanging bitmaps, as source."""
    WF_BIT_MAP_T = "WFBitMapT"
    """Exchanging bitmaps, as target."""
    WF_SYNC_UUID = "WFSyncUUID"
    """Waiting for the generation of the synchronisation."""
    SYNC_SOURCE = "SyncSource"
    """Synchronising, as source."""
    SYNC_TARGET = "SyncTarget"
    """Synchronising, as target."""
    PAUSED_SYNC_S = "PausedSyncS"
    """Synchronisation paused, as source."""
    PAUSED_SYNC_T = "PausedSyncT"
    """Synchronisation paused, as target."""
    VERIFY_S = "VerifyS"
    """Online verification, as source."""
    VERIFY_T = "VerifyT"
    """Online verification, as target."""
    AHEAD = "Ahead"
    """Congested: running ahead of the peer."""
    BEHIND = "Behind"
    """Congested: behind the peer."""
    UNKNOWN = "Unknown"
    """Not reported."""

    SYNCING = (
        STARTING_SYNC_S,
        STARTING_SYNC_T,
        WF_BIT_MAP_S,
        WF_BIT_MAP_T,
        WF_SYNC_UUID,
        SYNC_SOURCE,
        SYNC_TARGET,
        PAUSED_SYNC_S,
        PAUSED_SYNC_T,
    )
    """The states in which data is being synchronised or about to be."""


class DrbdType:
    """How DRBD runs on a node."""

    DISKFUL = "Diskful"
    """With a backing device."""
    DISKLESS = "Diskless"
    """Without a backing device."""


class DrbdRole:
    """DRBD roles."""

    PRIMARY = "Primary"
    """May be opened for writing."""
    SECONDARY = "Secondary"
    """Replicates only."""
