"""Why a node has no device, and whether a node may be stopped."""

from __future__ import annotations

from dataclasses import replace as replace_view

import pytest

from quorate.api.replicated_volume import ObservedProtection
from quorate.api.replicated_volume_attachment import AttachedCondition, ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import PeerStatus
from quorate.api.value import replace
from quorate.datamesh.layout import layout_of
from quorate.explain.attachments import ADVICE, explain_attachment
from quorate.explain.causes import Explanation
from quorate.explain.nodes import explain_node
from quorate.explain.overview import compute_overview
from quorate.explain.view import ClusterView
from quorate.explain.volumes import explain_volume
from quorate.verification.perfect_cluster import VOLUME
from quorate.verification.perfect_drive import form
from quorate.verification.perfect_replicas import react
from tests.explain.builders import (
    attachment,
    edit_volume_status,
    the_volume,
    view_of_cluster,
    with_volume_condition,
)


def three(**options: tuple[str, ...]) -> ClusterView:
    return view_of_cluster(form(layout_of(1, 1)), **options)


def explained(view: ClusterView, *attachments: ReplicatedVolumeAttachment) -> Explanation:
    found = replace_view(view, attachments=attachments)
    return explain_attachment(found, found.attachments[0])


def test_every_reason_of_attached_has_advice() -> None:
    kind = AttachedCondition
    reasons = {getattr(kind, name) for name in vars(kind) if name.isupper()} - {kind.TYPE, kind.ATTACHED}
    assert set(ADVICE) == reasons


@pytest.mark.parametrize("reason", sorted(ADVICE))
def test_each_reason_is_explained(reason: str) -> None:
    explanation = explained(three(), attachment("node-3", reason, "said the engine"))
    assert explanation.verdict == ADVICE[reason].verdict
    assert explanation.causes[0].text == "said the engine"
    assert explanation.causes[0].actor


def test_an_attached_volume_shows_its_device() -> None:
    explanation = explained(three(), attachment("node-0", "Attached", status="True"))
    assert explanation.verdict == "healthy"
    assert explanation.keeps_healthy == ("device /dev/sdsrv/vol-0 on node-0",)


def test_a_taken_slot_names_its_holder() -> None:
    waiting = attachment("node-3", "Pending", "Waiting for attachment slot (slots occupied 1/1)")
    explanation = explained(three(), waiting, attachment("node-0", "Attached", status="True", in_use=True))
    assert explanation.verdict == "blocked"
    (holder,) = explanation.causes[0].because
    assert holder.text == "holds the slot on node-0 and the device is open there"
    assert holder.remedy == "quorate volume detach vol --node node-0"


def test_a_device_in_use_names_where_to_unmount() -> None:
    explanation = explained(three(), attachment("node-0", "Detaching", "Device in use, detach blocked"))
    assert explanation.causes[0].remedy == "unmount it on node-0"


def test_a_missing_volume_and_a_dead_node_are_causes() -> None:
    gone = replace_view(three(), volumes=())
    assert "does not exist" in explained(gone, attachment("node-0", "Pending")).causes[0].text
    dead = explained(three(down=("node-3",)), attachment("node-3", "Pending", "Node is not ready"))
    assert [cause.subject for cause in dead.all_causes()] == ["attachment vol-on-node-3", "node node-3"]
    assert dead.verdict == "blocked"


def test_frozen_io_is_explained_by_the_volume() -> None:
    view = with_volume_condition(three(down=("node-1", "node-2")), "IOReady", "False", "IOSuspended", "frozen")
    wish = attachment("node-0", "Attached", status="True")
    wish = replace(wish, status=replace(wish.status, io_suspended=True))
    explanation = explained(view, wish)
    assert explanation.verdict == "blocked"
    assert {"node node-1", "node node-2"} <= {cause.subject for cause in explanation.all_causes()}


# Nodes


def attached_on(view: ClusterView, node: str) -> ClusterView:
    volume = the_volume(view)
    members = tuple(replace(m, attached=m.node_name == node) for m in volume.status.datamesh.members)
    return edit_volume_status(view, datamesh=replace(volume.status.datamesh, members=members))


def test_a_node_may_be_stopped_while_the_others_carry_quorum() -> None:
    explanation = explain_node(attached_on(three(), "node-0"), "node-1")
    assert explanation.safe_to_stop
    assert [impact.text for impact in explanation.impacts] == ["goes on, no further failure tolerated then"]


def test_the_node_of_the_workload_must_be_drained_first() -> None:
    explanation = explain_node(attached_on(three(), "node-0"), "node-0")
    assert explanation.safe_to_stop
    assert "drain its workload first" in explanation.impacts[0].text


def test_a_second_node_must_not_be_stopped() -> None:
    cluster = form(layout_of(1, 1))
    degraded = react(replace_view(cluster, dead=("node-2",)))
    explanation = explain_node(attached_on(view_of_cluster(degraded), "node-0"), "node-1")
    assert explanation.safe_to_stop is False
    assert explanation.impacts[0].volume == VOLUME
    assert "I/O on node-0 would stop" in explanation.impacts[0].text


def test_a_layout_without_failures_to_tolerate_is_never_safe_to_stop_while_attached() -> None:
    view = attached_on(view_of_cluster(form(layout_of(0, 0))), "node-0")
    assert explain_node(view, "node-0").safe_to_stop is False
    unused = explain_node(view_of_cluster(form(layout_of(0, 0))), "node-0")
    assert unused.safe_to_stop is True
    assert "is not attached" in unused.impacts[0].text


def test_the_source_of_a_copy_must_not_be_stopped_while_the_copy_has_no_other() -> None:
    view = view_of_cluster(form(layout_of(1, 0)))
    target = f"{VOLUME}-1"
    peers = (PeerStatus(name=f"{VOLUME}-0", connection_state="Connected", replication_state="SyncTarget"),)
    replicas = tuple(
        replace(r, status=replace(r.status, peers=(*peers, *(p for p in r.status.peers if p.name != f"{VOLUME}-0"))))
        if r.metadata.name == target
        else r
        for r in view.replicas
    )
    explanation = explain_node(replace_view(view, replicas=replicas), "node-0")
    assert explanation.safe_to_stop is False
    assert "is being synchronised" in explanation.impacts[0].text


def test_a_node_that_is_down_or_unknown_is_explained() -> None:
    assert explain_node(three(down=("node-1",)), "node-1").causes[0].reason == "Ready=Unknown/Because"
    assert explain_node(replace_view(three(), nodes=()), "node-1").causes[0].reason == "NodeNotFound"
    assert explain_node(three(), "node-7").impacts == ()


# The overview


def test_one_dead_node_is_told_once_however_many_volumes_miss_it() -> None:
    observed = ObservedProtection(failures_to_tolerate=0, guaranteed_minimum_data_redundancy=1)
    view = edit_volume_status(three(down=("node-1",)), observed_protection=observed)
    assert explain_volume(view, the_volume(view)).verdict == "degraded"
    overview = compute_overview(view)
    assert [item.subject for item in overview.attention] == ["node node-1"]
    assert "1 volume misses it: vol" in overview.attention[0].text


def test_the_overview_counts_replicas_by_node() -> None:
    overview = compute_overview(attached_on(view_of_cluster(form(layout_of(1, 0))), "node-0"))
    lines = {line.name: (line.replicas, line.attached) for line in overview.nodes}
    assert lines["node-0"] == ("1D", 1)
    assert lines["node-2"] == ("1TB", 0)
    assert overview.attention == ()
    (volume,) = overview.volumes
    assert (volume.state, volume.attached_on, volume.promised.ftt) == ("Healthy", ("node-0",), 1)


def test_frozen_volumes_come_first() -> None:
    view = with_volume_condition(three(down=("node-1", "node-2")), "IOReady", "False", "IOSuspended", "frozen")
    overview = compute_overview(view)
    assert overview.attention[0].subject == f"volume {VOLUME}"
    assert overview.volumes[0].state == "Frozen"
