"""Handshakes on connections that already stand: after an attach, and when a doubt about who is current can be settled.

Two nodes whose generations differ stay side by side while a Primary is near (neither is authoritative). Who is behind
is settled when no Primary is near any more (S3: after-unstable), and when a diskless Primary comes within reach, whose
generation says what is current (D10).
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.simulator import generations
from quorate.simulator.change import Change
from quorate.simulator.handshake import Side, compute_replication, decide, prefer_consistent
from quorate.simulator.model import PeerVolume, Resource, Volume
from quorate.simulator.resync import Resync
from quorate.simulator.states import Disk, Replication, Role
from quorate.simulator.transactions import Directory


@dataclass(slots=True)
class Renegotiation:
    directory: Directory
    resync: Resync

    def compare_again(self, peer: PeerVolume) -> None:
        """A handshake on a connection that already stands."""
        other = self.resync.mirror(peer)
        if other is None or peer.volume.backing is None or other.volume.backing is None:
            return
        mine, theirs = generations.announce(peer.volume, peer), generations.announce(other.volume, other)
        peer.generations, other.generations = theirs, mine
        own_id, far_id = peer.connection.resource.node_id, other.connection.resource.node_id
        decision = prefer_consistent(decide(Side(own_id, mine), Side(far_id, theirs)), mine, theirs)
        state = compute_replication(decision.strategy, peer.connection.resource.role, other.connection.resource.role)
        self._set_pair(peer, other, state)
        self.resync.begin(peer, decision)

    def compare_unstable(self, resource: Resource) -> None:
        """With no Primary near any more, neighbours whose generations differ settle who is behind (S3: after-unstable)."""
        for volume in resource.volumes.values():
            if volume.backing is None or not generations.is_stable(volume):
                continue
            for peer in volume.peers():
                other = self.resync.mirror(peer)
                idle = peer.replication is Replication.ESTABLISHED and other is not None
                if not idle or other is None or other.volume.backing is None or not generations.is_stable(other.volume):
                    continue
                if _differ(volume, other.volume):
                    self.compare_again(peer)

    def _set_pair(self, peer: PeerVolume, other: PeerVolume, state: Replication) -> None:
        opposite = {Replication.WF_BITMAP_S: Replication.WF_BITMAP_T, Replication.WF_BITMAP_T: Replication.WF_BITMAP_S}
        for side, far, value in ((peer, other, state), (other, peer, opposite.get(state, state))):
            owner = self.directory.owner(side.connection.resource)
            if owner is not None:
                change = Change(side.connection.resource, "peer-state", forced=True)
                change.put(side, "disk", far.volume.disk)
                change.put(side, "replication", value)
                owner.kernel.commit(change)

    def follow_diskless_primary(self, resource: Resource) -> None:
        """D10: data older than what a diskless Primary has seen is brought up to date by a member that has it."""
        for volume in resource.volumes.values():
            wanted = self._exposed_next_door(volume)
            if volume.backing is None or not wanted or volume.backing.metadata.current == wanted:
                continue
            for peer in volume.peers():
                other = self.resync.mirror(peer)
                idle = peer.replication is Replication.ESTABLISHED and other is not None
                if idle and other is not None and self._holds(other.volume, wanted):
                    self.compare_again(peer)
                    break

    def _exposed_next_door(self, volume: Volume) -> int:
        for peer in volume.peers():
            other = self.resync.mirror(peer) if peer.replication is not Replication.OFF else None
            if other is not None and other.volume.backing is None and other.volume.resource.role is Role.PRIMARY:
                return other.volume.exposed
        return 0

    def _holds(self, volume: Volume, generation: int) -> bool:
        current = volume.backing is not None and volume.backing.metadata.current == generation
        return current and volume.disk is Disk.UP_TO_DATE


def _differ(one: Volume, other: Volume) -> bool:
    """Two disks that are not equally current: another generation, or only one of them whole."""
    if one.backing is None or other.backing is None or max(one.disk, other.disk) < Disk.OUTDATED:
        return False
    partial = (one.disk is Disk.INCONSISTENT) != (other.disk is Disk.INCONSISTENT)
    return partial or one.backing.metadata.current != other.backing.metadata.current
