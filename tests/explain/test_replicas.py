"""Every reason of a replica's conditions has advice, and chains end at the node that must act."""

from __future__ import annotations

import pytest

from quorate.api import replicated_volume_replica as rvr
from quorate.datamesh.layout import layout_of
from quorate.explain.causes import VERDICTS
from quorate.explain.replicas import ADVICE, explain_replica
from quorate.explain.view import ClusterView
from quorate.verification.perfect_cluster import VOLUME
from quorate.verification.perfect_drive import form
from tests.explain.builders import view_of_cluster, with_replica_condition

FINE = {
    rvr.ScheduledCondition: ("SCHEDULED",),
    rvr.ConfiguredCondition: ("CONFIGURED",),
    rvr.BackingVolumeReadyCondition: ("READY", "NOT_APPLICABLE"),
    rvr.DRBDConfiguredCondition: ("CONFIGURED", "NOT_APPLICABLE"),
    rvr.AttachedCondition: ("ATTACHED",),
    rvr.BackingVolumeUpToDateCondition: ("UP_TO_DATE",),
    rvr.FullyConnectedCondition: ("FULLY_CONNECTED", "CONNECTED_TO_ALL_PEERS", "SOLE_MEMBER"),
    rvr.ReadyCondition: ("READY",),
    rvr.SatisfyEligibleNodesCondition: ("SATISFIED",),
}
"""Reasons by which nothing is held up."""


def blocking_reasons() -> list[tuple[str, str]]:
    return [
        (kind.TYPE, getattr(kind, name))
        for kind, fine in FINE.items()
        for name in vars(kind)
        if name.isupper() and name != "TYPE" and name not in fine
    ]


def healthy() -> ClusterView:
    return view_of_cluster(form(layout_of(1, 1)))


def test_every_blocking_reason_has_advice_and_nothing_else_has() -> None:
    assert sorted(ADVICE) == sorted(blocking_reasons())


@pytest.mark.parametrize(("type_", "reason"), blocking_reasons())
def test_a_blocking_reason_is_named_with_actor_and_since(type_: str, reason: str) -> None:
    name = f"{VOLUME}-1"
    status = "True" if reason == rvr.AttachedCondition.DETACHMENT_FAILED else "False"
    view = with_replica_condition(healthy(), name, type_, status, reason, "said the controller")
    found = view.replica(name)
    assert found is not None
    explanation = explain_replica(view, found)
    assert explanation.verdict in VERDICTS
    assert explanation.verdict == ADVICE[type_, reason].verdict or ADVICE[type_, reason].verdict == "deleting"
    cause = next(cause for cause in explanation.all_causes() if cause.reason == f"{type_}={status}/{reason}")
    assert "said the controller" in cause.text
    assert cause.since
    assert cause.actor
    assert "{" not in cause.actor.replace("{{", "")


def test_a_healthy_replica_says_what_keeps_it_healthy() -> None:
    view = healthy()
    explanation = explain_replica(view, view.replicas[0])
    assert explanation.verdict == "healthy"
    assert any("connected to" in line for line in explanation.keeps_healthy)
    assert "its disk is UpToDate" in explanation.keeps_healthy


def test_a_replica_on_a_dead_node_is_explained_by_the_node() -> None:
    view = view_of_cluster(form(layout_of(1, 1)), down=("node-1",))
    found = view.replica(f"{VOLUME}-1")
    assert found is not None
    explanation = explain_replica(view, found)
    last = list(explanation.all_causes())[-1]
    assert last.subject == "node node-1"
    assert last.reason == "Ready=Unknown/Because"
    assert "out-of-service" in last.remedy


def test_a_lost_connection_is_explained_by_the_peer_that_is_missing() -> None:
    view = view_of_cluster(form(layout_of(1, 1)), down=("node-2",))
    name, links = f"{VOLUME}-0", rvr.FullyConnectedCondition
    view = with_replica_condition(view, name, links.TYPE, "False", links.PARTIALLY_CONNECTED, "1 of 2")
    found = view.replica(name)
    assert found is not None
    subjects = [cause.subject for cause in explain_replica(view, found).all_causes()]
    assert subjects == [f"replica {name}", f"replica {VOLUME}-2", "node node-2"]
