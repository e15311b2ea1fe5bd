"""What is left of a deleted replica on a node that does not exist any more.

The agent removes its finalizer from a DRBDResource or a logical volume when the device is gone. Where the Node object itself
is gone, nobody can: the objects would hang in deletion, and the volume's deletion with them. Deleting a Node is the
administrator's word that the machine is no longer of this cluster, so after a grace its finalizers are lifted.

No data depends on it: only children that are already being deleted are touched, of a replica that is being deleted and is no
member. It is no fencing evidence either (decision 6): membership is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import times
from quorate.api.labels import FINALIZER_AGENT, FINALIZER_LVM_OPERATOR
from quorate.api.meta import ObjectMeta, ObjectRef
from quorate.api.node import Node
from quorate.api.value import replace
from quorate.controllers.replica.metadata import audit, refs
from quorate.controllers.replica.situation import Situation
from quorate.machinery.effects import Effect, Half, Patch

GRACE = 600.0
"""Seconds of deletion before: a Node that is registered anew within minutes still cleans up by itself."""
_OF_THE_NODE = (FINALIZER_AGENT, FINALIZER_LVM_OPERATOR)


@dataclass(frozen=True)
class Abandoned:
    """Children to let go of now, and when to look again."""

    effects: tuple[Effect, ...] = ()
    wake_after: float | None = None


def release_abandoned(situation: Situation, now: float) -> Abandoned:
    """Lift the finalizers of a node that does not exist from children that only wait for it."""
    node_name = situation.replica.spec.node_name
    if not situation.should_not_exist or situation.member is not None or situation.snapshot.agent.node_exists:
        return Abandoned()
    decided_from = (*refs(situation.replica, situation.volume), ObjectRef(kind=Node.__name__, name=node_name))
    effects: list[Effect] = []
    waits: list[float] = []
    for child in (situation.drbdr, *situation.snapshot.volumes):
        if child is None or not _waits_for_the_node(child.metadata):
            continue
        remaining = times.parse(child.metadata.deletion_timestamp) + GRACE - now
        if remaining > 0:
            waits.append(remaining)
            continue
        rest = tuple(item for item in child.metadata.finalizers if item not in _OF_THE_NODE)
        released = replace(child, metadata=replace(child.metadata, finalizers=rest))
        cause = f"node {node_name} does not exist any more"
        effects.append(Patch(child, released, Half.MAIN, cause, decided_from=decided_from, audit=audit(situation)))
    return Abandoned(tuple(effects), min(waits, default=None))


def _waits_for_the_node(metadata: ObjectMeta) -> bool:
    """Whether deletion waits for the node alone: everybody else has let go."""
    return metadata.deleting and bool(metadata.finalizers) and all(f in _OF_THE_NODE for f in metadata.finalizers)
