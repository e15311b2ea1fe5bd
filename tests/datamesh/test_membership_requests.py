"""Join and leave guards of seed 000 (ensureDatameshAddReplica, ensureDatameshRemoveReplica) and the request list."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replace_cluster

import pytest

from quorate.api.meta import Condition
from quorate.api.replicated_volume import MembershipRequest, TransitionType
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.datamesh.engine import run_pass
from quorate.datamesh.requests import sync_requests
from quorate.verification.perfect_cluster import Cluster, make_replica
from quorate.verification.perfect_drive import delete_replica, form, run, with_attachment, with_replica
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    ONE,
    THREE,
    deleting_volume,
    edit_configuration,
    edit_replica,
    one_pass,
    passed,
    requesting,
    transition,
    without_node,
)


def joining() -> Cluster:
    """1D with an Access replica that asks to join."""
    return react(with_replica(form(ONE), "Access", "node-3"))


def message(cluster: Cluster, replica_id: int) -> str:
    """What a replica's request is told."""
    name = f"vol-{replica_id}"
    return next(r.message for r in one_pass(cluster).status.datamesh_replica_requests if r.name == name)


JOIN_GUARDS: list[tuple[int, Callable[[Cluster], Cluster], str]] = [
    (2, deleting_volume, "Will not join datamesh: volume is being deleted"),
    (3, lambda c: edit_configuration(c, volume_access="Local"), "Will not join datamesh: volumeAccess is Local"),
    (5, lambda c: edit_replica(c, 1, addresses=()), "Waiting for replica addresses to be populated"),
    (
        6,
        lambda c: replace_cluster(c, replicas=(c.replicas[0], _moved(c, "node-0"))),
        "Will not join datamesh: Diskful member vol-0 is already on node node-0",
    ),
    (8, lambda c: without_node(c, "node-3"), "Will not join datamesh: node node-3 is not eligible for pool pool"),
]


def _moved(cluster: Cluster, node: str) -> ReplicatedVolumeReplica:
    rvr = cluster.replicas[1]
    return replace(rvr, spec=replace(rvr.spec, node_name=node))


@pytest.mark.parametrize(("number", "prepare", "text"), JOIN_GUARDS, ids=[str(row[0]) for row in JOIN_GUARDS])
def test_join_guard(number: int, prepare: Callable[[Cluster], Cluster], text: str) -> None:
    cluster = prepare(joining())
    assert message(cluster, 1) == text
    assert transition(passed(cluster), TransitionType.ADD_REPLICA) is None


def test_join_guard_7_pool_unknown() -> None:
    result = run_pass(replace(joining().inputs(), pool=None))
    assert result.status.datamesh_replica_requests[0].message == "Waiting for ReplicatedStoragePool to be available"


def test_join_guard_1_member_already_is_silent() -> None:
    cluster = run(joining())[0]
    stale = requesting(cluster, 1, "Join", type="Access")
    result = one_pass(stale)
    assert result.status.datamesh_transitions == ()
    assert result.status.datamesh_replica_requests[0].message == ""


def test_join_progress_and_completion() -> None:
    cluster = passed(joining())
    expected = "Joining datamesh, 0/2 replicas confirmed revision 3. Waiting: [#0, #1]"
    assert message(cluster, 1) == expected
    half = react(cluster, only=(1,))
    assert transition(passed(half), TransitionType.ADD_REPLICA) is not None
    assert transition(passed(react(cluster)), TransitionType.ADD_REPLICA) is None


def test_the_joining_replicas_own_pending_join_is_no_error() -> None:
    cluster = passed(joining())
    assert "PendingDatameshJoin" not in message(cluster, 1)
    failed = Condition(
        type="DRBDConfigured", status="False", reason="ConfigurationFailed", message="no device", observed_generation=1
    )
    broken = edit_replica(cluster, 0, conditions=(failed,))
    text = message(broken, 1)
    assert text.endswith("Errors: #0 DRBDConfigured/ConfigurationFailed: no device")
    old = edit_replica(cluster, 0, conditions=(replace(failed, observed_generation=0),))
    assert "Errors" not in message(old, 1), "only conditions of the current generation are shown"


def test_leave_guard_3_attached() -> None:
    cluster = run(with_attachment(joining(), "node-3"))[0]
    cluster = react(delete_replica(cluster, 1))
    assert message(cluster, 1) == "Cannot leave datamesh: replica is attached, detach required first"


def test_leave_is_confirmed_by_revision_zero() -> None:
    cluster = react(delete_replica(run(joining())[0], 1))
    cluster = passed(cluster)
    assert cluster.member(1) is None
    assert transition(passed(react(cluster, only=(0,))), TransitionType.REMOVE_REPLICA) is not None
    assert transition(passed(react(cluster)), TransitionType.REMOVE_REPLICA) is None


def test_a_replica_deleted_before_it_confirmed_its_join_leaves_too() -> None:
    cluster = passed(joining())
    cluster = edit_replica(delete_replica(cluster, 1), 1, datamesh_request=None)
    cluster = passed(cluster)
    assert cluster.member(1) is None, "nobody waits for a newcomer that goes away"


# The list of requests.

NOW = "2001-09-09T01:46:40Z"
LATER = "2001-09-09T01:50:00Z"


def asking(replica_id: int, operation: str = "Leave") -> ReplicatedVolumeReplica:
    rvr = make_replica(replica_id, "Diskful", f"node-{replica_id}")
    return replace(rvr, status=replace(rvr.status, datamesh_request=MembershipRequest(operation=operation)))


def test_h18_ids_above_nine_are_kept_next_to_smaller_ones() -> None:
    replicas = tuple(asking(i) for i in (2, 10, 1, 31))
    first = sync_requests((), replicas, NOW)
    assert [r.name for r in first] == ["vol-1", "vol-2", "vol-10", "vol-31"]
    assert sync_requests(first, replicas, LATER) is first


def test_a_changed_request_starts_over_and_a_gone_one_disappears() -> None:
    first = sync_requests((), (asking(0), asking(1)), NOW)
    noted = tuple(replace(r, message="waiting") for r in first)
    second = sync_requests(noted, (asking(1, "ForceLeave"),), LATER)
    assert [(r.name, r.first_observed_at, r.message) for r in second] == [("vol-1", LATER, "")]


def test_an_unchanged_request_keeps_time_and_message() -> None:
    first = sync_requests((), (asking(0),), NOW)
    noted = tuple(replace(r, message="waiting") for r in first)
    assert sync_requests(noted, (asking(0),), LATER) == noted


def test_unsupported_types_are_refused_in_words() -> None:
    cluster = requesting(react(with_replica(form(THREE), "Access", "node-4")), 3, "Join", type="ShadowDiskful")
    assert message(cluster, 3) == "ShadowDiskful replicas are not supported"
