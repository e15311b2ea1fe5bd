"""Every guard of facts/datamesh 3.3, row by row: what it blocks, what it shows, what it lets pass."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as replace_cluster

import pytest

from quorate.api.common import ReplicationState
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import DatameshTransition, TransitionType
from quorate.api.replicated_volume_replica import BackingVolume
from quorate.api.value import replace
from quorate.datamesh.dsl import Guard
from quorate.datamesh.guards import connection, emergency, joining, leaving, network, resize, voting, zones
from quorate.datamesh.layout import Layout
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import delete_replica, form, run, with_attachment, with_replica
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    FOUR_TB,
    ONE,
    PAIR,
    PAIR_TB,
    THREE,
    address,
    deleting_volume,
    edit_configuration,
    edit_datamesh,
    edit_member,
    edit_replica,
    edit_volume,
    not_ready,
    passed,
    replica,
    silent,
    verdict,
    without_node,
)


def newcomer(layout: Layout = THREE, node: str = "node-5", **formation: object) -> Cluster:
    """A formed volume with one more Diskful replica that asks to join; its id is the number of members."""
    cluster = form(layout, **formation)  # pyright: ignore[reportArgumentType]
    return react(with_replica(cluster, "Diskful", node))


def zonal(topology: str, zones_: str, layout: Layout = THREE) -> Cluster:
    """A formed volume whose nodes are in these zones, with a newcomer on the last node."""
    cluster = form(layout, zones=tuple(zones_), topology=topology)
    return react(with_replica(cluster, "Diskful", f"node-{len(zones_) - 1}"))


def copies(cluster: Cluster, *without: int) -> Cluster:
    """These replicas are not UpToDate."""
    for replica_id in without:
        cluster = edit_replica(cluster, replica_id, backing_volume=BackingVolume(state="Inconsistent"))
    return cluster


def networks(before: tuple[str, ...], to: tuple[str, ...]) -> DatameshTransition:
    return DatameshTransition(
        type=TransitionType.CHANGE_SYSTEM_NETWORKS,
        group="Network",
        from_system_network_names=before,
        to_system_network_names=to,
    )


def grown(cluster: Cluster, size: int) -> Cluster:
    return edit_volume(cluster, spec=replace(cluster.volume.spec, size=Quantity.of(size)))


@dataclass(frozen=True)
class Row:
    """A guard, a state that it blocks with its text, and one that it lets pass."""

    guard: Guard
    blocked: Cluster
    text: str
    free: Cluster
    subject: int = -1
    transition: DatameshTransition | None = None


def eight_disks(count: int) -> Cluster:
    members = tuple(
        replace(form(ONE).volume.status.datamesh.members[0], name=f"vol-{i + 2}", node_name=f"other-{i}")
        for i in range(count)
    )
    return edit_datamesh(newcomer(ONE), members=members)


LARGE = 5 << 30

ROWS = {
    "G1": Row(
        joining.volume_not_deleting,
        deleting_volume(newcomer()),
        "Will not join datamesh: volume is being deleted",
        newcomer(),
        3,
    ),
    "G3": Row(
        joining.node_eligible,
        without_node(newcomer(), "node-5"),
        "Will not join datamesh: node node-5 is not eligible for pool pool",
        newcomer(),
        3,
    ),
    "G5": Row(
        joining.node_is_free,
        newcomer(node="node-1"),
        "Will not join datamesh: Diskful member vol-1 is already on node node-1",
        newcomer(),
        3,
    ),
    "G6": Row(
        joining.addresses_known,
        edit_replica(newcomer(), 3, addresses=(address("Other", 1),)),
        "Waiting for replica addresses to be populated",
        newcomer(),
        3,
    ),
    "G7": Row(
        joining.access_allowed,
        edit_configuration(newcomer(), volume_access="Local"),
        "Will not join datamesh: volumeAccess is Local",
        newcomer(),
        3,
    ),
    "G7 of a type change": Row(
        joining.access_role_allowed,
        edit_configuration(newcomer(), volume_access="Local"),
        "volumeAccess is Local, Access members are not allowed",
        newcomer(),
        3,
    ),
    "G8": Row(
        zones.in_primary_zone, zonal("Zonal", "aaab"), "zone b is not the volume's zone (a)", zonal("Zonal", "aaaa"), 3
    ),
    "G9": Row(
        zones.keeps_zone_promise_when_joining,
        zonal("TransZonal", "abca"),
        "the loss of zone a would leave 2 of 4 voters, 3 are needed",
        zonal("TransZonal", "abcd"),
        3,
    ),
    "G10": Row(
        zones.tie_breaker_zone_is_thin,
        zonal("TransZonal", "aabca", FOUR_TB),
        "zone a holds 2 diskful members, a tie-breaker's zone may hold at most one",
        zonal("TransZonal", "aabcb", FOUR_TB),
        4,
    ),
    "G11": Row(
        joining.disk_slot_free,
        eight_disks(8),
        "at most 8 members may carry a disk (8 do, 0 pending)",
        eight_disks(7),
        1,
    ),
    "G13": Row(
        voting.voters_even,
        form(THREE),
        "internal: the plan expects an even number of voters, there are 3",
        form(PAIR),
    ),
    "G14": Row(
        voting.voters_odd, form(PAIR), "internal: the plan expects an odd number of voters, there are 2", form(THREE)
    ),
    "G17 attached": Row(
        leaving.not_attached,
        edit_member(form(THREE), 1, attached=True),
        "Cannot leave datamesh: replica is attached, detach required first",
        form(THREE),
        1,
    ),
    "G17 detaching": Row(
        leaving.not_attached,
        passed(replace_cluster(run(with_attachment(form(THREE), "node-1"))[0], attachments=())),
        "detach is in progress on the replica",
        form(THREE),
        1,
    ),
    "G18": Row(
        leaving.attached_keeps_disk_when_local,
        edit_member(form(THREE, access="Local"), 0, attached=True),
        "the replica is attached and volumeAccess is Local",
        edit_member(form(THREE), 0, attached=True),
        0,
    ),
    "G19": Row(
        leaving.enough_copies_remain,
        copies(form(THREE), 2),
        "would leave 1 UpToDate copies, 2 are needed (GMDR 1)",
        form(THREE),
        0,
    ),
    "G19 of a subject that is no copy": Row(
        leaving.enough_copies_remain,
        copies(form(THREE), 1, 2),
        "would leave 1 UpToDate copies, 2 are needed (GMDR 1)",
        copies(form(THREE), 2),
        2,
    ),
    "G19 of an agent that does not report": Row(
        leaving.enough_copies_remain,
        silent(form(THREE), 1),
        "would leave 1 UpToDate copies, 2 are needed (GMDR 1)",
        form(THREE),
        0,
    ),
    "S11 qmr comes down first": Row(
        leaving.enough_copies_remain,
        edit_configuration(form(PAIR), guaranteed_minimum_data_redundancy=0),
        "would leave 1 UpToDate copies, 2 are needed (GMDR 0)",
        edit_datamesh(
            edit_configuration(form(PAIR), guaranteed_minimum_data_redundancy=0), quorum_minimum_redundancy=1
        ),
        0,
    ),
    "G20": Row(
        leaving.enough_voters_remain,
        form(THREE),
        "would leave 2 diskful members, 3 are needed (FTT 1)",
        edit_configuration(form(THREE), failures_to_tolerate=0),
        0,
    ),
    "G22a": Row(
        zones.keeps_zone_quorum_when_leaving,
        form(THREE, zones=tuple("abc"), topology="TransZonal"),
        "the loss of zone b would leave 1 of 2 voters, 2 are needed",
        form(THREE, zones=tuple("abc"), topology="Zonal"),
        0,
    ),
    "G23": Row(
        leaving.tie_breaker_not_needed,
        form(PAIR_TB),
        "the tie-breaker is required for 2 voters (FTT 1) and no other is operational",
        edit_configuration(form(PAIR_TB), failures_to_tolerate=0),
        2,
    ),
    "G24": Row(
        leaving.zone_keeps_tie_breaker,
        form(PAIR_TB, zones=tuple("abc"), topology="TransZonal"),
        "it is the last tie-breaker between the zones",
        form(PAIR_TB),
        2,
    ),
    "S25": Row(
        leaving.tie_breaker_ready_for_even_voters,
        edit_configuration(form(THREE), guaranteed_minimum_data_redundancy=0),
        "2 voters need an operational tie-breaker (FTT 1), there are 0",
        edit_configuration(form(THREE), failures_to_tolerate=0),
        0,
    ),
    "G25": Row(
        emergency.unreachable,
        form(THREE),
        "replica #1 is still reachable from [#0, #2]",
        react(replace_cluster(form(THREE), dead=("node-1",))),
        1,
    ),
    "last voter": Row(emergency.not_the_last_voter, form(ONE), "it is the last voter of the volume", form(PAIR), 0),
    "last copy": Row(
        emergency.another_copy_exists,
        copies(form(PAIR), 1),
        "no other UpToDate copy is known; request ForceLeave to give this one up",
        form(PAIR),
        0,
    ),
    "subject connected": Row(
        connection.subject_connected,
        react(replace_cluster(form(THREE), dead=("node-1",))),
        "replica #0 is not connected to [#1]",
        form(THREE),
        0,
    ),
    "all connected": Row(
        connection.voters_and_tie_breakers_connected,
        react(replace_cluster(form(PAIR_TB), dead=("node-2",))),
        "all voters and tie-breakers must be connected, #0 is not connected to [#2]",
        form(PAIR_TB),
        0,
    ),
    "G37 missing": Row(
        network.addresses_in_sync,
        edit_replica(form(PAIR), 1, addresses=(address("Other", 2),)),
        "addresses of #1 are out of sync with the system networks (missing: Internal; extra: Other)",
        form(PAIR),
    ),
    "G38 no common network": Row(
        network.remaining_network_connected,
        form(PAIR),
        "no common system network remains",
        form(PAIR),
        -1,
        networks(("Internal",), ("Other",)),
    ),
    "G40": Row(
        resize.some_disk_ready, not_ready(not_ready(form(PAIR), 0), 1), "no diskful replica is Ready", form(PAIR)
    ),
    "G41": Row(
        resize.nothing_synchronises,
        edit_replica(
            form(PAIR),
            0,
            peers=(replace(replica(form(PAIR), 0).status.peers[0], replication_state=ReplicationState.PAUSED_SYNC_S),),
        ),
        "replica #0 is synchronising with vol-1 (PausedSyncS)",
        form(PAIR),
    ),
    "G42 too small": Row(
        resize.lower_volumes_fit,
        grown(form(ONE), LARGE),
        f"the backing volume of #0 has {1048840 * 1024} bytes, {5368709120 + 1187840} are needed",
        react(grown(form(ONE), LARGE)),
    ),
    "G42 unknown": Row(
        resize.lower_volumes_fit,
        edit_replica(form(ONE), 0, backing_volume=None),
        "the size of the backing volume of #0 is unknown",
        form(ONE),
    ),
}


@pytest.mark.parametrize("name", list(ROWS))
def test_guard_blocks_with_its_text(name: str) -> None:
    row = ROWS[name]
    assert verdict(row.guard, row.blocked, row.subject, row.transition) == row.text


@pytest.mark.parametrize("name", [name for name in ROWS if name != "G38 no common network"])
def test_guard_lets_pass(name: str) -> None:
    row = ROWS[name]
    assert verdict(row.guard, row.free, row.subject, row.transition) == ""


def test_g38_passes_with_a_connected_network_that_stays() -> None:
    cluster = edit_datamesh(form(PAIR), system_network_names=("Internal", "Other"))
    change = networks(("Internal", "Other"), ("Internal",))
    assert verdict(network.remaining_network_connected, cluster, transition=change) == ""


def test_g38_names_the_networks_that_connect_nobody() -> None:
    cluster = react(replace_cluster(form(PAIR), dead=("node-1",)))
    change = networks(("Internal", "Other"), ("Internal",))
    expected = "no remaining system network connects all members (Internal)"
    assert verdict(network.remaining_network_connected, cluster, transition=change) == expected


def test_g21_counts_the_subject_once_and_never_underflows() -> None:
    cluster = form(THREE, zones=tuple("abc"), topology="TransZonal")
    assert verdict(zones.keeps_zone_redundancy_when_leaving, cluster, 0).startswith("the loss of zone ")
    degraded = copies(cluster, 0, 1, 2)
    assert verdict(zones.keeps_zone_redundancy_when_leaving, degraded, 0) == "", "no zone gets worse"


def test_g22b_counts_the_new_tie_breaker_outside_its_own_zone() -> None:
    spread = form(THREE, zones=tuple("abc"), topology="TransZonal")
    assert verdict(zones.keeps_zone_quorum_when_becoming_tie_breaker, spread, 2) == ""
    crowded = form(THREE, zones=tuple("aab"), topology="TransZonal")
    assert (
        verdict(zones.keeps_zone_quorum_when_leaving, crowded, 0)
        == "the loss of zone b would leave 1 of 2 voters, 2 are needed"
    )


def test_h11_same_zone_replacement_and_recovery_pass_the_gain_guard() -> None:
    leaving_one = delete_replica(zonal("TransZonal", "abca"), 0)
    assert verdict(zones.keeps_zone_promise_when_joining, leaving_one, 3) == ""
    two_zones_gone = delete_replica(delete_replica(zonal("TransZonal", "abcc"), 0), 1)
    assert verdict(zones.keeps_zone_promise_when_joining, two_zones_gone, 3) == ""


def test_h11_layouts_without_failures_to_tolerate_make_no_promise_about_zones() -> None:
    cluster = zonal("TransZonal", "aba", PAIR)
    assert verdict(zones.keeps_zone_promise_when_joining, cluster, 2) == ""
    assert verdict(zones.keeps_zone_quorum_when_leaving, form(PAIR, zones=("a", "b"), topology="TransZonal"), 0) == ""


def test_a_terminating_tie_breaker_is_never_operational() -> None:
    cluster = react(delete_replica(react(with_replica(form(PAIR_TB), "TieBreaker", "node-4")), 2))
    cluster = run(replace_cluster(cluster))[0]
    two = form(PAIR_TB)
    assert verdict(leaving.tie_breaker_not_needed, delete_replica(two, 2), 2).startswith("the tie-breaker is required")
    assert cluster.member(3) is not None
    assert cluster.member(2) is None, "S26: the old one went after the new one was operational"


def test_tie_breaker_states_that_do_not_count() -> None:
    base = edit_member(form(FOUR_TB), 3, type="TieBreaker", lvm_volume_group_name="")
    base = edit_configuration(base, failures_to_tolerate=1)
    base = edit_member(base, 2, type="Access", lvm_volume_group_name="")
    guard = leaving.tie_breaker_not_needed
    behind = edit_replica(base, 3, datamesh_revision=1)
    assert verdict(guard, behind, 4).endswith("no other is operational: #3 has not confirmed revision 2")
    unconfigured = edit_replica(base, 3, conditions=())
    assert verdict(guard, unconfigured, 4).endswith("no other is operational: #3 is not configured")
