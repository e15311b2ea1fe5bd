"""Patience: commands that may be refused again and again are repeated less and less often.

* A connection whose handshake is refused (wrong secret, split brain, other settings) falls back to StandAlone a moment
  after a successful `connect`.
* A promotion without quorum or data is refused, and every attempt may outdate another node's disk (X3, X5); a demotion is
  refused while the device is open. They are repeated when something that matters changed, else after growing pauses.
* A promotion waits for links that are just being made, for a moment: whoever is promoted while a diskful peer can be
  reached only through others declares that peer Outdated (P6), and it has to be resynced for nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent.actual import ActualResource
from quorate.agent.plan import Problem
from quorate.api.common import ConnectionState, DrbdRole
from quorate.api.drbd_resource import ConfiguredCondition as Reason
from quorate.machinery.clock import Clock

FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0
FIRST_CONTACT = 5.0
"""How long a promotion waits after `connect` for a peer that has not answered yet; a dead peer costs no more than this."""
RECENT = 1.0
"""An attempt that became due this many seconds ago may have been missed by the pass that ends now."""


@dataclass(slots=True)
class _Attempt:
    wait: float
    not_before: float
    since: float
    """When this peer was told to connect for the first time since it was last connected."""


@dataclass(slots=True)
class _RoleAttempt:
    wait: float
    not_before: float
    circumstances: object
    problem: Problem


class Patience:
    """When the next attempt may be made."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._connects: dict[str, dict[int, _Attempt]] = {}
        """By resource and peer, so that the cost of one resource does not grow with the others."""
        self._roles: dict[str, _RoleAttempt] = {}
        self._contacts: dict[str, float] = {}
        """By resource: until when a promotion waits for first contacts."""

    # --- connections -------------------------------------------------------------------------------------------

    def connect_accepted(self, resource: str, peer: int) -> None:
        """A `connect` was accepted; if the peer stands alone again, the next one waits."""
        attempts = self._connects.setdefault(resource, {})
        known = attempts.get(peer)
        wait = min(known.wait * 2, LONGEST_WAIT) if known else FIRST_WAIT
        now = self._clock.monotonic()
        attempts[peer] = _Attempt(wait, now + wait, known.since if known else now)

    def held_connects(self, resource: str, actual: ActualResource | None) -> frozenset[int]:
        """Peers of this resource that must wait; those that are connected start from the beginning."""
        states = {peer.node_id: peer for peer in actual.peers} if actual else {}
        now = self._clock.monotonic()
        attempts = {
            peer: attempt
            for peer, attempt in self._connects.pop(resource, {}).items()
            if (current := states.get(peer)) is not None and not current.connected
        }
        if attempts:
            self._connects[resource] = attempts
        return frozenset(peer for peer, attempt in attempts.items() if attempt.not_before > now)

    # --- roles -------------------------------------------------------------------------------------------------

    def role_refused(self, actual: ActualResource, problem: Problem) -> None:
        """A change of role was refused in these circumstances."""
        known = self._roles.get(actual.name)
        same = known is not None and known.circumstances == circumstances(actual)
        wait = min(known.wait * 2, LONGEST_WAIT) if known is not None and same else FIRST_WAIT
        not_before = self._clock.monotonic() + wait
        self._roles[actual.name] = _RoleAttempt(wait, not_before, circumstances(actual), problem)

    def held_role(self, actual: ActualResource | None, *, primary: bool) -> Problem | None:
        """Why the role is not tried now; None when it may be."""
        if actual is None:
            return None
        contact = self._first_contact(actual) if primary and actual.role != DrbdRole.PRIMARY else None
        attempt = self._roles.get(actual.name)
        if contact is not None or attempt is None:
            return contact
        waiting = attempt.not_before > self._clock.monotonic() and attempt.circumstances == circumstances(actual)
        return attempt.problem if waiting else None

    def _first_contact(self, actual: ActualResource) -> Problem | None:
        """Peers that were told to connect a moment ago and have not answered yet."""
        attempts, now = self._connects.get(actual.name, {}), self._clock.monotonic()
        awaited = [
            (peer.name, attempts[peer.node_id].since + FIRST_CONTACT)
            for peer in actual.peers
            if peer.node_id in attempts
            and not peer.connected
            and peer.connection_state != ConnectionState.STAND_ALONE
            and attempts[peer.node_id].since + FIRST_CONTACT > now
        ]
        self._contacts.pop(actual.name, None)
        if not awaited:
            return None
        until = self._contacts[actual.name] = max(moment for _, moment in awaited)
        names = ", ".join(sorted(name for name, _ in awaited))
        text = f"the promotion waits for the first contact with {names}, for {until - now:.0f} s at most"
        return Problem(Reason.PRIMARY_FAILED, text)

    def role_settled(self, resource: str) -> None:
        """The role is as intended."""
        self._roles.pop(resource, None)
        self._contacts.pop(resource, None)

    # --- waking up ---------------------------------------------------------------------------------------------

    def wait(self, actual: ActualResource) -> float | None:
        """Seconds until the first thing that waits may be tried again. What could be tried long ago and was not is not
        wanted any more and wakes nobody."""
        now = self._clock.monotonic()
        attempts = self._connects.get(actual.name, {})
        due = [
            attempts[peer.node_id].not_before
            for peer in actual.peers
            if peer.connection_state == ConnectionState.STAND_ALONE and peer.node_id in attempts
        ]
        role = self._roles.get(actual.name)
        due += [role.not_before] if role else []
        due += [self._contacts[actual.name]] if actual.name in self._contacts else []
        waiting = [moment - now for moment in due if moment > now - RECENT]
        return max(min(waiting), RECENT / 2) if waiting else None


def circumstances(actual: ActualResource) -> object:
    """What a change of role depends on."""
    volume = actual.volume
    own = (
        (volume.disk_state, volume.quorum, volume.open, actual.quorum_option, actual.redundancy_option)
        if volume
        else ()
    )
    peers = tuple((peer.node_id, peer.connection_state, peer.disk_state, peer.role) for peer in actual.peers)
    return (own, peers)
