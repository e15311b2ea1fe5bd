"""The life of a connection: dialling, the meeting of two ends, loss, and what the survivors conclude.

Rules N1-N6 of facts/agent 5.7, D4-D6 and the recorded stories of S5, S14, S15, S20. Nothing polls: an end that dials
is woken when something relevant changes (the other end dials, a link heals, a node returns), and a loss is noticed
after the ping interval by a timer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from quorate.simulator.change import Change, attempt
from quorate.simulator.errors import Refusal
from quorate.simulator.handshake import Decision
from quorate.simulator.meeting import (
    close_paths,
    compare_ends,
    establish,
    force_secondary,
    join_ends,
    learn_sizes,
    one_sided,
    same_session,
    secret,
    settings_agree,
    too_small,
    use_path,
)
from quorate.simulator.model import Connection, Path, PeerVolume, Resource
from quorate.simulator.network import Network
from quorate.simulator.scheduler import Handle, Scheduler
from quorate.simulator.states import Disk, Link, Role
from quorate.simulator.timing import Timing
from quorate.simulator.transactions import (
    Directory,
    Member,
    Surroundings,
    carry_out,
    explore,
    know_as_outdated,
    outdate_if_left_behind,
    take_members,
)

RESET = 0.01
"""How soon a closed session is answered with a reset once frames pass."""

RETRY_CONNECT = 1.0
"""How long an end waits after a handshake with a wrong node, and again while it dials (S15)."""

RETRY = 0.1
"""How soon a held-up cluster-wide change is tried again."""


@dataclass(slots=True)
class Links:
    """All connections of a cluster."""

    directory: Directory
    network: Network
    scheduler: Scheduler
    timing: Timing
    node_of: Callable[[Resource], str]
    after_meeting: Callable[[PeerVolume, Decision], None]
    after_connect: Callable[[Connection, Connection], None]
    after_probe: Callable[[Member], None]
    tell: Callable[[Resource], None]
    timers: dict[int, Handle] = field(default_factory=dict[int, Handle])
    meeting: bool = False  # between the commits of two ends; writers wait for its end (I6)

    # --- dialling ----------------------------------------------------------------------------------------------

    def dial(self, connection: Connection) -> None:
        """Unconnected to Connecting, then try until the other end is there."""
        member = self._member(connection)
        if member is None or connection.link is not Link.UNCONNECTED:
            return
        # Nobody comes or goes by it, so a Primary whose raised q is not met does not notice yet (X2, stage 2).
        keeps = connection.resource.role is Role.PRIMARY
        change = Change(connection.resource, "connecting", keeps_quorum=keeps)
        change.put(connection, "link", Link.CONNECTING)
        member.kernel.commit(change)
        self._wake(connection)

    def _wake(self, connection: Connection) -> None:
        """Plans a meeting when both ends dial over a working path."""
        end = self._dialling_end(connection)
        if end is None:
            self._wake_strangers(connection)
            return
        first = connection if connection.resource.node_id < end.resource.node_id else end
        node = self.node_of(first.resource)
        delay = self.timing.first_words(node, first)
        if delay is not None:
            self._later(first, delay, lambda: self._rehearse(first))
        else:
            delay = self.timing.dial(node, first)
            self._later(first, delay, lambda: self.meet(first))
        self._plan_transport(connection, end, delay)

    def _plan_transport(self, connection: Connection, end: Connection, delay: float) -> None:
        for side in (connection, end):
            earlier = self.timing.transport(self.node_of(side.resource), side, delay)
            self.scheduler.call_later(earlier, lambda waiting=side: self._stand(waiting))

    def _rehearse(self, connection: Connection) -> None:
        """What two ends find out before they agree; if nothing speaks against it, they are Connected a moment later."""
        end = self._dialling_end(connection)
        if end is None:
            return
        decisions = compare_ends(connection, end)
        if self._hopeless(connection, end, decisions):
            self.meet(connection)
            return
        if self._held_up(connection, end):
            self._later(connection, RETRY, lambda: self._rehearse(connection))
            return
        try:
            for _, change in reversed(self._try(connection, end, decisions)[0]):
                change.undo()
        except Refusal as refusal:
            self._settle_failed_meeting(connection, end, decisions, refusal)
            return
        delay = self.timing.dial(self.node_of(connection.resource), connection)
        self._later(connection, delay, lambda: self.meet(connection))

    def _wake_strangers(self, connection: Connection) -> None:
        """Two ends that dial each other under wrong node ids: the handshake fails for ever, without StandAlone (S15)."""
        found = self.directory.facing(connection)
        if found is None or self.directory.other_end(connection) is not None or found[1].link is not Link.CONNECTING:
            return
        if connection.link is not Link.CONNECTING or self.usable_path(connection, found[1]) is None:
            return
        for side in (connection, found[1]):
            node = self.node_of(side.resource)
            delay = self.timing.first_words(node, side) or RETRY_CONNECT
            self._later(side, delay, lambda failing=side: self._fail(failing, pause=RETRY_CONNECT))
        self._plan_transport(connection, found[1], 2 * RETRY_CONNECT)

    def _fail(self, connection: Connection, pause: float) -> None:
        """A handshake that ends without a word is a network failure; dialling starts again (S15, S17b)."""
        member = self._member(connection)
        if member is None or connection.link is not Link.CONNECTING:
            return
        change = Change(connection.resource, "", forced=True)
        change.put(connection, "link", Link.NETWORK_FAILURE)
        member.kernel.commit(change)
        self.scheduler.call_later(RESET, lambda: self._after_failure(connection, pause))

    def _after_failure(self, connection: Connection, pause: float) -> None:
        member = self._member(connection)
        if member is None or connection.link is not Link.NETWORK_FAILURE:
            return
        close_paths(member.kernel, connection)
        self.hang_up(connection, pause)

    def _stand(self, connection: Connection) -> None:
        """The transport of a dialling end stands; the meeting follows (seen as Connecting with an established path)."""
        found, member = self.directory.facing(connection), self._member(connection)
        dialling = found is not None and connection.link is found[1].link is Link.CONNECTING
        path = self.usable_path(connection, found[1]) if found is not None and dialling else None
        if path is not None and member is not None:
            use_path(member.kernel, connection, path)

    def reconsider(self, one: str, other: str) -> None:
        """A link between two nodes changed: dialling ends try again, connected ends may notice a loss."""
        for connection in self._between(one, other):
            if connection.link is Link.CONNECTING:
                self._lose_transport(connection)
                self._wake(connection)
            elif connection.link is Link.CONNECTED and self.active_path(connection) is None:
                if self._is_reset(connection):
                    self._later(connection, RESET, lambda lost=connection: self._break(lost))
                else:
                    self.watch(connection)

    def _lose_transport(self, connection: Connection) -> None:
        member = self._member(connection)
        if member is not None and self._dialling_end(connection) is None:
            close_paths(member.kernel, connection)

    def watch(self, connection: Connection) -> None:
        """The other end may be gone: it is noticed after the ping interval."""
        delay = self.timing.notice_loss(self.node_of(connection.resource), connection)
        self._later(connection, delay, lambda: self._notice(connection))

    def _is_reset(self, connection: Connection) -> bool:
        """Frames pass, but the other end has closed the session: its machine answers with a reset."""
        addresses = [path.local.split(":")[1] for path in connection.paths if path.established]
        remotes = [path.remote.split(":")[1] for path in connection.paths if path.established]
        for local, remote in zip(addresses, remotes, strict=True):
            here, there = self.network.interfaces.get(local), self.network.interfaces.get(remote)
            if here is not None and there is not None and self.network.works(here.node, there.node, here.network):
                return True
        return False

    def _break(self, connection: Connection) -> None:
        if connection.link is Link.CONNECTED and self.active_path(connection) is None:
            self.lose(connection, Link.BROKEN_PIPE)

    def _notice(self, connection: Connection) -> None:
        if connection.link is Link.CONNECTED and self.active_path(connection) is None:
            self.lose(connection, Link.NETWORK_FAILURE)

    def usable_path(self, connection: Connection, end: Connection) -> Path | None:
        """A configured pair that the other end mirrors and whose network works."""
        mirrored = {(path.remote, path.local) for path in end.paths}
        one, other = self.node_of(connection.resource), self.node_of(end.resource)
        for path in connection.paths:
            interface = self.network.interfaces.get(path.local.split(":")[1])
            right_host = interface is not None and interface.node == one
            if right_host and (path.local, path.remote) in mirrored and self._works(connection, one, other, path):
                return path
        return None

    def active_path(self, connection: Connection) -> Path | None:
        """The established path, None once frames no longer pass or the other end has closed this session."""
        end = self.directory.other_end(connection)
        if end is None or not same_session(connection, end[1]):
            return None
        one, other = self.node_of(connection.resource), self.node_of(end[0].resource)
        return next((p for p in connection.paths if p.established and self._works(connection, one, other, p)), None)

    def _works(self, connection: Connection, one: str, other: str, path: Path) -> bool:
        """Frames pass both ways, and a ping is answered in time (N4)."""
        interface, timeout = self.network.interfaces.get(path.local.split(":")[1]), connection.net["ping-timeout"]
        assert isinstance(timeout, int)
        if interface is None or not self.network.works(one, other, interface.network):
            return False
        return self.network.round_trip(one, other, interface.network) <= timeout / 10

    def _dialling_end(self, connection: Connection) -> Connection | None:
        end = self.directory.other_end(connection)
        if connection.link is not Link.CONNECTING or end is None or end[1].link is not Link.CONNECTING:
            return None
        return end[1] if self.usable_path(connection, end[1]) is not None else None

    # --- the meeting -------------------------------------------------------------------------------------------

    def meet(self, connection: Connection) -> None:
        """The whole handshake at one moment: authentication, settings, generations, agreement."""
        end = self._dialling_end(connection)
        if end is None:
            return None
        decisions = compare_ends(connection, end)
        if self._hopeless(connection, end, decisions):
            return self._reject(connection, end, decisions)
        if self._held_up(connection, end):
            return self._later(connection, RETRY, lambda: self.meet(connection))
        try:
            self._connect(connection, end, decisions)
        except Refusal as refusal:
            self._settle_failed_meeting(connection, end, decisions, refusal)
        return None

    def _hopeless(self, connection: Connection, end: Connection, decisions: dict[int, Decision]) -> bool:
        """What no retry cures: secrets, settings, unrelated data, split brain, sizes."""
        if secret(connection) != secret(end) or not settings_agree(connection, end):
            return True
        fatal = any(decision.strategy.fatal for decision in decisions.values())
        return fatal or too_small(connection, end) is not None

    def _reject(self, connection: Connection, end: Connection, decisions: dict[int, Decision]) -> None:
        """Both sides give up; a secret on one side only ends that side (S15)."""
        small = too_small(connection, end)
        if small is not None and secret(connection) == secret(end) and settings_agree(connection, end):
            return self._refuse_small(connection, end, small, decisions)
        for side in (connection, end):
            if side.link is Link.CONNECTING and (bool(secret(side)) or not one_sided(connection, end)):
                self._drop(side, "connect-failed")
            else:
                self._fail(side, pause=0.0)
        return None

    def _refuse_small(
        self, first: Connection, second: Connection, small: Connection, decisions: dict[int, Decision]
    ) -> None:
        """Z2: the larger end gives up. The smaller one does too if it had proposed the meeting (the lower node id does),
        and then knows that it was left behind; otherwise it only sees the line go dead and dials on (S11 #86)."""
        large = second if small is first else first
        proposed = small.resource.node_id < large.resource.node_id
        self._drop(large, "connect-failed")
        if not proposed:
            self._fail(small, pause=0.0)
            return
        self._drop(small, "connect-failed")
        member = self._member(small)
        change = Change(small.resource, "connect-failed", forced=True)
        for number, decision in decisions.items():
            behind = decision.strategy.target if small is first else decision.strategy.source
            if behind and small.resource.volumes[number].disk > Disk.OUTDATED:
                change.put(small.resource.volumes[number], "disk", Disk.OUTDATED)
        if member is not None and small.resource.role is not Role.PRIMARY:
            member.kernel.commit(change)

    def _drop(self, connection: Connection, tag: str) -> None:
        """Connecting to StandAlone: no retry until `connect` (N1)."""
        member = self._member(connection)
        if member is not None:
            close_paths(member.kernel, connection)
            for link in (Link.DISCONNECTING, Link.STAND_ALONE):
                change = Change(connection.resource, tag, forced=True)
                change.put(connection, "link", link)
                member.kernel.commit(change)

    def _try(
        self, connection: Connection, end: Connection, decisions: dict[int, Decision]
    ) -> tuple[list[tuple[Member, Change]], Surroundings]:
        """Both ends write and check their part; a refusal leaves no trace."""
        here, there = self._require(connection), self._require(end)
        around = explore(self.directory, here)
        beyond = explore(self.directory, there)
        changes = [(here, Change(here.resource, "connected")), (there, Change(there.resource, "remote"))]
        everybody = around.primaries | beyond.primaries
        joined = Surroundings((*around.reached, *beyond.reached), everybody, around.capable or beyond.capable)
        if len(everybody) > 1 and not connection.two_primaries:
            raise Refusal(-1)  # P4: a meeting never brings a second Primary into one cluster (S5c, S14)
        with attempt(*(change for _, change in changes)):
            for (member, change), mine, theirs in ((changes[0], connection, end), (changes[1], end, connection)):
                join_ends(change, mine, theirs, decisions, mirrored=member is there)
                outdate_if_left_behind(change, member.resource, joined)
            for member, change in changes:
                member.kernel.prepare(change)
        return changes, joined

    def _connect(self, connection: Connection, end: Connection, decisions: dict[int, Decision]) -> None:
        learn_sizes(self._require(connection).kernel, connection, end)
        learn_sizes(self._require(end).kernel, end, connection)
        changes, joined = self._try(connection, end, decisions)
        here, there = changes[0][0], changes[1][0]
        members = joined.node_ids | {here.resource.node_id, there.resource.node_id}
        # The transport stands before the states say so: whoever waits for them must be able to use it.
        establish(here.kernel, connection, there.kernel, end, self.usable_path(connection, end))
        self.meeting = True
        for member, change in changes:
            member.resource.members = set(members)
            member.kernel.commit(change, recalculate=True)
        self.meeting = False
        for entry in joined.reached:
            take_members(entry.member.resource, members)
        self.after_connect(connection, end)
        self._outdate_bystanders(joined)
        for number, decision in decisions.items():
            self.after_meeting(connection.peer_volumes[number], decision)

    def _outdate_bystanders(self, joined: Surroundings) -> None:
        """D5 at the others: a meeting that brings a Primary within reach tells who is not linked to it (S5 #87)."""
        for entry in joined.reached:
            change = Change(entry.member.resource, "far-away", forced=True)
            outdate_if_left_behind(change, entry.member.resource, joined)
            entry.member.kernel.commit(change)

    def _settle_failed_meeting(
        self, connection: Connection, end: Connection, decisions: dict[int, Decision], refusal: Refusal
    ) -> None:
        """U10, I7: a Primary that would have to become target; or a joining that would cost quorum (retried)."""
        sides = ((connection, False), (end, True))
        demoted = [s for s, far in sides if force_secondary(self._member(s), s, decisions, mirrored=far)]
        retry = any(side.net["rr-conflict"] == "retry-connect" for side, _ in sides)
        if refusal.code == -25:
            # The cluster had agreed before the local commit failed: each end counts the other as a member (S17b).
            for side, other in ((connection, end), (end, connection)):
                side.resource.members |= {other.resource.node_id}
            for side, _ in sides:
                self._fail(side, pause=0.0)
            return
        if demoted or retry:  # within the same session (S5c)
            delay = self.timing.dial(self.node_of(connection.resource), connection)
            self._later(connection, delay, lambda: self.meet(connection))
            return
        for side, _ in sides:
            self._drop(side, "connect-failed")

    # --- loss --------------------------------------------------------------------------------------------------

    def lose(self, connection: Connection, link: Link) -> None:
        """One end notices that the other is gone, then probes what is left of the cluster (D4-D7)."""
        member = self._member(connection)
        if member is None:
            return
        change = Change(connection.resource, "", forced=True)
        change.put(connection, "link", link)
        member.kernel.commit(change)
        close_paths(member.kernel, connection)
        primary = connection.resource.role is Role.PRIMARY
        if any(volume.disk is Disk.CONSISTENT for volume in connection.resource.volumes.values()):
            self.tell(connection.resource)  # the doubt is told before the probe settles it (S14 #42)
        if primary and self.timing.hangs_up_first(self.node_of(connection.resource), connection):
            self.hang_up(connection)
        self.probe(member)
        end = self.directory.other_end(connection)
        if end is not None and end[1].link is Link.CONNECTED and self._is_reset(end[1]):
            self._later(end[1], RESET, lambda: self._break(end[1]))
        self.hang_up(connection)

    def hang_up(self, connection: Connection, pause: float = 0.0) -> None:
        """From a network error back to dialling; a Primary that would lose quorum by it stays where it is (X0a)."""
        member = self._member(connection)
        if member is None or connection.link in (Link.CONNECTED, Link.CONNECTING, Link.STAND_ALONE):
            return
        change = Change(connection.resource, "disconnected")
        change.put(connection, "link", Link.UNCONNECTED)
        try:
            member.kernel.commit(change)
        except Refusal:
            self._later(connection, 0.5, lambda: self.hang_up(connection, pause))
            return
        if pause:
            self._later(connection, pause, lambda: self.dial(connection))
        else:
            self.dial(connection)

    def probe(self, member: Member) -> None:
        """The empty transaction after a loss: drops unreachable members and settles a doubtful disk (D5, D6).

        A participant whose own link is dead without having noticed holds the transaction up until it does; the
        recorded initiators retry meanwhile (S5: Consistent for a second, then UpToDate).
        """
        around = explore(self.directory, member)
        resource = member.resource
        if any(self._deaf(entry.member.resource) for entry in around.reached) or self._deaf(resource):
            self.scheduler.call_later(RETRY, lambda: self._probe_again(member))
            return
        reached = around.node_ids | {resource.node_id}
        change = Change(resource, "lost-peer", forced=resource.role is not Role.PRIMARY)
        outdate_if_left_behind(change, resource, around)
        doubtful = [volume for volume in resource.volumes.values() if volume.disk is Disk.CONSISTENT]
        for volume in doubtful:
            change.put(volume, "disk", Disk.UP_TO_DATE)
        before, resource.members = resource.members, set(reached)
        try:
            # A Primary does not weigh its quorum anew because of an empty transaction (S17b, X0a).
            member.kernel.commit(change, recalculate=resource.role is not Role.PRIMARY)
        except Refusal:
            resource.members = before
            return
        if doubtful:
            self.tell(resource)  # as soon as the doubt itself was told: nobody may write past a disk in between

        def learn(_: Member, part: Change, link: Connection | None) -> None:
            # Whoever reports a loss from afar misses what this Primary writes, with or without a disk (S5, S19).
            if link is None and part.resource.role is Role.PRIMARY:
                known = part.resource.connections.get(resource.node_id)
                if known is not None:
                    know_as_outdated(part, known)

        carry_out(around, resource, "far-away", learn, reached, forced=False)
        self.after_probe(member)
        for entry in around.reached:
            self.after_probe(entry.member)

    def _held_up(self, connection: Connection, end: Connection) -> bool:
        """A participant whose own link is dead without having noticed holds a meeting up as well (S17b #69)."""
        sides = (self._require(connection), self._require(end))
        nearby = (entry.member.resource for side in sides for entry in explore(self.directory, side).reached)
        return any(self._deaf(resource) for resource in (connection.resource, end.resource, *nearby))

    def _deaf(self, resource: Resource) -> bool:
        return any(self.active_path(connection) is None for connection in resource.connected())

    def _probe_again(self, member: Member) -> None:
        if self.directory.owner(member.resource) is not None:
            self.probe(member)

    # --- helpers -----------------------------------------------------------------------------------------------

    def _later(self, connection: Connection, delay: float, action: Callable[[], None]) -> None:
        key = id(connection)
        pending = self.timers.pop(key, None)
        if pending is not None:
            pending.cancel()

        def run() -> None:
            self.timers.pop(key, None)
            action()

        self.timers[key] = self.scheduler.call_later(delay, run)

    def _member(self, connection: Connection) -> Member | None:
        end = self.directory.other_end(connection)
        if end is not None:
            back = self.directory.other_end(end[1])
            return back[0] if back is not None else None
        return self.directory.owner(connection.resource)

    def _require(self, connection: Connection) -> Member:
        member = self._member(connection)
        assert member is not None
        return member

    def _between(self, one: str, other: str) -> list[Connection]:
        return self.directory.between(one, other)
