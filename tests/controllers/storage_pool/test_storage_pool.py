"""The pool controller: eligible nodes, readiness, grace period."""

from __future__ import annotations

import pytest

from quorate.api import conditions, times
from quorate.api.meta import LabelSelector, LabelSelectorRequirement
from quorate.api.replicated_storage_pool import EligibleNode, Phase, ReadyCondition, ReplicatedStoragePool
from quorate.api.resources import AnyObject
from quorate.api.value import FrozenMap, replace
from quorate.controllers.storage_pool import controller
from quorate.controllers.storage_pool.decide import decide
from quorate.controllers.storage_pool.snapshot import Settings, gather
from quorate.machinery.effects import Decision, Mode, Patch
from quorate.machinery.reader import FixedReader
from tests.controllers import builders

SETTINGS = Settings(namespace=builders.NAMESPACE)


def run(*objects: AnyObject, settings: Settings = SETTINGS) -> tuple[ReplicatedStoragePool, Decision]:
    """The pool after one decision."""
    reader = FixedReader(objects)
    decision = decide(gather(reader, "pool", settings), {}, builders.NOW)
    pool = reader.get(ReplicatedStoragePool, "pool")
    assert pool is not None
    for effect in decision.effects:
        assert isinstance(effect, Patch)
        assert effect.mode is Mode.REPORT
        assert isinstance(effect.after, ReplicatedStoragePool)
        pool = effect.after
    return pool, decision


def empty_pool(*groups: str, thin: str = "", zones: tuple[str, ...] = ()) -> ReplicatedStoragePool:
    found = builders.pool(groups=groups, thin=thin, zones=zones)
    return replace(found, status=type(found.status)())


def ready_of(pool: ReplicatedStoragePool) -> tuple[str, str]:
    found = conditions.get(pool.status.conditions, ReadyCondition.TYPE)
    assert found is not None
    return found.status, found.reason


def names(pool: ReplicatedStoragePool) -> tuple[str, ...]:
    return tuple(node.node_name for node in pool.status.eligible_nodes)


def test_eligible_nodes_carry_zone_groups_and_readiness() -> None:
    pool, _ = run(
        empty_pool("vg-b", "vg-a", "vg-c"),
        builders.volume_group("vg-b", "a"),
        builders.volume_group("vg-a", "a", ready=False),
        builders.volume_group("vg-c", "b", unschedulable=True),
        builders.node("a", zone="z1", cordoned=True),
        builders.node("b"),
        builders.node("c", ready="False", since=times.format(builders.NOW - 60)),
        builders.agent_pod("a"),
        builders.agent_pod("b", ready=False),
        builders.agent_pod("c", namespace="elsewhere"),
    )
    first, second, third = pool.status.eligible_nodes
    assert (first.zone_name, first.unschedulable, first.node_ready, first.agent_ready) == ("z1", True, True, True)
    assert [(g.name, g.ready) for g in first.lvm_volume_groups] == [("vg-a", False), ("vg-b", True)]
    assert (second.agent_ready, second.lvm_volume_groups[0].unschedulable) == (False, True)
    assert third == EligibleNode(node_name="c", node_ready=False, agent_ready=False)
    assert ready_of(pool) == ("True", "Ready")
    assert (pool.status.phase, pool.status.eligible_nodes_revision) == (Phase.READY, 1)


def test_thin_group_is_ready_only_with_its_thin_pool() -> None:
    group = builders.volume_group("vg-a", "a", thin="tp")
    broken = replace(group, status=replace(group.status, thin_pools=()))
    pool, _ = run(empty_pool("vg-a", thin="tp"), broken, builders.node("a"))
    assert [g.ready for g in pool.status.eligible_nodes[0].lvm_volume_groups] == [False]


@pytest.mark.parametrize(
    ("name", "groups", "reason", "phase", "part"),
    [
        ("missing group", (), "LVMVolumeGroupNotFound", Phase.WAITING_FOR_LVM_VOLUME_GROUPS, "vg-a"),
        (
            "missing thin pool",
            (builders.volume_group("vg-a", "a"),),
            "InvalidLVMVolumeGroup",
            Phase.INVALID_CONFIGURATION,
            "vg-a has no thin pool tp",
        ),
    ],
)
def test_broken_pool_keeps_its_eligible_nodes(
    name: str, groups: tuple[AnyObject, ...], reason: str, phase: str, part: str
) -> None:
    before = builders.pool(builders.eligible("old"), groups=("vg-a",), thin="tp")
    pool, _ = run(before, builders.node("a"), *groups)
    assert ready_of(pool) == ("False", reason), name
    assert pool.status.phase == phase
    assert part in pool.status.message
    assert names(pool) == ("old",)


def test_unknown_selector_operator_is_reported() -> None:
    bad = LabelSelector(match_expressions=(LabelSelectorRequirement(key="a", operator="Near"),))
    base = empty_pool("vg-a")
    pool, _ = run(replace(base, spec=replace(base.spec, node_label_selector=bad)), builders.volume_group("vg-a", "a"))
    assert ready_of(pool) == ("False", "InvalidNodeLabelSelector")


def test_selectors_and_zones_restrict_the_nodes() -> None:
    settings = Settings(namespace=builders.NAMESPACE, data_node_selector=FrozenMap({"data": "yes"}))

    def labelled(name: str, **marks: str) -> AnyObject:
        found = builders.node(name)
        return replace(found, metadata=replace(found.metadata, labels=FrozenMap(marks)))

    zone = "topology.kubernetes.io/zone"
    pool, _ = run(
        empty_pool("vg-a", zones=("z1",)),
        builders.volume_group("vg-a", "a"),
        labelled("a", **{"data": "yes", zone: "z1"}),
        labelled("b", **{zone: "z1"}),
        labelled("c", **{"data": "yes", zone: "z2"}),
        settings=settings,
    )
    assert names(pool) == ("a",)


@pytest.mark.parametrize(
    ("name", "age", "kept"),
    [("inside the grace period", 599.0, True), ("at its end", 600.0, True), ("after it", 601.0, False)],
)
def test_not_ready_node_stays_for_its_grace_period(name: str, age: float, kept: bool) -> None:
    since = times.format(builders.NOW - age)
    pool, decision = run(
        empty_pool("vg-a"), builders.volume_group("vg-a", "a"), builders.node("a", ready="Unknown", since=since)
    )
    assert (names(pool) == ("a",)) is kept, name
    if kept:
        assert decision.wake_after is not None
        assert decision.wake_after >= 1.0


def test_node_without_ready_condition_counts_from_its_birth() -> None:
    young = builders.node("a", ready="")
    born = replace(young, metadata=replace(young.metadata, creation_timestamp=times.format(builders.NOW - 30)))
    pool, decision = run(empty_pool("vg-a"), builders.volume_group("vg-a", "a"), born)
    assert names(pool) == ("a",)
    assert decision.wake_after == 570.0


def test_second_decision_changes_nothing_and_revision_counts_changes() -> None:
    world = (builders.volume_group("vg-a", "a"), builders.node("a"), builders.agent_pod("a"))
    first, _ = run(empty_pool("vg-a"), *world)
    second, decision = run(first, *world)
    assert decision.effects == ()
    third, _ = run(second, *world, builders.node("b"))
    assert third.status.eligible_nodes_revision == 2


def test_events_reach_the_pools_they_concern() -> None:
    pool = builders.pool(builders.eligible("a"), groups=("vg-a",))
    other = builders.pool(builders.eligible("b"), name="other", groups=("vg-b",), zones=("z9",))
    reader = FixedReader((pool, other))
    node = builders.node("a")
    assert list(controller.node_keys(SETTINGS, node, node, reader)) == ["pool"]
    assert list(controller.volume_group_keys(None, builders.volume_group("vg-b", "b"), reader)) == ["other"]
    assert list(controller.pod_keys(None, builders.agent_pod("b"), reader)) == ["other"]
    assert not controller.pod_matters(SETTINGS, None, builders.agent_pod("a", namespace="elsewhere"))
    assert controller.pod_matters(SETTINGS, builders.agent_pod("a"), builders.agent_pod("a", ready=False))
    assert not controller.node_matters(node, replace(node, metadata=replace(node.metadata, resource_version="7")))
