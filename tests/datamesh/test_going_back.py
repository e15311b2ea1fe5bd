"""Intent may change at any moment (decision 8): from every intermediate state of every change the way back is open."""

from __future__ import annotations

from dataclasses import replace as replace_cluster
from itertools import permutations

import pytest

from quorate.api.replicated_volume import TransitionType
from quorate.datamesh.layout import ALL_LAYOUTS, Layout
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import (
    delete_replica,
    form,
    retype_replica,
    run,
    walk,
    with_configuration,
    with_replica,
)
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    FOUR_TB,
    MODES,
    ONE,
    PAIR,
    PAIR_TB,
    THREE,
    datamesh,
    edit_replica,
    one_pass,
    passed,
    staged,
    transition,
)
from tests.datamesh.invariants import check_all
from tests.datamesh.observation import Observation
from tests.datamesh.test_convergence import assert_is

PAIRS = list(permutations(ALL_LAYOUTS, 2))


def settle_checked(cluster: Cluster) -> Cluster:
    """Run to rest with every invariant checked on the way."""
    history = {cluster.volume.status.datamesh_revision: datamesh(cluster)}
    before = cluster
    for state, result in walk(cluster):
        history[result.status.datamesh_revision] = result.status.datamesh
        check_all(Observation(before, result, history))
        before = react(state)
    return before


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(("origin", "target"), PAIRS, ids=[f"{a}-{b}" for a, b in PAIRS])
def test_the_old_layout_comes_back_from_every_intermediate_state(origin: Layout, target: Layout, mode: str) -> None:
    cluster = staged(form(origin, nodes=7), mode)
    for state, _ in walk(with_configuration(cluster, target)):
        # Asked back right after the pass, before anybody confirmed, and after only one replica did.
        for answered in ((), (0,), None):
            back = with_configuration(react(state, only=answered), origin)
            done, result = run(back)
            assert result.convergence.reason == "Converged", f"{result.convergence}"
            assert_is(done, origin)


def joins(layout: Layout, mode: str) -> Cluster:
    return react(with_replica(staged(form(layout), mode), "Diskful", "node-7"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("layout", ALL_LAYOUTS, ids=str)
def test_a_join_is_taken_back_from_every_step(layout: Layout, mode: str) -> None:
    newcomer = layout.diskful + layout.tie_breakers
    cluster = joins(layout, mode)
    seen: list[str] = []
    for state, _ in walk(cluster):
        found = transition(state, TransitionType.ADD_REPLICA, newcomer)
        if found is None:
            break
        step = next(s.name for s in found.steps if s.status == "Active")
        for answered in ((), (0,), None):
            back = react(delete_replica(react(state, only=answered), newcomer), only=(newcomer,))
            done = settle_checked(back)
            assert done.member(newcomer) is None
            assert_is(done, layout)
        seen.append(step)
    assert seen[0].startswith("✦")
    assert seen[-1] == "D∅ → D"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("layout", "wanted"),
    [(THREE, "Access"), (PAIR_TB, "Access"), (PAIR_TB, "TieBreaker"), (FOUR_TB, "Access"), (FOUR_TB, "TieBreaker")],
)
def test_a_type_change_is_taken_back_from_every_step(layout: Layout, wanted: str, mode: str) -> None:
    cluster = staged(form(layout), mode)
    seen: list[str] = []
    for state, _ in walk(react(retype_replica(cluster, 0, wanted))):
        found = transition(state, TransitionType.CHANGE_REPLICA_TYPE, 0)
        if found is None:
            continue
        seen.append(next(s.name for s in found.steps if s.status == "Active"))
        for answered in ((), (0,), None):
            back = react(retype_replica(react(state, only=answered), 0, "Diskful"), only=(0,))
            assert_is(settle_checked(back), layout)
    assert seen[0] == "D → D∅"
    assert len(seen) >= 2


def test_a_join_that_nobody_can_complete_is_taken_back() -> None:
    """The newcomer cannot apply its new configuration; deleting it must still lead back (H4, decision 8)."""
    cluster = passed(react(passed(react(with_replica(form(ONE), "Diskful", "node-5")))))
    gained = transition(cluster, TransitionType.ADD_REPLICA, 1)
    assert gained is not None
    assert gained.steps[1].status == "Active"
    stuck = react(cluster, only=(0,))
    back = passed(edit_replica(delete_replica(stuck, 1), 1, datamesh_request=None))
    found = transition(back, TransitionType.REMOVE_REPLICA, 1)
    assert found is not None
    assert found.reverting
    assert [m.type for m in datamesh(back).members] == ["Diskful", "Access"]
    assert datamesh(back).quorum == 1


def test_an_unconfirmed_gain_is_not_turned_into_a_third_configuration() -> None:
    """A → D∅ is unconfirmed; the wish to become a tie-breaker waits until nobody can hold the old one."""
    cluster = passed(react(passed(react(with_replica(form(ONE), "Diskful", "node-5")))))
    wish = retype_replica(react(cluster, only=(1,)), 1, "TieBreaker")
    waiting = passed(react(wish, only=(1,)))
    member = waiting.member(1)
    assert member is not None
    assert member.type == "LiminalDiskful"
    assert transition(waiting, TransitionType.ADD_REPLICA, 1) is not None
    done, _ = run(waiting)
    assert done.volume.status.datamesh_transitions == ()


def test_a_held_change_yields_to_one_that_can_go_on() -> None:
    """A newcomer that never connects does not keep the others from joining (L1)."""
    cluster = with_configuration(form(ONE), PAIR)
    cluster = react(passed(react(with_replica(cluster, "Diskful", "node-5"))))
    lonely = replace_cluster(cluster, dead=("node-5",))
    lonely = react(with_replica(react(lonely), "Diskful", "node-6"))
    held = passed(lonely)
    first = transition(held, TransitionType.ADD_REPLICA, 1)
    second = transition(held, TransitionType.ADD_REPLICA, 2)
    assert first is None or first.reason
    assert second is not None or first is not None
    done, result = run(held)
    assert done.member(2) is not None
    assert datamesh(done).quorum == 2
    assert result is not None


@pytest.mark.parametrize("target", [PAIR, THREE], ids=str)
def test_configuration_flip_flop_ends_where_it_was_asked_last(target: Layout) -> None:
    cluster = form(PAIR_TB, nodes=6)
    for turn, layout in enumerate((THREE, PAIR_TB, FOUR_TB, ONE, target)):
        cluster = with_configuration(cluster, layout)
        for _ in range(turn + 2):
            result = one_pass(cluster)
            cluster = react(replace_cluster(passed(cluster)))
            assert result.convergence.status in ("True", "False")
    done, result = run(cluster)
    assert result.convergence.reason == "Converged"
    assert_is(done, target)
