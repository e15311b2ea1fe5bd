"""The placement facts of facts/controllers 6.4 by number; 72 and the order of 6.1.5 as the design rules.

82 and 83 are about the executor (a replica that is gone, a conflict): it decides again in both cases, which
tests/machinery covers; here stands what the decision contributes to it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import pytest

from quorate.api.meta import Condition
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.machinery.effects import Mode, Patch
from tests.controllers.scheduling.builders import (
    CREATED,
    Case,
    deleting,
    group,
    node,
    replica,
    zones,
)

FAILED = ("False", "SchedulingFailed")
UNAVAILABLE = ("False", "ExtenderUnavailable")
SCHEDULED = ("True", "Scheduled")
WAITING = ("Unknown", "WaitingForReplicatedVolume")


@dataclass(frozen=True)
class Fact:
    """One fact: where replicas end up, and which fail."""

    number: str
    case: Case
    at: dict[int, str] = field(default_factory=dict[int, str])
    """Node, or zone followed by `*`, by replica."""
    failed: tuple[int, ...] = ()


def diskful(*ids: int) -> tuple[ReplicatedVolumeReplica, ...]:
    return tuple(replica(id) for id in ids)


def placed(**at: str) -> tuple[ReplicatedVolumeReplica, ...]:
    """`placed(_0="a1")`: diskful replicas that have their place."""
    return tuple(replica(int(key[1:]), at=name) for key, name in at.items())


def tb(id: int, at: str = "") -> ReplicatedVolumeReplica:
    return replica(id, "TieBreaker", at)


def created_later(id: int) -> ReplicatedVolumeReplica:
    found = replica(id)
    return replace(found, metadata=replace(found.metadata, creation_timestamp="2027-01-15T07:30:00Z"))


ZONAL = Case(topology="Zonal")
TRANS = Case(topology="TransZonal")

PLACEMENTS = [
    # Zonal
    Fact("1", ZONAL.but(nodes=zones(a=2), replicas=diskful(0, 1), gmdr=0), {0: "a1", 1: "a2"}),
    Fact("2", ZONAL.but(nodes=zones(a=2), attach=("a1",), replicas=(replica(0), tb(1))), {0: "a1", 1: "a2"}),
    Fact(
        "3", ZONAL.but(nodes=zones(a=2, b=2), attach=("a1", "a2"), replicas=diskful(0, 1), gmdr=0), {0: "a*", 1: "a*"}
    ),
    Fact("4", ZONAL.but(nodes=zones(a=4, b=4), replicas=(*placed(_0="a1"), replica(1), tb(2))), {1: "a*", 2: "a*"}),
    Fact("5", ZONAL.but(nodes=zones(a=2, b=2), replicas=(*placed(_0="a1", _1="b1"), replica(2))), {2: "a2"}),
    Fact("6", ZONAL.but(nodes=zones(a=2), replicas=(*placed(_0="a1", _1="a2"), tb(2))), failed=(2,)),
    Fact("7", ZONAL.but(nodes=zones(a=2, b=2), replicas=(*placed(_0="a1"), tb(1))), {1: "a2"}),
    Fact("8a", ZONAL.but(nodes=zones(a=3, b=3), replicas=diskful(0, 1, 2)), {0: "a*", 1: "a*", 2: "a*"}),
    Fact("8b", ZONAL.but(nodes=zones(a=2, b=2), replicas=(*placed(_0="a1"), *diskful(1, 2))), {1: "a2"}, (2,)),
    # TransZonal
    Fact("9", TRANS.but(nodes=zones(a=1, b=1, c=1), replicas=diskful(0, 1, 2)), {0: "a1", 1: "b1", 2: "c1"}),
    Fact("10", TRANS.but(nodes=zones(a=2, b=2, c=2), replicas=(*placed(_0="a1", _1="b1"), replica(2))), {2: "c*"}),
    Fact("11", TRANS.but(nodes=zones(a=2, b=2, c=2), replicas=(*placed(_0="a1", _1="b1"), tb(2))), {2: "c*"}),
    Fact("12", TRANS.but(nodes=zones(a=2, b=2), replicas=(*placed(_0="a1"), replica(1))), {1: "b*"}),
    Fact("13", TRANS.but(nodes=zones(a=1, b=1, c=1), replicas=diskful(0, 1, 2)), {0: "a1", 1: "b1", 2: "c1"}),
    Fact(
        "14",
        TRANS.but(nodes=zones(a=2, b=2), replicas=(*placed(_0="a1", _1="a2", _2="b1", _3="b2"), tb(4))),
        failed=(4,),
    ),
    Fact(
        "17",
        TRANS.but(nodes=zones(a=3, b=2, c=2), replicas=(*placed(_0="a1", _1="a2", _2="b1", _3="c1"), tb(4))),
        {4: "b2"},
    ),
    Fact(
        "18",
        TRANS.but(nodes=zones(a=1, b=1, c=1, d=1), ftt=2, replicas=diskful(0, 1, 2, 3)),
        {0: "a1", 1: "b1", 2: "c1", 3: "d1"},
    ),
    Fact(
        "19",
        TRANS.but(nodes=zones(a=3, b=3, c=2), replicas=(*placed(_0="a1", _1="a2", _2="b1", _3="b2"), replica(4))),
        {4: "c*"},
    ),
    Fact("20a", TRANS.but(nodes=zones(a=1, b=1), replicas=diskful(0, 1)), {0: "a1", 1: "b1"}),
    Fact("20b", TRANS.but(nodes=zones(a=1, b=1), replicas=diskful(0, 1, 2)), {0: "a1", 1: "b1"}, (2,)),
    Fact(
        "21",
        TRANS.but(nodes=zones(a=1, b=1, c=1), replicas=(*placed(_0="a1"), *diskful(1, 2, 3))),
        {1: "b1", 2: "c1"},
        (3,),
    ),
    Fact("22", TRANS.but(nodes=zones(a=2), replicas=diskful(0, 1)), {0: "a1", 1: "a2"}),
    Fact(
        "23",
        TRANS.but(nodes=zones(a=2, b=1, c=1), replicas=(*placed(_0="a1"), replica(1, at="a2", lvg=""), *diskful(2, 3))),
        {2: "b1", 3: "c1"},
        (1,),
    ),
    Fact("24", TRANS.but(nodes=zones(b=1, c=1), replicas=(*placed(_0="z9"), replica(1))), {1: "b1"}),
    # Ignored
    Fact(
        "25",
        Case(nodes=zones(a=1, b=1, c=1), scores={"a1": 10, "b1": 9, "c1": 5}, replicas=diskful(0, 1)),
        {0: "a1", 1: "b1"},
    ),
    Fact("26", Case(nodes=zones(a=2, b=2), attach=("a1", "b1"), replicas=diskful(0, 1)), {0: "a1", 1: "b1"}),
    Fact("28", Case(nodes=zones(a=2), replicas=(*placed(_0="a1", _1="a2"), tb(2))), failed=(2,)),
    # Zonal capacity penalty
    Fact("30", ZONAL.but(nodes=zones(a=2, b=1), gmdr=0, replicas=diskful(0, 1)), {0: "a*", 1: "a*"}),
    Fact(
        "31",
        ZONAL.but(nodes=zones(a=3, b=2), scores={"b1": 50, "b2": 50}, replicas=diskful(0, 1, 2)),
        {0: "a*", 1: "a*", 2: "a*"},
    ),
    Fact(
        "32",
        ZONAL.but(nodes=zones(a=1, b=1), gmdr=0, scores={"a1": 10, "b1": 8}, replicas=diskful(0, 1)),
        {0: "a1"},
        (1,),
    ),
    Fact("33", ZONAL.but(nodes=zones(a=3, b=3), gmdr=0, replicas=(*placed(_0="a1", _1="a2"), replica(2))), {2: "a3"}),
    Fact("34", ZONAL.but(nodes=zones(a=3, b=2), replicas=(*placed(_0="a1"), *diskful(1, 2))), {1: "a2", 2: "a3"}),
    Fact(
        "35",
        ZONAL.but(nodes=zones(a=1, b=3), scores={"a1": 10, "b1": 8, "b2": 8, "b3": 8}, replicas=diskful(0, 1, 2)),
        {0: "b*", 1: "b*", 2: "b*"},
    ),
    Fact("36", ZONAL.but(nodes=zones(a=1, b=2), ftt=0, gmdr=0, scores={"a1": 9}, replicas=diskful(0)), {0: "a1"}),
    Fact("37", ZONAL.but(nodes=zones(a=4, b=3), ftt=2, replicas=diskful(0, 1, 2, 3)), dict.fromkeys(range(4), "a*")),
    Fact(
        "38",
        ZONAL.but(nodes=zones(a=2, b=3), ftt=2, scores={"b1": 8, "b2": 8, "b3": 8}, replicas=diskful(0, 1, 2, 3)),
        {0: "b*", 1: "b*", 2: "b*"},
        (3,),
    ),
    Fact(
        "39",
        ZONAL.but(nodes=zones(a=2, b=4), ftt=2, scores={"a1": 10, "a2": 10}, replicas=diskful(0, 1, 2, 3)),
        dict.fromkeys(range(4), "b*"),
    ),
    Fact(
        "40",
        ZONAL.but(nodes=zones(a=5, b=3), ftt=2, gmdr=2, replicas=diskful(0, 1, 2, 3, 4)),
        dict.fromkeys(range(5), "a*"),
    ),
    Fact(
        "41",
        ZONAL.but(nodes=zones(a=5, b=5), ftt=2, gmdr=2, replicas=(*placed(_0="a1", _1="a2", _2="a3"), *diskful(3, 4))),
        {3: "a4", 4: "a5"},
    ),
    Fact(
        "42",
        ZONAL.but(nodes=zones(a=3, b=2), ftt=2, gmdr=2, replicas=diskful(0, 1, 2, 3, 4)),
        {0: "a*", 1: "a*", 2: "a*"},
        (3, 4),
    ),
    # Extender
    Fact("47", Case(nodes=zones(a=2, b=2), scores={"b1": 0, "b2": 0}, replicas=diskful(0, 1)), {0: "a1", 1: "a2"}),
    Fact("49", Case(nodes=zones(a=1), scores={"a1": 0}, replicas=diskful(0)), failed=(0,)),
    # Bonuses
    Fact("50", Case(nodes=zones(a=2), attach=("a2",), scores={"a1": 10, "a2": 3}, replicas=diskful(0)), {0: "a2"}),
    Fact("51", Case(nodes=zones(a=2), attach=("a2",), replicas=(tb(0),)), {0: "a1"}),
    # Readiness: skipped despite a higher score
    Fact(
        "56", Case(nodes=(node("a1", node_ready=False), node("a2")), scores={"a1": 10}, replicas=diskful(0)), {0: "a2"}
    ),
    Fact(
        "57", Case(nodes=(node("a1", agent_ready=False), node("a2")), scores={"a1": 10}, replicas=diskful(0)), {0: "a2"}
    ),
    Fact(
        "58",
        Case(nodes=(node("a1", unschedulable=True), node("a2")), scores={"a1": 10}, replicas=diskful(0)),
        {0: "a2"},
    ),
    Fact(
        "59",
        Case(nodes=(node("a1", "", group("vg-a1", ready=False)), node("a2")), scores={"a1": 10}, replicas=diskful(0)),
        {0: "a2"},
    ),
    Fact(
        "60",
        Case(
            nodes=(node("a1", "", group("vg-a1", unschedulable=True)), node("a2")),
            scores={"a1": 10},
            replicas=diskful(0),
        ),
        {0: "a2"},
    ),
    # Partial placement
    Fact("63", Case(nodes=zones(a=2), replicas=(replica(0, at="a1", lvg=""), replica(1))), {0: "a1", 1: "a2"}),
    Fact(
        "65",
        ZONAL.but(
            nodes=zones(a=3, b=3),
            scores={"b1": 9, "b2": 9, "b3": 9},
            replicas=(replica(0, at="a1", lvg=""), replica(1, at="a2", lvg=""), replica(2)),
        ),
        {0: "a1", 1: "a2", 2: "a3"},
    ),
    Fact("66", ZONAL.but(nodes=zones(a=2, b=3), replicas=(replica(0, at="b1", lvg=""), tb(1))), {0: "b1", 1: "b2"}),
    Fact("87", Case(nodes=zones(a=2), replicas=diskful(0, 1, 2)), {0: "a1", 1: "a2"}, (2,)),
    Fact("88a", Case(nodes=zones(a=3), replicas=(tb(0), replica(1))), {1: "a1", 0: "a2"}),
    Fact("88b", Case(nodes=zones(a=3), replicas=diskful(0, 1, 2)), {0: "a1", 1: "a2", 2: "a3"}),
    # The order of 6.1.5 as ruled: by numeric id, whatever the time of creation and the spelling
    Fact("6.1.5 by creation", Case(nodes=zones(a=2), replicas=(created_later(0), replica(1))), {0: "a1", 1: "a2"}),
    Fact("6.1.5 by number", Case(nodes=zones(a=2), replicas=(replica(10), replica(9))), {9: "a1", 10: "a2"}),
]


@pytest.mark.parametrize("fact", [pytest.param(fact, id=f"fact {fact.number}") for fact in PLACEMENTS])
def test_placement_fact(fact: Fact) -> None:
    result = fact.case.run()
    for id, expected in fact.at.items():
        found = result.spec(id).node_name
        if expected.endswith("*"):
            assert found.startswith(expected[:-1]), (id, found)
        else:
            assert found == expected, id
        assert result.outcome(id) == SCHEDULED
    for id in fact.failed:
        assert result.outcome(id) == FAILED
    assert result.decision.error == ""
    assert not result.decision.requeue


@pytest.mark.parametrize(
    ("ids", "expected"), [((0, 1, 2, 3, 4), [2, 2, 1]), ((0, 1, 2, 3), [2, 1, 1])], ids=["fact 15", "fact 16"]
)
def test_trans_zonal_spreads_evenly(ids: tuple[int, ...], expected: list[int]) -> None:
    result = TRANS.but(nodes=zones(a=2, b=2, c=2), ftt=2, gmdr=2, replicas=diskful(*ids)).run()
    counts = Counter(name[0] for name in result.at(*ids))
    assert sorted(counts.values(), reverse=True) == expected


def test_fact_27_diskful_and_tie_breakers_take_distinct_nodes() -> None:
    result = Case(nodes=zones(a=4), replicas=(*diskful(0, 1), tb(2), tb(3))).run()
    assert sorted(result.at(0, 1, 2, 3)) == ["a1", "a2", "a3", "a4"]


def test_fact_29_no_zone_in_the_summary_of_ignored() -> None:
    assert "zone" not in Case(nodes=zones(a=1, b=1), replicas=(*placed(_0="a1", _1="b1"), replica(2))).run().message(2)


class TestExtender:
    case = Case(nodes=zones(a=4))

    def test_fact_43_error(self) -> None:
        result = self.case.but(replicas=diskful(0), extender_error="down").run()
        assert result.outcome(0) == UNAVAILABLE
        assert result.decision.error == "scheduler extender: down"

    def test_fact_44_only_the_first_gets_the_condition(self) -> None:
        result = self.case.but(replicas=diskful(0, 1, 2), extender_error="down").run()
        assert [result.outcome(id) for id in (0, 1, 2)] == [UNAVAILABLE, None, None]

    def test_fact_45_tie_breaker_is_not_attempted(self) -> None:
        result = self.case.but(replicas=(replica(0), tb(1)), extender_error="down").run()
        assert result.outcome(1) is None
        assert result.placements() == {}

    def test_fact_46_tie_breaker_alone_needs_no_extender(self) -> None:
        result = self.case.but(replicas=(tb(0),), extender_error="down").run()
        assert result.at(0) == ["a1"]
        assert result.decision.error == ""
        assert result.asked.scored == []

    def test_fact_48_narrow_error(self) -> None:
        result = self.case.but(replicas=diskful(0), narrow_error="gone").run()
        assert result.outcome(0) == UNAVAILABLE
        assert result.decision.error == "scheduler extender: gone"
        assert result.placements() == {}

    def test_fact_49_empty_scores_are_no_error_and_looked_at_again_without_event(self) -> None:
        result = self.case.but(replicas=diskful(0), scores={f"a{n}": 0 for n in range(1, 5)}).run()
        assert result.outcome(0) == FAILED
        assert (result.decision.error, result.decision.requeue) == ("", False)
        assert result.decision.wake_after == 30.0

    def test_extender_is_not_asked_without_a_surviving_candidate(self) -> None:
        result = Case(nodes=(node("a1", node_ready=False),), replicas=diskful(0)).run()
        assert result.asked.scored == []
        assert result.message(0) == "1 candidates (node×LVG) from 1 eligible nodes; 1 excluded: node not ready"


class TestBonuses:
    two = (group("vg-x"), group("vg-y"))

    def test_fact_50_score_of_the_attach_to_node(self) -> None:
        result = Case(nodes=zones(a=2), attach=("a2",), scores={"a1": 10, "a2": 3}, replicas=diskful(0)).run()
        assert result.at(0) == ["a2"]

    def test_fact_52_multi_lvg_bonus_breaks_the_tie(self) -> None:
        case = Case(
            nodes=(node("n2"), node("n1", "", *self.two)), scores={"vg-x": 9, "vg-y": 5, "n2": 9}, replicas=diskful(0)
        )
        assert case.run().spec(0).lvm_volume_group_name == "vg-x"

    def test_fact_53_bonus_is_small(self) -> None:
        case = Case(
            nodes=(node("n1", "", *self.two), node("n2")), scores={"vg-x": 5, "vg-y": 4, "n2": 10}, replicas=diskful(0)
        )
        assert case.run().at(0) == ["n2"]

    def test_fact_54_no_bonus_with_any_access(self) -> None:
        case = Case(nodes=(node("n1"), node("n2", "", *self.two)), access="Any", replicas=diskful(0))
        assert case.run().at(0) == ["n1"]
        assert case.but(access="Local").run().at(0) == ["n2"]

    def test_fact_55_best_volume_group_of_a_node(self) -> None:
        groups = (group("vg-x"), group("vg-y"), group("vg-z"))
        case = Case(nodes=(node("n1", "", *groups),), scores={"vg-x": 10, "vg-y": 15, "vg-z": 5}, replicas=diskful(0))
        assert case.run().spec(0).lvm_volume_group_name == "vg-y"


class TestPartialPlacement:
    def test_fact_61_volume_group_is_chosen_on_the_assigned_node(self) -> None:
        result = Case(nodes=zones(a=2), scores={"a2": 10}, replicas=(replica(0, at="a1", lvg=""),)).run()
        assert (result.spec(0).node_name, result.spec(0).lvm_volume_group_name) == ("a1", "vg-a1")
        assert result.outcome(0) == SCHEDULED

    def test_fact_62_its_only_volume_group_is_unusable(self) -> None:
        result = Case(
            nodes=(node("a1", "", group("vg-a1", ready=False)), node("a2")), replicas=(replica(0, at="a1", lvg=""),)
        ).run()
        assert result.outcome(0) == FAILED
        assert result.message(0) == (
            "2 candidates (node×LVG) from 2 eligible nodes; 1 excluded: LVG not ready; 1 excluded: node mismatch (assigned)"
        )

    def test_fact_64_thin_fills_volume_group_and_pool(self) -> None:
        case = Case(
            nodes=(node("a1", "", group("vg", "thin")),), pool_type="LVMThin", replicas=(replica(0, at="a1", lvg=""),)
        )
        spec = case.run().spec(0)
        assert (spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name) == ("vg", "thin")

    def test_assigned_volume_group_is_kept_when_only_the_thin_pool_is_missing(self) -> None:
        nodes = (node("a1", "", group("vg-a", "thin"), group("vg-b", "thin")),)
        case = Case(nodes=nodes, pool_type="LVMThin", scores={"vg-a": 9}, replicas=(replica(0, at="a1", lvg="vg-b"),))
        spec = case.run().spec(0)
        assert (spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name) == ("vg-b", "thin")

    def test_fact_67_guards_hit_partial_and_unplaced_alike(self) -> None:
        result = Case(has_volume=False, replicas=(replica(0, at="a1", lvg=""), replica(1))).run()
        assert [result.outcome(id) for id in (0, 1)] == [WAITING, WAITING]


class TestTypesAndDeletion:
    def test_fact_68_thin_pool_name(self) -> None:
        thin = Case(nodes=(node("a1", "", group("vg", "thin")),), pool_type="LVMThin", replicas=diskful(0)).run()
        thick = Case(nodes=zones(a=1), replicas=diskful(0)).run()
        assert thin.spec(0).lvm_volume_group_thin_pool_name == "thin"
        assert thick.spec(0).lvm_volume_group_thin_pool_name == ""

    def test_fact_69_access_is_never_placed_and_occupies_its_node(self) -> None:
        stale = Condition(type="Scheduled", status="True", reason="Scheduled", last_transition_time=CREATED)
        access = replica(0, "Access", "a1")
        access = replace(access, status=replace(access.status, conditions=(stale,)))
        result = Case(nodes=zones(a=2), replicas=(access, replica(1))).run()
        assert result.outcome(0) is None
        assert result.at(0, 1) == ["a1", "a2"]

    def test_fact_70_unknown_type_is_skipped(self) -> None:
        shadow = replica(0, "ShadowDiskful")
        result = Case(nodes=zones(a=1), replicas=(shadow,)).run()
        assert result.decision.effects == ()

    def test_fact_71_deleting_placed_replica_blocks_its_node_and_is_scheduled(self) -> None:
        result = Case(nodes=zones(a=2), replicas=(deleting(replica(0, at="a1")), replica(1))).run()
        assert result.at(1) == ["a2"]
        assert result.outcome(0) == SCHEDULED

    def test_fact_72_as_ruled_a_deleting_unplaced_replica_is_left_alone(self) -> None:
        result = Case(nodes=zones(a=2), replicas=(deleting(replica(0)), replica(1))).run()
        assert result.outcome(0) is None
        assert result.placements() == {1: "a1"}

    def test_fact_73_retyped_tie_breaker_with_a_node_is_scheduled(self) -> None:
        case = Case(nodes=(node("a1", node_ready=False), node("a2")), replicas=(tb(0, "a1"), replica(1)))
        result = case.run()
        assert result.outcome(0) == SCHEDULED
        assert result.spec(0).lvm_volume_group_name == ""
        assert result.at(1) == ["a2"]


GUARDS = [
    ("fact 74", Case(has_volume=False)),
    ("fact 75", Case(has_configuration=False)),
    ("fact 76", Case(has_pool=False)),
    ("fact 77", Case(pool_name="")),
]


@pytest.mark.parametrize("case", [pytest.param(case, id=name) for name, case in GUARDS])
def test_guard(case: Case) -> None:
    result = case.but(replicas=(replica(0), tb(1), replica(2, "Access", "a1"), replica(3, at="a2"))).run()
    assert [result.outcome(id) for id in range(4)] == [WAITING] * 4
    assert result.decision.error == ""


class TestIdempotencyAndOrder:
    def test_fact_78_no_replicas(self) -> None:
        assert Case(nodes=zones(a=1)).run().decision.effects == ()

    def test_fact_79_no_eligible_nodes(self) -> None:
        result = Case(replicas=(replica(0), tb(1))).run()
        assert [result.outcome(id) for id in (0, 1)] == [FAILED, FAILED]
        assert result.message(0) == "0 candidates (node×LVG) from 0 eligible nodes"
        assert result.message(1) == "0 candidates from 0 eligible nodes"

    def test_fact_80_second_run_writes_nothing(self) -> None:
        case = Case(nodes=zones(a=3), replicas=(replica(0), replica(1), tb(2), replica(3, "Access", "z")))
        assert case.after().run().decision.effects == ()
        failing = Case(nodes=zones(a=1), replicas=diskful(0, 1))
        assert failing.after().run().decision.effects == ()

    def test_fact_81_generation_bump_restamps(self) -> None:
        case = Case(nodes=zones(a=1), replicas=diskful(0)).after()
        bumped = replace(case.replicas[0], metadata=replace(case.replicas[0].metadata, generation=9))
        result = case.but(replicas=(bumped,)).run()
        assert len(result.decision.effects) == 1
        found = result.condition(0)
        assert found is not None
        assert found.observed_generation == 9

    def test_fact_82_and_83_placement_is_a_locked_decision_and_its_condition_a_rebased_report(self) -> None:
        effects = Case(nodes=zones(a=1), replicas=diskful(0)).run().decision.effects
        assert [effect.mode for effect in effects if isinstance(effect, Patch)] == [Mode.DECISION, Mode.REPORT]

    def test_fact_84_placed_and_new_are_both_scheduled(self) -> None:
        result = Case(nodes=zones(a=2), replicas=(*placed(_0="a1"), replica(1))).run()
        assert [result.outcome(id) for id in (0, 1)] == [SCHEDULED, SCHEDULED]

    def test_fact_85_annotated_id_is_passed_verbatim(self) -> None:
        result = Case(nodes=zones(a=1), reservation="ns/claim", replicas=diskful(0)).run()
        assert [item.reservation_id for item in result.asked.scored] == ["ns/claim"]
        assert [(item.reservation_id, item.new_reservation_id) for item in result.asked.narrowed] == [("ns/claim", "")]

    def test_fact_86_computed_id_otherwise(self) -> None:
        result = Case(nodes=zones(a=1), replicas=diskful(0)).run()
        assert result.asked.scored[0].reservation_id == "pvc-1-0-d228cb69101a8caf78912b704e4a147f"

    def test_fact_89_the_pool_is_not_changed(self) -> None:
        case = Case(nodes=tuple(reversed(zones(a=3))), replicas=diskful(0, 1))
        before = case.pool()
        case.run()
        assert case.pool() == before
