"""The kernels of N nodes as a value, and a workbench on which an event changes it.

`Node` and `Cluster` are immutable. A `Bench` is the mutable copy that one event works on: it keeps the masks the quorum rule
asks for (who has an UpToDate disk, who has none, who says it has quorum) in step with the nodes.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from quorate.verification.configuration import DISKFUL, NodeConfiguration

NO_STORE: Final = 0
"""No backing volume with data."""
INCONSISTENT: Final = 1
OUTDATED: Final = 2
UP_TO_DATE: Final = 3
FAILED: Final = 4
"""The disk broke: the data is gone, the node runs without it."""

STORE_NAMES: Final = ("none", "Inconsistent", "Outdated", "UpToDate", "failed")


class Node(NamedTuple):
    """The kernel of one node, and the data on its disk."""

    configuration: NodeConfiguration
    up: bool = True
    store: int = NO_STORE
    current: bool = False
    """The store holds every acknowledged write."""
    informed: bool = False
    """The node has no disk of its own and knows of the newest data generation (what a diskless node exposes)."""
    quorum: bool = False
    tied: bool = False
    """The quorum was last confirmed by a tie-break."""
    primary: bool = False
    outdated_peers: int = 0
    """Peers recorded as outdated while not connected."""


def with_quorum(node: Node, quorum: bool, tied: bool) -> Node:
    """The node with another flag; the most frequent change, so it is spelled out."""
    return Node(
        node.configuration,
        node.up,
        node.store,
        node.current,
        node.informed,
        quorum,
        tied,
        node.primary,
        node.outdated_peers,
    )


class Cluster(NamedTuple):
    """All kernels, and the links that are established; `links[i]` is a mask."""

    nodes: tuple[Node, ...]
    links: tuple[int, ...]


class Refused(Exception):
    """The kernel answers no: a Primary would lose its quorum, or nobody with quorum and data can be promoted."""


def disk_of(node: Node) -> int:
    """What the node's kernel runs as its disk: the store only while it is attached."""
    return node.store if node.up and node.configuration.kind == DISKFUL and node.store != FAILED else NO_STORE


def reach(links: tuple[int, ...] | list[int], start: int) -> int:
    """Every node connected to `start` through any chain, itself included."""
    found = todo = 1 << start
    while todo:
        low = todo & -todo
        todo ^= low
        fresh = links[low.bit_length() - 1] & ~found
        found |= fresh
        todo |= fresh
    return found


_GROUPS: dict[tuple[int, ...], tuple[int, ...]] = {}


def groups_of(links: tuple[int, ...]) -> tuple[int, ...]:
    """For every node the nodes it reaches."""
    found = _GROUPS.get(links)
    if found is None:
        found = _GROUPS[links] = tuple(reach(links, i) for i in range(len(links)))
    return found


class Bench:
    """One event at work on a cluster."""

    __slots__ = ("bare", "disks", "links", "nodes", "quorate", "tied", "up_to_date")

    def __init__(self, nodes: tuple[Node, ...], links: tuple[int, ...]) -> None:
        self.nodes = list(nodes)
        self.links = list(links)
        self.disks = [disk_of(node) for node in nodes]
        self.up_to_date = self.bare = self.quorate = self.tied = 0
        for i, node in enumerate(nodes):
            disk = self.disks[i]
            if disk == UP_TO_DATE:
                self.up_to_date |= 1 << i
            elif disk == NO_STORE:
                self.bare |= 1 << i
            if node.quorum:
                self.quorate |= 1 << i
                if node.tied:
                    self.tied |= 1 << i

    def put(self, i: int, node: Node) -> None:
        """Replace a node."""
        self.nodes[i] = node
        disk = self.disks[i] = disk_of(node)
        bit = 1 << i
        self.up_to_date = self.up_to_date | bit if disk == UP_TO_DATE else self.up_to_date & ~bit
        self.bare = self.bare | bit if disk == NO_STORE else self.bare & ~bit
        self.quorate = self.quorate | bit if node.quorum else self.quorate & ~bit
        self.tied = self.tied | bit if node.tied else self.tied & ~bit

    def store(self, i: int, store: int) -> None:
        """Another state of the data on a node."""
        self.put(i, self.nodes[i]._replace(store=store))

    def connect(self, i: int, j: int) -> None:
        """Establish a link."""
        self.links[i] |= 1 << j
        self.links[j] |= 1 << i

    def part(self, i: int, j: int) -> None:
        """End a link."""
        self.links[i] &= ~(1 << j)
        self.links[j] &= ~(1 << i)

    def groups(self) -> tuple[int, ...]:
        """For every node the nodes it reaches."""
        return groups_of(tuple(self.links))

    def freeze(self) -> Cluster:
        """The value."""
        return Cluster(tuple(self.nodes), tuple(self.links))


def bits(mask: int) -> list[int]:
    """The nodes of a mask, ascending."""
    found: list[int] = []
    while mask:
        low = mask & -mask
        mask ^= low
        found.append(low.bit_length() - 1)
    return found
