"""The node decision: one label says where the agent runs.

A node is wanted while a pool lists it as eligible, or while a DRBD resource still lives there: the agent stays until its
resources are gone.
"""

from __future__ import annotations

from quorate.api.labels import LABEL_NODE
from quorate.api.value import replace
from quorate.controllers.node.snapshot import Snapshot
from quorate.machinery.effects import Answers, Decision, Half, Mode, Patch


def decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    """Set or remove the label; a wrong value is rewritten. No status, no finalizers."""
    del answers, now
    node = snapshot.node
    if node is None:
        return Decision()
    wanted = snapshot.eligible or snapshot.hosts_resources
    marks = node.metadata.labels
    target = marks.with_entry(LABEL_NODE, "") if wanted else marks.without(LABEL_NODE)
    if target == marks:
        return Decision()
    after = replace(node, metadata=replace(node.metadata, labels=target))
    cause = "the agent is needed on the node" if wanted else "the agent is not needed on the node any more"
    # Nodes change all the time and this is a single map key: no optimistic lock.
    return Decision(effects=(Patch(before=node, after=after, half=Half.MAIN, cause=cause, mode=Mode.UNLOCKED),))
