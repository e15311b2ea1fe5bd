"""Layouts: how many diskful replicas and tie-breakers a promise needs, and which quorum values go with them.

Guarantees: the arithmetic of facts/datamesh 1.6-1.8 stands here and nowhere else. Every function is pure. q is always
computed from a number of voters (decision 3), never from an older q.
"""

from __future__ import annotations

from typing import Final, NamedTuple

MAX_LEVEL: Final = 2
"""FTT and GMDR are each 0, 1 or 2."""

UNREACHABLE_QUORUM: Final = 32
"""q of a member without a vote, q and qmr of a replica that is no member: can never be met."""


def majority(voters: int) -> int:
    """The smallest number that no two disjoint sets of `voters` can both reach."""
    return voters // 2 + 1


def tie_breakers(voters: int, ftt: int) -> int:
    """How many tie-breakers `voters` diskful members need for `ftt`: one iff they are even and must survive a halving."""
    return 1 if voters > 0 and voters % 2 == 0 and ftt == voters // 2 else 0


class Layout(NamedTuple):
    """What one promise (FTT, GMDR) asks for."""

    ftt: int
    """Nodes that may fail without stopping I/O."""
    gmdr: int
    """Further copies that every acknowledged write has."""

    @property
    def diskful(self) -> int:
        """Diskful replicas: after losing FTT of them, qmr must remain."""
        return self.ftt + self.gmdr + 1

    @property
    def tie_breakers(self) -> int:
        """Tie-breakers: one iff the diskful replicas are even and must survive the loss of half of them."""
        return tie_breakers(self.diskful, self.ftt)

    @property
    def quorum(self) -> int:
        """q once all diskful replicas are members."""
        return majority(self.diskful)

    @property
    def qmr(self) -> int:
        """quorum-minimum-redundancy."""
        return self.gmdr + 1

    def __str__(self) -> str:
        return layout_name(self.diskful, self.tie_breakers)


def layout_name(diskful: int, breakers: int) -> str:
    """The short form of a membership: `3D`, `2D+1TB`."""
    return f"{diskful}D+{breakers}TB" if breakers else f"{diskful}D"


def is_valid(ftt: int, gmdr: int) -> bool:
    """Whether a promise has a layout: both in 0..2 and at most one apart (facts/datamesh 1.7)."""
    return 0 <= ftt <= MAX_LEVEL and 0 <= gmdr <= MAX_LEVEL and abs(ftt - gmdr) <= 1


def layout_of(ftt: int, gmdr: int) -> Layout:
    """The layout of a promise; ValueError when there is none."""
    if not is_valid(ftt, gmdr):
        raise ValueError(f"no layout for FTT={ftt}, GMDR={gmdr}: both must be 0..2 and at most 1 apart")
    return Layout(ftt, gmdr)


ALL_LAYOUTS: Final = tuple(
    Layout(ftt, gmdr) for ftt in range(MAX_LEVEL + 1) for gmdr in range(MAX_LEVEL + 1) if is_valid(ftt, gmdr)
)
"""The seven layouts."""

TRANSZONAL_ZONES: Final[dict[tuple[int, int], tuple[int, ...]]] = {
    (0, 1): (2,),
    (1, 0): (3,),
    (1, 1): (3,),
    (1, 2): (4,),
    (2, 1): (3, 4, 5),
    (2, 2): (3, 4, 5),
}
"""Zone counts in which a TransZonal layout keeps its promise (decision 1); 1D has none."""


class Quorum(NamedTuple):
    """The pair of quorum values."""

    quorum: int
    qmr: int


def initial_quorum(layout: Layout, voters: int) -> Quorum:
    """q and qmr that formation publishes with its members (facts/datamesh 1.6)."""
    return Quorum(max(majority(voters), layout.quorum), layout.qmr)


def target_qmr(layout: Layout, current: int, up_to_date: int) -> int:
    """The qmr that is right now.

    Lowering is always safe. Raising stops where a further failure could freeze I/O that the promise wants to keep: the
    copies must exceed qmr by FTT (S10 and hazard H26), so a rebuild never trades failures to tolerate for redundancy.
    """
    target = layout.qmr
    if target <= current:
        return target
    return max(current, 1, min(target, up_to_date - layout.ftt))
