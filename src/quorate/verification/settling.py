"""What the kernels do by themselves after an event, until nothing changes.

The order within one event: connections that cannot stand drop, flags are evaluated with the member sets of before (a peer
lost just now is unknown), the loss is committed (now it may be quorumless), connections come up one by one, data is compared,
disks that a Primary reaches only through others become Outdated; repeated until stable.
"""

from __future__ import annotations

from quorate.verification.cluster import (
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
    groups_of,
    reach,
    with_quorum,
)
from quorate.verification.configuration import GONE
from quorate.verification.verdicts import BY_TIE_BREAK, Verdicts


def settle(
    verdicts: Verdicts,
    nodes: tuple[Node, ...],
    links: tuple[int, ...],
    cut: tuple[int, ...],
    *,
    forced: bool,
    asked: bool = False,
    failed: int = -1,
) -> Cluster:
    """The cluster after an event.

    An event that is not `forced` may be refused; one that is `asked` for (a command, also a forced one) lets peers part
    knowingly. `failed`: the node whose disk broke, which all that are connected to it notice like a lost connection.
    """
    bench = Bench(nodes, links)
    fresh = _drop_links(bench, cut)
    if failed >= 0:
        fresh = fresh or [0] * len(nodes)
        for i in (failed, *bits(links[failed])):
            fresh[i] |= 1 << failed
    if fresh is not None and (asked or not forced):
        _outdate_leavers(bench, fresh)
    unsettled = evaluate(verdicts, bench, groups_of(links), fresh, forced=forced)
    if unsettled or fresh is not None:
        evaluate(verdicts, bench, bench.groups())
    for _ in range(len(nodes) + 2):
        changed = _connect(verdicts, bench, cut)
        changed |= outdate_weak(bench)
        changed |= compare_unstable(bench)
        if not changed and not unsettled:
            break
        unsettled = evaluate(verdicts, bench, bench.groups())
    return bench.freeze()


def _drop_links(bench: Bench, cut: tuple[int, ...]) -> list[int] | None:
    """End what cannot stand; per node the peers lost, None when nothing was."""
    allowed = [node.configuration.peers & ~cut[i] if node.up else 0 for i, node in enumerate(bench.nodes)]
    lost = [
        (i, j)
        for i, mask in enumerate(bench.links)
        for j in bits(mask & -(2 << i))
        if not (allowed[i] >> j & 1 and allowed[j] >> i & 1)
    ]
    if not lost:
        return None
    fresh = [0] * len(bench.nodes)
    for i, j in lost:
        bench.part(i, j)
        fresh[i] |= 1 << j
        fresh[j] |= 1 << i
    return fresh


def _outdate_leavers(bench: Bench, fresh: list[int]) -> None:
    """A Secondary that parts gracefully from a Primary becomes Outdated, and the Primary knows it (S9, X4)."""
    for p, lost in enumerate(fresh):
        if not (lost and bench.nodes[p].primary and bench.nodes[p].quorum):
            continue
        for i in bits(lost & bench.up_to_date):
            bench.store(i, OUTDATED)
            bench.put(p, bench.nodes[p]._replace(outdated_peers=bench.nodes[p].outdated_peers | 1 << i))


def evaluate(
    verdicts: Verdicts,
    bench: Bench,
    members: tuple[int, ...],
    fresh: list[int] | None = None,
    *,
    forced: bool = False,
) -> bool:
    """Move every flag to what the rule says; nodes with a disk first, because diskless nodes ask them.

    `fresh`: connections that ended in this very change; a Primary refuses a voluntary end that costs its quorum.
    """
    changed = False
    everybody = range(len(bench.nodes))
    for i in everybody:
        node = bench.nodes[i]
        if bench.disks[i] == NO_STORE or not node.up:
            continue
        verdict = verdicts.of(bench, i, members[i])
        flag, tied = verdict > 0, verdict == BY_TIE_BREAK
        if node.quorum and node.primary and not flag:
            lost = fresh is not None and fresh[i]
            if lost and not forced:
                raise Refused
            # An option change or another's commit: the value is stored, the flag stays (S12, X7).
            flag, tied = not lost, node.tied and not lost
        if flag != node.quorum or tied != node.tied:
            bench.put(i, with_quorum(node, flag, tied))
            changed = True
    for i in everybody:
        node = bench.nodes[i]
        if bench.disks[i] != NO_STORE or not node.up:
            continue
        # A diskless Primary has no rule of its own to hold on to: it follows its peers' flags.
        verdict = verdicts.of(bench, i, members[i]) if node.configuration.kind != GONE else 0
        tied = verdict == BY_TIE_BREAK or (verdict > 0 and bench.tied != 0 and _only_tied_sources(bench, i))
        if (verdict > 0) != node.quorum or tied != node.tied:
            bench.put(i, with_quorum(node, verdict > 0, tied))
            changed = True
    return changed


def _only_tied_sources(bench: Bench, i: int) -> bool:
    sources = bench.links[i] & bench.up_to_date & bench.quorate
    return sources != 0 and not sources & ~bench.tied


def _connect(verdicts: Verdicts, bench: Bench, cut: tuple[int, ...]) -> bool:
    changed = False
    nodes = bench.nodes
    for i in range(len(nodes)):
        if not nodes[i].up:
            continue
        wanted = nodes[i].configuration.peers & ~cut[i] & ~bench.links[i] & -(2 << i)
        for j in bits(wanted):
            if nodes[j].up and nodes[j].configuration.peers >> i & 1 and _handshake(verdicts, bench, i, j):
                changed = True
                evaluate(verdicts, bench, bench.groups())
    return changed


def _handshake(verdicts: Verdicts, bench: Bench, i: int, j: int) -> bool:
    """Connect i and j: roles, quorum of a Primary, data generations. False: the connection does not come up."""
    first, second = bench.nodes[i], bench.nodes[j]
    if first.primary and second.primary:
        if first.quorum == second.quorum:
            return False
        # on-suspended-primary-outdated=force-secondary (S5c).
        loser = j if first.quorum else i
        bench.put(loser, bench.nodes[loser]._replace(primary=False))
    bench.connect(i, j)
    for k in (i, j):
        node = bench.nodes[k]
        if node.primary and node.quorum and bench.disks[k] and not verdicts.of(bench, k, reach(bench.links, k)):
            # X10: "Failure to connect: No quorum (-25)".
            bench.part(i, j)
            bench.put(i, first)
            bench.put(j, second)
            return False
    first, second = bench.nodes[i], bench.nodes[j]
    bench.put(i, compare(first, second)._replace(outdated_peers=first.outdated_peers & ~(1 << j)))
    bench.put(j, compare(second, first)._replace(outdated_peers=second.outdated_peers & ~(1 << i)))
    return True


def outdate_weak(bench: Bench) -> bool:
    """A disk that a Primary reaches only through others becomes Outdated (S5, X3)."""
    changed = False
    for p, primary in enumerate(bench.nodes):
        if not (primary.primary and primary.quorum and primary.up):
            continue
        weak = reach(bench.links, p) & ~bench.links[p] & ~(1 << p) & ~bench.bare
        for i in bits(weak):
            if bench.disks[i] == UP_TO_DATE:
                bench.store(i, OUTDATED)
                changed = True
            recorded = bench.nodes[p].outdated_peers | (primary.configuration.voters & 1 << i)
            if bench.disks[i] == OUTDATED and recorded != bench.nodes[p].outdated_peers:
                bench.put(p, bench.nodes[p]._replace(outdated_peers=recorded))
                changed = True
    return changed


def compare_unstable(bench: Bench) -> bool:
    """Neighbours settle who is behind on the connection that stands: with no Primary near any more (S3: after-unstable), or
    with every Primary in direct sight again (D10: a diskless one brings no data of its own)."""
    outdated = [i for i, disk in enumerate(bench.disks) if disk == OUTDATED]
    changed = False
    for i in outdated:
        if any(bench.nodes[j].primary for j in bits(reach(bench.links, i) & ~bench.links[i])):
            continue
        for j in bits(bench.links[i] & bench.up_to_date):
            settled = compare(bench.nodes[i], bench.nodes[j])
            if settled != bench.nodes[i]:
                bench.put(i, settled)
                changed = True
                break
    return changed


def compare(own: Node, peer: Node) -> Node:
    """What connecting to `peer` does to the data of `own`."""
    disk, other = disk_of(own), disk_of(peer)
    knows = peer.current if other != NO_STORE else peer.informed
    if disk == NO_STORE:
        return own._replace(informed=True) if knows and not own.informed else own
    if disk == INCONSISTENT:
        return own
    if other == UP_TO_DATE:
        if own.current == peer.current:
            return own._replace(store=UP_TO_DATE)
        return own._replace(store=INCONSISTENT) if peer.current else own
    if disk == OUTDATED and own.current and other == NO_STORE and peer.primary and knows:
        # Back in direct sight of a diskless Primary, with the data generation it works on.
        return own._replace(store=UP_TO_DATE)
    if disk == UP_TO_DATE and not own.current and knows:
        # S6: the tie-breaker knows newer data.
        return own._replace(store=OUTDATED)
    return own
