"""Projection of members onto their nodes' DRBD configuration (facts/datamesh 2.2, S9, decisions 4 and 6)."""

from __future__ import annotations

from dataclasses import replace as replace_cluster

import pytest

from quorate.api.drbd_resource import DRBDResourceSpec
from quorate.api.value import replace
from quorate.datamesh.features import Features
from quorate.datamesh.projection import intended_drbd
from quorate.verification.perfect_cluster import Cluster, make_replica
from quorate.verification.perfect_drive import form, with_replica
from tests.datamesh.builders import FOUR_TB, PAIR_TB, THREE, edit_datamesh, edit_member, replica


def projected(cluster: Cluster, replica_id: int, features: Features | None = None) -> DRBDResourceSpec:
    return intended_drbd(
        cluster.volume, replica(cluster, replica_id), logical_volume="llv", features=features or Features()
    )


def mixed() -> Cluster:
    """2D+1TB with an Access member."""
    cluster = form(PAIR_TB)
    access = replace(
        cluster.volume.status.datamesh.members[2], name="vol-3", type="Access", node_name="node-3", addresses=()
    )
    members = (*cluster.volume.status.datamesh.members, access)
    return edit_datamesh(with_replica(cluster, "Access", "node-3"), members=members)


def test_s9_q_and_qmr_of_every_kind_of_member() -> None:
    cluster = mixed()
    values = [(projected(cluster, i).quorum, projected(cluster, i).quorum_minimum_redundancy) for i in range(4)]
    assert values == [(2, 1), (2, 1), (32, 1), (32, 1)]


def test_s9_a_replica_that_is_no_member_has_no_peers_and_no_quorum() -> None:
    cluster = form(THREE)
    stranger = make_replica(7, "Diskful", "node-7")
    spec = intended_drbd(cluster.volume, stranger, logical_volume="llv")
    assert (spec.quorum, spec.quorum_minimum_redundancy, spec.peers, spec.role) == (32, 32, (), "Secondary")


def test_full_mesh_connects_to_all_and_stars_to_the_full_mesh() -> None:
    cluster = mixed()
    peers = {i: [peer.name for peer in projected(cluster, i).peers] for i in range(4)}
    assert peers == {
        0: ["vol-1", "vol-2", "vol-3"],
        1: ["vol-0", "vol-2", "vol-3"],
        2: ["vol-0", "vol-1"],
        3: ["vol-0", "vol-1"],
    }


def test_slots_and_visibility_of_peers() -> None:
    peers = {peer.name: peer for peer in projected(mixed(), 0).peers}
    assert [(p.type, p.allow_remote_read) for _, p in sorted(peers.items())] == [
        ("Diskful", True),
        ("Diskless", True),
        ("Diskless", False),
    ]


@pytest.mark.parametrize(("option", "visible", "vote"), [(True, True, False), (False, False, False)])
def test_m1_suspended_tie_breakers_have_no_vote(option: bool, visible: bool, vote: bool) -> None:
    cluster = edit_datamesh(form(FOUR_TB), tie_breakers_suspended=True)
    peers = {peer.name: peer for peer in projected(cluster, 0, Features(peer_tiebreaker_option=option)).peers}
    breaker = peers["vol-4"]
    assert (breaker.allow_remote_read, breaker.tie_breaker) == (visible, vote)
    assert all(peers[f"vol-{i}"].allow_remote_read for i in (1, 2, 3))


def test_decision_6_isolated_members_and_tie_breakers_have_no_connection() -> None:
    cluster = edit_member(form(PAIR_TB), 0, tie_breakers_disconnected=True)
    assert [p.name for p in projected(cluster, 2).peers] == ["vol-1"]
    assert [p.name for p in projected(cluster, 0).peers] == ["vol-1"]
    assert [p.name for p in projected(cluster, 1).peers] == ["vol-0", "vol-2"]


def test_a_diskful_member_without_ready_volume_runs_as_its_liminal_form() -> None:
    cluster = form(THREE)
    spec = intended_drbd(cluster.volume, replica(cluster, 0))
    assert (spec.type, spec.size, spec.quorum) == ("Diskless", None, 2)
    other = projected(cluster, 1)
    assert [p.type for p in other.peers] == ["Diskful", "Diskful"], "peers keep its slot"


def test_attached_is_primary() -> None:
    cluster = replace_cluster(edit_member(form(THREE), 1, attached=True))
    assert [projected(cluster, i).role for i in range(3)] == ["Secondary", "Primary", "Secondary"]
