"""The DRBD of one node at run time: applies state changes, keeps the metadata in step, and tells what happened.

Guarantees: every reported state changes through `commit`, which settles, checks and then either keeps the whole
change or none of it; metadata follows in the same moment; observers (event stream, reactions) see a change once,
after it is complete.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.simulator import generations
from quorate.simulator.change import Change
from quorate.simulator.errors import Refusal
from quorate.simulator.guards import check
from quorate.simulator.metadata import PeerEntry
from quorate.simulator.model import Connection, PeerVolume, Resource, Volume
from quorate.simulator.module import Module
from quorate.simulator.settle import settle
from quorate.simulator.states import Disk, Link, Replication, Role

Observer = Callable[[Change], None]


@dataclass(frozen=True, slots=True)
class MachineClock:
    """Time on one machine: what passes, and what its wall clock shows."""

    time: Callable[[], float]
    skew: Callable[[], float] = field(default=lambda: 0.0)

    def wall(self) -> float:
        return self.time() + self.skew()


@dataclass(slots=True)
class Kernel:
    """One node's module. `draw` gives fresh generation numbers."""

    node: str
    clock: MachineClock
    draw: Callable[[], int]
    module: Module = field(default_factory=Module)
    resources: dict[str, Resource] = field(default_factory=dict[str, Resource])
    minors: dict[int, Volume] = field(default_factory=dict[int, Volume])
    endpoints: dict[str, Resource] = field(default_factory=dict[str, Resource])
    """Local endpoint to resource: unique within a node, because another resource may not use it (102)."""
    remotes: dict[str, Resource] = field(default_factory=dict[str, Resource])
    """Remote endpoint to resource: as unique, because two resources may not lead to the same one (103)."""
    freed: set[int] = field(default_factory=set[int])  # minors whose bitmap is freed (S15b)
    observers: list[Observer] = field(default_factory=list[Observer])
    announcers: list[Callable[[str], None]] = field(default_factory=list[Callable[[str], None]])

    def announce(self, line: str) -> None:
        """An object came, went or was renamed: a line of the event stream."""
        for announcer in tuple(self.announcers):
            announcer(line)

    def resource(self, name: str) -> Resource:
        found = self.resources.get(name)
        if found is None:
            raise Refusal(158, "unknown resource")
        return found

    def volume(self, minor: int) -> Volume:
        found = self.minors.get(minor)
        if found is None:
            raise Refusal(127, "unknown minor")
        return found

    def free_bitmap(self, volume: Volume) -> None:
        """S15b: a second attach; the next look at the bitmap or write to it is the kernel's end."""
        volume.bitmap_freed = True
        self.freed.add(volume.minor)

    def commit(self, change: Change, *, ignore_openers: bool = False, recalculate: bool = False) -> bool:
        """Settles and keeps a change, or raises its refusal and leaves no trace; False when nothing changed.

        `recalculate` settles although nothing was written: a changed option or member set may matter by itself.
        """
        if not change.effective and not recalculate:
            return False
        self.prepare(change, ignore_openers=ignore_openers)
        if not change.effective:
            return False
        self._finish(change)
        for observer in tuple(self.observers):
            observer(change)
        return True

    def prepare(self, change: Change, *, ignore_openers: bool = False) -> None:
        """Settles and checks; a refusal undoes the change before it is raised."""
        try:
            settle(change)
            if not change.forced:
                check(change, ignore_openers=ignore_openers)
        except Refusal:
            change.undo()
            raise

    def _finish(self, change: Change) -> None:
        resource = change.resource
        for volume in resource.volumes.values():
            self._remember_circumstances(change, volume)
            if self._starts_generation(change, volume):
                volume.new_generation = True
            if change.old_role(resource) is Role.PRIMARY and resource.role is Role.SECONDARY:
                volume.new_generation = False  # P10
            if volume.backing is not None and volume.disk >= Disk.DETACHING and volume.disk is not Disk.NEGOTIATING:
                _write_metadata(change, volume)
            if volume.quorum or volume.disk < Disk.UP_TO_DATE:
                volume.restore_quorum = False
        for connection in resource.connections.values():
            if change.old_link(connection) is Link.CONNECTED and connection.link is not Link.CONNECTED:
                connection.was_connected = True

    def _remember_circumstances(self, change: Change, volume: Volume) -> None:
        """I9 and U8: what a later handshake will ask about."""
        if volume.resource.role is Role.PRIMARY and not volume.quorum:
            volume.lost_quorum = True
        if volume.quorum and change.old(volume, "quorum") is False:
            volume.lost_quorum = False
        both = [peer for peer in volume.peers() if peer.disk is Disk.UP_TO_DATE]
        if volume.disk is Disk.UP_TO_DATE and both:
            volume.crashed_primary = False

    def _starts_generation(self, change: Change, volume: Volume) -> bool:
        """U4: the next write begins a generation, also when data was out of reach at the moment of the loss."""
        resource = volume.resource
        if resource.role is not Role.PRIMARY:
            return False
        if change.old_role(resource) is Role.SECONDARY:
            return True
        lost_own = change.old_disk(volume) >= Disk.INCONSISTENT and volume.disk < Disk.INCONSISTENT
        peers = volume.peers()
        return lost_own or any(generations.needs_new_generation(change.old_disk(p), p.disk) for p in peers)


def _write_metadata(change: Change, volume: Volume) -> None:
    assert volume.backing is not None
    resource, metadata = volume.resource, volume.backing.metadata
    metadata.log_clean = False  # D12: apply-al before every attach of used metadata
    primary = resource.role is Role.PRIMARY
    metadata.crashed_primary = volume.crashed_primary or (primary and volume.disk is not Disk.DETACHING)
    near = primary or any(c.peer_role is Role.PRIMARY for c in resource.connections.values())
    metadata.log_in_use = near and bool(metadata.log_extents)
    metadata.lost_quorum = volume.lost_quorum
    metadata.have_quorum = volume.quorum
    metadata.members = frozenset(resource.members)
    if volume.disk >= Disk.INCONSISTENT:
        metadata.consistent = volume.disk > Disk.INCONSISTENT
        metadata.was_up_to_date = volume.disk > Disk.OUTDATED
    elif metadata.was_up_to_date and _somebody_goes_on(volume):
        metadata.was_up_to_date = False
    if volume.disk is Disk.UP_TO_DATE or any(peer.disk is Disk.UP_TO_DATE for peer in volume.peers()):
        metadata.effective_blocks = volume.blocks  # Z2
    for peer in volume.peers():
        _write_peer_entry(metadata.peers[peer.connection.peer_id], peer)


def _somebody_goes_on(volume: Volume) -> bool:
    """A disk that leaves while a Primary keeps writing elsewhere is not current any more."""
    connections = volume.resource.connections.values()
    primary = volume.resource.role is Role.PRIMARY or any(c.peer_role is Role.PRIMARY for c in connections)
    return primary and any(peer.disk is Disk.UP_TO_DATE for peer in volume.peers())


def _write_peer_entry(entry: PeerEntry, peer: PeerVolume) -> None:
    if peer.replication is not Replication.OFF:
        entry.exists = True
    if peer.slot < 0:
        return
    entry.connected = peer.replication is not Replication.OFF
    entry.outdated = peer.disk in (Disk.INCONSISTENT, Disk.OUTDATED)
    if peer.disk >= Disk.INCONSISTENT and peer.disk is not Disk.UNKNOWN:
        entry.seen = True


def connection_of(resource: Resource, peer_id: int) -> Connection:
    found = resource.connections.get(peer_id)
    if found is None:
        raise Refusal(162, "unknown connection")
    return found
