"""What one pass of the datamesh engine costs, by members, and that it grows at most linearly with them.

*No-op*: nothing is due, the pass returns the very status it was given. *Creating*: an attachment starts, so a transition is
created, published and reported. Members beyond five diskful ones are Access members, attached, as in real volumes; DRBD
allows eight disks.
"""

from __future__ import annotations

from bench.figure import Figure, seconds_per_call
from quorate.datamesh.contract import PassInput
from quorate.datamesh.engine import run_pass
from quorate.datamesh.layout import Layout
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import form, run, with_attachment, with_replica, without_attachment
from quorate.verification.perfect_replicas import react

MEMBERS = (1, 3, 5, 16, 32)
CALLS = 200
_LAYOUTS = {1: Layout(0, 0), 3: Layout(1, 1)}


def settled(members: int) -> Cluster:
    """A volume with so many members at rest; every Access member is attached."""
    layout = _LAYOUTS.get(members, Layout(2, 2))
    accesses = members - layout.diskful
    cluster = form(layout, nodes=members, max_attachments=max(accesses, 1))
    for number in range(accesses):
        node = f"node-{layout.diskful + number}"
        cluster = react(with_replica(with_attachment(cluster, node), "Access", node))
    return run(cluster)[0]


def creating(cluster: Cluster) -> PassInput:
    """The same volume with one thing to do: an attachment that comes, or one that goes."""
    if cluster.attachments:
        return without_attachment(cluster, cluster.attachments[-1].spec.node_name).inputs()
    return with_attachment(cluster, "node-0").inputs()


def figures() -> list[Figure]:
    """Processor time of a pass; the last two are the cost per member of 32 members against that of one."""
    found: list[Figure] = []
    costs: dict[tuple[str, int], float] = {}
    for members in MEMBERS:
        cluster = settled(members)
        idle, due = cluster.inputs(), creating(cluster)
        if run_pass(idle).changed or not run_pass(due).changed:
            raise AssertionError("the benchmark does not measure what it says")
        for kind, inputs in (("no-op", idle), ("creating", due)):
            cost = seconds_per_call(lambda inputs=inputs: run_pass(inputs), calls=CALLS)
            costs[kind, members] = cost
            note = "nothing is due" if kind == "no-op" else "one transition is created"
            found.append(Figure(f"engine pass, {kind}, {members} members", cost * 1e6, "µs", note))
    for kind in ("no-op", "creating"):
        growth = costs[kind, MEMBERS[-1]] / costs[kind, MEMBERS[0]] / MEMBERS[-1]
        note = "cost per member at 32 members relative to 1; at most 1 means at most linear"
        found.append(Figure(f"engine pass, {kind}, growth per member", growth, "ratio", note))
    return found
