"""Patience with connections that fall back to StandAlone.

A refused handshake (wrong secret, split brain, other settings) ends in StandAlone a moment after a successful `connect`. The
agent tries again, but each time it waits longer, so that two nodes that disagree do not talk to each other without end.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent.actual import ActualResource
from quorate.api.common import ConnectionState
from quorate.machinery.clock import Clock

FIRST_WAIT = 1.0
LONGEST_WAIT = 60.0


@dataclass(slots=True)
class _Attempt:
    wait: float
    not_before: float


class Connects:
    """When the next `connect` of a peer may be sent."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._attempts: dict[str, dict[int, _Attempt]] = {}
        """By resource and peer, so that the cost of one resource does not grow with the others."""

    def attempted(self, resource: str, peer: int) -> None:
        """A `connect` was accepted; if the peer stands alone again, the next one waits."""
        attempts = self._attempts.setdefault(resource, {})
        known = attempts.get(peer)
        wait = min(known.wait * 2, LONGEST_WAIT) if known else FIRST_WAIT
        attempts[peer] = _Attempt(wait, self._clock.monotonic() + wait)

    def held(self, resource: str, actual: ActualResource | None) -> frozenset[int]:
        """Peers of this resource that must wait; those that are connected start from the beginning."""
        states = {peer.node_id: peer for peer in actual.peers} if actual else {}
        now = self._clock.monotonic()
        attempts = {
            peer: attempt
            for peer, attempt in self._attempts.pop(resource, {}).items()
            if (current := states.get(peer)) is not None and not current.connected
        }
        if attempts:
            self._attempts[resource] = attempts
        return frozenset(peer for peer, attempt in attempts.items() if attempt.not_before > now)

    def wait(self, actual: ActualResource) -> float | None:
        """Seconds until the first held peer may be tried again."""
        now = self._clock.monotonic()
        due = [
            attempt.not_before - now
            for peer in actual.peers
            if peer.connection_state == ConnectionState.STAND_ALONE
            and (attempt := self._attempts.get(actual.name, {}).get(peer.node_id)) is not None
        ]
        return max(min(due), 0.05) if due else None
