"""What is on the node: the merged reading of `status` and `show`, as frozen values.

`status` says what runs, `show` says what is configured; neither alone is enough (the bitmap setting of a peer, the
backing disk and the quorum option are only in `show`; roles and states only in `status`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from quorate.agent.parsers.metadata import Dump, Metadata
from quorate.agent.parsers.show import ConnectionConfig, Options, ResourceConfig, flag, text
from quorate.agent.parsers.status import ConnectionStatus, Endpoint, PeerDeviceStatus, ResourceStatus
from quorate.api.common import ConnectionState, DiskState

NO_OPTIONS: Options = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ActualPath:
    """A path of a connection."""

    local: Endpoint
    remote: Endpoint
    established: bool = False


@dataclass(frozen=True, slots=True)
class ActualPeer:
    """A configured connection and what is known of the peer."""

    node_id: int
    name: str
    connection_state: str = ConnectionState.STAND_ALONE
    role: str = "Unknown"
    disk_state: str = DiskState.D_UNKNOWN
    replication_state: str = "Off"
    resync_suspended: str = "no"
    out_of_sync: int = 0
    """Bytes."""
    resync_done: float | None = None
    paths: tuple[ActualPath, ...] = ()
    net: Options = field(default_factory=lambda: NO_OPTIONS)
    device: Options | None = None
    """Peer device options; None while there is no volume."""

    @property
    def bitmap(self) -> bool:
        """Whether a bitmap slot is kept for the peer; the stable source of its type (T3)."""
        return flag(self.device or NO_OPTIONS, "bitmap", True)

    @property
    def tie_breaker(self) -> bool:
        return flag(self.device or NO_OPTIONS, "peer-tiebreaker", True)

    @property
    def allow_remote_read(self) -> bool:
        return flag(self.net, "allow-remote-read", True)

    @property
    def connected(self) -> bool:
        return self.connection_state == ConnectionState.CONNECTED

    @property
    def replicating(self) -> bool:
        """Whether the kernel counts the peer as present: the volume's replication is not off."""
        return self.replication_state != "Off"


@dataclass(frozen=True, slots=True)
class ActualVolume:
    """The local side of volume 0."""

    minor: int
    disk_state: str = DiskState.DISKLESS
    client: bool = False
    open: bool | None = None
    """None: the tools are too old to say."""
    quorum: bool = True
    size: int = 0
    """Bytes."""
    backing_disk: str = ""
    disk_options: Options = field(default_factory=lambda: NO_OPTIONS)

    @property
    def attached(self) -> bool:
        """Either of `show` and `status` saying so means attached: a second attach can crash the node (S15b)."""
        return bool(self.backing_disk) or self.disk_state != DiskState.DISKLESS


@dataclass(frozen=True, slots=True)
class ActualResource:
    """A resource in the kernel."""

    name: str
    node_id: int
    role: str = "Secondary"
    suspended: bool = False
    suspended_quorum: bool = False
    force_io_failures: bool = False
    options: Options = field(default_factory=lambda: NO_OPTIONS)
    volume: ActualVolume | None = None
    surplus_volumes: int = 0
    peers: tuple[ActualPeer, ...] = ()

    def peer(self, node_id: int) -> ActualPeer | None:
        return next((peer for peer in self.peers if peer.node_id == node_id), None)

    @property
    def open(self) -> bool:
        return self.volume is not None and self.volume.open is True

    @property
    def quorum_option(self) -> str:
        return text(self.options, "quorum", "off")

    @property
    def redundancy_option(self) -> str:
        return text(self.options, "quorum-minimum-redundancy", "off")


@dataclass(frozen=True, slots=True)
class DiskProbe:
    """What `drbdmeta` found on a detached disk."""

    metadata: Metadata
    device_uuid: str = ""
    dump: Dump | None = None
    error: str = ""
    """Why the disk could not be read."""


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything one round of planning looks at."""

    resource: ActualResource | None
    link: str | None = None
    """Target of the device link."""
    probe: DiskProbe | None = None
    free_minor: int = 0
    """A minor nobody uses."""
    discard_granularity: int = 0
    """Of the intended disk, 0 = none."""
    held_connects: frozenset[int] = field(default_factory=frozenset[int])
    """Peers whose connection just fell back to StandAlone; their next attempt waits."""
    refused_disconnects: frozenset[int] = field(default_factory=frozenset[int])
    """Peers whose plain disconnect was refused in this pass."""
    forgotten: frozenset[int] = field(default_factory=frozenset[int])
    """Peers that were forgotten in this pass."""
    held_role: bool = False
    """A change of role was refused and nothing that matters changed since: the next attempt waits."""
    forget_all_others: bool = False
    """The quorum flag hints at voters nobody configured: forget every node id the spec does not name."""


def merge(status: ResourceStatus, show: ResourceConfig | None) -> ActualResource:
    """One resource of the two outputs; without `show` (it raced with a removal) the options are unknown."""
    configs = {config.peer_node_id: config for config in show.connections} if show else {}
    peers = tuple(_peer(connection, configs.get(connection.peer_node_id)) for connection in status.connections)
    return ActualResource(
        name=status.name,
        node_id=status.node_id,
        role=status.role,
        suspended=status.suspended,
        suspended_quorum=status.suspended_quorum,
        force_io_failures=status.force_io_failures,
        options=show.options if show else NO_OPTIONS,
        volume=_volume(status, show),
        surplus_volumes=max(len(status.devices) - 1, 0),
        peers=tuple(sorted(peers, key=lambda peer: peer.node_id)),
    )


def _volume(status: ResourceStatus, show: ResourceConfig | None) -> ActualVolume | None:
    device = next((each for each in status.devices if each.volume == 0), None)
    if device is None:
        return None
    configured = next((each for each in show.this_host.volumes if each.volume_nr == 0), None) if show else None
    return ActualVolume(
        minor=device.minor,
        disk_state=device.disk_state,
        client=device.client,
        open=device.open,
        quorum=device.quorum,
        size=device.size * 1024,
        backing_disk=configured.backing_disk if configured else "",
        disk_options=configured.disk_options if configured else NO_OPTIONS,
    )


def _peer(status: ConnectionStatus, config: ConnectionConfig | None) -> ActualPeer:
    device = next((each for each in status.peer_devices if each.volume == 0), PeerDeviceStatus(volume=0))
    configured = next((each for each in config.volumes if each.volume_nr == 0), None) if config else None
    paths = tuple(ActualPath(path.this_host, path.remote_host, path.established) for path in status.paths)
    if not paths and config:
        paths = tuple(ActualPath(path.this_host, path.remote_host) for path in config.paths)
    return ActualPeer(
        node_id=status.peer_node_id,
        name=status.name,
        connection_state=status.connection_state,
        role=status.peer_role,
        disk_state=device.peer_disk_state,
        replication_state=device.replication_state,
        resync_suspended=device.resync_suspended,
        out_of_sync=device.out_of_sync * 1024,
        resync_done=device.percent_resync_done,
        paths=paths,
        net=config.net if config else NO_OPTIONS,
        device=_peer_device_options(configured.disk if configured else None, device, bool(status.peer_devices)),
    )


def _peer_device_options(
    configured: Mapping[str, str | bool | int | float] | None, device: PeerDeviceStatus, exists: bool
) -> Options | None:
    """From `show`; where that has none, at least the bitmap setting, which `status` prints as `peer-client`."""
    if configured is not None:
        return configured
    return {"bitmap": not device.peer_client} if exists else None
