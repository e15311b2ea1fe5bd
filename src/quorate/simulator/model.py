"""The objects of one node's DRBD: resources, volumes, connections, and what a node knows of its peers' volumes.

Fields that the kernel reports are changed only through a `Change` (see `change.py`); everything else is knowledge
that no state change needs to weigh. Nothing here reacts to anything: the rules live in their own modules.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorate.simulator.metadata import Metadata
from quorate.simulator.options import DEVICE, DISK, NET, PEER_DEVICE, RESOURCE, Value, compute_defaults
from quorate.simulator.ranges import BlockRanges
from quorate.simulator.states import Disk, Link, Replication, Role

if TYPE_CHECKING:
    from quorate.simulator.blocks import BlockDevice


@dataclass(slots=True)
class Path:
    """One address pair of a connection."""

    local: str
    remote: str
    established: bool = False


@dataclass(slots=True)
class Opener:
    """A program that holds a DRBD device open."""

    program: str
    pid: int
    since: float
    writable: bool


@dataclass(frozen=True, slots=True)
class Generations:
    """What a node tells a peer about its data: UUIDs, dirty blocks and the circumstances of its last life."""

    current: int
    bitmap_uuids: tuple[tuple[int, int], ...] = ()  # (node id, uuid) of the entries it announces
    history: tuple[int, ...] = ()
    dirty_blocks: int = 0
    crashed_primary: bool = False
    lost_quorum: bool = False
    reconnecting: bool = False  # still remembers the previous connection with the addressee
    stable: bool = True  # is Primary or has no Primary next to it
    inconsistent: bool = False
    discard_my_data: bool = False

    def bitmap_uuid_for(self, node_id: int) -> int:
        return next((uuid for owner, uuid in self.bitmap_uuids if owner == node_id), 0)


@dataclass(slots=True, eq=False)
class PeerVolume:
    """A volume as seen at a peer: reported states, local options, and the peer's announced generations."""

    connection: Connection
    volume: Volume
    options: dict[str, Value] = field(default_factory=lambda: compute_defaults(PEER_DEVICE))
    replication: Replication = Replication.OFF
    disk: Disk = Disk.UNKNOWN
    paused_by_user: bool = False
    paused_by_peer: bool = False
    paused_by_dependency: bool = False
    slot: int = -1
    generations: Generations | None = None
    quorate: bool = False
    sent: int = 0  # KiB
    received: int = 0
    sync_total: int = 0  # blocks when the resync began
    sync_started: float = 0.0
    sync_ends: float = 0.0  # when a running resync is due

    @property
    def wants_bitmap(self) -> bool:
        return self.options["bitmap"] is True

    @property
    def out_of_sync(self) -> BlockRanges | None:
        """The bitmap kept for this peer, None without a disk or a slot."""
        backing = self.volume.backing
        return backing.metadata.bitmaps[self.slot] if backing is not None and self.slot >= 0 else None


@dataclass(slots=True, eq=False)
class Connection:
    """A configured peer of a resource."""

    resource: Resource
    peer_id: int
    net: dict[str, Value] = field(default_factory=lambda: compute_defaults(NET))
    link: Link = Link.STAND_ALONE
    peer_role: Role = Role.UNKNOWN
    paths: list[Path] = field(default_factory=list[Path])
    peer_volumes: dict[int, PeerVolume] = field(default_factory=dict[int, PeerVolume])
    session: int = 0  # counts transport sessions; messages of an older one are dropped
    was_connected: bool = False  # in this life of the connection object (U8 "reconnecting")
    discard_my_data: bool = False

    @property
    def name(self) -> str:
        return str(self.net["_name"])

    @property
    def two_primaries(self) -> bool:
        return self.net["allow-two-primaries"] is True

    @property
    def remote_read(self) -> bool:
        return self.net["allow-remote-read"] is True


@dataclass(slots=True)
class Backing:
    """An attached disk: the device, its metadata, and the options it was attached with."""

    path: str
    device: BlockDevice
    metadata: Metadata
    options: dict[str, Value] = field(default_factory=lambda: compute_defaults(DISK))


@dataclass(slots=True, eq=False)
class Volume:
    """A DRBD device."""

    resource: Resource
    number: int
    minor: int
    options: dict[str, Value] = field(default_factory=lambda: compute_defaults(DEVICE))
    disk: Disk = Disk.DISKLESS
    quorum: bool = False
    blocks: int = 0  # size in 4 KiB blocks
    backing: Backing | None = None
    openers: list[Opener] = field(default_factory=list[Opener])
    exposed: int = 0  # generation of the data that readers have seen
    new_generation: bool = False  # the next write starts a generation (U4)
    crashed_primary: bool = False
    lost_quorum: bool = False
    restore_quorum: bool = False
    bitmap_freed: bool = False  # by a second attach (S15b): the next look at it or write to it is the kernel's end
    read: int = 0  # KiB since attach
    written: int = 0
    log_writes: int = 0
    bitmap_writes: int = 0

    @property
    def intentional_diskless(self) -> bool:
        return self.options["diskless"] == "yes"

    @property
    def open(self) -> bool:
        return bool(self.openers)

    @property
    def writable(self) -> bool:
        return any(opener.writable for opener in self.openers)

    def peers(self) -> list[PeerVolume]:
        number = self.number
        connections = self.resource.connections.values()
        return [connection.peer_volumes[number] for connection in connections if number in connection.peer_volumes]


@dataclass(slots=True, eq=False)
class Resource:
    """A DRBD resource on one node."""

    name: str
    node_id: int
    node: str = ""  # the machine it lives on
    options: dict[str, Value] = field(default_factory=lambda: compute_defaults(RESOURCE))
    role: Role = Role.SECONDARY
    suspended_user: bool = False
    suspended_no_data: bool = False
    suspended_quorum: bool = False
    suspended_generation: bool = False  # held until the new generation is stored; shown by the log only
    fail_io: bool = False
    volumes: dict[int, Volume] = field(default_factory=dict[int, Volume])
    connections: dict[int, Connection] = field(default_factory=dict[int, Connection])
    members: set[int] = field(default_factory=set[int])
    promoted_by_open: bool = False  # auto-promote: demoted again when the last writer closes
    ordered: bool = False  # a disk was attached at some time: the method of write ordering is settled

    def __post_init__(self) -> None:
        self.members.add(self.node_id)

    @property
    def suspended(self) -> bool:
        held = self.suspended_user or self.suspended_no_data or self.suspended_quorum
        return held or self.suspended_generation

    def connected(self) -> list[Connection]:
        return [connection for connection in self.connections.values() if connection.link is Link.CONNECTED]
