"""`drbdsetup events2`: the initial dump and the change lines, in the grammar of facts/agent 3.3."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

from quorate.simulator.change import Change
from quorate.simulator.model import Connection, Path, PeerVolume, Resource, Volume
from quorate.simulator.settle import data_accessible
from quorate.simulator.states import SYNCING, Disk, Role
from quorate.simulator.status import KIB, compute_pauses

_USABLE = frozenset({Disk.UP_TO_DATE, Disk.CONSISTENT, Disk.INCONSISTENT})


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def compute_suspension(resource: Resource) -> str:
    reasons = (
        ("user", resource.suspended_user),
        ("no-data", resource.suspended_no_data),
        ("quorum", resource.suspended_quorum),
    )
    return ",".join(word for word, held in reasons if held) or "no"


def compute_promotion(resource: Resource) -> tuple[bool, int]:
    """(may_promote, promotion_score) as the tools compute them (facts/agent 3.3)."""
    volumes = list(resource.volumes.values())
    if not volumes or resource.fail_io or not all(volume.quorum for volume in volumes):
        return False, 0
    replicas = [sum(1 for disk in _disks(volume) if disk is Disk.UP_TO_DATE) for volume in volumes]
    if min(replicas) == 0:
        return False, 0
    local = 10000 if all(volume.disk in _USABLE for volume in volumes) else 0
    current = sum(1 for volume in volumes if volume.disk is Disk.UP_TO_DATE)
    score = local + 100 * min(current, 99) + min(*replicas, 99)
    primary = resource.role is Role.PRIMARY or any(
        connection.peer_role is Role.PRIMARY for connection in resource.connections.values()
    )
    return not primary and all(data_accessible(volume) for volume in volumes), score


def _disks(volume: Volume) -> list[Disk]:
    return [volume.disk, *(peer.disk for peer in volume.peers())]


def resource_line(resource: Resource, *, statistics: bool = False) -> str:
    may, score = compute_promotion(resource)
    ordering = f"write-ordering:{'flush' if resource.ordered else 'none'} " if statistics else ""
    return (
        f"resource name:{resource.name} role:{resource.role} suspended:{compute_suspension(resource)} "
        f"force-io-failures:{_yes(resource.fail_io)} {ordering}may_promote:{_yes(may)} promotion_score:{score}"
    )


def connection_line(connection: Connection, *, statistics: bool = False) -> str:
    flight = " congested:no ap-in-flight:0 rs-in-flight:0" if statistics else ""
    return f"connection {_who(connection)} connection:{connection.link} role:{connection.peer_role}{flight}"


def _who(connection: Connection) -> str:
    return f"name:{connection.resource.name} peer-node-id:{connection.peer_id} conn-name:{connection.name}"


def device_line(volume: Volume, *, statistics: bool = False) -> str:
    shown = volume.backing is not None and volume.disk > Disk.DETACHING
    backing = volume.backing.path if volume.backing is not None and shown else "none"
    client = volume.disk is Disk.DISKLESS and volume.intentional_diskless
    return (
        f"device name:{volume.resource.name} volume:{volume.number} minor:{volume.minor} backing_dev:{backing} "
        f"disk:{volume.disk} client:{_yes(client)} open:{_yes(volume.open)} quorum:{_yes(volume.quorum)}"
        f"{_device_counters(volume) if statistics else ''}"
    )


def _device_counters(volume: Volume) -> str:
    waiting = volume.resource.suspended and volume.open
    return (
        f" size:{volume.blocks * KIB} read:{volume.read} written:{volume.written} al-writes:{volume.log_writes}"
        f" bm-writes:{volume.bitmap_writes} upper-pending:{int(waiting)} lower-pending:0 al-suspended:no"
        f" blocked:{'upper' if waiting else 'no'}"
    )


def peer_line(peer: PeerVolume, *, statistics: bool = False) -> str:
    dirty = len(peer.out_of_sync) if peer.out_of_sync is not None else 0
    done = ""
    if peer.replication in SYNCING and peer.sync_total:
        done = f" done:{100.0 * (peer.sync_total - min(dirty, peer.sync_total)) / peer.sync_total:.2f}"
    counters = f" received:{peer.received} sent:{peer.sent} out-of-sync:{dirty * KIB} pending:0 unacked:0"
    return (
        f"peer-device {_who(peer.connection)} volume:{peer.volume.number} replication:{peer.replication} "
        f"peer-disk:{peer.disk} peer-client:{_yes(not peer.wants_bitmap)} resync-suspended:{compute_pauses(peer)}{done}"
        f"{counters if statistics else ''}"
    )


def path_line(connection: Connection, path: Path) -> str:
    return f"path {_who(connection)} local:{path.local} peer:{path.remote} established:{_yes(path.established)}"


def identity(target: Resource | Volume | Connection | PeerVolume) -> str:
    """What a `destroy` line carries."""
    match target:
        case Resource():
            return f"resource name:{target.name}"
        case Volume():
            return f"device name:{target.resource.name} volume:{target.number}"
        case Connection():
            return f"connection {_who(target)}"
        case PeerVolume():
            return f"peer-device {_who(target.connection)} volume:{target.volume.number}"


def path_identity(connection: Connection, path: Path) -> str:
    return f"path {_who(connection)} local:{path.local} peer:{path.remote}"


def dump(resources: Iterator[Resource] | list[Resource], *, statistics: bool = False) -> Iterator[str]:
    """The initial dump: resource, connections, devices, then peer devices and paths per connection."""
    for resource in resources:
        yield f"exists {resource_line(resource, statistics=statistics)}"
        connections = list(reversed(resource.connections.values()))
        yield from (f"exists {connection_line(connection, statistics=statistics)}" for connection in connections)
        yield from (f"exists {device_line(volume, statistics=statistics)}" for volume in resource.volumes.values())
        for connection in connections:
            peers = connection.peer_volumes.values()
            yield from (f"exists {peer_line(peer, statistics=statistics)}" for peer in peers)
            yield from (f"exists {path_line(connection, path)}" for path in connection.paths)
    yield "exists -"


def stamp(epoch: float, line: str) -> str:
    return f"{datetime.fromtimestamp(epoch, UTC):%Y-%m-%dT%H:%M:%S.%f}+00:00 {line}"


class EventFeed:
    """One reader of the stream; `lose` drops that many of the next lines (a fault)."""

    def __init__(self, *, stamped: bool, clock: Callable[[], float]) -> None:
        self.queue: deque[str] = deque()
        self.ready = asyncio.Event()
        self.lose = 0
        self._stamped = stamped
        self._clock = clock

    def dress(self, line: str) -> str:
        return stamp(self._clock(), line) if self._stamped else line

    def offer(self, change: Change) -> None:
        for line in change_lines(change):
            self.add(line)

    def add(self, line: str) -> None:
        if self.lose > 0:
            self.lose -= 1
            return
        self.queue.append(self.dress(line))
        self.ready.set()


def change_lines(change: Change) -> Iterator[str]:
    """One line per object that changed, in the order of the dump."""
    touched: list[Resource | Volume | Connection | PeerVolume] = []
    for target, _, _, _ in change.differences():
        if target not in touched:
            touched.append(target)
    if change.tag == "open":
        touched.extend(change.resource.volumes.values())
    for target in touched:
        match target:
            case Resource():
                yield f"change {resource_line(target)}"
            case Connection():
                yield f"change {connection_line(target)}"
            case Volume():
                yield f"change {device_line(target)}"
            case PeerVolume():
                yield f"change {peer_line(target)}"
