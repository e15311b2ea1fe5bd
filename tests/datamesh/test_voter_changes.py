"""Voter changes step by step: absolute q, the waits, M1 and M2 beside a tie-breaker, enforcement (decisions 3-5)."""

from __future__ import annotations

from dataclasses import replace as replace_cluster

import pytest

from quorate.api.replicated_volume import TransitionType
from quorate.api.value import replace
from quorate.datamesh.features import Features
from quorate.datamesh.layout import Layout
from quorate.datamesh.members import symbol
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import delete_replica, form, run, walk, with_configuration, with_replica
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    FOUR,
    FOUR_TB,
    ONE,
    PAIR,
    PAIR_TB,
    THREE,
    datamesh,
    edit_datamesh,
    edit_member,
    edit_replica,
    first_state,
    passed,
    replica,
    requesting,
    staged,
    transition,
)

STATIC = Features(voter_mode="static")


def shape(cluster: Cluster) -> str:
    """The published mesh in short: members, q, qmr, and whether the tie-breakers' vote is off."""
    mesh = datamesh(cluster)
    names = " ".join(f"{member.name[-1]}{symbol(member.type)}" for member in mesh.members)
    return f"{names} q{mesh.quorum} qmr{mesh.quorum_minimum_redundancy}" + (
        " off" if mesh.tie_breakers_suspended else ""
    )


def trace(cluster: Cluster) -> list[str]:
    """Every published mesh on the way to rest."""
    shapes = [shape(cluster)]
    for state, _ in walk(cluster):
        if shape(state) != shapes[-1]:
            shapes.append(shape(state))
    return shapes


def test_replace_in_1d() -> None:
    assert trace(react(delete_replica(form(ONE), 0))) == [
        "0D q1 qmr1",
        "0D 1A q1 qmr1",
        "0D 1D∅ q2 qmr1",
        "0D 1D q2 qmr1",
        "0D∅ 1D q2 qmr1",
        "0A 1D q1 qmr1",
        "1D q1 qmr1",
    ]


def test_replace_in_2d_1tb_with_the_vote_off_meanwhile() -> None:
    assert trace(react(delete_replica(form(PAIR_TB), 0))) == [
        "0D 1D 2TB q2 qmr1",
        "0D 1D 2TB 3A q2 qmr1",
        "0D 1D 2TB 3A q2 qmr1 off",
        "0D 1D 2TB 3D∅ q2 qmr1 off",
        "0D 1D 2TB 3D∅ q2 qmr1",
        "0D 1D 2TB 3D q2 qmr1",
        "0D∅ 1D 2TB 3D q2 qmr1",
        "0D∅ 1D 2TB 3D q2 qmr1 off",
        "0A 1D 2TB 3D q2 qmr1 off",
        "0A 1D 2TB 3D q2 qmr1",
        "1D 2TB 3D q2 qmr1",
    ]


def test_replace_in_2d_1tb_by_m2_raises_q_first() -> None:
    assert trace(react(delete_replica(staged(form(PAIR_TB), "M2 static"), 0))) == [
        "0D 1D 2TB q2 qmr1",
        "0D 1D 2TB 3A q2 qmr1",
        "0D 1D 2TB 3A q3 qmr1",
        "0D 1D 2TB 3D∅ q2 qmr1",
        "0D 1D 2TB 3D q2 qmr1",
        "0D∅ 1D 2TB 3D q2 qmr1",
        "0A 1D 2TB 3D q3 qmr1",
        "0A 1D 2TB 3D q2 qmr1",
        "1D 2TB 3D q2 qmr1",
    ]


def test_3d_to_4d_raises_qmr_when_the_copy_is_there() -> None:
    assert trace(with_configuration(form(THREE), FOUR)) == [
        "0D 1D 2D q2 qmr2",
        "0D 1D 2D 3A q2 qmr2",
        "0D 1D 2D 3D∅ q3 qmr2",
        "0D 1D 2D 3D q3 qmr2",
        "0D 1D 2D 3D q3 qmr3",
    ]


def test_3d_to_2d_1tb_by_retype() -> None:
    assert trace(with_configuration(form(THREE), PAIR_TB)) == [
        "0D 1D 2D q2 qmr2",
        "0D 1D 2D q2 qmr1",
        "0D 1D 2D∅ q2 qmr1",
        "0D 1D 2D∅ q2 qmr1 off",
        "0D 1D 2TB q2 qmr1 off",
        "0D 1D 2TB q2 qmr1",
    ], "the vote goes before the word as a tie-breaker counts: in one step the model checker finds two writable sides"


def test_2d_to_1d() -> None:
    assert trace(with_configuration(form(PAIR), ONE)) == [
        "0D 1D q2 qmr2",
        "0D 1D q2 qmr1",
        "0D 1D∅ q2 qmr1",
        "0D 1A q1 qmr1",
        "0D q1 qmr1",
    ]


def joining(layout: Layout, features: Features | None = None) -> Cluster:
    """A volume with a newcomer that asks to join as Diskful."""
    return react(with_replica(form(layout, features=features), "Diskful", "node-6"))


def step_name(cluster: Cluster, transition_type: str = TransitionType.ADD_REPLICA) -> str:
    """Name of the active step."""
    found = transition(cluster, transition_type)
    assert found is not None
    return next(step.name for step in found.steps if step.status == "Active")


def test_h4_q_does_not_rise_before_the_newcomer_is_connected() -> None:
    cluster = passed(joining(ONE))
    cluster = react(cluster)
    alone = edit_replica(edit_replica(cluster, 0, peers=()), 1, peers=())
    held = passed(alone)
    assert step_name(held) == "✦ → A"
    found = transition(held, TransitionType.ADD_REPLICA)
    assert found is not None
    assert (found.reason, found.message) == ("WaitingForConnection", "replica #1 is not connected to [#0]")
    request = held.volume.status.datamesh_replica_requests[0]
    assert request.message == (
        "Adding diskful replica (step 1/3: ✦ → A): 2/2 replicas confirmed revision 3. "
        "Next step A → D∅ + q↑ waits: replica #1 is not connected to [#0]"
    )
    assert step_name(passed(cluster)) == "A → D∅ + q↑"


def test_h3_qmr_does_not_rise_during_the_resync() -> None:
    cluster = with_configuration(form(ONE), PAIR)
    for state, _ in walk(cluster):
        copies = sum(
            rvr.status.backing_volume is not None and rvr.status.backing_volume.state == "UpToDate"
            for rvr in state.replicas
        )
        assert datamesh(state).quorum_minimum_redundancy <= max(copies, 1)


def test_a_disk_attaches_only_after_everybody_made_room_for_it() -> None:
    cluster = passed(react(passed(joining(ONE))))
    assert step_name(cluster) == "A → D∅ + q↑"
    assert step_name(passed(react(cluster, only=(1,)))) == "A → D∅ + q↑", "S18"
    assert step_name(passed(react(cluster))) == "D∅ → D"


@pytest.mark.parametrize(
    ("layout", "mode", "first"),
    [(PAIR_TB, "M1 dynamic", "TB vote off"), (FOUR_TB, "M2 static", "q↑")],
    ids=["M1", "M2"],
)
def test_a_staged_change_starts_only_while_all_voters_and_tie_breakers_are_connected(
    layout: Layout, mode: str, first: str
) -> None:
    cluster = react(passed(staged(joining(layout), mode)))
    breaker = f"node-{layout.diskful}"
    cut = react(replace_cluster(cluster, dead=(breaker,)))
    assert step_name(passed(cut)) == "✦ → A"
    assert step_name(passed(cluster)) == first


@pytest.mark.parametrize("flag", [None, False])
def test_decision_5_a_raised_q_is_confirmed_only_where_the_kernel_enforces_it(flag: bool | None) -> None:
    cluster = react(passed(react(passed(joining(ONE)))))
    assert step_name(passed(cluster)) == "D∅ → D"
    unenforced = edit_replica(cluster, 0, quorum_enforced=flag, quorum=True if flag is False else None)
    assert step_name(passed(unenforced)) == "A → D∅ + q↑"


def test_decision_5_a_primary_that_sees_too_few_voters_does_not_confirm_with_static_voters() -> None:
    cluster = passed(joining(THREE, STATIC))
    cluster = react(passed(react(cluster)))
    primary = edit_member(cluster, 0, attached=True)
    peers = tuple(
        replace(peer, connection_state="Connecting") if peer.name in ("vol-1", "vol-2") else peer
        for peer in replica(primary, 0).status.peers
    )
    sticky = edit_replica(primary, 0, peers=peers, quorum=True, quorum_enforced=True)
    assert step_name(passed(sticky)) == "A → D∅ + q↑", "X7: two of four voters, q 3, and the flag is still up"
    suspended = edit_replica(sticky, 0, quorum=False)
    assert step_name(passed(suspended)) == "D∅ → D", "a suspended Primary is proof"


def test_h1_q_is_the_majority_of_the_voters_after_the_step_whatever_happened_meanwhile() -> None:
    cluster = with_configuration(form(FOUR), THREE)
    state = first_state(cluster, lambda state: transition(state, TransitionType.REMOVE_REPLICA) is not None)
    cluster = react(replace_cluster(state, dead=("node-1",), fenced=("node-1",)))
    cluster, _ = run(cluster)
    mesh = datamesh(cluster)
    voters = sum(member.type == "Diskful" for member in mesh.members)
    assert voters == 3
    assert mesh.quorum == 2


def test_h2_the_last_copy_is_never_given_up_by_a_removal_that_started_when_it_was_not_the_last() -> None:
    fresh = with_configuration(form(PAIR), ONE)
    fresh = edit_datamesh(react(delete_replica(fresh, 0)), quorum_minimum_redundancy=1)
    detached = passed(fresh)
    assert step_name(detached, TransitionType.REMOVE_REPLICA) == "D → D∅"
    lost = react(replace_cluster(react(detached), dead=("node-1",), fenced=("node-1",)))
    back = passed(lost)
    resumed = transition(back, TransitionType.CHANGE_REPLICA_TYPE)
    assert resumed is not None
    assert resumed.plan_id == "resume-diskful/v1"
    assert [member.type for member in datamesh(back).members] == ["Diskful", "Diskful"]


def test_a_disk_that_was_away_waits_for_the_copies_that_may_have_newer_data() -> None:
    fresh = edit_datamesh(react(delete_replica(with_configuration(form(PAIR), ONE), 0)), quorum_minimum_redundancy=1)
    lost = react(replace_cluster(react(passed(fresh)), dead=("node-1",)))
    held = passed(lost)
    found = transition(held, TransitionType.REMOVE_REPLICA, 0)
    assert found is not None
    assert datamesh(held).members[0].type == "LiminalDiskful"
    assert "UpToDate copies" in found.message


def test_h29_the_volume_group_is_captured_when_the_join_starts() -> None:
    cluster = react(passed(joining(ONE)))
    after = passed(edit_replica(cluster, 1, datamesh_request=None))
    found = after.member(1)
    assert found is not None
    assert (found.type, found.lvm_volume_group_name) == ("LiminalDiskful", "vg")
    leaving = passed(requesting(cluster, 1, "Leave"))
    assert leaving.member(1) is None, "a request without volume group takes the join back"


def test_h30_a_liminal_member_without_transition_goes_on() -> None:
    orphan = edit_member(form(THREE), 1, type="LiminalDiskful")
    cluster, result = run(react(orphan))
    assert [member.type for member in datamesh(cluster).members] == ["Diskful"] * 3
    assert result.convergence.reason == "Converged"


def test_e16_a_tie_breaker_that_appears_meanwhile_changes_the_plan() -> None:
    cluster = react(passed(joining(THREE)))
    access = react(passed(react(with_replica(passed(cluster), "Access", "node-7"))))
    sneaked = react(edit_member(react(passed(joining(THREE))), 2, type="TieBreaker", lvm_volume_group_name=""))
    assert access.member(4) is not None
    plans: list[str] = []
    for state, _ in walk(with_configuration(edit_datamesh(sneaked, quorum=2), FOUR_TB)):
        plans += [t.plan_id for t in state.volume.status.datamesh_transitions]
    assert "diskful/v1" not in plans
    assert any("vote-off" in plan for plan in plans), "H31: beside a tie-breaker the vote is off meanwhile"
