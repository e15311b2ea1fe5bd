"""What the published configuration means on one node, as small integers.

`Mesh` is the published configuration reduced to what quorum, data and roles depend on; `NodeConfiguration` is what one
node's DRBD is told. Sets of nodes are bit masks. Both are values: equal content is equal, whatever revision it came
from.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from quorate.simulator.quorum import MAJORITY

GONE: Final = 0
"""Not a member: no peers, Secondary."""
DISKFUL: Final = 1
LIMINAL: Final = 2
"""D∅: a voter without its disk; the backing volume is kept."""
TIE_BREAKER: Final = 3
ACCESS: Final = 4

VOTERS: Final = (DISKFUL, LIMINAL)
KIND_NAMES: Final = ("-", "D", "D∅", "TB", "A")

UNREACHABLE_QUORUM: Final = 32
"""Quorum of a non-voter: it never has quorum by itself (facts/datamesh 1.3)."""


class Mesh(NamedTuple):
    """A published configuration. `kinds[i]` is the member type of node i."""

    kinds: tuple[int, ...]
    quorum: int
    minimum_redundancy: int
    attached: int = 0
    ties_off: bool = False
    """Tie-breakers have no vote on any diskful member (M1)."""
    shunned: int = 0
    """Members to which tie-breakers keep no connection (emergency removal beside a tie-breaker)."""


class NodeConfiguration(NamedTuple):
    """What one node's DRBD is told. Peers are split by what they mean for the quorum."""

    kind: int = GONE
    quorum: int = UNREACHABLE_QUORUM
    minimum_redundancy: int = UNREACHABLE_QUORUM
    voters: int = 0
    ties: int = 0
    silent: int = 0
    """Peers without a say: Access members and tie-breakers whose vote is off."""

    @property
    def peers(self) -> int:
        """Every configured connection."""
        return self.voters | self.ties | self.silent


def majority(voters: int) -> int:
    """The smallest number that no two disjoint sets of voters both reach."""
    return voters // 2 + 1


def count_voters(mesh: Mesh) -> int:
    """Voters of a published configuration (D and D∅)."""
    return sum(kind in VOTERS for kind in mesh.kinds)


def project(mesh: Mesh, node: int, *, dynamic: bool) -> NodeConfiguration:
    """The configuration of one node (facts/datamesh 2.2); `dynamic` writes `majority` where q is the majority
    (decision 15)."""
    kind = mesh.kinds[node]
    if kind == GONE:
        return NodeConfiguration()
    own = 1 << node
    voters = ties = access = 0
    for peer, peer_kind in enumerate(mesh.kinds):
        if peer_kind in VOTERS:
            voters |= 1 << peer
        elif peer_kind == TIE_BREAKER:
            ties |= 1 << peer
        elif peer_kind == ACCESS:
            access |= 1 << peer
    if kind not in VOTERS:
        # Star members connect to the full mesh only.
        peers = voters & ~mesh.shunned if kind == TIE_BREAKER else voters
        return NodeConfiguration(kind, UNREACHABLE_QUORUM, mesh.minimum_redundancy, peers)
    if mesh.shunned & own:
        ties = 0
    quorum = mesh.quorum
    if dynamic and ties and not mesh.ties_off and quorum == majority(voters.bit_count()):
        quorum = MAJORITY
    silent = access | (ties if mesh.ties_off else 0)
    return NodeConfiguration(
        kind,
        quorum,
        mesh.minimum_redundancy,
        voters & ~own,
        0 if mesh.ties_off else ties,
        silent,
    )
