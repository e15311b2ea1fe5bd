"""The DRBD of N nodes: what each event does.

Guarantees: every function is pure and deterministic; quorum is decided by `quorate.simulator.quorum` and nowhere else. An
event is followed by everything the kernels do by themselves (`settling`); the checker interleaves events, not kernel
internals.

What is modelled, and from which recording it is known:

* losses are simultaneous within one event: a lost peer is unknown first; once the survivors committed the loss it is
  quorumless for every node that kept its quorum and cannot reach it any more, directly or through others (S6, X0a);
* a Primary refuses a voluntary change that costs its quorum: options are stored without effect (S12, X7), connects do not
  happen (X10), graceful leaves and detaches fail (X5, S17: `Refused`) until they are forced;
* a Secondary that parts gracefully from its Primary becomes Outdated (S9, X4), and so does one that a third node still
  reaches but its Primary does not (S5, X3); a diskless node that saw newer data outdates an older disk (S6); a suspended
  Primary that meets a quorate one is demoted (S5c);
* an Inconsistent disk becomes UpToDate only while connected to an UpToDate one, and to the Primary if there is one (X1c).

Data is abstracted to "holds every acknowledged write" (current) or not (stale): an acknowledged write makes every copy that
did not take part stale. A disk may be UpToDate for its kernel and yet stale: that is what the assertions look for.
"""

from __future__ import annotations

from quorate.verification.cluster import (
    FAILED,
    INCONSISTENT,
    NO_STORE,
    OUTDATED,
    UP_TO_DATE,
    Bench,
    Cluster,
    Node,
    Refused,
    bits,
    disk_of,
    reach,
)
from quorate.verification.configuration import DISKFUL, GONE, LIMINAL, NodeConfiguration
from quorate.verification.settling import compare, outdate_weak, settle
from quorate.verification.verdicts import Verdicts

Cut = tuple[int, ...]


class Kernels:
    """Events under the rules of one voter mode."""

    def __init__(self, *, dynamic: bool) -> None:
        self.dynamic = dynamic
        self.verdicts = Verdicts(dynamic=dynamic)

    def settle(self, cluster: Cluster, cut: Cut, *, forced: bool) -> Cluster:
        """The network changed: everything the kernels do by themselves."""
        return settle(self.verdicts, cluster.nodes, cluster.links, cut, forced=forced)

    def enforced(self, cluster: Cluster, i: int) -> bool:
        """Whether the flag of node i is one that its stored options allow (decision 5)."""
        return self.verdicts.enforced(cluster, i)

    # Commands --------------------------------------------------------------------------------------------------------

    def reconfigure(
        self, cluster: Cluster, i: int, configuration: NodeConfiguration, cut: Cut, *, force: bool = False
    ) -> Cluster:
        """The agent changes what node i is told, short of its role.

        Refused when a Primary would lose its quorum, unless the connections are ended by force (X5: the way out of -10).
        """
        node = cluster.nodes[i]
        kind = configuration.kind
        # A replica that starts here has a volume of its own.
        store, current = (NO_STORE, False) if node.configuration.kind == GONE else (node.store, node.current)
        if kind == DISKFUL and store == NO_STORE:
            store, current = INCONSISTENT, False
        if kind not in (DISKFUL, LIMINAL):
            # The backing volume is deleted once the member needs it no more.
            store, current = NO_STORE, False
        if kind != DISKFUL and disk_of(node) == UP_TO_DATE:
            _guard_last_disk(cluster, i)
            if store == UP_TO_DATE and any(cluster.nodes[j].primary for j in bits(reach(cluster.links, i))):
                # Detached under a Primary that has data elsewhere: the metadata says outdated.
                store = OUTDATED
        changed = node._replace(
            configuration=configuration,
            store=store,
            current=current,
            informed=node.informed or (node.current and kind != DISKFUL),
            primary=node.primary and kind != GONE,
        )
        if kind == DISKFUL:
            changed = changed._replace(informed=False)
        nodes = (*cluster.nodes[:i], changed, *cluster.nodes[i + 1 :])
        if kind == DISKFUL and node.configuration.kind != DISKFUL:
            nodes = _negotiated(nodes, cluster.links, i)
        settled = settle(self.verdicts, nodes, cluster.links, cut, forced=force, asked=True)
        if not force and _structure(configuration) != _structure(node.configuration):
            self._guard_primaries(cluster, settled)
        return settled

    def _guard_primaries(self, before: Cluster, after: Cluster) -> None:
        """A Primary refuses a detach or a leave that costs its quorum, also by redundancy (S17: 11, -10)."""
        for p, node in enumerate(after.nodes):
            if not (node.primary and before.nodes[p].quorum and disk_of(node) != NO_STORE):
                continue
            if self._says(before, p) and not self._says(after, p):
                raise Refused

    def _says(self, cluster: Cluster, i: int) -> int:
        return self.verdicts.of(Bench(cluster.nodes, cluster.links), i, reach(cluster.links, i))

    def abandon(self, cluster: Cluster, i: int, cut: Cut) -> Cluster:
        """The replica object is gone: the agent takes the resource down, and nobody counts on its data any more."""
        nodes = _with(cluster.nodes, i, Node(NodeConfiguration()))
        return settle(self.verdicts, nodes, cluster.links, cut, forced=True, asked=True)

    def promote(self, cluster: Cluster, i: int, cut: Cut) -> Cluster:
        """`primary`: a cluster-wide change; it outdates what it reaches only through others."""
        nodes = cluster.nodes
        group = reach(cluster.links, i)
        if any(nodes[j].primary for j in bits(group) if j != i):
            raise Refused
        if not (nodes[i].quorum and self.has_data(cluster, i)):
            raise Refused
        bench = Bench(_with(nodes, i, nodes[i]._replace(primary=True)), cluster.links)
        outdate_weak(bench)
        settled = settle(self.verdicts, tuple(bench.nodes), cluster.links, cut, forced=False)
        if disk_of(settled.nodes[i]) != NO_STORE and not self._says(settled, i):
            # "1 of 1 nodes visible, need 2": the request outdated the others and fails itself (X3, X5).
            bench.put(i, bench.nodes[i]._replace(primary=False))
            return settle(self.verdicts, tuple(bench.nodes), cluster.links, cut, forced=False)
        return settled

    def demote(self, cluster: Cluster, i: int, cut: Cut) -> Cluster:
        """`secondary`: the quorum of a former Primary follows the rule at once."""
        nodes = _with(cluster.nodes, i, cluster.nodes[i]._replace(primary=False))
        return settle(self.verdicts, nodes, cluster.links, cut, forced=False)

    # Faults and repairs ----------------------------------------------------------------------------------------------

    def crash(self, cluster: Cluster, i: int, cut: Cut) -> Cluster:
        """Power loss: what is on the disk stays, nothing else."""
        node = cluster.nodes[i]
        down = Node(NodeConfiguration(), up=False, store=node.store, current=node.current)
        return settle(self.verdicts, _with(cluster.nodes, i, down), cluster.links, cut, forced=True)

    def boot(self, cluster: Cluster, i: int, configuration: NodeConfiguration, cut: Cut) -> Cluster:
        """The node comes up with what its agent finds published; its kind decides whether its disk is attached."""
        node = cluster.nodes[i]
        store, current = node.store, node.current
        if configuration.kind == DISKFUL and store == NO_STORE:
            store = INCONSISTENT
        if configuration.kind not in (DISKFUL, LIMINAL):
            store, current = NO_STORE, False
        fresh = Node(configuration, store=store, current=current)
        return settle(self.verdicts, _with(cluster.nodes, i, fresh), cluster.links, cut, forced=False)

    def lose_disk(self, cluster: Cluster, i: int, cut: Cut) -> Cluster:
        """The backing device fails: detached for good, the data is gone."""
        node = cluster.nodes[i]
        failed = node._replace(store=FAILED, current=False, informed=node.current)
        return settle(self.verdicts, _with(cluster.nodes, i, failed), cluster.links, cut, forced=True, failed=i)

    # Data ------------------------------------------------------------------------------------------------------------

    def finish_sync(self, cluster: Cluster, i: int, cut: Cut) -> Cluster:
        """An Inconsistent disk has copied everything from an UpToDate peer."""
        source = self.sync_source(cluster, i)
        if source is None:
            raise Refused
        synced = cluster.nodes[i]._replace(store=UP_TO_DATE, current=cluster.nodes[source].current)
        return settle(self.verdicts, _with(cluster.nodes, i, synced), cluster.links, cut, forced=False)

    @staticmethod
    def sync_source(cluster: Cluster, i: int) -> int | None:
        """The peer an Inconsistent disk can become UpToDate from, if any."""
        if disk_of(cluster.nodes[i]) != INCONSISTENT:
            return None
        for j in bits(reach(cluster.links, i)):
            if cluster.nodes[j].primary and not (cluster.links[i] >> j & 1 or i == j):
                # "Peer was unstable during resync": the Primary does not see this node (X1c).
                return None
        sources = [j for j in bits(cluster.links[i]) if disk_of(cluster.nodes[j]) == UP_TO_DATE]
        return next((j for j in sources if cluster.nodes[j].current), sources[0] if sources else None)

    @staticmethod
    def has_data(cluster: Cluster, i: int) -> bool:
        """Current data by the kernel's own judgement: an UpToDate disk here or on a connected peer."""
        return any(disk_of(cluster.nodes[j]) == UP_TO_DATE for j in bits(cluster.links[i] | 1 << i))

    def writable(self, cluster: Cluster, i: int) -> bool:
        """Node i could acknowledge a write now, as Primary or after a promotion."""
        node = cluster.nodes[i]
        return node.up and node.quorum and node.configuration.kind != GONE and self.has_data(cluster, i)

    @staticmethod
    def copies(cluster: Cluster, i: int) -> int:
        """The UpToDate disks a write of node i reaches before it is acknowledged (protocol C)."""
        near = cluster.links[i] | 1 << i
        return sum(1 << j for j in bits(near) if disk_of(cluster.nodes[j]) == UP_TO_DATE)

    def write(self, cluster: Cluster, i: int) -> Cluster:
        """A write is acknowledged on Primary i: copies that did not take part are stale from now on."""
        copies = self.copies(cluster, i)
        near = cluster.links[i] | 1 << i
        nodes = tuple(
            node._replace(
                current=bool(copies >> j & 1) and node.current,
                informed=bool(near >> j & 1) and node.up and disk_of(node) == NO_STORE,
            )
            for j, node in enumerate(cluster.nodes)
        )
        return Cluster(nodes, cluster.links)


def _guard_last_disk(cluster: Cluster, i: int) -> None:
    """`detach` of the last UpToDate disk under a Primary is refused (-2, -10)."""
    members = bits(reach(cluster.links, i))
    others = [j for j in members if j != i and disk_of(cluster.nodes[j]) == UP_TO_DATE]
    if not others and any(cluster.nodes[j].primary for j in members):
        raise Refused


def _structure(configuration: NodeConfiguration) -> tuple[int, int]:
    """What is not an option: the disk and the connections."""
    return configuration.kind, configuration.peers


def _with(nodes: tuple[Node, ...], i: int, node: Node) -> tuple[Node, ...]:
    return (*nodes[:i], node, *nodes[i + 1 :])


def _negotiated(nodes: tuple[Node, ...], links: tuple[int, ...], i: int) -> tuple[Node, ...]:
    """A disk attached while connected negotiates with the connected peers as a fresh connection does."""
    work = list(nodes)
    for j in bits(links[i]):
        work[i] = compare(work[i], nodes[j])
        work[j] = compare(nodes[j], work[i])
    return tuple(work)
