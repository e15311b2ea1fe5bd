"""Commands that concern more than one node: roles, connections, disks beside peers, generations, teardown.

Each follows the same shape: the initiator tries its part and checks it, everybody reachable agrees, then all commit
(`transactions.py`). Forms with `--force` skip the agreement and are facts for the others (D3, P9, P11).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from quorate.simulator import administration, disks, generations
from quorate.simulator.blocks import BlockDevice
from quorate.simulator.change import Change, attempt
from quorate.simulator.errors import Refusal
from quorate.simulator.kernel import Kernel
from quorate.simulator.links import Links
from quorate.simulator.meeting import close_paths
from quorate.simulator.model import Connection, PeerVolume, Resource, Volume
from quorate.simulator.options import Value
from quorate.simulator.parts import (
    become_peer,
    learn_state,
    opener_lines,
    outdated_side,
    part_ways,
    peer_detaches,
    prepare_forced_disk,
)
from quorate.simulator.renegotiation import Renegotiation
from quorate.simulator.resync import Resync
from quorate.simulator.states import Disk, Link, Replication, Role
from quorate.simulator.transactions import (
    Directory,
    Member,
    Surroundings,
    agree,
    carry_out,
    explore,
    know_as_outdated,
    outdate_if_left_behind,
)

_ROUNDS = 8
"""Noticing one dead link can reveal another; a cluster has at most this many layers of them."""


@dataclass(slots=True)
class Operations:
    """The cluster-wide commands, run on behalf of one node."""

    directory: Directory
    links: Links
    resync: Resync
    renegotiation: Renegotiation

    # --- roles -------------------------------------------------------------------------------------------------

    def primary(self, kernel: Kernel, resource: Resource, *, force: bool) -> None:
        """P1-P4, P11."""
        self.notice_dead(resource)
        try:
            self._promote(kernel, resource, up_to_date=False, outdate=False)
        except Refusal as refusal:
            if not force or refusal.code not in (-2, -25):
                raise self._with_openers(resource, refusal) from None
            self._force_primary(kernel, resource, refusal)

    def _force_primary(self, kernel: Kernel, resource: Resource, refusal: Refusal) -> None:
        """P11: one more try per reason; a reason that comes back in spite of it is final (S5, S18b)."""
        tried: set[int] = set()
        while True:
            if refusal.code not in (-2, -25) or refusal.code in tried:
                raise refusal
            tried.add(refusal.code)
            try:
                self._promote(kernel, resource, up_to_date=-2 in tried, outdate=-25 in tried)
            except Refusal as again:
                refusal = again
                continue
            if -2 in tried:
                self._spread_forced_data(kernel, resource)
            return

    def _promote(self, kernel: Kernel, resource: Resource, *, up_to_date: bool, outdate: bool) -> None:
        if resource.role is Role.PRIMARY:
            return
        around = explore(self.directory, Member(kernel, resource))
        change = Change(resource, "primary")
        change.put(resource, "role", Role.PRIMARY)
        for volume in resource.volumes.values():
            prepare_forced_disk(change, volume, up_to_date=up_to_date, outdate=outdate)
        kernel.prepare(change)
        try:
            self._check_distant_primaries(resource, around.primaries)
            agree(around, resource, "remote", become_peer(Role.PRIMARY))
            # P6: a voter reachable only through others is known to miss what comes now (X3, X5).
            for connection in resource.connections.values():
                if connection.peer_id in around.node_ids and connection.link is not Link.CONNECTED:
                    know_as_outdated(change, connection)
            self._outdate_far(around, resource)
            # The others know of it before the own commit can still fail; then they keep a wrong role (X3 #57).
            carry_out(around, resource, "remote", become_peer(Role.PRIMARY), around.node_ids | {resource.node_id})
            kernel.prepare(change)
        except Refusal:
            change.undo()
            raise
        resource.members = set(around.node_ids) | {resource.node_id}
        kernel.commit(change)

    def _outdate_far(self, around: Surroundings, resource: Resource) -> None:
        """X3: the request itself outdates a voter without a link to the candidate, even if it fails afterwards."""
        future = Surroundings(around.reached, around.primaries | {resource.node_id}, True)
        for entry in around.reached:
            if entry.member.resource.connections.get(resource.node_id) is None:
                continue
            part = Change(entry.member.resource, "far-away", forced=True)
            outdate_if_left_behind(part, entry.member.resource, future)
            entry.member.kernel.commit(part)

    def _check_distant_primaries(self, resource: Resource, primaries: frozenset[int]) -> None:
        """P4: another Primary that is reachable only through others (S5 #69)."""
        direct = {connection.peer_id for connection in resource.connected()}
        distant = primaries - direct - {resource.node_id}
        if not distant:
            return
        first = next(iter(resource.connected()))
        raise Refusal(-10, f"Declined by peer {first.name} (id: {first.peer_id}), see the kernel log there")

    def _spread_forced_data(self, kernel: Kernel, resource: Resource) -> None:
        """P11: forced data is a new generation, and connected disks resync from it (S18)."""
        for volume in resource.volumes.values():
            if volume.backing is None:
                continue
            weak = frozenset(peer.connection.peer_id for peer in volume.peers() if peer.disk is Disk.INCONSISTENT)
            generations.begin(volume, kernel.draw, weak)
            volume.new_generation = False
            for peer in volume.peers():
                if peer.replication is Replication.ESTABLISHED and peer.disk is Disk.INCONSISTENT:
                    self.renegotiation.compare_again(peer)

    def secondary(self, kernel: Kernel, resource: Resource, *, force: bool) -> None:
        """P8, P9."""
        if resource.role is Role.SECONDARY:
            return
        change = Change(resource, "secondary")
        change.put(resource, "role", Role.SECONDARY)
        try:
            kernel.prepare(change, ignore_openers=force)
        except Refusal as refusal:
            raise self._with_openers(resource, refusal) from None
        around = explore(self.directory, Member(kernel, resource))
        carry_out(around, resource, "remote", become_peer(Role.SECONDARY), around.node_ids | {resource.node_id})
        if force and any(volume.writable for volume in resource.volumes.values()):
            change.put(resource, "fail_io", True)
        kernel.commit(change, ignore_openers=force)

    def _with_openers(self, resource: Resource, refusal: Refusal) -> Refusal:
        if refusal.code != -12:
            return refusal
        return refusal.with_info(*(line for volume in resource.volumes.values() for line in opener_lines(volume)))

    # --- connections -------------------------------------------------------------------------------------------

    def connect(self, kernel: Kernel, connection: Connection, *, discard: bool) -> None:
        resource = connection.resource
        if connection.link is not Link.STAND_ALONE:
            raise Refusal(125)
        if not connection.paths:
            raise Refusal(162, "connection endpoint(s) missing")
        if discard and resource.role is Role.PRIMARY:
            raise Refusal(123)
        wanting = [p for p in connection.peer_volumes.values() if p.wants_bitmap and p.slot < 0]
        wanting = [peer for peer in wanting if peer.volume.backing is not None]
        if not all(generations.has_slot(peer.volume, peer) for peer in wanting):
            raise Refusal(162)
        connection.discard_my_data = discard
        change = Change(resource, "connect")
        change.put(connection, "link", Link.UNCONNECTED)
        kernel.commit(change)
        # The newcomer counts from now on: a Primary that only the tie-break keeps quorate may still add it (X2), one that
        # nothing keeps quorate is told (-25) before (X10).
        for peer in wanting:
            generations.allocate_slot(peer.volume, peer)
            if peer.volume.backing is not None and peer.volume.backing.metadata.just_created:
                disks.fill_fresh_slot(peer.volume, peer)
        self.links.dial(connection)

    def disconnect(self, kernel: Kernel, connection: Connection, tag: str, *, force: bool) -> None:
        """D2, D3: a polite leave is agreed upon; `--force` is a loss for the other end."""
        if connection.link is Link.STAND_ALONE:
            return
        self.notice_dead(connection.resource)
        if connection.link is Link.CONNECTED and not force:
            self._leave(kernel, connection, tag)
        elif connection.link is Link.CONNECTED:
            end = self.directory.other_end(connection)
            self._stand_alone(kernel, connection, tag, forced=True)
            if end is not None:
                self.links.lose(end[1], Link.NETWORK_FAILURE)
            self.links.probe(Member(kernel, connection.resource))  # its own doubt is settled as well (X6b: Outdated)
            return
        self._stand_alone(kernel, connection, tag, forced=force)

    def _leave(self, kernel: Kernel, connection: Connection, tag: str) -> None:
        end = self.directory.other_end(connection)
        assert end is not None
        there, back = end
        resource = connection.resource
        mine, theirs = Change(resource, tag), Change(there.resource, "remote")
        outdated = outdated_side(connection, back)
        # Whoever stays judges by the members that stay: the leaver is gone with everybody's knowledge (S9 #57, X5).
        before, there.resource.members = there.resource.members, self._members_without(there, back)
        try:
            with attempt(mine, theirs):
                part_ways(mine, connection, outdated)
                kernel.prepare(mine)
                part_ways(theirs, back, outdated)
                self._ask(there, theirs, connection)
        except Refusal:
            there.resource.members = before
            raise
        kernel.commit(mine)
        resource.members = self._members_without(Member(kernel, resource), connection)
        there.kernel.commit(theirs)
        close_paths(kernel, connection)
        close_paths(there.kernel, back)
        self.tell_disk_states(there.resource, resource)
        self.links.hang_up(back)

    def _ask(self, there: Member, change: Change, connection: Connection) -> None:
        try:
            there.kernel.prepare(change)
        except Refusal:
            name, peer_id = connection.name, connection.peer_id
            raise Refusal(-10, f"Declined by peer {name} (id: {peer_id}), see the kernel log there") from None

    def _members_without(self, member: Member, link: Connection) -> set[int]:
        return set(explore(self.directory, member, without=link).node_ids) | {member.resource.node_id}

    def tell_disk_states(self, *resources: Resource) -> None:
        """A node whose disk changed tells its neighbours; over a dead link nothing arrives (S17b #72)."""
        for resource in resources:
            for connection in resource.connected():
                end = self.directory.other_end(connection)
                if end is not None and self.links.active_path(connection) is not None:
                    self._hear(end[0], end[1], resource)

    def _hear(self, listener: Member, link: Connection, speaker: Resource) -> None:
        """A state message; a Primary that would lose quorum or data by it cuts the speaker off instead (S17, S19)."""
        primary, told = listener.resource.role is Role.PRIMARY, speaker.volumes
        worse = any(n in told and told[n].disk < peer.disk for n, peer in link.peer_volumes.items())
        change = Change(listener.resource, "peer-state", forced=not (primary and worse))
        if any(n in told and told[n].disk is not peer.disk for n, peer in link.peer_volumes.items()):
            change.put(link, "peer_role", speaker.role)  # part of every such message: corrects what is left of X3 #57
        for number, peer in link.peer_volumes.items():
            if number in speaker.volumes:
                learn_state(change, peer, speaker.volumes[number])
        # Only a node without a disk votes by what its peers say of their quorum (Q7); a Primary with a
        # disk does not re-evaluate because of a mere message (X7 #77).
        diskless = any(volume.backing is None for volume in listener.resource.volumes.values())
        try:
            listener.kernel.commit(change, recalculate=diskless)
        except Refusal:
            self._stand_alone(listener.kernel, link, "", forced=True)
            end = self.directory.other_end(link)
            if end is not None and end[1].link is Link.CONNECTED:
                self.links.lose(end[1], Link.NETWORK_FAILURE)

    def _stand_alone(self, kernel: Kernel, connection: Connection, tag: str, *, forced: bool) -> None:
        for link in (Link.DISCONNECTING, Link.STAND_ALONE):
            change = Change(connection.resource, tag, forced=forced or link is Link.STAND_ALONE)
            change.put(connection, "link", link)
            kernel.commit(change)
        close_paths(kernel, connection)

    def del_peer(self, kernel: Kernel, connection: Connection, *, force: bool, tag: str = "del-peer") -> None:
        self.disconnect(kernel, connection, tag, force=force)
        administration.remove_peer(kernel, connection)

    def copy_settings(self, connection: Connection) -> None:
        """P13: on a live link the setting of two primaries is copied to the other end."""
        end = self.directory.other_end(connection)
        if connection.link is Link.CONNECTED and end is not None:
            end[1].net["allow-two-primaries"] = connection.net["allow-two-primaries"]

    def notice_dead(self, resource: Resource) -> None:
        """P12: a cluster-wide change pings first, and waits until no reachable disk is in doubt.

        The waiting (up to auto-promote-timeout plus ping-timeout, S13 #39) is not modelled as time of this command;
        what it waits for happens before the change.
        """
        start = self.directory.owner(resource)
        if start is None:
            return
        for _ in range(_ROUNDS):
            members = [start, *(entry.member for entry in explore(self.directory, start).reached)]
            dead = [c for m in members for c in m.resource.connected() if self.links.active_path(c) is None]
            for connection in dead:
                if connection.link is Link.CONNECTED:
                    self.links.lose(connection, Link.NETWORK_FAILURE)
            if not dead:
                break
        for member in [start, *(entry.member for entry in explore(self.directory, start).reached)]:
            if any(volume.disk is Disk.CONSISTENT for volume in member.resource.volumes.values()):
                self.links.probe(member)
                self.tell_disk_states(member.resource)

    # --- disks -------------------------------------------------------------------------------------------------

    def attach(
        self, kernel: Kernel, volume: Volume, path: str, device: BlockDevice, given: Mapping[str, Value]
    ) -> None:
        disks.attach(kernel, volume, path, device, given, lambda v: self._negotiate(kernel, v))
        self.tell_disk_states(volume.resource)

    def _negotiate(self, kernel: Kernel, volume: Volume) -> None:
        """D13: connected peers must accept the disk; then the handshake of each decides."""
        assert volume.backing is not None
        resource = volume.resource
        for connection in resource.connected():
            end = self.directory.other_end(connection)
            peer = end[1].peer_volumes.get(volume.number) if end is not None else None
            if peer is not None and not peer.wants_bitmap:
                raise Refusal(-10, "Probably this node is marked as intentional diskless on a peer")
        change = Change(resource, "attach", forced=True)
        change.put(volume, "disk", Disk.NEGOTIATING)
        kernel.commit(change)
        self.tell_disk_states(resource)
        change = Change(resource, "attach", forced=True)
        own = disks.compute_own_disk(volume.backing.metadata)
        # D13: with an UpToDate neighbour of the same generation there is nothing to negotiate (S10 #50).
        current = volume.backing.metadata.current
        equal = [p for p in volume.peers() if p.disk is Disk.UP_TO_DATE and self._generation_of(p) == current]
        change.put(volume, "disk", Disk.UP_TO_DATE if equal and own >= Disk.OUTDATED else own)
        kernel.commit(change)
        for connection in resource.connected():
            self.renegotiation.compare_again(connection.peer_volumes[volume.number])

    def _generation_of(self, peer: PeerVolume) -> int:
        other = self.resync.mirror(peer)
        return other.volume.backing.metadata.current if other is not None and other.volume.backing is not None else 0

    def detach(self, kernel: Kernel, volume: Volume, tag: str, *, force: bool, diskless: bool) -> None:
        """D15."""
        if volume.backing is None:
            volume.options["diskless"] = "yes" if diskless else "no"
            return
        before, volume.options["diskless"] = volume.options["diskless"], "yes" if diskless else "no"
        change = Change(volume.resource, tag, forced=force)
        change.put(volume, "disk", Disk.DETACHING)
        try:
            kernel.prepare(change)
            if not force:
                around = explore(self.directory, Member(kernel, volume.resource))
                agree(around, volume.resource, "remote", peer_detaches(volume.number))
        except Refusal as refusal:
            change.undo()
            volume.options["diskless"] = before
            raise (refusal.with_info(*opener_lines(volume)) if refusal.code == -2 else refusal) from None
        kernel.commit(change)
        disks.detach(kernel, volume, "go-diskless")
        self.tell_disk_states(volume.resource)

    def new_current_uuid(self, kernel: Kernel, volume: Volume, *, clear: bool, resync: bool) -> None:
        """U12-U15."""
        if volume.backing is None:
            raise Refusal(138)
        metadata = volume.backing.metadata
        fresh = metadata.just_created and (clear or resync)
        connected = [peer for peer in volume.peers() if peer.replication is not Replication.OFF]
        if any(peer.replication is not Replication.ESTABLISHED or not fresh for peer in connected):
            raise Refusal(151)
        weak = frozenset(p.connection.peer_id for p in connected if resync and p.disk >= Disk.INCONSISTENT)
        for entry in metadata.peers:
            entry.bitmap_uuid = 0
        generations.begin(volume, kernel.draw, weak)
        if clear:
            self._skip_first_sync(kernel, volume, connected)
        elif resync:
            self._force_first_sync(kernel, volume, connected)

    def _skip_first_sync(self, kernel: Kernel, volume: Volume, connected: list[PeerVolume]) -> None:
        assert volume.backing is not None
        metadata = volume.backing.metadata
        for bitmap in metadata.bitmaps:
            bitmap.clear()
        for peer in connected:
            metadata.peers[peer.connection.peer_id].bitmap_uuid = 0
            other = self.resync.mirror(peer)
            if other is not None and other.volume.backing is not None:
                theirs = other.volume.backing.metadata
                theirs.current = metadata.current
                for bitmap in theirs.bitmaps:
                    bitmap.clear()
            if other is not None:
                other.volume.exposed = metadata.current
        self._all_up_to_date(kernel, volume, connected)

    def _all_up_to_date(self, kernel: Kernel, volume: Volume, connected: list[PeerVolume]) -> None:
        everybody = [(kernel, volume, "new-c-uuid")]
        for peer in connected:
            other = self.resync.mirror(peer)
            owner = self.directory.owner(other.connection.resource) if other is not None else None
            if other is not None and owner is not None:
                everybody.append((owner.kernel, other.volume, "skip-initial-sync"))
        current = {id(entry[1]) for entry in everybody if entry[1].backing is not None}
        for owner_kernel, own, tag in everybody:
            change = Change(own.resource, tag, forced=True)
            if own.backing is not None:
                change.put(own, "disk", Disk.UP_TO_DATE)
            owner_kernel.commit(change)
            self._hear_of_data(owner_kernel, own, current)
        for _, own, _ in everybody:
            self.tell_disk_states(own.resource)

    def _hear_of_data(self, kernel: Kernel, own: Volume, current: set[int]) -> None:
        """The others' messages come one by one (S6 #33, S16 #33: one peer UpToDate, the other not yet)."""
        timing, node = self.links.timing, own.resource.node
        for peer in sorted(own.peers(), key=lambda each: timing.news(node, each.connection, str(Disk.UP_TO_DATE))):
            far = self.resync.mirror(peer)
            if far is not None and id(far.volume) in current and peer.replication is not Replication.OFF:
                peer.generations = generations.announce(far.volume, far)
                change = Change(own.resource, "peer-state", forced=True)
                change.put(peer, "disk", Disk.UP_TO_DATE)
                kernel.commit(change)

    def _force_first_sync(self, kernel: Kernel, volume: Volume, connected: list[PeerVolume]) -> None:
        change = Change(volume.resource, "new-c-uuid", forced=True)
        change.put(volume, "disk", Disk.UP_TO_DATE)
        kernel.commit(change)
        self.tell_disk_states(volume.resource)
        for peer in connected:
            if peer.disk >= Disk.INCONSISTENT:
                self.renegotiation.compare_again(peer)

    # --- teardown ----------------------------------------------------------------------------------------------

    def down(self, kernel: Kernel, resource: Resource) -> None:
        """N8: demote, leave every peer, detach, delete; stops at the first refusal with what was done so far."""
        try:
            self.secondary(kernel, resource, force=False)
        except Refusal as refusal:
            raise Refusal(refusal.code, "failed to demote", *refusal.info) from None
        for connection in list(resource.connections.values()):
            self.del_peer(kernel, connection, force=False, tag="down")
        for volume in list(resource.volumes.values()):
            try:
                self.detach(kernel, volume, "down", force=False, diskless=False)
            except Refusal as refusal:
                raise refusal.with_info("failed to detach", *opener_lines(volume)) from None
            administration.del_minor(kernel, volume)
        administration.del_resource(kernel, resource)
