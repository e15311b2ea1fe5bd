"""A deleted replica on a node that does not exist any more: nobody else can let go of its children."""

from __future__ import annotations

import pytest

from quorate.api import times
from quorate.api.drbd_resource import DRBDResource
from quorate.api.labels import FINALIZER_AGENT, FINALIZER_LVM_OPERATOR, FINALIZER_REPLICA
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.meta import Object
from quorate.api.value import replace
from quorate.controllers.replica.abandoned import GRACE
from quorate.controllers.replica.controller import node_matters
from quorate.machinery.effects import Half
from tests.controllers.replica.builders import (
    DELETED,
    NOW,
    World,
    decide_at_once,
    deleting,
    joined,
    member,
    node,
    patches,
    volume,
)

LATE = times.parse(DELETED) + GRACE


def held(child: Object, *finalizers: str) -> Object:
    return replace(child, metadata=replace(child.metadata, deletion_timestamp=DELETED, finalizers=finalizers))


def abandoned(*, of_drbdr: tuple[str, ...] = (FINALIZER_AGENT,)) -> World:
    """The replica left, its children are being deleted, its node is gone with its agent."""
    world = joined()
    assert world.replica is not None
    assert world.drbdr is not None
    return world.but(
        replica=deleting(world.replica, FINALIZER_REPLICA),
        volume=volume(member(1), revision=9),
        drbdr=held(world.drbdr, *of_drbdr),
        volumes=tuple(held(each, FINALIZER_LVM_OPERATOR, FINALIZER_AGENT) for each in world.volumes),
        pod=None,
        node=None,
    )


def let_go(world: World, now: float) -> list[str]:
    decision = decide_at_once(world, now)
    found = (*patches(decision, DRBDResource, Half.MAIN), *patches(decision, LVMLogicalVolume, Half.MAIN))
    return [type(patch.after).__name__ for patch in found if not patch.after.metadata.finalizers]


def test_children_are_let_go_after_the_grace() -> None:
    assert let_go(abandoned(), LATE) == ["DRBDResource", "LVMLogicalVolume"]


def test_the_effect_demands_that_the_node_does_not_exist() -> None:
    (patch,) = patches(decide_at_once(abandoned(), LATE), DRBDResource, Half.MAIN)
    assert [(ref.kind, ref.uid) for ref in patch.decided_from if ref.kind == "Node"] == [("Node", "")]


def test_before_the_grace_it_waits_for_the_rest_of_it() -> None:
    assert let_go(abandoned(), NOW) == []
    assert decide_at_once(abandoned()).wake_after == pytest.approx(LATE - NOW)


@pytest.mark.parametrize(
    "world",
    [
        abandoned().but(node=node(ready=False)),
        abandoned(of_drbdr=(FINALIZER_AGENT, FINALIZER_REPLICA)).but(volumes=()),
        abandoned(of_drbdr=(FINALIZER_AGENT, "somebody/else")).but(volumes=()),
        abandoned().but(volume=volume(member(0), member(1), revision=9)),
    ],
    ids=["the node exists", "we hold it ourselves", "somebody else holds it", "it is a member"],
)
def test_otherwise_nothing_is_let_go(world: World) -> None:
    assert let_go(world, LATE) == []


def test_a_node_that_goes_or_comes_wakes_its_replicas() -> None:
    assert node_matters(node(ready=False), None)
    assert node_matters(None, node(ready=False))
    assert not node_matters(node(), node())
