"""Change of the backing volume, resize, networks: the plans that touch no vote."""

from __future__ import annotations

from dataclasses import replace as replace_cluster

import pytest

from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import TransitionType
from quorate.api.replicated_volume_replica import BackingVolume
from quorate.api.value import replace
from quorate.datamesh.layout import Layout
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import form, run, walk, with_replica
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    ONE,
    PAIR,
    PAIR_TB,
    THREE,
    address,
    datamesh,
    edit_replica,
    edit_volume,
    member,
    one_pass,
    passed,
    requesting,
    transition,
)
from tests.datamesh.networks import on_networks, reporting, settled_on

CHANGE = TransitionType.CHANGE_REPLICA_TYPE
NETWORKS = TransitionType.CHANGE_SYSTEM_NETWORKS


# Change of the backing volume.


def on_group(cluster: Cluster, replica_id: int, group: str) -> Cluster:
    """Somebody moves a replica to another volume group."""
    name = f"vol-{replica_id}"
    replicas = tuple(
        replace(r, spec=replace(r.spec, lvm_volume_group_name=group)) if r.metadata.name == name else r
        for r in cluster.replicas
    )
    return react(replace_cluster(cluster, replicas=replicas))


def test_the_disk_goes_the_group_changes_the_new_disk_synchronises() -> None:
    states = [("Diskful", "vg")]
    for state, _ in walk(on_group(form(THREE), 1, "vg-2")):
        found = (member(state, 1).type, member(state, 1).lvm_volume_group_name)
        if found != states[-1]:
            states.append(found)
        assert datamesh(state).quorum == 2, "the vote stays"
    assert states == [("Diskful", "vg"), ("LiminalDiskful", "vg"), ("LiminalDiskful", "vg-2"), ("Diskful", "vg-2")]


@pytest.mark.parametrize("layout", [ONE, PAIR], ids=str)
def test_it_waits_while_a_copy_too_few_would_remain(layout: Layout) -> None:
    result = one_pass(on_group(form(layout), 0, "vg-2"))
    assert result.status.datamesh_transitions == ()
    text = result.status.datamesh_replica_requests[0].message
    assert text.startswith("Changing backing volume is blocked: would leave")


def test_the_old_volume_is_kept_when_another_copy_fails_meanwhile() -> None:
    cluster = passed(on_group(form(THREE), 1, "vg-2"))
    assert member(cluster, 1).type == "LiminalDiskful"
    cluster = edit_replica(react(cluster), 2, backing_volume=BackingVolume(state="Failed"))
    cluster = passed(cluster)
    assert (member(cluster, 1).type, member(cluster, 1).lvm_volume_group_name) == ("Diskful", "vg")


def test_another_group_may_be_asked_for_at_every_step() -> None:
    for state, _ in walk(on_group(form(THREE), 1, "vg-2")):
        done, _ = run(on_group(state, 1, "vg-3"))
        assert (member(done, 1).type, member(done, 1).lvm_volume_group_name) == ("Diskful", "vg-3")


# Resize.


def grown(cluster: Cluster, size: int) -> Cluster:
    return edit_volume(cluster, spec=replace(cluster.volume.spec, size=Quantity.of(size)))


def test_resize_waits_for_the_lower_volumes_and_is_confirmed_by_all() -> None:
    wanted = 3 << 30
    cluster = grown(form(PAIR), wanted + 1)
    assert one_pass(cluster).notes == (
        "Resizing volume is blocked: the backing volume of #0 has 1074012160 bytes, 3221958656 are needed",
    )
    cluster, _ = run(react(cluster))
    assert datamesh(cluster).size.value == wanted + 4096, "rounded up to 4 KiB"


def test_s22_a_smaller_spec_is_ignored() -> None:
    cluster, result = run(grown(form(PAIR), 4096))
    assert datamesh(cluster).size.value == 1 << 30
    assert not result.changed


def test_resize_and_disk_gaining_joins_exclude_each_other() -> None:
    joining = passed(react(with_replica(form(PAIR), "Diskful", "node-5")))
    assert transition(joining, TransitionType.ADD_REPLICA) is not None
    cluster = passed(react(grown(joining, 3 << 30)))
    assert transition(cluster, TransitionType.RESIZE_VOLUME) is None
    assert datamesh(run(cluster)[0]).size.value == 3 << 30


# Networks.


def test_repair_follows_the_replicas_addresses() -> None:
    moved = edit_replica(form(PAIR), 1, addresses=(address("Internal", 77),))
    cluster = passed(moved)
    assert member(cluster, 1).addresses == (address("Internal", 77),)
    found = transition(cluster, TransitionType.REPAIR_NETWORK_ADDRESSES)
    assert found is not None
    apart = edit_replica(edit_replica(moved, 0, peers=(), datamesh_revision=3), 1, peers=(), datamesh_revision=3)
    waiting = passed(replace_cluster(apart, volume=cluster.volume))
    assert transition(waiting, TransitionType.REPAIR_NETWORK_ADDRESSES) is not None, "C-CONN: links must be back"


def test_repair_waits_while_networks_are_out_of_sync() -> None:
    moved = edit_replica(form(PAIR), 1, addresses=(address("Internal", 77), address("Extra", 78)))
    result = one_pass(moved)
    assert result.status.datamesh_transitions == ()
    assert "out of sync" in result.notes[0]


@pytest.mark.parametrize(
    ("before", "after", "plan"),
    [
        (("a",), ("a", "b"), "add/v1"),
        (("a", "b"), ("a",), "remove/v1"),
        (("a", "b"), ("a", "c"), "update/v1"),
        (("a",), ("b",), "migrate/v1"),
    ],
)
def test_networks_follow_the_pool(before: tuple[str, ...], after: tuple[str, ...], plan: str) -> None:
    cluster = passed(on_networks(settled_on(form(PAIR_TB), *before), *after))
    found = transition(cluster, NETWORKS)
    assert found is not None
    assert found.plan_id == plan
    assert (found.from_system_network_names, found.to_system_network_names) == (before, after)
    for _ in range(6):
        # The connection is established on a network that stays, or on the new one once both are configured.
        wanted = datamesh(cluster).system_network_names
        first = [name for name in wanted if name in after]
        cluster = passed(reporting(cluster, *first, *[name for name in wanted if name not in first]))
    assert transition(cluster, NETWORKS) is None
    assert sorted(datamesh(cluster).system_network_names) == sorted(after)
    for found_member in datamesh(cluster).members:
        assert sorted(a.system_network_name for a in found_member.addresses) == sorted(after)


def test_s44_migrate_keeps_the_old_network_until_the_new_one_connects_everybody() -> None:
    cluster = passed(on_networks(settled_on(form(PAIR), "a"), "b"))
    for _ in range(4):
        cluster = passed(reporting(cluster, "a", "b"))
    assert datamesh(cluster).system_network_names == ("a", "b")
    found = transition(cluster, NETWORKS)
    assert found is not None
    assert next(s.name for s in found.steps if s.status == "Active") == "Connect new"


def test_a_network_change_that_is_not_wanted_any_more_is_turned_round() -> None:
    cluster = passed(on_networks(settled_on(form(PAIR), "a"), "a", "b"))
    assert datamesh(cluster).system_network_names == ("a", "b")
    cluster = passed(on_networks(cluster, "a"))
    found = transition(cluster, NETWORKS)
    assert found is not None
    assert found.plan_id == "remove/v1"
    assert datamesh(cluster).system_network_names == ("a",)


def test_voter_changes_wait_for_network_changes() -> None:
    cluster = passed(on_networks(settled_on(form(THREE), "Internal"), "Internal", "b"))
    joining = react(with_replica(cluster, "Diskful", "node-5"), only=(3,))
    result = one_pass(requesting(joining, 3, "Join", type="Diskful", lvm_volume_group_name="vg"))
    text = result.status.datamesh_replica_requests[-1].message
    assert text.startswith(
        ("Waiting for replica addresses", "Adding diskful replica is blocked: waiting for Adding system")
    )
