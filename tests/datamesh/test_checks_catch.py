"""The checks themselves: with one rule of the registry broken, the invariant it protects must fail."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from quorate.api.replicated_volume import Datamesh
from quorate.api.value import replace as replace_value
from quorate.datamesh import confirm
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Kind, Plan, Step
from quorate.datamesh.engine import DEFAULT_REGISTRY
from quorate.datamesh.registry import Registry, Staging
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import (
    delete_replica,
    form,
    perform,
    with_attachment,
    with_configuration,
    with_replica,
)
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    FOUR,
    ONE,
    PAIR,
    PAIR_TB,
    THREE,
    datamesh,
    deleting_volume,
    edit_replica,
    not_ready,
    one_pass,
    requesting,
    with_status,
)
from tests.datamesh.invariants import check_all
from tests.datamesh.observation import Observation


def plain(context: Context) -> Staging:
    return Staging.PLAIN


def relative_quorum(plan: Plan, step: Step) -> Step:
    """H1: q moves by one instead of being computed."""
    if step.kind is not Kind.LOSE_VOTE:
        return step

    def apply(context: Context) -> Datamesh:
        return replace_value(step.apply(context), quorum=max(context.mesh.datamesh.quorum - 2, 0))

    return replace(step, apply=apply)


def nobody(plan: Plan, step: Step) -> Step:
    """Steps that complete at once."""
    return replace(step, confirm=confirm.by_nobody)


def disconnected(cluster: Cluster) -> Cluster:
    """Nobody sees anybody."""
    for number in range(len(cluster.replicas)):
        cluster = edit_replica(cluster, number, peers=())
    return cluster


SPOILS: dict[str, tuple[Registry, Callable[[], Cluster]]] = {
    "S8": (
        DEFAULT_REGISTRY.with_rules(replace(DEFAULT_REGISTRY.rules, staging=plain)),
        lambda: react(delete_replica(form(PAIR_TB), 0)),
    ),
    "S1": (DEFAULT_REGISTRY.map_steps(relative_quorum), lambda: with_configuration(form(FOUR), THREE)),
    "S15": (
        DEFAULT_REGISTRY.without_guard("G19", "G20", "S25", "serving-copies"),
        lambda: react(delete_replica(form(PAIR), 0)),
    ),
    "S14": (
        DEFAULT_REGISTRY.without_gates("subject-connected"),
        lambda: disconnected(react(with_replica(form(ONE), "Diskful", "node-5"))),
    ),
    "S18": (DEFAULT_REGISTRY.map_steps(nobody), lambda: react(with_replica(form(ONE), "Diskful", "node-5"))),
    "S24": (
        DEFAULT_REGISTRY.without_guard("G23"),
        lambda: react(delete_replica(form(PAIR_TB), 2)),
    ),
    "S33": (
        DEFAULT_REGISTRY.without_guard("attach-7"),
        lambda: not_ready(with_attachment(form(THREE), "node-0"), 0),
    ),
    "E12": (
        DEFAULT_REGISTRY.without_guard("G1"),
        lambda: deleting_volume(react(with_replica(form(ONE), "Access", "node-5"))),
    ),
    "S40": (
        DEFAULT_REGISTRY.without_guard("G5"),
        lambda: react(with_replica(with_replica(form(ONE), "Access", "node-5"), "Access", "node-5")),
    ),
    "S39": (
        DEFAULT_REGISTRY.without_guard("G25", "rest-has-quorum", "G17"),
        lambda: requesting(form(THREE), 0, "ForceLeave", type="Diskful"),
    ),
}


def drive(cluster: Cluster, rounds: int, *, keep_cut: bool) -> None:
    history = {cluster.volume.status.datamesh_revision: datamesh(cluster)}
    for _ in range(rounds):
        result = one_pass(cluster)
        history[result.status.datamesh_revision] = result.status.datamesh
        check_all(Observation(cluster, result, history))
        cluster = with_status(cluster, result.status)
        for action in result.actions:
            cluster = perform(cluster, action)
        cluster = react(cluster)
        if keep_cut:
            cluster = disconnected(cluster)


@pytest.mark.parametrize("number", list(SPOILS))
def test_a_broken_rule_is_seen(number: str) -> None:
    registry, start = SPOILS[number]
    cluster = replace(start(), registry=registry)
    with pytest.raises(AssertionError, match=number):
        drive(cluster, 12, keep_cut=number == "S14")


@pytest.mark.parametrize("number", list(SPOILS))
def test_the_same_history_is_clean_with_the_rules_of_production(number: str) -> None:
    _, start = SPOILS[number]
    drive(start(), 12, keep_cut=number == "S14")
