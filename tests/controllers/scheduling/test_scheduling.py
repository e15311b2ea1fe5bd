"""What seed 002 and the design rule beyond the placement facts: summary, reservations, writes, watches."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.common import Address, Endpoint
from quorate.api.labels import LABEL_LVM_VOLUME_GROUP
from quorate.api.meta import Condition, Object
from quorate.api.names import llv_name
from quorate.api.replicated_volume import DatameshMember
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.scheduler_extender import FilterAndScore, NarrowReservation, Scores, VolumeGroupScore
from quorate.api.sizes import lower_size
from quorate.api.value import replace
from quorate.controllers.scheduling import controller
from quorate.controllers.scheduling.decide import decide
from quorate.controllers.scheduling.placement import ExtenderFailure
from quorate.controllers.scheduling.snapshot import gather
from quorate.machinery.effects import Decision, Half, Patch
from quorate.machinery.extender import ExtenderUnavailable
from quorate.machinery.reader import FixedReader
from tests.controllers.mutations import mutations
from tests.controllers.scheduling.builders import (
    CREATED,
    NOW,
    VOLUME,
    Case,
    attachment,
    deleting,
    node,
    replica,
    zones,
)


def member(id: int, at: str) -> DatameshMember:
    address = Address(system_network_name="Internal", address=Endpoint(ipv4="10.0.0.1", port=7000))
    return DatameshMember(
        name=f"{VOLUME}-{id}", type="Diskful", node_name=at, addresses=(address,), lvm_volume_group_name="vg"
    )


class TestSummary:
    def test_example_of_the_seed(self) -> None:
        nodes = tuple(
            replace(item, lvm_volume_groups=item.lvm_volume_groups * 2, node_ready=False) for item in zones(a=2)
        )
        result = Case(nodes=nodes, replicas=(replica(0),)).run()
        assert result.message(0) == "4 candidates (node×LVG) from 2 eligible nodes; 4 excluded: node not ready"

    def test_every_step_tells_how_many_it_dropped(self) -> None:
        case = Case(
            topology="TransZonal",
            nodes=(*zones(a=2, b=2), node("b3", "b", unschedulable=True)),
            replicas=(replica(0, at="a1"), replica(1)),
            scores={"b1": 0, "b2": 0},
        )
        assert case.run().message(1) == (
            "5 candidates (node×LVG) from 5 eligible nodes; 1 excluded: node not ready; 1 excluded: node occupied; "
            "1 excluded: zone (transZonal min replicas); 2 excluded: scoring (no capacity)"
        )


class TestReservations:
    def test_first_diskful_has_the_annotated_id_the_others_the_name_of_their_future_volume(self) -> None:
        result = Case(nodes=zones(a=3), reservation="ns/claim", replicas=(replica(0), replica(1))).run()
        assert [item.reservation_id for item in result.asked.scored] == ["ns/claim", llv_name(f"{VOLUME}-1", "", "")]
        kept = result.asked.narrowed[1]
        assert kept.new_reservation_id == llv_name(f"{VOLUME}-1", kept.lvg.name, "")

    def test_first_diskful_is_the_one_with_the_lowest_id_also_when_it_has_its_place(self) -> None:
        result = Case(nodes=zones(a=3), reservation="ns/claim", replicas=(replica(0, at="a1"), replica(1))).run()
        assert "ns/claim" not in [item.reservation_id for item in result.asked.scored]

    def test_size_includes_drbd_metadata(self) -> None:
        result = Case(nodes=zones(a=1), replicas=(replica(0),)).run()
        assert result.asked.scored[0].size == lower_size(1024**3)

    def test_times_to_live_are_go_durations(self) -> None:
        result = Case(nodes=zones(a=1), replicas=(replica(0),)).run()
        assert result.asked.scored[0].reservation_ttl == "2s"
        assert result.asked.narrowed[0].reservation_ttl == "1m0s"

    def test_nothing_is_written_before_the_chosen_places_are_kept(self) -> None:
        case = Case(nodes=zones(a=2), replicas=(replica(0),))
        snapshot = gather(FixedReader(case.objects()), VOLUME)
        first = decide(snapshot, {}, NOW)
        assert (first.effects, len(first.ask)) == ((), 1)
        request = first.ask[0]
        assert isinstance(request, FilterAndScore)
        scores = Scores(lvgs=tuple(VolumeGroupScore(name=item.name, score=5) for item in request.lvgs))
        second = decide(snapshot, {request: scores}, NOW)
        assert second.effects == ()
        assert isinstance(second.ask[0], NarrowReservation)

    def test_placements_before_the_one_that_is_not_kept_stand_those_after_it_wait(self) -> None:
        case = Case(nodes=zones(a=3), replicas=(replica(0), replica(1), replica(2), replica(3, "TieBreaker")))
        snapshot = gather(FixedReader(case.objects()), VOLUME)
        answers: dict[object, object] = {}
        decision = Decision()
        for _ in range(8):
            decision = decide(snapshot, answers, NOW)
            for request in decision.ask:
                lost = isinstance(request, NarrowReservation) and request.lvg.name == "vg-a2"
                answers[request] = ExtenderFailure("expired") if lost else case.answer(request, case.run().asked)
            if not decision.ask:
                break
        placed = [
            effect.after.metadata.name
            for effect in decision.effects
            if isinstance(effect, Patch) and effect.half is Half.MAIN
        ]
        assert placed == [f"{VOLUME}-0"]
        assert decision.error == "scheduler extender: expired"

    def test_more_diskful_replicas_than_a_layout_has_are_placed_over_several_passes(self) -> None:
        case = Case(nodes=zones(a=8), replicas=tuple(replica(id) for id in range(7)))
        first = case.run()
        assert len(first.placements()) == 5
        assert first.decision.requeue
        assert case.after().run().placements() == {5: "a6", 6: "a7"}


class TestOccupiedNodes:
    def test_nodes_of_deleting_replicas_are_avoided(self) -> None:
        case = Case(
            nodes=zones(a=2),
            replicas=(deleting(replica(0, at="a1")), deleting(replica(1, "TieBreaker", "a2")), replica(2)),
        )
        assert case.run().message(2).endswith("2 excluded: node occupied")

    def test_nodes_of_members_whose_replica_object_is_gone_are_avoided(self) -> None:
        assert Case(nodes=zones(a=2), members=(member(7, "a1"),), replicas=(replica(0),)).run().at(0) == ["a2"]

    def test_replacement_takes_the_zone_of_the_replica_that_goes(self) -> None:
        case = Case(
            topology="TransZonal",
            nodes=zones(a=2, b=2, c=2),
            replicas=(deleting(replica(0, at="b1")), replica(1, at="a1"), replica(2, at="c1"), replica(3)),
        )
        assert case.run().at(3) == ["b2"]

    def test_zonal_replacement_stays_in_the_zone_of_the_data_that_goes(self) -> None:
        case = Case(
            topology="Zonal", ftt=0, gmdr=0, nodes=zones(a=2, b=2), replicas=(deleting(replica(0, at="b1")), replica(1))
        )
        assert case.run().at(1) == ["b2"]


class TestAttachTo:
    def test_only_active_attachments_count(self) -> None:
        case = Case(nodes=zones(a=2), attachments=(attachment("a2", deleted=True),), replicas=(replica(0),))
        assert case.run().at(0) == ["a1"]


class TestWrites:
    def test_one_placement_is_one_main_and_one_status_write(self) -> None:
        effects = Case(nodes=zones(a=1), replicas=(replica(0),)).run().decision.effects
        assert [effect.half for effect in effects if isinstance(effect, Patch)] == [Half.MAIN, Half.STATUS]

    def test_the_volume_group_label_goes_along_with_the_placement(self) -> None:
        patch = Case(nodes=zones(a=1), replicas=(replica(0),)).run().decision.effects[0]
        assert isinstance(patch, Patch)
        assert patch.after.metadata.labels[LABEL_LVM_VOLUME_GROUP] == "vg-a1"

    def test_the_condition_speaks_about_the_generation_that_the_placement_makes(self) -> None:
        found = Case(nodes=zones(a=1), replicas=(replica(0),)).run().condition(0)
        assert found is not None
        assert found.observed_generation == 2

    def test_only_the_own_condition_is_touched(self) -> None:
        other = Condition(type="Ready", status="True", reason="Ready", last_transition_time=CREATED)
        found = replica(0)
        found = replace(found, status=replace(found.status, conditions=(other,)))
        report = Case(nodes=zones(a=1), replicas=(found,)).run().decision.effects[-1]
        assert isinstance(report, Patch)
        assert isinstance(report.after, ReplicatedVolumeReplica)
        assert other in report.after.status.conditions


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(0, 9)), min_size=1, max_size=8),
    st.sampled_from(["Ignored", "Zonal", "TransZonal"]),
    st.lists(st.sampled_from(["Diskful", "TieBreaker"]), min_size=1, max_size=5),
)
def test_replicas_never_share_a_node_and_a_pass_is_deterministic(
    layout: list[tuple[str, int]], topology: str, types: list[str]
) -> None:
    nodes = tuple(node(f"n{number}", zone) for number, (zone, _) in enumerate(layout))
    scores = {f"n{number}": score for number, (_, score) in enumerate(layout)}
    replicas = tuple(replica(id, kind) for id, kind in enumerate(types))  # pyright: ignore[reportArgumentType]
    case = Case(nodes=nodes, scores=scores, topology=topology, replicas=replicas)
    result = case.run()
    used = list(result.placements().values())
    assert len(used) == len(set(used))
    assert result.decision == case.run().decision


class Refusing:
    """An extender that is down."""

    async def filter_and_score(self, request: FilterAndScore) -> Scores:
        raise ExtenderUnavailable("connection refused")

    async def narrow(self, request: NarrowReservation) -> None:
        raise ExtenderUnavailable("connection refused")


async def test_a_failure_of_the_extender_is_an_answer() -> None:
    answer = controller.answer_with(Refusing())
    request = Case(nodes=zones(a=1), replicas=(replica(0),)).run().asked.scored[0]
    assert await answer(request) == ExtenderFailure("connection refused")


async def test_the_controller_asks_for_nothing_else() -> None:
    with pytest.raises(TypeError):
        await controller.answer_with(Refusing())("something else")


class TestWatches:
    spec = controller.spec(Refusing())
    cases: ClassVar[dict[str, Callable[[], Case]]] = {
        "placed": lambda: Case(
            nodes=zones(a=3), replicas=(replica(0), replica(1, "TieBreaker")), attach=("a3",)
        ).after(),
        "failed": lambda: Case(nodes=zones(a=1), replicas=(replica(0), replica(1))).after(),
        "no capacity": lambda: Case(
            nodes=zones(a=1, b=1), scores={"a1": 0, "b1": 0}, replicas=(replica(0),), attach=("b1",)
        ).after(),
        "zonal": lambda: Case(
            topology="Zonal", nodes=zones(a=1, b=1), replicas=(replica(0, at="a1"), replica(1))
        ).after(),
        "waiting": lambda: Case(has_pool=False, replicas=(replica(0),)).after(),
        "access": lambda: Case(nodes=zones(a=1), replicas=(replica(0, "Access", "a1"),)),
    }

    def decision(self, objects: tuple[Object, ...], case: Case) -> tuple[object, ...]:
        """What a pass asks and does; scores follow the case."""
        snapshot = gather(FixedReader(objects), VOLUME)
        answers: dict[object, object] = {}
        asked = case.run().asked
        for _ in range(8):
            found = decide(snapshot, answers, NOW)
            if not found.ask:
                writes = [effect for effect in found.effects if isinstance(effect, Patch)]
                return (*answers, *((effect.half, effect.after.metadata.name) for effect in writes))
            answers.update({request: case.answer(request, asked) for request in found.ask})
        raise AssertionError("too many rounds")

    def woken(self, old: Object | None, new: Object | None, objects: tuple[Object, ...]) -> list[str]:
        found: list[str] = []
        for watch in self.spec.watches:
            if isinstance(new or old, watch.kind) and watch.predicate(old, new):
                found.extend(watch.keys(old, new, FixedReader(objects)))
        return found

    @pytest.mark.parametrize("name", cases)
    def test_whatever_changes_a_decision_wakes_the_volume(self, name: str) -> None:
        case = self.cases[name]()
        objects = case.objects()
        before = self.decision(objects, case)
        missed: list[str] = []
        for obj in objects:
            others = tuple(item for item in objects if item is not obj)
            if self.decision(others, case) != before and VOLUME not in self.woken(obj, None, others):
                missed.append(f"{type(obj).__name__} deleted")
            for path, changed in mutations(obj):
                after = (*others, changed)
                if self.decision(after, case) != before and VOLUME not in self.woken(obj, changed, after):
                    missed.append(f"{type(obj).__name__} {path}")
        assert missed == []

    def test_a_replica_that_goes_frees_its_node(self) -> None:
        assert self.woken(replica(0, at="a1"), None, ()) == [VOLUME]

    def test_a_new_attachment_wakes_its_volume(self) -> None:
        assert self.woken(None, attachment("a1"), ()) == [VOLUME]

    def test_status_reports_of_others_wake_nobody(self) -> None:
        old = replica(0, at="a1")
        new = replace(old, status=replace(old.status, phase="Healthy"))
        assert self.woken(old, new, ()) == []
