"""Layout convergence: every layout from every other, replacement, recovery, and what is reported meanwhile (L5, L6)."""

from __future__ import annotations

from dataclasses import replace as replace_cluster
from itertools import permutations

import pytest

from quorate.api.meta import Condition
from quorate.datamesh.contract import CreateReplica, RetypeReplica
from quorate.datamesh.layout import ALL_LAYOUTS, TRANSZONAL_ZONES, Layout
from quorate.verification.perfect_cluster import Cluster, make_replica
from quorate.verification.perfect_drive import (
    decide,
    delete_replica,
    form,
    retype_replica,
    run,
    walk,
    with_attachment,
    with_configuration,
    with_replica,
)
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    FIVE,
    FOUR,
    FOUR_TB,
    MODES,
    ONE,
    PAIR,
    PAIR_TB,
    THREE,
    datamesh,
    deleting_volume,
    edit_replica,
    one_pass,
    passed,
    staged,
    through_json,
    with_status,
    without_object,
)
from tests.datamesh.invariants import check_all
from tests.datamesh.observation import Observation

PAIRS = list(permutations(ALL_LAYOUTS, 2))


def nodes_for(*layouts: Layout) -> int:
    """The fewest nodes on which all these layouts fit."""
    return max(layout.diskful + layout.tie_breakers for layout in layouts)


def assert_is(cluster: Cluster, layout: Layout) -> None:
    """The members, values and reports are those of a layout."""
    status = cluster.volume.status
    mesh = status.datamesh
    assert status.membership_layout == str(layout)
    assert (mesh.quorum, mesh.quorum_minimum_redundancy) == (layout.quorum, layout.qmr)
    assert not mesh.tie_breakers_suspended
    assert status.datamesh_transitions == ()
    assert status.effective_layout.failures_to_tolerate == layout.ftt
    assert status.effective_layout.guaranteed_minimum_data_redundancy == layout.gmdr
    observed = status.observed_protection
    assert observed is not None
    assert (observed.failures_to_tolerate, observed.guaranteed_minimum_data_redundancy) == (layout.ftt, layout.gmdr)


@pytest.mark.parametrize("spare", [0, 2])
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("origin", "target"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
def test_l5_every_layout_leads_to_every_other(origin: Layout, target: Layout, mode: str, spare: int) -> None:
    cluster = staged(form(origin, nodes=nodes_for(origin, target) + spare), mode)
    cluster = with_configuration(cluster, target)
    history = {cluster.volume.status.datamesh_revision: datamesh(cluster)}
    state = cluster
    for _ in range(200):
        result = one_pass(state)
        history[result.status.datamesh_revision] = result.status.datamesh
        check_all(Observation(state, result, history))
        after, again = decide(state)
        assert with_status(state, result.status) == with_status(state, again.status), "E5: same inputs, same outputs"
        assert one_pass(with_status(state, result.status)).status is result.status, (
            "E5: the second pass changes nothing"
        )
        assert one_pass(through_json(state)).status == result.status, "E10"
        reacted = react(after)
        if not result.changed and not result.actions and reacted.replicas == after.replicas:
            break
        state = reacted
    assert one_pass(state).convergence.reason == "Converged"
    assert_is(state, target)


@pytest.mark.parametrize("layout", ALL_LAYOUTS, ids=str)
@pytest.mark.parametrize("mode", MODES)
def test_decision_8_every_deleted_replica_is_replaced_before_it_leaves(layout: Layout, mode: str) -> None:
    for victim in range(layout.diskful + layout.tie_breakers):
        cluster = react(delete_replica(staged(form(layout), mode), victim))
        name = f"vol-{victim}"
        for state, _ in walk(cluster):
            names = [member.name for member in datamesh(state).members]
            if name in names:
                continue
            voters = sum(member.type == "Diskful" for member in datamesh(state).members)
            breakers = sum(member.type == "TieBreaker" for member in datamesh(state).members)
            assert (voters, breakers) == (layout.diskful, layout.tie_breakers)
        done, result = run(cluster)
        assert result.convergence.reason == "Converged"
        assert_is(done, layout)


def spread(layout: Layout, zones: int) -> tuple[str, ...] | None:
    """A placement of a layout over so many zones that survives the loss of any of them."""
    names = "abcde"[:zones]
    voters = [names[i % zones] for i in range(layout.diskful)]
    if layout.tie_breakers:
        for zone in names:
            inside = voters.count(zone)
            rest = [name for name in names if name != zone]
            if inside <= 1 and all(voters.count(z) <= layout.diskful - layout.qmr for z in rest):
                trial = [*voters, zone]
                if all(_survives(layout, trial, lost) for lost in names):
                    return tuple(trial)
        return None
    return tuple(voters) if layout.ftt == 0 or all(_survives(layout, voters, lost) for lost in names) else None


def _survives(layout: Layout, zones: list[str], lost: str) -> bool:
    voters = zones[: layout.diskful]
    rest = layout.diskful - voters.count(lost)
    breaker = len(zones) > layout.diskful and zones[-1] != lost
    tie = breaker and layout.diskful % 2 == 0 and rest == layout.quorum - 1
    return (rest >= layout.quorum or tie) and rest >= layout.qmr


@pytest.mark.parametrize(
    ("layout", "zones"),
    [(Layout(*key), count) for key, counts in TRANSZONAL_ZONES.items() for count in counts],
    ids=lambda value: str(value),
)
def test_l6_same_zone_replacement_succeeds_in_every_transzonal_layout(layout: Layout, zones: int) -> None:
    places = spread(layout, zones)
    if places is None:
        places = ("a", "a", "b", "c", "b") if (layout, zones) == (FOUR_TB, 3) else ("a", "b", "c", "d", "d")
    for victim in range(len(places)):
        # One spare node in the victim's zone: the replacement lands there.
        cluster = form(layout, zones=(*places, places[victim]), topology="TransZonal")
        cluster, result = run(react(delete_replica(cluster, victim)))
        assert result.convergence.reason == "Converged", f"#{victim}: {result.convergence}"
        assert_is(cluster, layout)


@pytest.mark.parametrize("layout", [layout for layout in ALL_LAYOUTS if layout != ONE], ids=str)
def test_lost_replica_is_replaced_by_itself(layout: Layout) -> None:
    cluster = react(replace_cluster(form(layout), dead=("node-0",)))
    cluster, result = run(without_object(cluster, 0))
    assert result.convergence.reason == "Converged"
    assert_is(cluster, layout)


def test_one_action_at_a_time() -> None:
    cluster = with_configuration(form(ONE), FIVE)
    for state, result in walk(cluster):
        assert len(result.actions) <= 1
        newcomers = [r for r in state.replicas if state.member(int(r.metadata.name[-1])) is None]
        assert len(newcomers) <= 1


# What is reported.


def test_converged() -> None:
    result = one_pass(form(PAIR_TB))
    assert (result.convergence.status, result.convergence.reason) == ("True", "Converged")
    assert result.convergence.message == "members are 2D+1TB"


def test_converging_names_the_action() -> None:
    result = one_pass(with_configuration(form(ONE), PAIR))
    assert result.actions == (CreateReplica(type="Diskful", reason="1D needs a diskful replica to become 2D"),)
    assert (result.convergence.status, result.convergence.reason) == ("False", "Converging")


def test_volume_deleting() -> None:
    result = one_pass(deleting_volume(with_configuration(form(ONE), PAIR)))
    assert (result.convergence.status, result.convergence.reason) == ("Unknown", "VolumeDeleting")
    assert result.actions == ()


def test_cannot_converge_without_a_free_node() -> None:
    result = one_pass(with_configuration(form(THREE, nodes=3), FOUR))
    assert result.convergence.reason == "CannotConverge"
    assert result.convergence.message == (
        "3D needs a diskful replica to become 4D, but no eligible node is free for a Diskful replica"
    )


def test_cannot_converge_when_scheduling_fails() -> None:
    failed = Condition(type="Scheduled", status="False", reason="SchedulingFailed", message="no space in any group")
    newcomer = make_replica(1, "Diskful")
    cluster = with_configuration(form(ONE), PAIR)
    cluster = replace_cluster(cluster, replicas=(*cluster.replicas, newcomer))
    result = one_pass(edit_replica(cluster, 1, conditions=(failed,)))
    assert result.convergence.reason == "CannotConverge"
    assert result.convergence.message == "replica vol-1 cannot be scheduled: no space in any group"


def test_cannot_converge_while_every_candidate_is_attached() -> None:
    cluster = form(PAIR, max_attachments=2)
    cluster = run(with_attachment(with_attachment(cluster, "node-0"), "node-1"))[0]
    cluster, result = run(with_configuration(cluster, ONE))
    assert result.convergence.reason == "CannotConverge"
    assert "detach required first" in result.convergence.message


def test_an_attached_replica_is_not_the_one_that_goes() -> None:
    cluster = run(with_attachment(form(THREE), "node-2"))[0]
    cluster, _ = run(with_configuration(cluster, PAIR))
    assert cluster.member(2) is not None


def test_on_three_nodes_the_tie_breaker_becomes_the_third_copy() -> None:
    cluster = with_configuration(form(PAIR_TB, nodes=3), THREE)
    expected = RetypeReplica(name="vol-2", type="Diskful", reason="2D+1TB needs a diskful replica to become 3D")
    assert one_pass(cluster).actions == (expected,)
    assert_is(run(cluster)[0], THREE)


def test_a_replica_that_gives_up_what_the_layout_needs_gets_its_replacement_first() -> None:
    cluster, result = run(react(retype_replica(form(THREE), 2, "TieBreaker")))
    assert result.convergence.reason == "Converged"
    assert_is(cluster, THREE)


def test_s41_ids_of_members_without_object_are_not_reused() -> None:
    cluster = react(replace_cluster(form(THREE), dead=("node-0",)))
    cluster = without_object(cluster, 0)
    after = with_replica(cluster, "Diskful")
    assert [r.metadata.name for r in after.replicas] == ["vol-1", "vol-2", "vol-3"]


def test_a_newcomer_waits_for_the_one_before_it_to_be_synchronised() -> None:
    cluster = with_configuration(form(ONE), FIVE)
    for state, result in walk(cluster):
        if any(isinstance(action, CreateReplica) for action in result.actions):
            behind = [
                r.metadata.name
                for r in state.replicas
                if r.status.backing_volume is not None and r.status.backing_volume.state == "Inconsistent"
            ]
            assert behind == []


@pytest.mark.parametrize("layout", [FOUR, FOUR_TB], ids=str)
def test_passed_states_are_reported_with_their_layout(layout: Layout) -> None:
    assert passed(form(layout)).volume.status.membership_layout == str(layout)
