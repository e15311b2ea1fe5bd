"""What must hold in every reachable state of the kernels.

`Assertions.of(cluster)` names each broken assertion in words a reader of a trace understands. The verdict depends on
the kernels and their data only, so it is remembered per cluster.
"""

from __future__ import annotations

from typing import Final

from quorate.simulator.quorum import MAJORITY
from quorate.verification.cluster import Cluster, reach
from quorate.verification.configuration import VOTERS, majority
from quorate.verification.kernel import Kernels
from quorate.verification.world import Worlds, names

TWO_SIDES: Final = "two disjoint writable sides"
STALE_SIDE: Final = "a side without acknowledged writes is writable"
TOO_FEW_COPIES: Final = "a write is acknowledged on too few copies"
LAST_COPY: Final = "the last current copy is given up"
OVERSTATED: Final = "the committed redundancy is overstated"
STUCK: Final = "a live system cannot converge"
INTERRUPTED: Final = "a published revision stops I/O that was possible"

THIN_WRITES: Final = "a side quorate by tie-break acknowledges on fewer copies than promised"
HIDDEN_WRITES: Final = "while q + qmr does not exceed the voters, a voter without the data may vote for an older copy"


class Assertions:
    """Safety of the kernels: who can write, and with which data."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self._kernels: Kernels = worlds.kernels
        self._memory: dict[tuple[int, int], tuple[str, ...]] = {}
        self._copies: dict[int, tuple[tuple[int, int, bool], ...]] = {}

    def of(self, number: int, fenced: int = 0) -> tuple[str, ...]:
        """Broken assertions of a cluster; `fenced` nodes and their data are lost for good."""
        found = self._memory.get((number, fenced))
        if found is None:
            cluster = self._worlds.clusters[number]
            found = self._memory[number, fenced] = tuple(self._check(cluster, fenced))
        return found

    def excused(self, number: int, broken: str) -> bool:
        """Whether a stale side is one that the arithmetic of its own configuration cannot exclude.

        A write is on qmr UpToDate disks of one majority. Another majority shares a copy of it only if q + qmr exceeds the
        voters; otherwise the two may share nothing but a voter without the data (D∅, or Inconsistent: the kernel stores no
        new data generation on a sync target), which lends its vote to an older copy while the newer ones are away.
        """
        if not broken.startswith(STALE_SIDE):
            return False
        held = self._worlds.clusters[number].nodes[int(broken.rpartition("n")[2])].configuration
        voters = held.voters.bit_count() + (held.kind in VOTERS)
        quorum = majority(voters) if held.quorum == MAJORITY else held.quorum
        return quorum + held.minimum_redundancy <= voters

    def _check(self, cluster: Cluster, fenced: int) -> list[str]:
        kernels = self._kernels
        writable = [i for i in range(len(cluster.nodes)) if kernels.writable(cluster, i)]
        sides = sorted({reach(cluster.links, i) for i in writable})
        broken: list[str] = []
        if len(sides) > 1:
            broken.append(f"{TWO_SIDES}: " + " | ".join(names(side) for side in sides))
        survives = any(node.current and not fenced >> i & 1 for i, node in enumerate(cluster.nodes))
        for i in writable:
            copies = kernels.copies(cluster, i)
            if not copies >> i & 1:
                continue  # It serves the data of its peers, which are asked themselves.
            if survives and not any(copies >> j & 1 and node.current for j, node in enumerate(cluster.nodes)):
                broken.append(f"{STALE_SIDE}: {names(1 << i)}")
        return broken

    def acknowledged_copies(self, number: int) -> tuple[tuple[int, int, bool], ...]:
        """Per Primary that acknowledges writes now: node, copies a write reaches, quorate only by tie-break."""
        found = self._copies.get(number)
        if found is None:
            cluster = self._worlds.clusters[number]
            found = self._copies[number] = tuple(
                (i, self._kernels.copies(cluster, i).bit_count(), node.tied)
                for i, node in enumerate(cluster.nodes)
                if node.primary and self._kernels.writable(cluster, i)
            )
        return found
