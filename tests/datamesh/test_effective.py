"""Committed and observed protection (decision 2, facts/datamesh 5.6)."""

from __future__ import annotations

from dataclasses import replace as replace_cluster
from itertools import combinations

import pytest

from quorate.api.replicated_volume import ObservedProtection
from quorate.datamesh.layout import ALL_LAYOUTS, Layout
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import form, run, walk, with_configuration
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import FOUR_TB, PAIR_TB, THREE, datamesh, one_pass, silent


def observed(cluster: Cluster) -> ObservedProtection:
    found = one_pass(cluster).status.observed_protection
    assert found is not None
    return found


def keeps_io(cluster: Cluster) -> bool:
    """Whether some diskful member is quorate by the kernel's static rule."""
    return any(
        rvr.spec.type == "Diskful" and rvr.spec.node_name not in cluster.dead and rvr.status.quorum
        for rvr in cluster.replicas
    )


@pytest.mark.parametrize("layout", ALL_LAYOUTS, ids=str)
def test_the_promise_is_what_a_healthy_volume_shows_and_survives(layout: Layout) -> None:
    cluster = form(layout)
    found = observed(cluster)
    assert (found.failures_to_tolerate, found.guaranteed_minimum_data_redundancy) == (layout.ftt, layout.gmdr)
    nodes = [rvr.spec.node_name for rvr in cluster.replicas]
    survived = all(keeps_io(react(replace_cluster(cluster, dead=dead))) for dead in combinations(nodes, layout.ftt))
    assert survived
    lost_more = all(
        keeps_io(react(replace_cluster(cluster, dead=dead))) for dead in combinations(nodes, layout.ftt + 1)
    )
    assert not lost_more


@pytest.mark.parametrize("layout", ALL_LAYOUTS, ids=str)
def test_h9_observed_ftt_is_exact_in_every_degraded_state(layout: Layout) -> None:
    nodes = [f"node-{i}" for i in range(layout.diskful + layout.tie_breakers)]
    for failed in range(len(nodes)):
        for dead in combinations(nodes, failed):
            cluster = react(replace_cluster(form(layout), dead=dead))
            if not keeps_io(cluster):
                continue
            rest = [node for node in nodes if node not in dead]
            more = 0
            while more < len(rest) and all(
                keeps_io(react(replace_cluster(cluster, dead=(*dead, *further))))
                for further in combinations(rest, more + 1)
            ):
                more += 1
            assert observed(cluster).failures_to_tolerate == more, f"{layout} without {dead}"


def test_unknown_without_a_fresh_agent() -> None:
    cluster = form(THREE)
    for number in range(3):
        cluster = silent(cluster, number)
    found = observed(cluster)
    assert (found.failures_to_tolerate, found.guaranteed_minimum_data_redundancy) == (None, None)
    assert found.stale_agents == 3


def test_a_stale_agent_counts_by_what_its_peers_see() -> None:
    found = observed(silent(form(THREE), 2))
    assert (found.reachable_voters, found.up_to_date_voters, found.stale_agents) == (3, 3, 1)
    assert found.message == "3/3 voters reachable, 3 UpToDate (q 2, qmr 2), agent not ready on [#2]"


def test_committed_falls_at_once_and_rises_at_the_end() -> None:
    levels: list[tuple[int | None, int | None]] = []
    for state, _ in walk(with_configuration(form(PAIR_TB), FOUR_TB)):
        committed = state.volume.status.effective_layout
        level = (committed.failures_to_tolerate, committed.guaranteed_minimum_data_redundancy)
        if not levels or levels[-1] != level:
            levels.append(level)
        if datamesh(state).tie_breakers_suspended and len(datamesh(state).members) == 4:
            assert committed.failures_to_tolerate == 0, "2D without tie-breaker vote tolerates nothing"
    assert levels[-1] == (2, 1)
    cluster, _ = run(with_configuration(form(FOUR_TB), PAIR_TB))
    committed = cluster.volume.status.effective_layout
    assert (committed.failures_to_tolerate, committed.guaranteed_minimum_data_redundancy) == (1, 0)
