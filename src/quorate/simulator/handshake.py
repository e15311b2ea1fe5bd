"""Who copies from whom when two disks meet: the decision table U7/U8 of facts/agent 5.4, first match wins.

Guarantees: pure, and mirrored: exchanging the two sides exchanges source and target. The rule names are those the
kernel logs (`uuid_compare()=... by rule=...`), so every recorded handshake can be checked against this table.
UUIDs carry a role mark in bit 0 that the comparison ignores.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from quorate.simulator.metadata import JUST_CREATED
from quorate.simulator.model import Generations
from quorate.simulator.states import Replication, Role


class Strategy(Enum):
    NO_SYNC = "no-sync"
    SOURCE_USE_BITMAP = "source-use-bitmap"
    SOURCE_COPY_BITMAP = "source-copy-other-bitmap"
    SOURCE_SET_BITMAP = "source-set-bitmap"
    SOURCE_IF_BOTH_FAILED = "source-if-both-failed"
    TARGET_USE_BITMAP = "target-use-bitmap"
    TARGET_CLEAR_BITMAP = "target-clear-bitmap"
    TARGET_SET_BITMAP = "target-set-bitmap"
    TARGET_IF_BOTH_FAILED = "target-if-both-failed"
    SPLIT_BRAIN = "split-brain-auto-recover"
    SPLIT_BRAIN_OLD = "split-brain-disconnect"
    UNRELATED = "unrelated-data"

    @property
    def source(self) -> bool:
        return self.value.startswith("source")

    @property
    def target(self) -> bool:
        return self.value.startswith("target")

    @property
    def soft(self) -> bool:
        """A preference that a present Primary overrides (U8)."""
        return self in (Strategy.SOURCE_IF_BOTH_FAILED, Strategy.TARGET_IF_BOTH_FAILED)

    @property
    def fatal(self) -> bool:
        return self in (Strategy.SPLIT_BRAIN, Strategy.SPLIT_BRAIN_OLD, Strategy.UNRELATED)


class Side(NamedTuple):
    """One party of a handshake."""

    node_id: int
    generations: Generations


class Decision(NamedTuple):
    strategy: Strategy
    rule: str
    slot_of: int | None = None  # the node whose bitmap serves, for the rules that use another node's slot


_ROLE_MARK: Final = 1


def _plain(uuid: int) -> int:
    return uuid & ~_ROLE_MARK


def _towards(side: Side, other: Side) -> int:
    return _plain(side.generations.bitmap_uuid_for(other.node_id))


def _in_history(uuid: int, side: Side) -> bool:
    return any(_plain(entry) == uuid for entry in side.generations.history if entry)


def _slot_with(uuid: int, side: Side, other: Side) -> int | None:
    entries = side.generations.bitmap_uuids
    return next((owner for owner, value in entries if owner != other.node_id and value and _plain(value) == uuid), None)


def decide(own: Side, peer: Side, *, prefers_source: bool = False) -> Decision:
    """The table. `prefers_source` breaks the tie between two sides with the same past, opposite at the other end."""
    mine, theirs = _plain(own.generations.current), _plain(peer.generations.current)
    if JUST_CREATED in (mine, theirs):
        return _decide_fresh(mine, theirs)
    if mine == theirs:
        return _decide_equal(own.generations, peer.generations, prefers_source=prefers_source)
    return _decide_by_bitmap(own, peer, mine, theirs) or _decide_by_history(own, peer, mine, theirs)


def _decide_fresh(mine: int, theirs: int) -> Decision:
    """Rows 1-3."""
    if mine == theirs:
        return Decision(Strategy.NO_SYNC, "just-created-both")
    if mine == JUST_CREATED:
        return Decision(Strategy.TARGET_SET_BITMAP, "just-created-self")
    return Decision(Strategy.SOURCE_SET_BITMAP, "just-created-peer")


def _decide_equal(own: Generations, peer: Generations, *, prefers_source: bool) -> Decision:
    """Row 4, U8: the same generation; only the circumstances of the last parting can ask for a resync."""
    if own.reconnecting and peer.reconnecting:
        return Decision(Strategy.NO_SYNC, "reconnected")
    if own.lost_quorum or peer.lost_quorum:
        source = prefers_source if own.lost_quorum and peer.lost_quorum else own.lost_quorum
        return Decision(_soft(source), "lost-quorum")
    if own.reconnecting or peer.reconnecting:
        # One side went on: it is the source for a crashed Primary, otherwise nothing was missed.
        crashed_meets_survivor = own.crashed_primary and peer.reconnecting
        survivor_meets_crashed = peer.crashed_primary and own.reconnecting
        if crashed_meets_survivor or survivor_meets_crashed:
            return Decision(_soft(survivor_meets_crashed), "lost-quorum")
        return Decision(Strategy.NO_SYNC, "lost-quorum")
    if own.crashed_primary or peer.crashed_primary:
        source = not prefers_source if own.crashed_primary and peer.crashed_primary else own.crashed_primary
        return Decision(_soft(source), "both-off")
    return Decision(Strategy.NO_SYNC, "both-off")


def _soft(source: bool) -> Strategy:
    return Strategy.SOURCE_IF_BOTH_FAILED if source else Strategy.TARGET_IF_BOTH_FAILED


def _decide_by_bitmap(own: Side, peer: Side, mine: int, theirs: int) -> Decision | None:
    """Rows 5-8: one side kept a bitmap since the other's generation."""
    if mine == _towards(peer, own):
        return Decision(Strategy.TARGET_USE_BITMAP, "bitmap-peer")
    other = _slot_with(mine, peer, own)
    if other is not None:
        return Decision(Strategy.TARGET_CLEAR_BITMAP, "bitmap-peer-other", other)
    if _towards(own, peer) == theirs:
        return Decision(Strategy.SOURCE_USE_BITMAP, "bitmap-self")
    other = _slot_with(theirs, own, peer)
    if other is not None:
        return Decision(Strategy.SOURCE_COPY_BITMAP, "bitmap-self-other", other)
    return None


def _decide_by_history(own: Side, peer: Side, mine: int, theirs: int) -> Decision:
    """Rows 9-13: one side moved on long ago, both did, or they never met."""
    known_there, known_here = _in_history(mine, peer), _in_history(theirs, own)
    if known_there != known_here:
        strategy = Strategy.TARGET_SET_BITMAP if known_there else Strategy.SOURCE_SET_BITMAP
        return Decision(strategy, "history-peer" if known_there else "history-self")
    shared = _towards(own, peer)
    if shared and shared == _towards(peer, own):
        return Decision(Strategy.SPLIT_BRAIN, "bitmap-both")
    if any(_in_history(_plain(entry), peer) for entry in own.generations.history if entry):
        return Decision(Strategy.SPLIT_BRAIN_OLD, "history-both")
    return Decision(Strategy.UNRELATED, "history-both")


def prefer_consistent(decision: Decision, own: Generations, peer: Generations) -> Decision:
    """U8, last: nothing to decide by generations, but one disk is Inconsistent: the better one is the source."""
    if decision.strategy is not Strategy.NO_SYNC or own.inconsistent == peer.inconsistent:
        return decision
    return decision._replace(strategy=Strategy.TARGET_USE_BITMAP if own.inconsistent else Strategy.SOURCE_USE_BITMAP)


def compute_replication(strategy: Strategy, own_role: Role, peer_role: Role) -> Replication:
    """The replication state a decision leads to; a Primary of today overrides a soft preference."""
    if strategy.soft and Role.PRIMARY in (own_role, peer_role):
        if own_role is peer_role:
            return Replication.ESTABLISHED
        return Replication.WF_BITMAP_S if own_role is Role.PRIMARY else Replication.WF_BITMAP_T
    if strategy.source:
        return Replication.WF_BITMAP_S
    return Replication.WF_BITMAP_T if strategy.target else Replication.ESTABLISHED
