"""`drbdsetup status --json`: the running state of resources.

Unknown keys are ignored and keys that older tools lack have defaults (`open` appeared in utils 9.29, `paths` with newer
kernels), so a difference of versions never hides a resource.
"""

from __future__ import annotations

import msgspec

from quorate.agent.parsers import ParseError


class Endpoint(msgspec.Struct, frozen=True):
    """One end of a path."""

    address: str
    port: int
    family: str = "ipv4"

    def __str__(self) -> str:
        return f"{self.address}:{self.port}"


class PathStatus(msgspec.Struct, frozen=True):
    """A path of a connection."""

    this_host: Endpoint
    remote_host: Endpoint
    established: bool = False


class PeerDeviceStatus(msgspec.Struct, frozen=True, rename="kebab"):
    """A peer's view of the volume; sync details exist only while a resync or a verify runs."""

    volume: int
    replication_state: str = "Off"
    peer_disk_state: str = "DUnknown"
    peer_client: bool = False
    resync_suspended: str = "no"
    out_of_sync: int = 0
    percent_in_sync: float = 0.0
    has_sync_details: bool = False
    has_online_verify_details: bool = False
    percent_resync_done: float | None = None
    estimated_seconds_to_finish: int | None = None


class ConnectionStatus(msgspec.Struct, frozen=True, rename="kebab"):
    """A connection to one peer."""

    peer_node_id: int
    name: str
    connection_state: str = "StandAlone"
    peer_role: str = "Unknown"
    congested: bool = False
    paths: tuple[PathStatus, ...] = ()
    peer_devices: tuple[PeerDeviceStatus, ...] = msgspec.field(default=(), name="peer_devices")


class DeviceStatus(msgspec.Struct, frozen=True, rename="kebab"):
    """The local side of a volume; `size` in KiB."""

    volume: int
    minor: int
    disk_state: str = "Diskless"
    client: bool = False
    open: bool | None = None
    quorum: bool = True
    size: int = 0


class ResourceStatus(msgspec.Struct, frozen=True, rename="kebab"):
    """One resource."""

    name: str
    node_id: int
    role: str = "Unknown"
    suspended: bool = False
    suspended_user: bool = False
    suspended_no_data: bool = False
    suspended_fencing: bool = False
    suspended_quorum: bool = False
    force_io_failures: bool = False
    devices: tuple[DeviceStatus, ...] = ()
    connections: tuple[ConnectionStatus, ...] = ()


_decoder = msgspec.json.Decoder(tuple[ResourceStatus, ...])


def parse_status(stdout: str) -> tuple[ResourceStatus, ...]:
    """All resources of the output; an empty text is an empty list (nothing configured)."""
    text = stdout.strip()
    if not text:
        return ()
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise ParseError(f"drbdsetup status: {error}") from error
