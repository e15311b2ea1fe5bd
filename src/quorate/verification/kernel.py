"""The DRBD of N nodes as one value, and what an event does to it.

Guarantees: every function is pure and deterministic; quorum is decided by `quorate.simulator.quorum` and nowhere
else. An event is followed by everything the kernels do by themselves (connections drop and come back, member sets
shrink, flags move, data is compared) until nothing changes; the checker interleaves events, not kernel internals.

What is modelled, and from which recording it is known:

* losses are simultaneous within one event: a lost peer is unknown first; once the survivors committed the loss it is
  quorumless for every node that kept its quorum and cannot reach it any more, directly or through others (S6, X0a);
* a Primary refuses a voluntary change that costs its quorum: options are stored without effect (S12, X7), connects do
  not happen (X10), graceful leaves fail (X5, `Refused`);
* a Secondary that parts gracefully from its Primary becomes Outdated (S9, X4), and so does one that a third node
  still reaches but its Primary does not (S5, X3); a diskless node that saw newer data outdates an older disk (S6); a
  suspended Primary that meets a quorate one is demoted (S5c);
* an Inconsistent disk becomes UpToDate only while connected to an UpToDate one, and to the Primary if there is one
  (X1c).

Data is abstracted to "holds every acknowledged write" (current) or not (stale): an acknowledged write makes every
copy that did not take part stale. A disk may be UpToDate for its kernel and yet stale: that is what the assertions
look for.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from quorate.simulator.quorum import OwnView, PeerView, QuorumOptions, have_quorum
from quorate.verification.configuration import DISKFUL, GONE, LIMINAL, TIE_BREAKER, NodeConfiguration

NO_STORE: Final = 0
"""No backing volume with data."""
INCONSISTENT: Final = 1
OUTDATED: Final = 2
UP_TO_DATE: Final = 3
FAILED: Final = 4
"""The disk broke: the data is gone, the node runs without it."""

STORE_NAMES: Final = ("none", "Inconsistent", "Outdated", "UpToDate", "failed")
_DISK_NAMES: Final = ("Diskless", "Inconsistent", "Outdated", "UpToDate", "Diskless")


class Node(NamedTuple):
    """The kernel of one node, and the data on its disk."""

    configuration: NodeConfiguration
    up: bool = True
    store: int = NO_STORE
    current: bool = False
    """The store holds every acknowledged write."""
    informed: bool = False
    """The node knows of the newest data generation (what a diskless node exposes)."""
    quorum: bool = False
    primary: bool = False
    outdated_peers: int = 0
    """Peers recorded as outdated while not connected."""


class Cluster(NamedTuple):
    """All kernels, and the links that are established; `links[i]` is a mask."""

    nodes: tuple[Node, ...]
    links: tuple[int, ...]


class Refused(Exception):
    """The kernel answers no: a Primary would lose its quorum, or nobody with quorum and data can be promoted."""


def disk_of(node: Node) -> int:
    """What the node's kernel runs as its disk: the store only while it is attached."""
    return node.store if node.up and node.configuration.kind == DISKFUL and node.store != FAILED else NO_STORE


def reach(links: tuple[int, ...], start: int) -> int:
    """Every node connected to `start` through any chain, itself included."""
    found = todo = 1 << start
    while todo:
        low = todo & -todo
        todo ^= low
        fresh = links[low.bit_length() - 1] & ~found
        found |= fresh
        todo |= fresh
    return found


def _groups(links: tuple[int, ...]) -> list[int]:
    """For every node the nodes it reaches."""
    groups = [0] * len(links)
    for i in range(len(links)):
        if not groups[i]:
            group = reach(links, i)
            for j in range(i, len(links)):
                if group >> j & 1:
                    groups[j] = group
    return groups


class Kernels:
    """The rules for one voter mode, with the memory of verdicts already computed."""

    def __init__(self, *, dynamic: bool) -> None:
        self.dynamic = dynamic
        self._verdicts: dict[tuple[object, ...], bool] = {}

    # Quorum ----------------------------------------------------------------------------------------------------------

    def computed(
        self, nodes: tuple[Node, ...] | list[Node], links: tuple[int, ...] | list[int], i: int, members: int
    ) -> bool:
        """What the rule says for node i. `members`: its member set, the nodes it reached when the set was agreed."""
        node = nodes[i]
        configuration = node.configuration
        connected = links[i]
        up_to_date = diskless = quorate = 0
        rest = connected & (configuration.voters | configuration.ties)
        while rest:
            low = rest & -rest
            rest ^= low
            peer = nodes[low.bit_length() - 1]
            disk = disk_of(peer)
            if disk == NO_STORE:
                diskless |= low
            elif disk == UP_TO_DATE:
                up_to_date |= low
                if peer.quorum:
                    quorate |= low
        missing = configuration.voters & ~connected
        quorumless = missing & ~members
        key = (
            configuration,
            disk_of(node),
            connected,
            up_to_date,
            diskless,
            quorumless,
            node.outdated_peers & missing,
            quorate if disk_of(node) == NO_STORE else 0,
            node.quorum,
        )
        verdict = self._verdicts.get(key)
        if verdict is None:
            verdict = self._verdicts[key] = self._judge(node, connected, up_to_date, diskless, quorumless, quorate)
        return verdict

    def _judge(self, node: Node, connected: int, up_to_date: int, diskless: int, quorumless: int, quorate: int) -> bool:
        configuration = node.configuration
        peers: list[PeerView] = []
        for position in range(configuration.peers.bit_length()):
            bit = 1 << position
            if not bit & (configuration.voters | configuration.ties):
                continue
            linked = bool(bit & connected)
            disk = "UpToDate" if bit & up_to_date else "Diskless" if bit & diskless else "Inconsistent"
            peers.append(
                PeerView(
                    connected=linked,
                    disk=disk if linked else "DUnknown",
                    has_bitmap=bool(bit & configuration.voters),
                    quorumless=bool(bit & quorumless),
                    outdated=bool(bit & node.outdated_peers),
                    quorate=bool(bit & quorate),
                )
            )
        own = OwnView(_DISK_NAMES[disk_of(node)], intentional_diskless=configuration.kind != DISKFUL)
        options = QuorumOptions(configuration.quorum, configuration.minimum_redundancy, self.dynamic)
        return have_quorum(own, peers, options, node.quorum)

    def enforced(self, cluster: Cluster, i: int) -> bool:
        """Whether the flag is one that the rule allows for the status an agent can read (decision 5).

        The agent sees neither its kernel's member set nor whether the node had quorum until now, so it tries both.
        """
        node = cluster.nodes[i]
        missing = node.configuration.voters & ~cluster.links[i]
        members = -1
        while True:
            for had in (True, False):
                nodes = _with(cluster.nodes, i, quorum=had)
                if (had or members == -1) and self.computed(nodes, cluster.links, i, members) == node.quorum:
                    return True
            if not missing:
                return False
            low = missing & -missing
            missing ^= low
            members &= ~low

    # Settling --------------------------------------------------------------------------------------------------------

    def settle(
        self,
        nodes: tuple[Node, ...],
        links: tuple[int, ...],
        cut: tuple[int, ...],
        *,
        forced: bool,
        asked: bool = False,
    ) -> Cluster:
        """Everything the kernels do by themselves after an event.

        An event that is not `forced` may be refused; one that is `asked` for (a command, also a forced one) lets peers
        part knowingly.
        """
        work = list(nodes)
        established = list(links)
        before = _groups(links)
        fresh = self._drop_links(work, established, cut)
        if asked or not forced:
            self._outdate_leavers(work, fresh)
        # The member sets are those of before: a peer lost just now is unknown, not quorumless.
        self._evaluate(work, established, before, fresh, forced=forced)
        self._evaluate(work, established)
        for _ in range(len(work) + 2):
            changed = self._connect(work, established, cut)
            changed |= self._outdate_weak(work, established)
            changed |= self._evaluate(work, established)
            if not changed:
                break
        return Cluster(tuple(work), tuple(established))

    @staticmethod
    def _drop_links(nodes: list[Node], links: list[int], cut: tuple[int, ...]) -> list[int]:
        fresh = [0] * len(nodes)
        allowed = [node.configuration.peers & ~cut[i] if node.up else 0 for i, node in enumerate(nodes)]
        for i, mask in enumerate(links):
            lost = mask & ~allowed[i]
            rest = mask & allowed[i]
            while rest:
                low = rest & -rest
                rest ^= low
                if not allowed[low.bit_length() - 1] >> i & 1:
                    lost |= low
            fresh[i] = lost
        for i, lost in enumerate(fresh):
            links[i] &= ~lost
        return fresh

    @staticmethod
    def _outdate_leavers(nodes: list[Node], fresh: list[int]) -> None:
        """A Secondary that parts gracefully from a Primary becomes Outdated, and the Primary knows it (S9, X4)."""
        for p, lost in enumerate(fresh):
            primary = nodes[p]
            if not (lost and primary.primary and primary.quorum):
                continue
            for i, node in enumerate(nodes):
                if lost >> i & 1 and disk_of(node) == UP_TO_DATE:
                    nodes[i] = node._replace(store=OUTDATED)
                    nodes[p] = nodes[p]._replace(outdated_peers=nodes[p].outdated_peers | 1 << i)

    def _evaluate(
        self,
        nodes: list[Node],
        links: list[int],
        members: list[int] | None = None,
        fresh: list[int] | None = None,
        *,
        forced: bool = False,
    ) -> bool:
        """Move every flag to what the rule says; nodes with a disk first, because diskless nodes ask them.

        `fresh`: connections that ended in this very change; a Primary refuses a voluntary end that costs its quorum.
        """
        changed = False
        groups = members or _groups(tuple(links))
        for with_disk in (True, False):
            for i, node in enumerate(nodes):
                if not node.up or (disk_of(node) != NO_STORE) is not with_disk:
                    continue
                flag = node.configuration.kind != GONE and self.computed(nodes, links, i, groups[i])
                if node.quorum and node.primary and not flag and with_disk:
                    lost = fresh is not None and fresh[i]
                    if lost and not forced:
                        raise Refused
                    # An option change or another's commit: the value is stored, the flag stays (S12, X7). A diskless
                    # Primary has no rule of its own to hold on to: it follows its peers' flags.
                    flag = not lost
                if flag != node.quorum:
                    nodes[i] = node._replace(quorum=flag)
                    changed = True
        return changed

    def _connect(self, nodes: list[Node], links: list[int], cut: tuple[int, ...]) -> bool:
        changed = False
        for i in range(len(nodes)):
            if not nodes[i].up:
                continue
            wanted = nodes[i].configuration.peers & ~cut[i] & ~links[i] & -(2 << i)
            while wanted:
                low = wanted & -wanted
                wanted ^= low
                j = low.bit_length() - 1
                if nodes[j].up and nodes[j].configuration.peers >> i & 1 and self._handshake(nodes, links, i, j):
                    changed = True
                    self._evaluate(nodes, links)
        return changed

    def _handshake(self, nodes: list[Node], links: list[int], i: int, j: int) -> bool:
        """Connect i and j: roles, quorum of a Primary, data generations. False: the connection does not come up."""
        first, second = nodes[i], nodes[j]
        if first.primary and second.primary:
            if first.quorum == second.quorum:
                return False
            # on-suspended-primary-outdated=force-secondary (S5c).
            loser = j if first.quorum else i
            nodes[loser] = nodes[loser]._replace(primary=False)
        links[i] |= 1 << j
        links[j] |= 1 << i
        for k in (i, j):
            if nodes[k].primary and nodes[k].quorum:
                if not self.computed(nodes, links, k, reach(tuple(links), k)):
                    # X10: "Failure to connect: No quorum (-25)".
                    links[i] &= ~(1 << j)
                    links[j] &= ~(1 << i)
                    nodes[i], nodes[j] = first, second
                    return False
        first, second = nodes[i], nodes[j]
        nodes[i] = _compare(first, second)._replace(outdated_peers=first.outdated_peers & ~(1 << j))
        nodes[j] = _compare(second, first)._replace(outdated_peers=second.outdated_peers & ~(1 << i))
        return True

    @staticmethod
    def _outdate_weak(nodes: list[Node], links: list[int]) -> bool:
        """A disk that a Primary reaches only through others becomes Outdated (S5, X3)."""
        changed = False
        for p, primary in enumerate(nodes):
            if not (primary.up and primary.primary and primary.quorum):
                continue
            weak = reach(tuple(links), p) & ~links[p] & ~(1 << p)
            for i, node in enumerate(nodes):
                if weak >> i & 1 and disk_of(node) == UP_TO_DATE:
                    nodes[i] = node._replace(store=OUTDATED)
                    changed = True
                recorded = nodes[p].outdated_peers | (weak & primary.configuration.voters & 1 << i)
                if disk_of(nodes[i]) == OUTDATED and recorded != nodes[p].outdated_peers:
                    nodes[p] = nodes[p]._replace(outdated_peers=recorded)
                    changed = True
        return changed

    # Events ----------------------------------------------------------------------------------------------------------

    def reconfigure(
        self,
        cluster: Cluster,
        i: int,
        configuration: NodeConfiguration,
        cut: tuple[int, ...],
        *,
        force: bool = False,
    ) -> Cluster:
        """The agent changes what node i is told, short of its role.

        Refused when a Primary would lose its quorum, unless the connections are ended by force (X5: the way out of -10).
        """
        node = cluster.nodes[i]
        store, current = node.store, node.current
        if node.configuration.kind == GONE:
            # A replica that starts here has a volume of its own.
            store, current = NO_STORE, False
        if configuration.kind == DISKFUL and store == NO_STORE:
            store, current = INCONSISTENT, False
        if configuration.kind not in (DISKFUL, LIMINAL):
            # The backing volume is deleted once the member needs it no more.
            store, current = NO_STORE, False
        if configuration.kind != DISKFUL and disk_of(node) == UP_TO_DATE:
            self._guard_last_disk(cluster, i)
        primary = node.primary and configuration.kind != GONE
        changed = node._replace(configuration=configuration, store=store, current=current, primary=primary)
        nodes = (*cluster.nodes[:i], changed, *cluster.nodes[i + 1 :])
        if configuration.kind == DISKFUL and node.configuration.kind != DISKFUL:
            nodes = _attach(nodes, cluster.links, i)
        settled = self.settle(nodes, cluster.links, cut, forced=force, asked=True)
        structural = _structure(configuration) != _structure(node.configuration)
        if structural and not force:
            self._guard_primaries(cluster, settled)
        return settled

    def _guard_primaries(self, before: Cluster, after: Cluster) -> None:
        """A Primary refuses a detach or a leave that costs its quorum, also by redundancy (S17: 11, -10)."""
        for p, node in enumerate(after.nodes):
            if (
                node.primary
                and before.nodes[p].quorum
                and disk_of(node) != NO_STORE
                and self.computed(before.nodes, before.links, p, reach(before.links, p))
                and not self.computed(after.nodes, after.links, p, reach(after.links, p))
            ):
                raise Refused

    def abandon(self, cluster: Cluster, i: int, cut: tuple[int, ...]) -> Cluster:
        """The replica object is gone: the agent takes the resource down, and nobody counts on its data any more."""
        nodes = _with(
            cluster.nodes,
            i,
            configuration=NodeConfiguration(),
            store=NO_STORE,
            current=False,
            primary=False,
            quorum=False,
            outdated_peers=0,
        )
        return self.settle(nodes, cluster.links, cut, forced=True, asked=True)

    @staticmethod
    def _guard_last_disk(cluster: Cluster, i: int) -> None:
        """`detach` of the last UpToDate disk under a Primary is refused (-2, -10)."""
        group = reach(cluster.links, i)
        members = [j for j in range(len(cluster.nodes)) if group >> j & 1]
        others = [j for j in members if j != i and disk_of(cluster.nodes[j]) == UP_TO_DATE]
        if not others and any(cluster.nodes[j].primary for j in members):
            raise Refused

    def promote(self, cluster: Cluster, i: int, cut: tuple[int, ...]) -> Cluster:
        """`primary`: a cluster-wide change; it outdates what it reaches only through others."""
        group = reach(cluster.links, i)
        nodes = cluster.nodes
        if any(nodes[j].primary for j in range(len(nodes)) if group >> j & 1 and j != i):
            raise Refused
        if not (nodes[i].quorum and self.has_data(cluster, i)):
            raise Refused
        work = list(nodes)
        work[i] = work[i]._replace(primary=True)
        self._outdate_weak(work, list(cluster.links))
        settled = self.settle(tuple(work), cluster.links, cut, forced=False)
        if not self.computed(settled.nodes, settled.links, i, group):
            # "1 of 1 nodes visible, need 2": the request outdated the others and fails itself (X3, X5).
            work[i] = work[i]._replace(primary=False)
            return self.settle(tuple(work), cluster.links, cut, forced=False)
        return settled

    def demote(self, cluster: Cluster, i: int, cut: tuple[int, ...]) -> Cluster:
        """`secondary`: the quorum of a former Primary follows the rule at once."""
        return self.settle(_with(cluster.nodes, i, primary=False), cluster.links, cut, forced=False)

    def crash(self, cluster: Cluster, i: int, cut: tuple[int, ...]) -> Cluster:
        """Power loss: what is on the disk stays."""
        nodes = _with(
            cluster.nodes,
            i,
            up=False,
            primary=False,
            quorum=False,
            informed=cluster.nodes[i].current,
            outdated_peers=0,
            configuration=NodeConfiguration(),
        )
        return self.settle(nodes, cluster.links, cut, forced=True)

    def boot(self, cluster: Cluster, i: int, configuration: NodeConfiguration, cut: tuple[int, ...]) -> Cluster:
        """The node comes up with what its agent finds published; `kind` decides whether its disk is attached."""
        node = cluster.nodes[i]
        store, current = node.store, node.current
        if configuration.kind == DISKFUL and store == NO_STORE:
            store = INCONSISTENT
        if configuration.kind not in (DISKFUL, LIMINAL):
            store, current = NO_STORE, False
        nodes = _with(
            cluster.nodes,
            i,
            up=True,
            configuration=configuration,
            store=store,
            current=current,
            informed=current,
        )
        return self.settle(nodes, cluster.links, cut, forced=False)

    def lose_disk(self, cluster: Cluster, i: int, cut: tuple[int, ...]) -> Cluster:
        """The backing device fails: detached for good, the data is gone."""
        nodes = _with(cluster.nodes, i, store=FAILED, current=False)
        return self.settle(nodes, cluster.links, cut, forced=True)

    def finish_sync(self, cluster: Cluster, i: int, cut: tuple[int, ...]) -> Cluster:
        """An Inconsistent disk has copied everything from an UpToDate peer."""
        source = self.sync_source(cluster, i)
        if source is None:
            raise Refused
        nodes = _with(cluster.nodes, i, store=UP_TO_DATE, current=cluster.nodes[source].current, informed=True)
        return self.settle(nodes, cluster.links, cut, forced=False)

    def sync_source(self, cluster: Cluster, i: int) -> int | None:
        """The peer an Inconsistent disk can become UpToDate from, if any."""
        if disk_of(cluster.nodes[i]) != INCONSISTENT:
            return None
        group = reach(cluster.links, i)
        for j, node in enumerate(cluster.nodes):
            if group >> j & 1 and node.primary and not (cluster.links[i] >> j & 1 or i == j):
                # "Peer was unstable during resync": the Primary does not see this node (X1c).
                return None
        best: int | None = None
        for j, node in enumerate(cluster.nodes):
            if cluster.links[i] >> j & 1 and disk_of(node) == UP_TO_DATE and (best is None or node.current):
                best = j
        return best

    # Writing ---------------------------------------------------------------------------------------------------------

    @staticmethod
    def has_data(cluster: Cluster, i: int) -> bool:
        """Current data by the kernel's own judgement: an UpToDate disk here or on a connected peer."""
        return disk_of(cluster.nodes[i]) == UP_TO_DATE or any(
            cluster.links[i] >> j & 1 and disk_of(node) == UP_TO_DATE for j, node in enumerate(cluster.nodes)
        )

    def writable(self, cluster: Cluster, i: int) -> bool:
        """Node i could acknowledge a write now, as Primary or after a promotion."""
        node = cluster.nodes[i]
        return node.up and node.quorum and node.configuration.kind != GONE and self.has_data(cluster, i)

    @staticmethod
    def copies(cluster: Cluster, i: int) -> int:
        """The UpToDate disks a write of node i reaches before it is acknowledged (protocol C)."""
        mask = 0
        for j, node in enumerate(cluster.nodes):
            if (i == j or cluster.links[i] >> j & 1) and disk_of(node) == UP_TO_DATE:
                mask |= 1 << j
        return mask

    def write(self, cluster: Cluster, i: int) -> Cluster:
        """A write is acknowledged on Primary i: copies that did not take part are stale from now on."""
        copies = self.copies(cluster, i)
        near = cluster.links[i] | 1 << i
        nodes = tuple(
            node._replace(current=bool(copies >> j & 1) and node.current, informed=bool(near >> j & 1))
            for j, node in enumerate(cluster.nodes)
        )
        return Cluster(nodes, cluster.links)


def _structure(configuration: NodeConfiguration) -> tuple[int, int]:
    """What is not an option: the disk and the connections."""
    return configuration.kind, configuration.peers


def _with(nodes: tuple[Node, ...], i: int, **changes: object) -> tuple[Node, ...]:
    return (*nodes[:i], nodes[i]._replace(**changes), *nodes[i + 1 :])  # type: ignore[arg-type]


def _compare(own: Node, peer: Node) -> Node:
    """What connecting to `peer` does to the data of `own`."""
    disk, other = disk_of(own), disk_of(peer)
    informed = own.informed or peer.informed
    if disk in (UP_TO_DATE, OUTDATED):
        if other == UP_TO_DATE:
            if own.current == peer.current:
                return own._replace(store=UP_TO_DATE, informed=informed)
            if peer.current:
                return own._replace(store=INCONSISTENT, informed=informed)
        if disk == OUTDATED and own.current and other == NO_STORE and peer.primary and peer.informed:
            # Back in direct sight of a diskless Primary, with the data generation it works on.
            return own._replace(store=UP_TO_DATE, informed=True)
        if disk == UP_TO_DATE and not own.current and peer.informed and other != UP_TO_DATE:
            # S6: the tie-breaker knows newer data.
            return own._replace(store=OUTDATED, informed=informed)
    return own._replace(informed=informed)


def _attach(nodes: tuple[Node, ...], links: tuple[int, ...], i: int) -> tuple[Node, ...]:
    """A disk attached while connected negotiates with the connected peers as a fresh connection does."""
    work = list(nodes)
    for j, peer in enumerate(nodes):
        if links[i] >> j & 1:
            work[i] = _compare(work[i], peer)
            work[j] = _compare(peer, work[i])
    return tuple(work)


__all__ = [
    "FAILED",
    "INCONSISTENT",
    "NO_STORE",
    "OUTDATED",
    "STORE_NAMES",
    "TIE_BREAKER",
    "UP_TO_DATE",
    "Cluster",
    "Kernels",
    "Node",
    "Refused",
    "disk_of",
    "reach",
]
