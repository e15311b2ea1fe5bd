"""The attachment planner: seed 000, row by row, word for word (computeDatameshAttachmentIntents, attach and detach guards)."""

from __future__ import annotations

from dataclasses import replace as replace_cluster

import pytest

from quorate.api.replicated_volume import TransitionType
from quorate.api.replicated_volume_replica import ReplicaAttachment
from quorate.api.value import replace
from quorate.datamesh.contract import NodeAttachment
from quorate.datamesh.engine import run_pass
from quorate.datamesh.guards import attachment
from quorate.verification.perfect_cluster import CLASS, POOL, Cluster
from quorate.verification.perfect_drive import (
    form,
    retype_replica,
    run,
    walk,
    with_attachment,
    with_replica,
    without_attachment,
)
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    ONE,
    PAIR,
    THREE,
    deleting_volume,
    edit_configuration,
    edit_datamesh,
    edit_node,
    edit_replica,
    edit_volume,
    not_ready,
    one_pass,
    passed,
    requesting,
    silent,
    transition,
    verdict,
    without_node,
    without_object,
)


def told(cluster: Cluster, node: str) -> tuple[str, str]:
    """Reason and message of a node after one pass."""
    found = next(n for n in one_pass(cluster).attachments if n.node_name == node)
    return found.reason, found.message


def attached(max_attachments: int = 1, *nodes: str) -> Cluster:
    """3D with the volume attached on these nodes."""
    cluster = form(THREE, max_attachments=max_attachments)
    for node in nodes or ("node-0",):
        cluster = with_attachment(cluster, node)
    return run(cluster)[0]


def only_deleting(cluster: Cluster, node: str) -> Cluster:
    """The attachments of a node are being deleted."""
    attachments = tuple(
        replace(rva, metadata=replace(rva.metadata, deletion_timestamp="2001-09-09T01:46:40Z"))
        if rva.spec.node_name == node
        else rva
        for rva in cluster.attachments
    )
    return replace_cluster(cluster, attachments=attachments)


def test_attaching_then_attached() -> None:
    cluster = passed(with_attachment(form(ONE), "node-0"))
    assert told(cluster, "node-0") == ("Attaching", "Attaching, 0/1 replicas confirmed revision 3. Waiting: [#0]")
    result = one_pass(react(cluster))
    assert result.attachments == (
        NodeAttachment(
            node_name="node-0",
            reason="Attached",
            message="Volume is attached and ready to serve I/O on the node",
            attached=True,
        ),
    )


def test_detaching_then_detached() -> None:
    cluster = passed(only_deleting(attached(), "node-0"))
    reason, message = told(cluster, "node-0")
    assert (reason, message) == ("Detaching", "Detaching, 0/1 replicas confirmed revision 4. Waiting: [#0]")
    assert told(react(cluster), "node-0") == ("Detached", "Volume has been detached from the node")


def test_global_block_volume_deleting() -> None:
    cluster = deleting_volume(with_attachment(form(ONE), "node-0"))
    assert told(cluster, "node-0") == ("ReplicatedVolumeDeleting", "Volume is being deleted")


def test_attached_node_of_a_deleting_volume_is_told_so() -> None:
    reason, message = told(deleting_volume(attached()), "node-0")
    assert reason == "Attached"
    assert message.startswith("Volume is attached and ready to serve I/O on the node")
    assert "pending deletion" in message


def test_global_block_quorum_with_its_diagnosis() -> None:
    cluster = with_attachment(form(PAIR), "node-0")
    cluster = silent(edit_replica(cluster, 0, quorum=False), 1)
    assert told(cluster, "node-0") == ("Pending", "Quorum not satisfied: no quorum on [#0]; agent not ready on [#1]")


def test_global_block_without_voters_that_can_answer() -> None:
    cluster = without_object(with_attachment(form(ONE), "node-0"), 0)
    assert told(cluster, "node-0") == ("Pending", "Quorum not satisfied: no voter members")


def test_blocked_nodes_with_only_deleting_attachments_are_detached() -> None:
    cluster = deleting_volume(only_deleting(with_attachment(form(ONE), "node-0"), "node-0"))
    assert told(cluster, "node-0")[0] == "Detached"


def test_no_free_slot() -> None:
    cluster = with_attachment(attached(), "node-1")
    assert told(cluster, "node-1") == ("Pending", "Waiting for attachment slot (slots occupied 1/1)")


def test_no_free_slot_speaks_before_eligibility() -> None:
    cluster = without_node(with_attachment(attached(), "node-1"), "node-1")
    assert told(cluster, "node-1") == ("Pending", "Waiting for attachment slot (slots occupied 1/1)")


@pytest.mark.parametrize(
    ("node", "reason", "message"),
    [
        ("absent", "NodeNotEligible", f"Node is not eligible for storage class {CLASS} (pool {POOL})"),
        ("node-0", "Pending", "Node is not ready"),
        ("node-1", "Pending", "Agent is not ready on node"),
        ("node-5", "WaitingForReplica", "Waiting for replica on node"),
    ],
)
def test_node_that_is_no_candidate(node: str, reason: str, message: str) -> None:
    cluster = with_attachment(form(THREE), node)
    cluster = edit_node(edit_node(cluster, "node-0", node_ready=False), "node-1", agent_ready=False)
    assert told(cluster, node) == (reason, message)


def test_ineligible_node_in_manual_mode_names_the_pool_only() -> None:
    cluster = with_attachment(form(ONE), "absent")
    spec = replace(cluster.volume.spec, configuration_mode="Manual", replicated_storage_class_name="")
    assert told(edit_volume(cluster, spec=spec), "absent") == (
        "NodeNotEligible",
        f"Node is not eligible for pool {POOL}",
    )


def test_pool_unknown() -> None:
    cluster = with_attachment(form(ONE), "node-0")
    result = one_pass(cluster)
    assert result.attachments[0].reason == "Attaching"
    blocked = run_pass(replace(cluster.inputs(), pool=None)).attachments[0]
    assert (blocked.reason, blocked.message) == ("Pending", "Waiting for ReplicatedStoragePool to be available")


def test_locality_not_satisfied_without_member() -> None:
    cluster = with_attachment(form(ONE, access="Local"), "node-3")
    expected = f"No Diskful replica on this node (volumeAccess is Local for storage class {CLASS})"
    assert told(cluster, "node-3") == ("VolumeAccessLocalityNotSatisfied", expected)


def test_waiting_to_join_with_the_text_of_the_request() -> None:
    cluster = edit_configuration(form(ONE), volume_access="Any")
    cluster = react(with_replica(with_attachment(cluster, "node-3"), "Access", "node-3"))
    cluster = edit_replica(cluster, 1, addresses=())
    cluster = passed(cluster)
    expected = "Waiting for replica [#1] to join datamesh: Waiting for replica addresses to be populated"
    assert told(cluster, "node-3") == ("WaitingForReplica", expected)


def test_waiting_to_join_with_the_ready_condition() -> None:
    cluster = react(with_replica(with_attachment(form(ONE), "node-3"), "Access", "node-3"))
    cluster = not_ready(edit_replica(cluster, 1, datamesh_request=None), 1)
    assert told(cluster, "node-3") == ("WaitingForReplica", "Waiting for replica [#1] to join datamesh: QuorumLost")


# Attach guards, by their number.


def test_attach_guard_3_active_detach() -> None:
    detaching = passed(only_deleting(attached(), "node-0"))
    cluster = with_attachment(detaching, "node-0", name="second")
    assert told(cluster, "node-0") == ("Pending", "Attach pending, waiting for detach to complete first")


def test_attach_guard_4_joining() -> None:
    joining = passed(react(with_replica(form(ONE), "Access", "node-3")))
    assert told(with_attachment(joining, "node-3"), "node-3") == (
        "WaitingForReplica",
        "Waiting for replica to join datamesh",
    )


def test_attach_guard_4_any_membership_change_with_its_own_text() -> None:
    access = run(react(with_replica(form(ONE), "Access", "node-3")))[0]
    retyping = passed(react(retype_replica(access, 1, "TieBreaker")))
    assert told(with_attachment(retyping, "node-3"), "node-3") == (
        "WaitingForReplica",
        "Waiting for replica to change its type",
    )


def test_attach_guard_5_no_member_defensive() -> None:
    cluster = react(with_replica(form(THREE), "Access", "node-5"))
    assert verdict(attachment.is_member, cluster, 3) == "Waiting for datamesh member"
    assert verdict(attachment.is_member, cluster, 2) == ""


def test_attach_guard_6_no_replica_defensive() -> None:
    cluster = without_object(form(THREE), 2)
    assert verdict(attachment.replica_exists, cluster, 2) == "Waiting for replica"
    assert verdict(attachment.replica_exists, cluster, 1) == ""
    assert told(with_attachment(cluster, "node-2"), "node-2")[0] == "WaitingForReplica"


def test_attach_guard_7_not_ready() -> None:
    cluster = not_ready(with_attachment(form(THREE), "node-1"), 1)
    assert told(cluster, "node-1") == ("WaitingForReplica", "Waiting for replica to become Ready")


def test_attach_guard_8_locality() -> None:
    cluster = react(with_replica(form(ONE), "Access", "node-3"))
    cluster = run(cluster)[0]
    cluster = with_attachment(edit_configuration(cluster, volume_access="Local"), "node-3")
    expected = f"No Diskful replica on this node (volumeAccess is Local for storage class {CLASS})"
    assert told(cluster, "node-3") == ("VolumeAccessLocalityNotSatisfied", expected)


def test_attach_guard_9_multiattach_blocks_all_that_remain() -> None:
    cluster = attached(3)
    for node in ("node-1", "node-2"):
        cluster = with_attachment(cluster, node)
    cluster = passed(cluster)
    expected = "Waiting for multiattach to be enabled, 0/3 replicas confirmed revision 4. Waiting: [#0, #1, #2]"
    assert told(cluster, "node-1") == ("Pending", expected)
    assert told(cluster, "node-2") == ("Pending", expected)
    done, result = run(cluster)
    assert [n.reason for n in result.attachments] == ["Attached"] * 3
    assert done.volume.status.datamesh.multiattach


def test_own_guard_speaks_before_the_multiattach_guard() -> None:
    cluster = attached(3)
    cluster = passed(not_ready(with_attachment(with_attachment(cluster, "node-1"), "node-2"), 2))
    assert told(cluster, "node-1")[1].startswith("Waiting for multiattach to be enabled")
    assert told(cluster, "node-2") == ("WaitingForReplica", "Waiting for replica to become Ready")


def test_attach_guard_10_disable_in_progress() -> None:
    cluster = attached(2, "node-0", "node-1")
    for state, _ in walk(without_attachment(cluster, "node-1")):
        if transition(state, TransitionType.DISABLE_MULTIATTACH) is not None:
            again = with_attachment(state, "node-1", name="again")
            expected = "Waiting for multiattach to be enabled, but disable is in progress"
            assert told(again, "node-1") == ("Pending", expected)
            return
    pytest.fail("multiattach was never disabled (L8)")


# Detach guards.


def test_detach_guard_3_active_attach() -> None:
    attaching = passed(with_attachment(form(ONE), "node-0"))
    cluster = only_deleting(attaching, "node-0")
    assert told(cluster, "node-0") == ("Detaching", "Detach pending, waiting for attach to complete first")


def test_detach_guard_4_device_in_use() -> None:
    cluster = only_deleting(attached(), "node-0")
    busy = edit_replica(cluster, 0, attachment=ReplicaAttachment(device_path="/dev/sdsrv/vol-0", in_use=True))
    assert told(busy, "node-0") == ("Detaching", "Device in use, detach blocked")
    assert transition(passed(busy), TransitionType.DETACH) is None


def test_detach_needs_neither_ready_nor_fresh_agent() -> None:
    cluster = passed(silent(without_attachment(attached(), "node-0"), 0))
    assert transition(cluster, TransitionType.DETACH, 0) is not None


def test_a_restarting_agent_of_a_lone_replica_is_no_dead_node() -> None:
    alone = run(with_attachment(form(ONE), "node-0"))[0]
    cluster = passed(silent(without_attachment(alone, "node-0"), 0))
    found = transition(cluster, TransitionType.DETACH, 0)
    assert found is not None, "nobody else is there to say that it is unreachable, so it is asked to detach"


def test_detach_is_confirmed_by_revision_zero() -> None:
    cluster = passed(without_attachment(attached(), "node-0"))
    assert transition(cluster, TransitionType.DETACH, 0) is not None
    assert transition(passed(edit_replica(cluster, 0, datamesh_revision=0)), TransitionType.DETACH, 0) is None


def refused(cluster: Cluster) -> Cluster:
    """The kernel refuses to change the role: the revision is recorded, the device is as it was."""
    before = cluster.replicas[0].status.attachment
    return edit_replica(react(cluster), 0, attachment=before)


def test_a_refused_promotion_confirms_no_attach() -> None:
    cluster = refused(passed(with_attachment(form(ONE), "node-0")))
    assert told(cluster, "node-0") == ("Attaching", "Attaching, 0/1 replicas confirmed revision 3. Waiting: [#0]")
    assert told(react(cluster), "node-0")[0] == "Attached"


def test_a_refused_demotion_confirms_no_detach() -> None:
    cluster = refused(passed(without_attachment(attached(), "node-0")))
    assert transition(passed(cluster), TransitionType.DETACH, 0) is not None
    assert transition(passed(react(cluster)), TransitionType.DETACH, 0) is None


def test_an_attach_that_is_refused_gives_way_when_nobody_wants_it_any_more() -> None:
    cluster = passed(only_deleting(refused(passed(with_attachment(form(ONE), "node-0"))), "node-0"))
    assert transition(cluster, TransitionType.ATTACH, 0) is None
    assert transition(cluster, TransitionType.DETACH, 0) is not None
    assert told(react(cluster), "node-0")[0] == "Detached"


# Slots.


def test_fifo_by_earliest_active_attachment_then_node_name() -> None:
    cluster = with_attachment(form(THREE), "node-2", created=100.0)
    cluster = with_attachment(with_attachment(cluster, "node-1", created=100.0), "node-0", created=200.0)
    result = one_pass(cluster)
    reasons = {n.node_name: n.reason for n in result.attachments}
    assert reasons == {"node-0": "Pending", "node-1": "Attaching", "node-2": "Pending"}


def test_a_deleting_attachment_does_not_count_for_the_order() -> None:
    cluster = only_deleting(with_attachment(form(THREE), "node-2", name="old", created=50.0), "node-2")
    cluster = with_attachment(cluster, "node-2", name="new", created=300.0)
    cluster = with_attachment(cluster, "node-1", created=200.0)
    reasons = {n.node_name: n.reason for n in one_pass(cluster).attachments}
    assert reasons == {"node-1": "Attaching", "node-2": "Pending"}


def test_s37_lowering_the_limit_detaches_nobody() -> None:
    cluster = attached(2, "node-0", "node-1")
    spec = replace(cluster.volume.spec, max_attachments=1)
    cluster, result = run(with_attachment(edit_volume(cluster, spec=spec), "node-2"))
    reasons = {n.node_name: (n.reason, n.message) for n in result.attachments}
    assert reasons["node-0"][0] == reasons["node-1"][0] == "Attached"
    assert reasons["node-2"] == ("Pending", "Waiting for attachment slot (slots occupied 2/1)")


def test_l7_the_second_attaches_after_the_first_detached() -> None:
    cluster = with_attachment(attached(), "node-1")
    cluster, result = run(without_attachment(cluster, "node-0"))
    assert [n.reason for n in result.attachments] == ["Attached"]


def test_l8_multiattach_goes_off_again() -> None:
    cluster = attached(2, "node-0", "node-1")
    assert cluster.volume.status.datamesh.multiattach
    cluster, _ = run(without_attachment(cluster, "node-1"))
    assert not cluster.volume.status.datamesh.multiattach


def test_h23_two_attached_without_the_flag_can_detach() -> None:
    cluster = edit_datamesh(attached(2, "node-0", "node-1"), multiattach=False)
    cluster, _ = run(without_attachment(without_attachment(cluster, "node-0"), "node-1"))
    assert not any(member.attached for member in cluster.volume.status.datamesh.members)


def test_s32_h24_an_unconfirmed_detach_must_confirm_the_toggle() -> None:
    cluster = attached(3, "node-0", "node-1")
    cluster = run(react(with_replica(with_attachment(cluster, "node-4"), "Access", "node-4")))[0]
    cluster = passed(without_attachment(without_attachment(cluster, "node-4"), "node-1"))
    cluster = passed(react(cluster, only=(1,)))
    cluster = passed(without_attachment(cluster, "node-0"))
    toggle = transition(cluster, TransitionType.DISABLE_MULTIATTACH)
    assert toggle is None, "two members may still be attached"


def test_s20_the_data_latch_is_published_with_the_first_promotion() -> None:
    fresh = form(ONE)
    assert not fresh.volume.status.datamesh.data_present
    assert passed(with_attachment(fresh, "node-0")).volume.status.datamesh.data_present


# Emergencies of attachments.


def test_h14_gone_replica_is_detached_by_force() -> None:
    cluster = without_object(replace_cluster(attached(), dead=("node-0",)), 0)
    cluster = passed(react(cluster))
    assert not any(member.attached for member in cluster.volume.status.datamesh.members)


def test_s39_reachable_member_is_not_detached_by_force() -> None:
    cluster = requesting(attached(), 0, "ForceDetach", type="Diskful")
    result = one_pass(cluster)
    assert all(member.attached == (member.name == "vol-0") for member in result.status.datamesh.members)
    request = result.status.datamesh_replica_requests[0]
    assert request.message == "Force-detaching volume is blocked: replica #0 is still reachable from [#1, #2]"


def test_attach_on_a_node_that_dies_is_given_up_when_its_object_goes() -> None:
    cluster = passed(with_attachment(form(THREE), "node-0"))
    dead = react(replace_cluster(cluster, dead=("node-0",)))
    assert transition(passed(dead), TransitionType.ATTACH, 0) is not None
    cluster = passed(without_object(dead, 0))
    assert transition(cluster, TransitionType.ATTACH, 0) is None


def test_fenced_node_that_nobody_wants_is_detached_although_its_device_was_open() -> None:
    cluster = edit_replica(attached(), 0, attachment=ReplicaAttachment(device_path="/dev/sdsrv/vol-0", in_use=True))
    cluster = react(replace_cluster(without_attachment(cluster, "node-0"), dead=("node-0",), fenced=("node-0",)))
    cluster = passed(cluster)
    assert not any(member.attached for member in cluster.volume.status.datamesh.members)
