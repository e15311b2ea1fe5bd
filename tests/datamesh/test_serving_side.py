"""S14 under a partition: what holds the quorum of the side that serves is not given up. All found by the model checker."""

from __future__ import annotations

from dataclasses import replace as replace_cluster

import pytest

from quorate.api.replicated_volume import TransitionType
from quorate.api.value import replace
from quorate.datamesh.context import Context
from quorate.datamesh.engine import DEFAULT_REGISTRY
from quorate.datamesh.features import Features
from quorate.datamesh.guards import connection, leaving, voting
from quorate.datamesh.members import id_of
from quorate.datamesh.rules import compute_enforced
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import delete_replica, form, with_attachment, with_configuration, with_replica
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import FOUR_TB, ONE, PAIR, PAIR_TB, THREE, context_of, edit_replica, passed, verdict
from tests.datamesh.test_guards import copies


def isolated(cluster: Cluster, lost: int) -> Cluster:
    """A replica that reaches nobody and has no quorum; its agent still reports, and its disk is UpToDate."""
    for rvr in cluster.replicas:
        number = id_of(rvr.metadata.name)
        kept = tuple(peer for peer in rvr.status.peers if number != lost and id_of(peer.name) != lost)
        quorum = rvr.status.quorum if number != lost else False
        cluster = edit_replica(cluster, number, peers=kept, quorum=quorum)
    return cluster


def attached(cluster: Cluster, node: str = "node-0") -> Cluster:
    """The volume is attached."""
    cluster = react(passed(with_attachment(cluster, node)))
    return react(passed(cluster))


def members(cluster: Cluster) -> list[str]:
    return [member.name for member in cluster.volume.status.datamesh.members]


def test_a_tie_breaker_does_not_join_while_a_side_lives_on_the_tie_break() -> None:
    cluster = react(with_replica(attached(form(PAIR_TB)), "TieBreaker", "node-4"))
    assert "vol-3" in members(passed(cluster))
    cut = isolated(cluster, 0)
    assert "vol-3" not in members(passed(cut)), "#1 has one of two tie-breakers until it reaches the new one"
    assert verdict(voting.rest_keeps_quorum, cut, 3) == "#1 would see 1 of 2 voters, 2 are needed"


def test_a_tie_breaker_does_not_leave_while_a_side_lives_on_the_tie_break() -> None:
    cluster = react(delete_replica(with_configuration(form(PAIR_TB), ONE), 2))
    assert "vol-2" not in members(passed(cluster))
    assert "vol-2" in members(passed(isolated(cluster, 0)))


def test_the_attached_node_without_quorum_does_not_hide_the_side_that_serves() -> None:
    cut = isolated(attached(form(PAIR_TB)), 0)
    assert verdict(voting.rest_keeps_quorum, cut, 2).startswith("#1 would see 1 of 2 voters")


def test_a_copy_behind_a_cut_does_not_count_for_those_who_serve() -> None:
    cluster = with_configuration(form(THREE), PAIR_TB)
    cluster = replace_qmr(cluster, 1)
    guard = leaving.serving_side_keeps_copies
    assert verdict(guard, cluster, 2) == ""
    cut = copies(isolated(cluster, 0), 1)
    assert verdict(leaving.enough_copies_remain, cut, 2) == "", "G19 counts the copy of #0"
    assert verdict(guard, cut, 2) == ("those with quorum would not reach 1 other UpToDate copy: [#0] must be connected")
    assert verdict(guard, copies(cut, 2), 2) == "", "a disk that is not UpToDate is no copy"


def test_nobody_serves_nobody_is_asked() -> None:
    cluster = replace_qmr(form(THREE), 1)
    for number in range(3):
        cluster = edit_replica(cluster, number, quorum=False)
    assert verdict(leaving.serving_side_keeps_copies, copies(cluster, 0, 1), 2) == ""


@pytest.mark.parametrize("plan_id", ["tiebreaker/v1", "a-to-tb/v1", "tb-to-a/v1"])
def test_every_step_of_a_tie_breaker_asks_who_serves(plan_id: str) -> None:
    plans = [
        plan
        for (kind, name), plan in DEFAULT_REGISTRY.plans.items()
        if name == plan_id and kind != TransitionType.FORCE_REMOVE_REPLICA
    ]
    assert plans
    assert all(voting.rest_keeps_quorum in step.gates for plan in plans for step in plan.steps)


def test_four_voters_keep_their_side_too() -> None:
    cluster = form(FOUR_TB)
    for lost in (0, 1):
        cluster = isolated(cluster, lost)
    assert verdict(voting.rest_keeps_quorum, cluster, 4) == "#2 would see 2 of 4 voters, 3 are needed"


def replace_qmr(cluster: Cluster, qmr: int) -> Cluster:
    status = cluster.volume.status
    datamesh = replace(status.datamesh, quorum_minimum_redundancy=qmr)
    return Cluster(replace(cluster.volume, status=replace(status, datamesh=datamesh)), cluster.replicas, cluster.pool)


def test_a_fenced_node_that_reports_ready_is_detached_once_and_not_attached_again() -> None:
    cluster = isolated(react(delete_replica(attached(form(THREE)), 0)), 0)
    once = passed(passed(replace_cluster(cluster, fenced=("node-0",))))
    assert not once.volume.status.datamesh.members[0].attached
    assert passed(once).volume.status == once.volume.status, "attach and force-detach do not take turns"


def test_copies_that_are_not_connected_to_each_other_do_not_count_together() -> None:
    cluster = form(THREE)
    assert verdict(leaving.enough_copies_remain, cluster, 2) == ""
    assert (
        verdict(leaving.enough_copies_remain, isolated(cluster, 1), 2)
        == "would leave 1 UpToDate copies, 2 are needed (GMDR 1)"
    ), "#1 may have missed writes"


def test_while_nobody_serves_a_vote_goes_only_if_all_others_are_connected() -> None:
    cluster = form(FOUR_TB)
    for number in range(4):
        cluster = edit_replica(cluster, number, quorum=False)
    assert verdict(voting.rest_keeps_quorum, cluster, 3) == ""
    cut = isolated(cluster, 1)
    assert verdict(voting.rest_keeps_quorum, cut, 3) == "nobody has quorum, and #0 is not connected to [#1]"
    assert verdict(voting.rest_keeps_quorum, replace_cluster(cut, fenced=("node-1",)), 3) == "", "fenced ones stay away"


def test_a_detach_that_is_not_carried_out_is_taken_back_when_the_copy_is_needed() -> None:
    """The kernel refuses a detach that costs a Primary its redundancy; waiting for it would hold up every other change."""
    cluster = react(with_replica(attached(form(PAIR)), "Diskful", "node-4"))
    for _ in range(12):
        cluster = react(passed(cluster))
    cluster = react(delete_replica(cluster, 1))
    told = passed(cluster)
    assert told.volume.status.datamesh.members[1].type == "LiminalDiskful"
    assert passed(told).volume.status.datamesh.members[1].type == "LiminalDiskful", "it waits while it may go"
    broken = copies(told, 2)
    assert passed(broken).volume.status.datamesh.members[1].type == "Diskful"


def test_a_disk_comes_back_where_it_meets_every_other_copy_even_if_none_is_up_to_date() -> None:
    guard = connection.meets_current_data
    cluster = copies(form(PAIR), 0)
    assert verdict(guard, cluster, 0) == "", "#1 is Outdated but there: the kernels compare generations"
    cut = isolated(cluster, 1)
    assert verdict(guard, cut, 0) == "replica #0 is not connected to an UpToDate copy, [#1] may have newer data"


def test_a_node_that_lost_its_disk_follows_its_peers_and_holds_nobody_up() -> None:
    """Static voters: without a disk of its own a kernel takes a peer without one for a tie-breaker and may keep its flag."""
    cluster = form(THREE)
    assert compute_enforced(in_static_mode(cluster), 1)
    status = cluster.replicas[1].status
    assert status.backing_volume is not None
    peers = (replace(status.peers[0], backing_volume_state="Diskless"), status.peers[1])
    few = edit_replica(copies(cluster, 1), 1, peers=peers)
    assert not compute_enforced(in_static_mode(few), 1), "one copy where two are asked for"
    lost = edit_replica(few, 1, backing_volume=replace(status.backing_volume, state="Failed"))
    assert compute_enforced(in_static_mode(lost), 1)


def in_static_mode(cluster: Cluster) -> Context:
    return context_of(replace_cluster(cluster, features=Features(voter_mode="static")))
