"""Copying what a peer misses: bitmap exchange, progress over simulated time, and the end of a resync (U16-U19).

A resync moves in steps of simulated time. Each step copies the lowest blocks of the target's bitmap at the rate the
target is configured for, so a paused or broken resync continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from quorate.simulator import generations
from quorate.simulator.blocks import BLOCK, DeviceError
from quorate.simulator.change import Change
from quorate.simulator.handshake import Decision, Side, Strategy, decide
from quorate.simulator.model import PeerVolume, Volume
from quorate.simulator.scheduler import Handle, Scheduler
from quorate.simulator.states import SYNC_SOURCES, SYNC_TARGETS, Disk, Replication, Role
from quorate.simulator.transactions import Directory, Member

STEP: Final = 0.1
_EXCHANGE: Final = 0.05
_GIVING: Final = SYNC_SOURCES | {Replication.ESTABLISHED}
"""A further source of an invalidated disk answers while it still shows Established (S3 #62, S3b #47)."""


@dataclass(slots=True)
class Resync:
    """All resyncs of a cluster."""

    directory: Directory
    scheduler: Scheduler
    disk_error: Callable[[PeerVolume], None]
    planned: Callable[[PeerVolume], float | None] = field(default=lambda _: None)  # a duration from outside
    planned_exchange: Callable[[PeerVolume], float | None] = field(default=lambda _: None)
    running: dict[int, Handle] = field(default_factory=dict[int, Handle])
    reaches: Callable[[PeerVolume], bool] = field(default=lambda _: True)  # whether a message to this peer arrives
    compare_again: Callable[[PeerVolume], None] = field(default=lambda _: None)  # a new handshake on a standing link

    def begin(self, peer: PeerVolume, decision: Decision) -> None:
        """After a meeting or an attach: prepares the bitmaps the decision asks for, then exchanges them."""
        other = self.mirror(peer)
        if other is None:
            return
        source, target = (peer, other) if decision.strategy.source else (other, peer)
        if peer.replication is Replication.ESTABLISHED:
            self.settle_equal(peer)
            self.settle_equal(other)
            return
        if decision.strategy in (Strategy.SOURCE_SET_BITMAP, Strategy.TARGET_SET_BITMAP):
            for side in (source, target):
                if side.out_of_sync is not None:
                    generations.set_all(side.volume, side.out_of_sync)
        delay = self.planned_exchange(target)
        self.scheduler.call_later(_EXCHANGE if delay is None else delay, lambda: self.exchange(source, target))

    def settle_equal(self, peer: PeerVolume) -> None:
        """U11."""
        volume = peer.volume
        if volume.backing is None or peer.generations is None:
            return
        usable = volume.disk >= Disk.OUTDATED and peer.disk >= Disk.OUTDATED
        if usable and peer.generations.current == volume.backing.metadata.current:
            generations.clear_towards(volume, peer)

    def duration(self, target: PeerVolume) -> float:
        planned = self.planned(target)
        return planned if planned is not None else self.configured_duration(target)

    def mirror(self, peer: PeerVolume) -> PeerVolume | None:
        end = self.directory.other_end(peer.connection)
        return end[1].peer_volumes.get(peer.volume.number) if end is not None else None

    def start(self, source: PeerVolume, target: PeerVolume, tag: str) -> None:
        """A resync that needs no bitmap exchange: both ends already know what to copy (resize, invalidate)."""
        target.generations = generations.announce(source.volume, source)
        self._run_pair(source, target, tag)

    def exchange(self, source: PeerVolume, target: PeerVolume) -> None:
        """Both bitmaps are merged: a block that either side marks is copied."""
        if not self._alive(source, target):
            return
        waiting = (source.replication, target.replication)
        if waiting != (Replication.WF_BITMAP_S, Replication.WF_BITMAP_T):
            return
        if source.out_of_sync is not None and target.out_of_sync is not None:
            source.out_of_sync.update(target.out_of_sync)
            target.out_of_sync.update(source.out_of_sync)
        self._run_pair(source, target, "receive-bitmap")

    def _run_pair(self, source: PeerVolume, target: PeerVolume, tag: str) -> None:
        for peer, state in ((target, Replication.SYNC_TARGET), (source, Replication.SYNC_SOURCE)):
            dirty = len(peer.out_of_sync) if peer.out_of_sync is not None else 0
            peer.sync_total, peer.sync_started = dirty, self.scheduler.time()
            self._put(peer, "replication", state, tag)
        for peer in target.volume.peers():
            self.follow_pauses(peer)
        target.sync_ends = self.scheduler.time() + self.duration(target)
        for peer in target.volume.peers():
            self.step(peer)

    def follow_pauses(self, peer: PeerVolume) -> None:
        """Tells the other end whether this one holds the resync."""
        other = self.mirror(peer)
        if other is not None and self.reaches(peer):
            held = peer.paused_by_user or peer.paused_by_dependency
            self._put(other, "paused_by_peer", held, "peer-state")

    def step(self, target: PeerVolume) -> None:
        """One step of a running resync; plans the next."""
        if target.replication is not Replication.SYNC_TARGET or id(target) in self.running:
            return

        def run() -> None:
            self.running.pop(id(target), None)
            self._copy(target)

        self.running[id(target)] = self.scheduler.call_later(STEP, run)

    def go_on(self, target: PeerVolume) -> None:
        """A source took over from another: what is left is due anew."""
        if target.replication is Replication.SYNC_TARGET and id(target) not in self.running:
            target.sync_total = len(target.out_of_sync) if target.out_of_sync is not None else 0
            target.sync_started = self.scheduler.time()
            target.sync_ends = self.scheduler.time() + self.duration(target)
            self.step(target)

    def configured_duration(self, target: PeerVolume) -> float:
        """Seconds at the fixed rate without a controller, else at what the controller may use."""
        options = target.options
        key = "resync-rate" if options["c-plan-ahead"] == 0 else "c-max-rate"
        rate = options[key]
        assert isinstance(rate, int)
        slowness = target.volume.backing.device.seconds_per_block if target.volume.backing is not None else 0.0
        return target.sync_total * (BLOCK / ((rate or 250) * 1024) + slowness)

    def _rate(self, target: PeerVolume) -> int:
        """Blocks of this step, so that the rest is done when the resync is due."""
        left = max(target.sync_ends - self.scheduler.time(), 0.0)
        span = max(target.sync_ends - target.sync_started, STEP)
        dirty = len(target.out_of_sync) if target.out_of_sync is not None else 0
        return max(0, dirty - ceil(target.sync_total * left / span))

    def _copy(self, target: PeerVolume) -> None:
        source, dirty = self.mirror(target), target.out_of_sync
        if not self._alive(target) or source is None or dirty is None:
            return
        if target.replication is not Replication.SYNC_TARGET or source.replication not in _GIVING:
            return
        backing, origin = target.volume.backing, source.volume.backing
        if backing is None or origin is None:
            return
        try:
            for start, end in dirty.take(self._rate(target)):
                written = origin.device.written(start, end)
                backing.device.erase(start, end)
                for block, value in written.items():
                    backing.device.write(block, value)
                if source.out_of_sync is not None:
                    source.out_of_sync.discard(start, end)
                # What a target copies is new to every peer that is away (S5 #59: 2304 of 8192 KiB copied, so marked).
                absent = [p for p in target.volume.peers() if p.replication is Replication.OFF]
                generations.mark(target.volume, start, end, absent)
                if source.replication in SYNC_SOURCES:  # only a source by agreement tells the others (S3b #49)
                    self._clear_at_others(target, start, end)
                self._mark_followers(target, start, end)
        except DeviceError:
            self.disk_error(target)
            return
        if dirty:
            self.step(target)
        else:
            self.scheduler.call_later(_EXCHANGE, lambda: self._finish_if_running(target, source))

    def _mark_followers(self, target: PeerVolume, start: int, end: int) -> None:
        """Whoever copies from this disk misses what it copies itself."""
        for follower in target.volume.peers():
            other = self.mirror(follower) if follower.replication in SYNC_SOURCES else None
            for side in (follower, other) if other is not None else ():
                if side.out_of_sync is not None:
                    side.out_of_sync.add(start, end)

    def _finish_if_running(self, target: PeerVolume, source: PeerVolume) -> None:
        if not self._alive(target, source):
            return
        running = target.replication is Replication.SYNC_TARGET and source.replication in _GIVING
        if running and not target.out_of_sync:
            self.finish(target, source)
        else:
            self.step(target)

    def _clear_at_others(self, target: PeerVolume, start: int, end: int) -> None:
        """Source and target tell who is equal now. A third node with the source's data clears its mark for the target,
        whether it waits as a further source (S10 #78) or has not met the target yet (S13 #88); the target clears its
        mark for it even when the two have no link, because the source vouches for its own neighbours (S14 #91, S17 #59)."""
        origin = self.mirror(target)
        if origin is None:
            return
        known = {peer.connection.peer_id: peer for peer in target.volume.peers()}
        for third in self._neighbours(origin, target):
            if not _same_data(origin.volume, third.volume) or third.volume.disk is not Disk.UP_TO_DATE:
                continue
            for side in (third, known.get(third.connection.resource.node_id)):
                if side is not None and side.out_of_sync is not None:
                    side.out_of_sync.discard(start, end)

    def _neighbours(self, origin: PeerVolume, target: PeerVolume) -> list[PeerVolume]:
        """What third nodes next to the source or the target keep about the target."""
        found: list[PeerVolume] = []
        node_id = target.connection.resource.node_id
        for near in (*origin.volume.peers(), *target.volume.peers()):
            other = self.mirror(near) if near.replication is not Replication.OFF else None
            if other is None or other.volume in (origin.volume, target.volume):
                continue
            found += [p for p in other.volume.peers() if p.connection.peer_id == node_id and p not in found]
        return found

    def finish(self, target: PeerVolume, source: PeerVolume) -> None:
        """U18: the target is as good as its source; other resyncs of it end with this one."""
        volume = target.volume
        if not _stable_for(target, source):
            self._hand_over(target, source)
            return
        # As the source stands now: it may have begun a generation meanwhile (S11: "updated UUIDs" at the end).
        target.generations = generations.announce(source.volume, source)
        generations.finish_sync(volume, target)
        change = Change(volume.resource, "resync-finished", forced=True)
        change.put(target, "replication", Replication.ESTABLISHED)
        change.put(volume, "disk", target.disk)
        for other in volume.peers():
            if other is target or other.out_of_sync is None:
                continue
            if self._overtaken(other):
                other.out_of_sync.clear()
                change.put(other, "replication", Replication.ESTABLISHED)
        self._member(target).kernel.commit(change)
        self._tell_others(target)
        self._put_many(source, {"replication": Replication.ESTABLISHED, "disk": volume.disk}, "resync-finished")
        generations.clear_towards(source.volume, source)
        generations.clear_towards(volume, target)
        self._clear_among_equals(target)
        for peer in volume.peers():
            self.go_on(peer)

    def _overtaken(self, peer: PeerVolume) -> bool:
        """U18: the handshake with a source that waits is judged anew; only one that is still ahead remains."""
        other, own = self.mirror(peer), peer.volume.backing
        waiting = peer.replication is Replication.WF_BITMAP_T or peer.replication in SYNC_TARGETS
        if not waiting or other is None or other.volume.backing is None or own is None:
            return False
        if other.volume.backing.metadata.current == own.metadata.current:
            return True
        mine = Side(peer.connection.resource.node_id, generations.announce(peer.volume, peer))
        theirs = Side(other.connection.resource.node_id, generations.announce(other.volume, other))
        return not decide(mine, theirs).strategy.target

    def _clear_among_equals(self, target: PeerVolume) -> None:
        """Two current disks of one generation miss nothing of each other, whoever copied from whom (S18 #47)."""
        volume = target.volume
        for peer in volume.peers():
            other = self.mirror(peer)
            if other is None or peer.replication is not Replication.ESTABLISHED:
                continue
            mine, theirs = volume.backing, other.volume.backing
            both = volume.disk is Disk.UP_TO_DATE and other.volume.disk is Disk.UP_TO_DATE
            if both and mine and theirs and mine.metadata.current == theirs.metadata.current:
                generations.clear_towards(volume, peer)
                generations.clear_towards(other.volume, other)

    def _hand_over(self, target: PeerVolume, source: PeerVolume) -> None:
        """ "Peer was unstable during resync": only a resync with a stable node makes a disk current (S8, S10).

        The paused resync with the Primary takes over; without one the disk stays Inconsistent (kernel-quorum 2).
        """
        self._put(target, "replication", Replication.ESTABLISHED, "resync-finished")
        self._put(source, "replication", Replication.ESTABLISHED, "resync-finished")
        for peer in target.volume.peers():
            self.follow_pauses(peer)
            other = self.mirror(peer)
            if peer.replication is Replication.SYNC_TARGET and other is not None and not peer.out_of_sync:
                self.finish(peer, other)
                return
            self.step(peer)
        self._ask_authority(target.volume)

    def _ask_authority(self, volume: Volume) -> None:
        """An Inconsistent disk with no resync under way turns to the neighbour that can make it current."""
        peers = volume.peers()
        if any(peer.replication > Replication.ESTABLISHED for peer in peers):
            return
        for peer in peers:
            other = self.mirror(peer)
            idle = peer.replication is Replication.ESTABLISHED and peer.disk is Disk.UP_TO_DATE
            if idle and other is not None and _stable_for(peer, other):
                self.compare_again(peer)
                return

    def _tell_others(self, target: PeerVolume) -> None:
        for other in target.volume.peers():
            end = self.mirror(other)
            if end is None or other is target or not self.reaches(other):
                continue
            ended = other.replication is Replication.ESTABLISHED
            if ended and (end.replication in SYNC_SOURCES or end.replication is Replication.WF_BITMAP_S):
                self._put(end, "replication", Replication.ESTABLISHED, "resync-finished")
                generations.clear_towards(end.volume, end)
            held = other.paused_by_user or other.paused_by_dependency
            self._put_many(end, {"disk": target.volume.disk, "paused_by_peer": held}, "peer-state")

    def _alive(self, *peers: PeerVolume) -> bool:
        """Timers outlive machines: nothing happens on behalf of a node that is down."""
        return all(self.directory.owner(peer.connection.resource) is not None for peer in peers)

    def _member(self, peer: PeerVolume) -> Member:
        member = self.directory.owner(peer.connection.resource)
        assert member is not None
        return member

    def _put(self, peer: PeerVolume, name: str, value: Replication | Disk | bool, tag: str) -> None:
        self._put_many(peer, {name: value}, tag)

    def _put_many(self, peer: PeerVolume, values: dict[str, Replication | Disk | bool], tag: str) -> None:
        if self.directory.owner(peer.connection.resource) is None:
            return
        change = Change(peer.connection.resource, tag, forced=True)
        for name, value in values.items():
            change.put(peer, name, value)
        self._member(peer).kernel.commit(change)


def _stable_for(target: PeerVolume, source: PeerVolume) -> bool:
    """A source beside a Primary may lack its latest writes (S3c, S10).

    Not so when that Primary is the target itself, or has no disk and writes to the target as well: then nobody else
    could be waited for.
    """
    resource, own = source.connection.resource, target.connection.resource
    if resource.role is Role.PRIMARY:
        return True
    near = [c.peer_id for c in resource.connections.values() if c.peer_role is Role.PRIMARY]
    writers = {own.node_id, *(p.connection.peer_id for p in target.volume.peers() if _is_diskless_primary(p))}
    return all(peer_id in writers for peer_id in near)


def _same_data(one: Volume, other: Volume) -> bool:
    """A source that missed writes of the other is of an older generation (U4)."""
    mine, theirs = one.backing, other.backing
    return mine is not None and theirs is not None and mine.metadata.current == theirs.metadata.current


def _is_diskless_primary(peer: PeerVolume) -> bool:
    connected = peer.replication is not Replication.OFF
    return connected and peer.disk is Disk.DISKLESS and peer.connection.peer_role is Role.PRIMARY
