"""What must hold in every reachable state of the kernels.

`Assertions.of(cluster)` names each broken assertion in words a reader of a trace understands. The verdict depends on
the kernels and their data only, so it is remembered per cluster.
"""

from __future__ import annotations

from typing import Final

from quorate.verification.configuration import NodeConfiguration
from quorate.verification.kernel import UP_TO_DATE, Cluster, Kernels, disk_of, reach
from quorate.verification.world import Worlds, names

TWO_SIDES: Final = "two disjoint writable sides"
STALE_SIDE: Final = "a side without acknowledged writes is writable"
TOO_FEW_COPIES: Final = "a write is acknowledged on too few copies"
LAST_COPY: Final = "the last current copy is given up"
OVERSTATED: Final = "the committed redundancy is overstated"
STUCK: Final = "a live system cannot converge"


class Assertions:
    """Safety of the kernels: who can write, and with which data."""

    def __init__(self, worlds: Worlds) -> None:
        self._worlds = worlds
        self._kernels: Kernels = worlds.kernels
        self._memory: dict[tuple[int, int], tuple[str, ...]] = {}

    def of(self, number: int, fenced: int = 0) -> tuple[str, ...]:
        """Broken assertions of a cluster; `fenced` nodes and their data are lost for good."""
        found = self._memory.get((number, fenced))
        if found is None:
            cluster = self._worlds.clusters[number]
            found = self._memory[number, fenced] = tuple(self._check(cluster, fenced))
        return found

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
            if survives and not any(copies >> j & 1 and node.current for j, node in enumerate(cluster.nodes)):
                broken.append(f"{STALE_SIDE}: {names(1 << i)}")
        return broken

    def acknowledged_copies(self, number: int) -> tuple[tuple[int, int, bool], ...]:
        """Per Primary that acknowledges writes now: node, copies a write reaches, quorate only by tie-break."""
        cluster = self._worlds.clusters[number]
        found: list[tuple[int, int, bool]] = []
        for i, node in enumerate(cluster.nodes):
            if node.primary and self._kernels.writable(cluster, i):
                found.append((i, self._kernels.copies(cluster, i).bit_count(), self._by_tie_break(cluster, i)))
        return tuple(found)

    def _by_tie_break(self, cluster: Cluster, i: int) -> bool:
        """Whether this Primary's side has its quorum through the tie-breakers' vote and would not have it otherwise."""
        side = cluster.links[i] | 1 << i
        tied = False
        for j, node in enumerate(cluster.nodes):
            if side >> j & 1 and node.quorum and disk_of(node) == UP_TO_DATE:
                group = reach(cluster.links, j)
                muted = node._replace(configuration=mute(node.configuration))
                nodes = (*cluster.nodes[:j], muted, *cluster.nodes[j + 1 :])
                if self._kernels.computed(nodes, cluster.links, j, group):
                    return False
                tied |= self._kernels.computed(cluster.nodes, cluster.links, j, group)
        return tied


def mute(configuration: NodeConfiguration) -> NodeConfiguration:
    """The same configuration with tie-breakers that have no say."""
    return configuration._replace(ties=0, silent=configuration.silent | configuration.ties)
