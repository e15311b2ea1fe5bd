"""Causal chains of volumes: one test per blocking reason, and what healthy ones survive."""

from __future__ import annotations

from dataclasses import replace as replace_view

import pytest

from quorate.api import labels
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import ReplicatedStorageClass, ReplicatedStorageClassSpec
from quorate.api.replicated_volume import (
    ConfigurationReadyCondition,
    DatameshTransition,
    DatameshTransitionStep,
    EffectiveLayout,
    IOReadyCondition,
    MembershipLayoutConvergedCondition,
    ObservedProtection,
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    SatisfyEligibleNodesCondition,
    ScheduledCondition,
)
from quorate.api.replicated_volume_replica import BackingVolumeReadyCondition
from quorate.api.value import replace
from quorate.datamesh.layout import ALL_LAYOUTS, Layout, layout_of
from quorate.explain.causes import Explanation
from quorate.explain.survival import protection_without, serves_io, survival_of
from quorate.explain.view import ClusterView
from quorate.explain.volumes import explain_volume
from quorate.verification.perfect_cluster import VOLUME
from quorate.verification.perfect_drive import form
from tests.controllers.builders import condition
from tests.explain.builders import (
    SINCE,
    edit_volume_status,
    the_volume,
    view_of_cluster,
    with_replica_condition,
    with_volume_condition,
)


def three() -> ClusterView:
    return view_of_cluster(form(layout_of(1, 1)))


def explained(view: ClusterView) -> Explanation:
    return explain_volume(view, the_volume(view))


@pytest.mark.parametrize("layout", ALL_LAYOUTS, ids=str)
def test_a_healthy_volume_survives_what_its_layout_promises(layout: Layout) -> None:
    view = view_of_cluster(form(layout))
    explanation = explained(view)
    assert explanation.verdict == "healthy"
    assert explanation.summary.endswith("healthy")
    assert survival_of(view, the_volume(view)).any_of == layout.ftt
    assert len(explanation.keeps_healthy) >= layout.diskful
    assert explanation.survives


def test_the_loss_of_too_many_nodes_is_named_in_advance() -> None:
    survival = survival_of(three(), the_volume(three()))
    assert survival.fatal == (("node-0", "node-1"), ("node-0", "node-2"), ("node-1", "node-2"))
    assert "losing these together would stop I/O: node-0 + node-1" in " ".join(explained(three()).survives)


def test_the_tie_breaker_carries_one_loss_but_not_two() -> None:
    view = view_of_cluster(form(layout_of(1, 0)))
    volume = the_volume(view)
    assert serves_io(protection_without(view, volume, ("node-0",)))
    assert not serves_io(protection_without(view, volume, ("node-0", "node-2")))


CONFIGURATION = [
    (ConfigurationReadyCondition.WAITING_FOR_STORAGE_CLASS, "blocked"),
    (ConfigurationReadyCondition.INVALID_CONFIGURATION, "blocked"),
    (ConfigurationReadyCondition.NEWER_CONFIGURATION_HELD, "working"),
    (ConfigurationReadyCondition.CONFIGURATION_ROLLOUT_IN_PROGRESS, "working"),
    (ConfigurationReadyCondition.STALE_CONFIGURATION, "working"),
]


@pytest.mark.parametrize(("reason", "verdict"), CONFIGURATION)
def test_a_configuration_that_is_not_ready_is_explained(reason: str, verdict: str) -> None:
    view = with_volume_condition(three(), ConfigurationReadyCondition.TYPE, "False", reason, "zones do not fit")
    explanation = explained(view)
    assert explanation.verdict == verdict
    cause = explanation.causes[0]
    assert cause.reason == f"ConfigurationReady=False/{reason}"
    assert "zones do not fit" in cause.text
    assert cause.since == SINCE


def test_every_reason_of_configuration_ready_is_covered() -> None:
    kind = ConfigurationReadyCondition
    known = {getattr(kind, name) for name in vars(kind) if name.isupper()} - {kind.TYPE, kind.READY}
    assert known == {reason for reason, _ in CONFIGURATION}


def unformed(name: str = "new") -> ReplicatedVolume:
    spec = ReplicatedVolumeSpec(size=Quantity.parse("1Gi"), replicated_storage_class_name="nope")
    return ReplicatedVolume(metadata=ObjectMeta(name=name), spec=spec)


def test_a_missing_class_is_named_with_the_known_ones() -> None:
    spec = ReplicatedStorageClassSpec(reclaim_policy="Delete", topology="Ignored")
    known = ReplicatedStorageClass(metadata=ObjectMeta(name="fast"), spec=spec)
    view = ClusterView(classes=(known,), volumes=(unformed(),))
    view = with_volume_condition(
        view, ConfigurationReadyCondition.TYPE, "False", ConfigurationReadyCondition.WAITING_FOR_STORAGE_CLASS
    )
    causes = list(explained(view).all_causes())
    assert causes[-1].subject == "class nope"
    assert causes[-1].text == "it does not exist; there are: fast"


def test_a_volume_that_no_controller_has_seen_says_so() -> None:
    explanation = explained(ClusterView(volumes=(unformed(),)))
    assert explanation.verdict == "blocked"
    assert "controllers run" in explanation.causes[0].remedy


def test_formation_waits_are_explained_by_the_replica_that_is_behind() -> None:
    step = DatameshTransitionStep(
        name="Preconfigure", status="Active", started_at=SINCE, message="Waiting for replicas"
    )
    forming = DatameshTransition(type="Formation", group="Formation", plan_id="formation/v1", steps=(step,))
    view = edit_volume_status(three(), datamesh_transitions=(forming,))
    backing = BackingVolumeReadyCondition
    view = with_replica_condition(
        view, f"{VOLUME}-1", backing.TYPE, "False", backing.PROVISIONING_FAILED, "no space left"
    )
    explanation = explained(view)
    assert explanation.verdict == "blocked"
    assert "step Preconfigure: Waiting for replicas" in explanation.causes[0].text
    assert [cause.subject for cause in explanation.causes[0].because] == [f"replica {VOLUME}-1"]
    assert "no space left" in explanation.causes[0].because[0].text


@pytest.mark.parametrize(
    "reason", [IOReadyCondition.IO_SUSPENDED, IOReadyCondition.NO_QUORUM, IOReadyCondition.AGENT_NOT_READY]
)
def test_stopped_io_names_the_nodes_that_must_come_back(reason: str) -> None:
    view = view_of_cluster(form(layout_of(1, 1)), down=("node-1", "node-2"))
    view = with_volume_condition(view, IOReadyCondition.TYPE, "False", reason, "I/O is suspended on replicas [#0]")
    explanation = explained(view)
    assert explanation.verdict == "blocked"
    assert explanation.causes[0].remedy == "bring node-1 or node-2 back"
    assert {cause.subject for cause in explanation.all_causes()} >= {"node node-1", "node node-2"}


def test_less_protection_than_promised_is_explained_once_per_node() -> None:
    view = view_of_cluster(form(layout_of(1, 1)), down=("node-1",))
    observed = ObservedProtection(failures_to_tolerate=0, guaranteed_minimum_data_redundancy=1, message="2/3 voters")
    view = edit_volume_status(view, observed_protection=observed)
    explanation = explained(view)
    assert explanation.verdict == "degraded"
    assert "FTT is 0, 1 is promised" in explanation.causes[0].text
    assert [cause.subject for cause in explanation.all_causes()].count("node node-1") == 1


@pytest.mark.parametrize(
    ("reason", "verdict"),
    [
        (MembershipLayoutConvergedCondition.CONVERGING, "working"),
        (MembershipLayoutConvergedCondition.CANNOT_CONVERGE, "blocked"),
        (MembershipLayoutConvergedCondition.TRANSITION_UNSUPPORTED, "blocked"),
    ],
)
def test_members_that_are_not_as_configured_are_explained(reason: str, verdict: str) -> None:
    view = with_volume_condition(three(), MembershipLayoutConvergedCondition.TYPE, "False", reason, "no node is free")
    explanation = explained(view)
    assert explanation.verdict == verdict
    assert "no node is free" in explanation.causes[0].text


def transition(message: str = "", reason: str = "", step_message: str = "") -> DatameshTransition:
    steps = (
        DatameshTransitionStep(name="D → D∅", status="Completed"),
        DatameshTransitionStep(name="D∅ → ✕", status="Active", started_at=SINCE, message=step_message),
    )
    return DatameshTransition(
        type="ForceRemoveReplica",
        group="Emergency",
        plan_id="force/v1",
        replica_name=f"{VOLUME}-2",
        replica_type="Diskful",
        steps=steps,
        message=message,
        reason=reason,
    )


def test_a_transition_names_its_step_and_who_has_not_confirmed() -> None:
    text = "1/2 replicas confirmed revision 7. Waiting: [#1]"
    view = view_of_cluster(form(layout_of(1, 1)), down=("node-1",))
    view = edit_volume_status(view, datamesh_transitions=(transition(step_message=text),))
    explanation = explained(view)
    cause = next(c for c in explanation.causes if c.reason.startswith("transition"))
    assert "step 2/2 (D∅ → ✕)" in cause.text
    assert cause.actor == "the agents on node-1"
    assert [c.subject for _, c in cause.walk()] == [f"volume {VOLUME}", f"replica {VOLUME}-1", "node node-1"]
    assert explanation.verdict == "blocked"


def test_missing_fencing_evidence_is_said_with_the_command() -> None:
    view = edit_volume_status(three(), datamesh_transitions=(transition("waits", "WaitingForFencing"),))
    cause = explained(view).causes[0]
    assert "WaitingForFencing" in cause.reason
    assert "node.kubernetes.io/out-of-service" in cause.remedy


def test_failed_scheduling_and_wrong_nodes_are_explained() -> None:
    view = with_volume_condition(
        three(), ScheduledCondition.TYPE, "False", ScheduledCondition.REPLICAS_NOT_SCHEDULED, "no room"
    )
    assert explained(view).verdict == "blocked"
    reason = SatisfyEligibleNodesCondition.IN_CONFLICT_WITH_ELIGIBLE_NODES
    view = with_volume_condition(three(), SatisfyEligibleNodesCondition.TYPE, "False", reason, "vol-1 on node-1")
    assert explained(view).verdict == "degraded"
    reason = SatisfyEligibleNodesCondition.CONFLICT_RESOLUTION_IN_PROGRESS
    view = with_volume_condition(three(), SatisfyEligibleNodesCondition.TYPE, "False", reason, "vol-1 on node-1")
    assert explained(view).verdict == "working"


def deleting(view: ClusterView, *finalizers: str) -> ClusterView:
    volume = the_volume(view)
    metadata = replace(volume.metadata, deletion_timestamp=SINCE, finalizers=(labels.FINALIZER_VOLUME, *finalizers))
    return replace_view(view, volumes=(replace(volume, metadata=metadata),))


def test_a_deletion_that_hangs_names_finalizer_user_or_node() -> None:
    csi = explained(deleting(three(), labels.FINALIZER_CSI))
    assert (csi.verdict, csi.causes[0].because[0].actor) == ("deleting", "the CSI driver")
    mine = explained(deleting(three(), "example.org/mine"))
    assert mine.causes[0].because[0].actor == "whoever set it"
    volume = the_volume(three())
    members = tuple(replace(m, attached=m.name == f"{VOLUME}-0") for m in volume.status.datamesh.members)
    attached = edit_volume_status(three(), datamesh=replace(volume.status.datamesh, members=members))
    assert "detached from node-0" in explained(deleting(attached)).causes[0].because[0].text
    down = deleting(view_of_cluster(form(layout_of(1, 1)), down=("node-2",)))
    assert [c.subject for c in explained(down).all_causes()][-1] == "node node-2"


def test_unknown_protection_is_no_degradation() -> None:
    view = edit_volume_status(
        three(),
        effective_layout=EffectiveLayout(failures_to_tolerate=1),
        observed_protection=ObservedProtection(),
        conditions=(condition("IOReady", "True", reason="IOReady"),),
    )
    assert explained(view).verdict == "healthy"
