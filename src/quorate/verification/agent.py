"""How a node agent brings its kernel from what it holds to what is published: small steps in a safe local order.

The order is decision 5's (S6 of the invariants): what makes the node stricter first (a higher q or qmr, tie-breakers
losing their vote), then peers and disk, then what makes it laxer, then the role. Every step is a state other nodes
can observe, so the checker interleaves them. `first` tells a mutant apart: the reference agent writes all options
before it touches peers.
"""

from __future__ import annotations

from typing import Final, Literal

from quorate.simulator.quorum import MAJORITY
from quorate.verification.configuration import DISKFUL, GONE, NodeConfiguration, majority

Order = Literal["strict", "options-first", "unpinned"]
"""`unpinned` is a mutant too: `majority` is left to sink with the peers."""

STRICTER: Final = "applies the stricter options"
PEERS: Final = "changes peers and disk"
LAXER: Final = "applies the laxer options"
ROLE: Final = "changes its role"


def next_step(held: NodeConfiguration, target: NodeConfiguration, order: Order) -> tuple[str, NodeConfiguration] | None:
    """The next local step short of the role, and the configuration it leads to; None when the node holds the target."""
    if held == target:
        return None
    if held.kind == GONE or target.kind == GONE:
        # A first configuration or a teardown: no peer counts this node meanwhile.
        return PEERS, target
    stricter = _stricter(held, target, order)
    if stricter != held:
        return STRICTER, stricter
    peers = _peers(held, target)
    if peers != held:
        return PEERS, peers
    return LAXER, target


def _voters(configuration: NodeConfiguration) -> int:
    own = configuration.kind in (DISKFUL, DISKFUL + 1)
    return configuration.voters.bit_count() + own


def _effective(quorum: int, voters: int) -> int:
    return majority(voters) if quorum == MAJORITY else quorum


def _stricter(held: NodeConfiguration, target: NodeConfiguration, order: Order) -> NodeConfiguration:
    """Options that only take quorum away: applied before peers change."""
    if order == "options-first":
        return held._replace(quorum=target.quorum, minimum_redundancy=target.minimum_redundancy)
    voters = _voters(held)
    asked, held_value = _effective(target.quorum, voters), _effective(held.quorum, voters)
    # `majority` sinks with the peers: a number of the same value must stand before they change.
    pinned = order != "unpinned" and held.quorum == MAJORITY and target.quorum != MAJORITY and asked == held_value
    raised = asked > held_value or pinned
    silenced = held.ties & target.silent
    return held._replace(
        quorum=target.quorum if raised else held.quorum,
        minimum_redundancy=max(held.minimum_redundancy, target.minimum_redundancy),
        ties=held.ties & ~silenced,
        silent=held.silent | silenced,
    )


def _peers(held: NodeConfiguration, target: NodeConfiguration) -> NodeConfiguration:
    """Connections, bitmap slots and the disk; a tie-breaker that gains a vote gets it with the laxer options."""
    waiting = target.ties & held.silent
    return target._replace(
        quorum=held.quorum,
        minimum_redundancy=held.minimum_redundancy,
        ties=target.ties & ~waiting,
        silent=target.silent | waiting,
    )
