"""The world a configuration is rolled out in: kernels, agents, network, faults. Interned, so that states are small.

A `World` value is hashable and compact; `Worlds` owns the tables that give clusters and networks small numbers and the
memory of events already computed. Kernel events depend on the cluster and the network only, so the same event met again
under another published configuration costs one look-up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import Final, NamedTuple

from quorate.verification.agent import PEERS, Order, next_step
from quorate.verification.cluster import INCONSISTENT, NO_STORE, UP_TO_DATE, Cluster, Node, Refused, disk_of
from quorate.verification.configuration import DISKFUL, GONE, LIMINAL, NodeConfiguration
from quorate.verification.kernel import Kernels

PARTITION: Final = "partition"
LINK: Final = "link"
CRASH: Final = "crash"
AGENT: Final = "agent"
DISK: Final = "disk"
FAULT_KINDS: Final = (PARTITION, LINK, CRASH, AGENT, DISK)


class Target(NamedTuple):
    """What one node is to become: its configuration and its role."""

    configuration: NodeConfiguration
    primary: bool = False


class World(NamedTuple):
    """Kernels and network by number; masks of nodes whose agent is silent and of nodes that are fenced."""

    cluster: int
    cuts: tuple[int, ...]
    """Numbers of the network faults that are in effect."""
    silent: int = 0
    fenced: int = 0


class Event(NamedTuple):
    """Something that happened, for traces: a verb, the nodes it is about, and a detail."""

    verb: str
    nodes: int = 0
    detail: str = ""


class Worlds:
    """Tables and memory for one number of nodes and one voter mode."""

    def __init__(self, kernels: Kernels, nodes: int, *, order: Order = "strict") -> None:
        self.kernels = kernels
        self.size = nodes
        self.order: Order = order
        self.clusters: list[Cluster] = []
        self._numbers: dict[Cluster, int] = {}
        self.cuts = list(_network_faults(nodes))
        self._memory: dict[tuple[object, ...], int] = {}
        self._confirmations: dict[tuple[object, ...], bool] = {}
        self._currents: dict[int, int] = {}

    def number(self, cluster: Cluster) -> int:
        """The number of a cluster value."""
        found = self._numbers.get(cluster)
        if found is None:
            found = self._numbers[cluster] = len(self.clusters)
            self.clusters.append(cluster)
        return found

    def current(self, world: World) -> int:
        """Nodes whose disk holds every acknowledged write, fenced ones not counted."""
        found = self._currents.get(world.cluster)
        if found is None:
            nodes = self.clusters[world.cluster].nodes
            found = self._currents[world.cluster] = sum(1 << i for i, node in enumerate(nodes) if node.current)
        return found & ~world.fenced

    def cut(self, world: World) -> tuple[int, ...]:
        """The links that are cut, as masks."""
        masks = [0] * self.size
        for number in world.cuts:
            for i, mask in enumerate(self.cuts[number][1]):
                masks[i] |= mask
        return tuple(masks)

    def _event(self, key: tuple[object, ...], world: World, act: Callable[[Cluster, tuple[int, ...]], Cluster]) -> int:
        """The number of the cluster after an event; -1 when the kernel refuses it."""
        full = (*key, world.cluster, world.cuts)
        found = self._memory.get(full)
        if found is None:
            try:
                found = self.number(act(self.clusters[world.cluster], self.cut(world)))
            except Refused:
                found = -1
            self._memory[full] = found
        return found

    # Agents ----------------------------------------------------------------------------------------------------------

    def agent_step(self, world: World, i: int, target: Target) -> tuple[str, World] | None:
        """The next step of node i toward its target, if its agent runs and its kernel agrees."""
        node = self.clusters[world.cluster].nodes[i]
        if not node.up or world.silent >> i & 1:
            return None
        step = next_step(node.configuration, target.configuration, self.order)
        kernels = self.kernels
        if step is not None:
            label, configuration = step
            number = self._event(
                ("configure", i, configuration), world, lambda c, cut: kernels.reconfigure(c, i, configuration, cut)
            )
            detaches = disk_of(node) != NO_STORE and configuration.kind == LIMINAL
            if number == -1 and label == PEERS and not detaches:
                label = f"{label}, by force"
                number = self._event(
                    ("force", i, configuration),
                    world,
                    lambda c, cut: kernels.reconfigure(c, i, configuration, cut, force=True),
                )
        elif node.primary != target.primary:
            label = "promotes" if target.primary else "demotes"
            act = kernels.promote if target.primary else kernels.demote
            number = self._event((label, i), world, lambda c, cut: act(c, i, cut))
        else:
            return None
        if number in (-1, world.cluster):
            return None
        return label, world._replace(cluster=number)

    def abandon(self, world: World, i: int) -> World | None:
        """The agent of node i takes down a resource whose replica object is gone."""
        node = self.clusters[world.cluster].nodes[i]
        if not node.up or world.silent >> i & 1 or node.configuration.kind == GONE:
            return None
        kernels = self.kernels
        return world._replace(cluster=self._event(("abandon", i), world, lambda c, cut: kernels.abandon(c, i, cut)))

    def confirms(self, world: World, i: int, target: Target, *, check_flag: bool = True) -> bool:
        """Whether the agent of node i records the revision of this target (decision 5)."""
        node = self.clusters[world.cluster].nodes[i]
        if not node.up or world.silent >> i & 1 or node.configuration != target.configuration:
            return False
        key = (world.cluster, world.cuts, i, target.primary, check_flag)
        found = self._confirmations.get(key)
        if found is None:
            found = self._confirmations[key] = self._confirms(world, i, target, check_flag=check_flag)
        return found

    def _confirms(self, world: World, i: int, target: Target, *, check_flag: bool) -> bool:
        cluster = self.clusters[world.cluster]
        node = cluster.nodes[i]
        if node.primary != target.primary and not (target.primary and not self._promotes(world, i)):
            return False
        return target.configuration.kind == GONE or not check_flag or self.kernels.enforced(cluster, i)

    def _promotes(self, world: World, i: int) -> bool:
        """Whether `primary` would succeed now.

        A promotion that is refused (no quorum, no data, another Primary) does not hold the revision back: everything else
        is applied, and the steps that bring the quorum back wait for exactly this node.
        """
        kernels = self.kernels
        number = self._event(("promotes", i), world, lambda c, cut: kernels.promote(c, i, cut))
        return number != -1 and self.clusters[number].nodes[i].primary

    # Environment -----------------------------------------------------------------------------------------------------

    def progress(self, world: World) -> Iterator[tuple[Event, World]]:
        """What happens by itself: a synchronisation ends, a Primary has a write acknowledged."""
        kernels = self.kernels
        cluster = self.clusters[world.cluster]
        for i, node in enumerate(cluster.nodes):
            if disk_of(node) == INCONSISTENT:
                number = self._event(("sync", i), world, lambda c, cut, i=i: kernels.finish_sync(c, i, cut))
                if number not in (-1, world.cluster):
                    yield Event("sync ends", 1 << i), world._replace(cluster=number)
            if node.primary and kernels.writable(cluster, i):
                number = self._event(("write", i), world, lambda c, _, i=i: kernels.write(c, i))
                if number != world.cluster:
                    yield Event("write acknowledged", 1 << i), world._replace(cluster=number)

    def repairs(self, world: World, targets: Callable[[int], Target]) -> Iterator[tuple[Event, World]]:
        """A fault ends: a network fault heals, a node boots, an agent speaks again."""
        kernels = self.kernels
        for number in world.cuts:
            rest = tuple(other for other in world.cuts if other != number)
            yield Event("heals", 0, self.cuts[number][0]), self._renet(world, rest)
        for i, node in enumerate(self.clusters[world.cluster].nodes):
            if not node.up and not world.fenced >> i & 1:
                configuration = targets(i).configuration
                cluster = self._event(
                    ("boot", i, configuration), world, lambda c, cut, i=i, x=configuration: kernels.boot(c, i, x, cut)
                )
                yield Event("boots", 1 << i), world._replace(cluster=cluster)
            if world.silent >> i & 1:
                yield Event("agent speaks again", 1 << i), world._replace(silent=world.silent & ~(1 << i))

    def faults(self, world: World, kinds: tuple[str, ...], among: int) -> Iterator[tuple[Event, World]]:
        """Every single fault that makes a difference among these nodes."""
        kernels = self.kernels
        nodes = self.clusters[world.cluster].nodes
        alive = sum(1 << i for i, node in enumerate(nodes) if node.up and among >> i & 1)
        if PARTITION in kinds or LINK in kinds:
            for number, (name, masks, kind, side) in enumerate(self.cuts):
                useful = side & alive and ((1 << self.size) - 1) & ~side & alive if kind == PARTITION else True
                if kind in kinds and number not in world.cuts and useful and _touches(masks, alive):
                    after = self._renet(world, tuple(sorted((*world.cuts, number))))
                    if after.cluster != world.cluster or kind == PARTITION:
                        yield Event("network fault", 0, name), after
        for i, node in enumerate(nodes):
            if not among >> i & 1 or not node.up:
                continue
            if CRASH in kinds:
                yield Event("crashes", 1 << i), self.crash(world, i)
            if AGENT in kinds and not world.silent >> i & 1:
                yield Event("agent falls silent", 1 << i), world._replace(silent=world.silent | 1 << i)
            if DISK in kinds and disk_of(node) in (INCONSISTENT, UP_TO_DATE):
                cluster = self._event(("disk", i), world, lambda c, cut, i=i: kernels.lose_disk(c, i, cut))
                yield Event("loses its disk", 1 << i), world._replace(cluster=cluster)

    def crash(self, world: World, i: int) -> World:
        """Power loss of a node."""
        kernels = self.kernels
        return world._replace(cluster=self._event(("crash", i), world, lambda c, cut: kernels.crash(c, i, cut)))

    def fence(self, world: World, i: int) -> World:
        """A node that is down is proven to stay down."""
        return world._replace(fenced=world.fenced | 1 << i)

    def _renet(self, world: World, cuts: tuple[int, ...]) -> World:
        after = world._replace(cuts=cuts)
        kernels = self.kernels
        number = self._event(("network",), after, lambda c, cut: kernels.settle(c, cut, forced=True))
        return after._replace(cluster=number)

    def start(self, targets: tuple[Target, ...], up_to_date: int) -> World:
        """A formed volume: every node holds its target, `up_to_date` disks are current, Primaries are promoted."""
        nodes = tuple(
            Node(
                target.configuration,
                store=UP_TO_DATE if up_to_date >> i & 1 else 0,
                current=bool(up_to_date >> i & 1),
                informed=target.configuration.kind not in (GONE, DISKFUL),
            )
            for i, target in enumerate(targets)
        )
        nothing = (0,) * self.size
        cluster = self.kernels.settle(Cluster(nodes, nothing), nothing, forced=False)
        for i, target in enumerate(targets):
            if target.primary:
                cluster = self.kernels.promote(cluster, i, nothing)
        return World(self.number(cluster), ())


def _touches(masks: tuple[int, ...], alive: int) -> bool:
    return any(mask & alive for i, mask in enumerate(masks) if alive >> i & 1)


def _network_faults(nodes: int) -> Iterator[tuple[str, tuple[int, ...], str, int]]:
    """Every partition into two sides, and every single link."""
    full = (1 << nodes) - 1
    for side in range(1, full + 1, 2):
        if side != full:
            masks = tuple(full & ~side if side >> i & 1 else side for i in range(nodes))
            yield f"partition {names(side)} | {names(full & ~side)}", masks, PARTITION, side
    if nodes > 2:
        for i, j in combinations(range(nodes), 2):
            masks = tuple(1 << j if k == i else 1 << i if k == j else 0 for k in range(nodes))
            yield f"link n{i}-n{j} cut", masks, LINK, 1 << i | 1 << j


def names(mask: int) -> str:
    """Node names of a mask."""
    return " ".join(f"n{i}" for i in range(mask.bit_length()) if mask >> i & 1)
