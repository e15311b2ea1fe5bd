"""What the agent says about its node: version of the module, voter mode, known options, as annotations (decision 15)."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent.kernel import KernelFacts
from quorate.api.labels import ANNOTATION_DRBD_VERSION, ANNOTATION_PEER_TIEBREAKER, ANNOTATION_VOTER_MODE
from quorate.api.node import Node
from quorate.api.value import replace
from quorate.machinery.controller import ControllerSpec, changed, for_
from quorate.machinery.effects import Answers, Decision, Half, Mode, Patch
from quorate.machinery.reader import Reader

NAME = "node-report"


@dataclass(frozen=True, slots=True)
class NodeSnapshot:
    """The node, if it is ours."""

    node: Node | None
    facts: KernelFacts | None


def annotations_of(facts: KernelFacts) -> dict[str, str]:
    return {
        ANNOTATION_DRBD_VERSION: facts.version,
        ANNOTATION_VOTER_MODE: facts.voter_mode,
        ANNOTATION_PEER_TIEBREAKER: "true" if facts.peer_tiebreaker else "false",
    }


def decide(snapshot: NodeSnapshot, answers: Answers, now: float) -> Decision:
    """Write what differs."""
    del answers, now
    node, facts = snapshot.node, snapshot.facts
    if node is None or facts is None:
        return Decision()
    known = node.metadata.annotations
    wanted = annotations_of(facts)
    if known.with_entries(wanted) is known:
        return Decision()
    after = replace(node, metadata=replace(node.metadata, annotations=known.with_entries(wanted)))
    return Decision(effects=(Patch(node, after, Half.MAIN, "facts about the DRBD module", Mode.UNLOCKED),))


def spec(node_name: str, facts: KernelFacts | None) -> ControllerSpec[NodeSnapshot]:
    """The controller for one node."""

    def gather(reader: Reader, key: str) -> NodeSnapshot:
        return NodeSnapshot(reader.get(Node, key) if key == node_name else None, facts)

    return ControllerSpec(
        name=NAME,
        watches=(for_(Node, changed(lambda node: node.metadata.annotations)),),
        gather=gather,
        decide=decide,
        concurrency=1,
    )
