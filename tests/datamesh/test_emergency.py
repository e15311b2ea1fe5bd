"""Emergency removals (decision 6): two steps beside a tie-breaker, one unconfirmed voter change, fencing evidence."""

from __future__ import annotations

from dataclasses import replace as replace_cluster

import pytest

from quorate.api.replicated_volume import TransitionType
from quorate.api.replicated_volume_replica import BackingVolume
from quorate.datamesh.guards.emergency import WAITING_FOR_FENCING
from quorate.datamesh.layout import Layout
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import (
    delete_replica,
    form,
    run,
    with_attachment,
    with_configuration,
    with_replica,
)
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    FIVE,
    FOUR,
    FOUR_TB,
    ONE,
    PAIR,
    PAIR_TB,
    THREE,
    datamesh,
    edit_replica,
    first_state,
    member,
    one_pass,
    passed,
    requesting,
    staged,
    transition,
    without_object,
)
from tests.datamesh.test_voter_changes import shape

FORCE = TransitionType.FORCE_REMOVE_REPLICA


def dead(cluster: Cluster, *ids: int, fenced: bool = False) -> Cluster:
    """These replicas' nodes are dead."""
    nodes = tuple(member(cluster, i).node_name for i in ids)
    return react(replace_cluster(cluster, dead=nodes, fenced=nodes if fenced else ()))


def gone(cluster: Cluster, *ids: int, fenced: bool = False) -> Cluster:
    """These replicas' nodes are dead and their objects are gone."""
    cluster = dead(cluster, *ids, fenced=fenced)
    for replica_id in ids:
        cluster = without_object(cluster, replica_id)
    return cluster


def removal_step(cluster: Cluster, index: int) -> str:
    """Status of a step of the removal of #3; empty = there is none."""
    found = transition(cluster, TransitionType.REMOVE_REPLICA, 3)
    return found.steps[index].status if found is not None else ""


def shapes(cluster: Cluster) -> list[str]:
    """Every mesh published until the removal is complete."""
    found = [shape(cluster)]
    while True:
        cluster = passed(cluster)
        if shape(cluster) != found[-1]:
            found.append(shape(cluster))
        if transition(cluster, FORCE) is None:
            return found
        cluster = react(cluster)


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (PAIR, ["0D 1D q2 qmr2", "1D q1 qmr2"]),
        (THREE, ["0D 1D 2D q2 qmr2", "1D 2D q2 qmr2"]),
        (FOUR, ["0D 1D 2D 3D q3 qmr3", "1D 2D 3D q2 qmr3"]),
        (PAIR_TB, ["0D 1D 2TB q2 qmr1", "1D 2TB q1 qmr1"]),
        (
            FOUR_TB,
            [
                "0D 1D 2D 3D 4TB q3 qmr2",
                "0D 1D 2D 3D 4TB q3 qmr2 off",
                "1D 2D 3D 4TB q2 qmr2 off",
                "1D 2D 3D 4TB q2 qmr2",
            ],
        ),
    ],
    ids=str,
)
def test_trace_of_an_automatic_removal(layout: Layout, expected: list[str]) -> None:
    assert shapes(gone(form(layout), 0)) == expected


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (PAIR, ["0D 1D q2 qmr2", "1D q1 qmr2"]),
        (PAIR_TB, ["0D 1D 2TB q2 qmr1", "1D 2TB q1 qmr1"]),
        (FOUR_TB, ["0D 1D 2D 3D 4TB q3 qmr2", "1D 2D 3D 4TB q2 qmr2"]),
    ],
    ids=str,
)
def test_a_fenced_member_goes_in_one_step(layout: Layout, expected: list[str]) -> None:
    assert shapes(gone(form(layout), 0, fenced=True)) == expected


def test_of_two_voters_the_tie_breakers_let_go_first() -> None:
    cluster = passed(gone(form(PAIR_TB), 0))
    assert member(cluster, 0).tie_breakers_disconnected
    assert datamesh(cluster).quorum == 2, "voters and q do not change in the first half"
    found = transition(cluster, FORCE, 0)
    assert found is not None
    assert found.plan_id == "diskful-pair/v1"
    assert transition(passed(react(cluster, only=(1,))), FORCE, 0) is not None, "the tie-breaker must confirm too"
    assert passed(react(cluster)).member(0) is None


def test_s12_qmr_and_baseline_stay() -> None:
    cluster = passed(gone(form(THREE), 0))
    assert cluster.member(0) is None
    assert datamesh(cluster).quorum_minimum_redundancy == 2
    assert cluster.volume.status.baseline_guaranteed_minimum_data_redundancy == 1


def test_g25_a_member_that_somebody_reaches_stays() -> None:
    cluster = requesting(form(THREE), 0, "ForceLeave", type="Diskful")
    result = one_pass(cluster)
    assert result.status.datamesh_transitions == ()
    expected = "Force-removing replica is blocked: replica #0 is still reachable from [#1, #2]"
    assert result.status.datamesh_replica_requests[0].message == expected


def test_h6_a_blocked_emergency_cancels_nothing() -> None:
    joining = passed(react(with_replica(form(ONE), "Diskful", "node-5")))
    assert transition(joining, TransitionType.ADD_REPLICA, 1) is not None
    asked = requesting(react(joining), 1, "ForceLeave", type="Diskful")
    after = passed(asked)
    assert transition(after, TransitionType.ADD_REPLICA, 1) is not None
    assert transition(after, FORCE, 1) is None


def test_the_last_voter_is_never_removed() -> None:
    cluster = gone(form(ONE), 0, fenced=True)
    after = passed(cluster)
    assert after.member(0) is not None
    assert one_pass(after).convergence.reason in ("CannotConverge", "Converging")


def test_h8_two_partitioned_voters_of_three_are_not_both_forgotten() -> None:
    cluster = gone(form(THREE), 1, 2)
    for _ in range(5):
        cluster = react(passed(cluster))
    assert len(datamesh(cluster).members) == 3, "the survivor has no quorum: the pair may be the side that writes"


def test_h8_the_second_removal_waits_until_the_first_is_confirmed() -> None:
    cluster = gone(staged(form(FIVE), "M1 static"), 3, 4)
    for _ in range(5):
        cluster = react(passed(cluster))
    assert len(datamesh(cluster).members) == 4, "the first removal is not confirmed by the other silent node"
    found = transition(cluster, FORCE)
    assert found is not None
    assert found.reason == WAITING_FOR_FENCING


def test_fencing_evidence_releases_the_second_removal() -> None:
    cluster, _ = run(gone(form(THREE), 1, 2, fenced=True))
    nodes = [m.node_name for m in datamesh(cluster).members]
    assert "node-1" not in nodes
    assert "node-2" not in nodes
    assert len(nodes) == 3, "both were replaced"


def test_fencing_evidence_counts_only_for_nodes_that_nobody_reaches() -> None:
    cluster = replace_cluster(form(THREE), fenced=("node-0",))
    assert one_pass(cluster).actions == ()


def test_l3_a_voter_change_stuck_on_a_dead_third_party_completes_after_its_removal() -> None:
    joining = react(passed(react(with_replica(form(PAIR), "Diskful", "node-5"))), only=(0, 2))
    stuck = passed(replace_cluster(joining, dead=("node-1",)))
    assert transition(stuck, TransitionType.ADD_REPLICA) is not None
    unfenced = passed(without_object(react(stuck), 1))
    assert unfenced.member(1) is not None, "one unconfirmed voter change at a time"
    fenced = replace_cluster(without_object(react(stuck), 1), fenced=("node-1",))
    cluster, _ = run(fenced)
    assert cluster.member(1) is None
    assert transition(cluster, TransitionType.ADD_REPLICA) is None


def test_decision_11_an_object_that_vanishes_in_a_removal_turns_it_into_an_emergency() -> None:
    cluster = with_configuration(form(FOUR), THREE)
    state = first_state(cluster, lambda state: removal_step(state, 0) == "Active")
    cluster = passed(without_object(dead(state, 3), 3))
    assert transition(cluster, TransitionType.REMOVE_REPLICA, 3) is None
    assert transition(cluster, FORCE, 3) is not None


def test_h15_an_object_that_vanishes_in_the_last_step_confirms_it() -> None:
    cluster = with_configuration(form(FOUR), THREE)
    state = first_state(cluster, lambda state: removal_step(state, -1) == "Active")
    cluster = passed(without_object(react(state, only=(0, 1, 2)), 3))
    assert transition(cluster, TransitionType.REMOVE_REPLICA, 3) is None


@pytest.mark.parametrize("layout", [PAIR_TB, THREE, FOUR_TB, FIVE], ids=str)
@pytest.mark.parametrize("was", ["idle", "attached", "attaching", "detaching", "joining", "leaving"])
def test_l2_a_dead_fenced_member_is_removed_and_replaced(layout: Layout, was: str) -> None:
    cluster = form(layout)
    victim = 0
    match was:
        case "attached":
            cluster = run(with_attachment(cluster, "node-0"))[0]
        case "attaching":
            cluster = passed(with_attachment(cluster, "node-0"))
        case "detaching":
            cluster = passed(replace_cluster(run(with_attachment(cluster, "node-0"))[0], attachments=()))
        case "joining":
            cluster = passed(react(with_replica(cluster, "Diskful", "node-7")))
            victim = layout.diskful + layout.tie_breakers
        case "leaving":
            cluster = passed(react(delete_replica(cluster, 0)))
        case _:
            pass
    cluster = replace_cluster(cluster, attachments=())
    node = member(cluster, victim).node_name
    cluster, result = run(dead(cluster, victim, fenced=True))
    assert node not in [m.node_name for m in datamesh(cluster).members]
    assert result.convergence.reason == "Converged", result.convergence


def test_a_fenced_member_with_the_only_current_copy_is_kept() -> None:
    cluster = dead(form(PAIR_TB), 0, fenced=True)
    cluster = edit_replica(cluster, 1, backing_volume=BackingVolume(state="Inconsistent"))
    result = one_pass(cluster)
    assert result.actions == ()
    assert result.convergence.reason == "CannotConverge"
    assert "only current copy" in result.convergence.message


def test_an_emergency_nobody_wants_any_more_gives_the_tie_breakers_back() -> None:
    cluster = passed(requesting(dead(form(PAIR_TB), 0), 0, "ForceLeave", type="Diskful"))
    assert member(cluster, 0).tie_breakers_disconnected
    healed = replace_cluster(cluster, dead=())
    cluster, result = run(react(healed))
    assert not any(m.tie_breakers_disconnected for m in datamesh(cluster).members)
    assert result.convergence.reason == "Converged"
