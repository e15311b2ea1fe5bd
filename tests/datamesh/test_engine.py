"""The engine itself: formation, unknown plans, restarts, determinism, texts (E5-E13)."""

from __future__ import annotations

from dataclasses import replace as replace_cluster

import pytest

from quorate.api.replicated_volume import (
    DatameshTransition,
    DatameshTransitionStep,
    ReplicatedVolumeStatus,
    StepStatus,
    TransitionGroup,
    TransitionType,
)
from quorate.api.value import replace
from quorate.datamesh.engine import run_pass
from quorate.datamesh.plans import formation_records
from quorate.datamesh.settle import RELEASE_ANNOTATION
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import (
    delete_replica,
    form,
    run,
    walk,
    with_attachment,
    with_configuration,
    with_replica,
)
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    FIVE,
    FOUR_TB,
    ONE,
    PAIR_TB,
    THREE,
    datamesh,
    deleting_volume,
    edit_replica,
    edit_volume,
    one_pass,
    passed,
    through_json,
    transition,
    with_status,
)


def alien(group: str = TransitionGroup.VOTING_MEMBERSHIP, **fields: object) -> DatameshTransition:
    """A transition of another version."""
    base = DatameshTransition(
        type=TransitionType.CHANGE_REPLICA_TYPE,
        group=group,
        plan_id="sideways/v9",
        replica_name="vol-1",
        from_replica_type="Diskful",
        to_replica_type="Access",
        steps=(DatameshTransitionStep(name="D → ?", status=StepStatus.ACTIVE, datamesh_revision=2),),
    )
    return replace(base, **fields)


def with_alien(cluster: Cluster, record: DatameshTransition) -> Cluster:
    return with_status(cluster, replace(cluster.volume.status, datamesh_transitions=(record,)))


def test_e8_an_unknown_plan_keeps_its_lock_and_says_how_to_release_it() -> None:
    cluster = passed(with_alien(with_configuration(form(THREE), FIVE), alien()))
    found = transition(cluster, TransitionType.CHANGE_REPLICA_TYPE, 1)
    assert found is not None
    assert found.reason == "UnknownPlan"
    assert f"{RELEASE_ANNOTATION}=ChangeReplicaType/sideways/v9" in found.message
    for _ in range(4):
        cluster = react(
            passed(react(with_replica(cluster, "Diskful", "node-6") if len(cluster.replicas) < 4 else cluster))
        )
    assert cluster.member(3) is None or cluster.member(3).type == "Access"  # type: ignore[union-attr]
    texts = [r.message for r in cluster.volume.status.datamesh_replica_requests]
    assert any("ChangeReplicaType (sideways/v9) of #1" in text for text in texts), texts


def test_h25_the_annotation_releases_it() -> None:
    cluster = with_alien(form(THREE), alien())
    annotations = cluster.volume.metadata.annotations.with_entry(RELEASE_ANNOTATION, "ChangeReplicaType/sideways/v9")
    cluster = edit_volume(cluster, metadata=replace(cluster.volume.metadata, annotations=annotations))
    assert passed(cluster).volume.status.datamesh_transitions == ()


def test_the_annotation_never_releases_a_known_plan() -> None:
    cluster = passed(react(with_replica(form(ONE), "Access", "node-4")))
    annotations = cluster.volume.metadata.annotations.with_entry(RELEASE_ANNOTATION, "AddReplica/access/v1")
    cluster = edit_volume(cluster, metadata=replace(cluster.volume.metadata, annotations=annotations))
    assert transition(passed(cluster), TransitionType.ADD_REPLICA) is not None


@pytest.mark.parametrize(
    "record",
    [
        alien(steps=()),
        alien(group="Sideways", type="Sideways"),
        alien(plan_id="resume-diskful/v1", steps=alien().steps * 3),
        alien(type="Sideways", replica_name="", group="Quorum"),
    ],
    ids=["no steps", "unknown type", "other steps", "global"],
)
def test_e8_no_record_crashes_a_pass(record: DatameshTransition) -> None:
    cluster = with_alien(form(THREE), record)
    result = one_pass(cluster)
    assert len(result.status.datamesh_transitions) == 1
    again = one_pass(with_status(cluster, result.status))
    assert again.status is result.status


def test_an_emergency_takes_the_place_of_an_unknown_plan() -> None:
    cluster = with_alien(form(THREE), alien())
    dead = react(replace_cluster(cluster, dead=("node-1",), fenced=("node-1",)))
    done, result = run(dead)
    assert "node-1" not in [member.node_name for member in datamesh(done).members]
    assert result.convergence.reason == "Converged"


@pytest.mark.parametrize("layout", [ONE, PAIR_TB, THREE, FOUR_TB], ids=str)
def test_e13_a_forming_volume_is_left_alone(layout: object) -> None:
    cluster = with_attachment(form(THREE), "node-0")
    record = formation_records.formation_transition(1, "2001-09-09T01:46:40Z")
    forming = with_status(cluster, replace(cluster.volume.status, datamesh_transitions=(record,)))
    result = one_pass(forming)
    assert result.status is forming.volume.status
    node = result.attachments[0]
    assert (node.reason, node.message) == ("WaitingForReplicatedVolume", "Datamesh formation is in progress")
    fresh = edit_volume(cluster, status=ReplicatedVolumeStatus(configuration=cluster.volume.status.configuration))
    assert one_pass(fresh).status.datamesh_transitions == ()


def test_formation_records_move_step_by_step() -> None:
    record = formation_records.formation_transition(1, "t0")
    assert formation_records.formation_step(record) == "Preconfigure"
    assert [step.status for step in record.steps] == ["Active", "Pending", "Pending"]
    second = formation_records.advanced(record, 2, "t1")
    assert formation_records.formation_step(second) == "Establish connectivity"
    assert [step.status for step in second.steps] == ["Completed", "Active", "Pending"]
    noted = formation_records.noted(second, "x" * 600, 2)
    assert len(noted.steps[1].message) == 512
    assert formation_records.noted(noted, "x" * 600, 2) is noted


def test_e12_a_deleting_volume_still_detaches_and_lets_members_leave() -> None:
    cluster = run(with_attachment(form(THREE), "node-0"))[0]
    cluster = react(with_replica(cluster, "Access", "node-5"))
    cluster = run(cluster)[0]
    cluster = deleting_volume(replace_cluster(cluster, attachments=()))
    cluster = react(delete_replica(react(with_replica(cluster, "Access", "node-6")), 3))
    cluster, _ = run(cluster)
    assert not any(member.attached for member in datamesh(cluster).members)
    assert cluster.member(3) is None
    assert cluster.member(4) is None


def test_e10_a_restart_after_any_pass_resumes_identically() -> None:
    for state, _ in walk(with_configuration(form(PAIR_TB), FOUR_TB)):
        reacted = react(state)
        assert run_pass(through_json(reacted).inputs()) == run_pass(reacted.inputs())


def test_order_of_lists_does_not_matter() -> None:
    for state, _ in walk(with_attachment(with_configuration(form(PAIR_TB), THREE), "node-0")):
        reacted = react(state)
        shuffled = replace_cluster(
            reacted, replicas=tuple(reversed(reacted.replicas)), attachments=tuple(reversed(reacted.attachments))
        )
        assert one_pass(shuffled) == one_pass(reacted)


def test_h17_long_errors_are_cut() -> None:
    cluster = passed(with_configuration(form(FIVE), FOUR_TB))
    long = "e" * 400
    for number in range(5):
        rvr = cluster.replica(number)
        assert rvr is not None
        failed = tuple(
            replace(c, status="False", reason="ConfigurationFailed", message=long) if c.type == "DRBDConfigured" else c
            for c in rvr.status.conditions
        )
        cluster = edit_replica(cluster, number, conditions=failed, datamesh_revision=1)
    result = one_pass(cluster)
    messages = [step.message for t in result.status.datamesh_transitions for step in t.steps]
    assert max(map(len, messages)) == 512


def test_zones_follow_the_pool_without_a_revision() -> None:
    cluster = form(THREE, zones=("a", "b", "c"))
    nodes = tuple(replace(n, zone_name=n.zone_name.upper()) for n in cluster.pool.status.eligible_nodes)
    cluster = replace_cluster(
        cluster, pool=replace(cluster.pool, status=replace(cluster.pool.status, eligible_nodes=nodes))
    )
    result = one_pass(cluster)
    assert [member.zone for member in result.status.datamesh.members] == ["A", "B", "C"]
    assert result.status.datamesh_revision == cluster.volume.status.datamesh_revision


def test_s40_two_replicas_of_one_node_do_not_both_join() -> None:
    cluster = react(with_replica(with_replica(form(ONE), "Access", "node-4"), "Access", "node-4"))
    cluster, _ = run(cluster)
    nodes = [member.node_name for member in datamesh(cluster).members]
    assert nodes == ["node-0", "node-4"]
