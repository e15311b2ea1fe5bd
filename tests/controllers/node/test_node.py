"""The node controller: where the agent runs."""

from __future__ import annotations

import pytest

from quorate.api import labels
from quorate.api.drbd_resource import DRBDResource, DRBDResourceSpec
from quorate.api.meta import ObjectMeta
from quorate.api.node import Node
from quorate.api.resources import AnyObject
from quorate.api.value import FrozenMap, replace
from quorate.controllers.node import controller
from quorate.controllers.node.decide import decide
from quorate.controllers.node.snapshot import gather
from quorate.machinery.effects import Mode, Patch
from quorate.machinery.reader import FixedReader
from tests.controllers import builders


def resource(node_name: str) -> DRBDResource:
    return DRBDResource(
        metadata=ObjectMeta(name="v-0"),
        spec=DRBDResourceSpec(node_name=node_name, system_networks=("Internal",), node_id=0, type="Diskless"),
    )


def label_after(*objects: AnyObject) -> str | None:
    """The label that the decision leaves on node a; None = absent."""
    reader = FixedReader(objects)
    decision = decide(gather(reader, "a"), {}, builders.NOW)
    node = reader.get(Node, "a")
    assert node is not None
    for effect in decision.effects:
        assert isinstance(effect, Patch)
        assert effect.mode is Mode.UNLOCKED
        assert isinstance(effect.after, Node)
        node = effect.after
    return node.metadata.labels.get(labels.LABEL_NODE)


def labelled(value: str) -> Node:
    found = builders.node("a")
    return replace(found, metadata=replace(found.metadata, labels=FrozenMap({labels.LABEL_NODE: value})))


ELIGIBLE = builders.pool(builders.eligible("a"))


@pytest.mark.parametrize(
    ("name", "objects", "expected"),
    [
        ("eligible in a pool", (builders.node("a"), ELIGIBLE), ""),
        ("hosts a resource", (builders.node("a"), resource("a")), ""),
        ("neither", (builders.node("a"), resource("b")), None),
        ("no longer wanted", (labelled(""),), None),
        ("kept until its resources are gone", (labelled(""), resource("a")), ""),
        ("a wrong value is rewritten", (labelled("yes"), ELIGIBLE), ""),
    ],
)
def test_label_says_whether_the_agent_is_needed(
    name: str, objects: tuple[AnyObject, ...], expected: str | None
) -> None:
    assert label_after(*objects) == expected, name


def test_settled_node_is_not_written() -> None:
    reader = FixedReader((labelled(""), ELIGIBLE))
    assert decide(gather(reader, "a"), {}, builders.NOW).effects == ()


def test_missing_node_is_nobodys_business() -> None:
    assert decide(gather(FixedReader(()), "a"), {}, builders.NOW).effects == ()


def test_pool_event_wakes_only_nodes_that_came_or_went() -> None:
    before = builders.pool(builders.eligible("a"), builders.eligible("b"))
    after = builders.pool(builders.eligible("b"), builders.eligible("c"))
    assert list(controller.pool_keys(before, after, FixedReader(()))) == ["a", "c"]
    flags = replace(before, status=replace(before.status, eligible_nodes_revision=9))
    assert not controller.pool_matters(before, flags)


def test_node_event_passes_only_for_the_label() -> None:
    assert controller.node_matters(None, builders.node("a"))
    assert not controller.node_matters(builders.node("a"), builders.node("a", ready="False"))
    assert controller.node_matters(labelled(""), builders.node("a"))
    assert not controller.node_matters(builders.node("a"), None)
