"""Complete searches of the production engine that a test can afford, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quorate.verification import scenarios
from quorate.verification.assertions import STUCK
from quorate.verification.mutants import MUTANTS
from quorate.verification.runs import perform, summarize, tasks_of
from quorate.verification.search import explore, walk
from quorate.verification.volume import Scenario, VolumeModel, VolumeState
from quorate.verification.world import PARTITION

SMALL = (("1D", 2, 5), ("2D", 1, 8))


@pytest.mark.parametrize("voters", scenarios.VOTER_MODES)
@pytest.mark.parametrize(("layout", "faults", "count"), SMALL)
def test_small_layouts_are_searched_to_the_last_state(layout: str, faults: int, count: int, voters: str) -> None:
    tasks = tasks_of(layout, voters, faults=faults)
    run = summarize(layout, voters, tuple(map(perform, tasks)))
    assert len(tasks) == count
    assert run.complete
    assert run.violations == ()
    assert run.states > 500
    assert run.transitions > run.states


PAIR_TB_SCENARIOS = (
    "a node fails",
    "a diskful replica is replaced, nobody attached",
    "the tie-breaker is replaced",
    "the layout becomes 1D",
    "the attachment moves",
    "a replica is forced out",
)


@pytest.mark.parametrize("voters", scenarios.VOTER_MODES)
@pytest.mark.parametrize("name", PAIR_TB_SCENARIOS)
def test_a_pair_with_a_tie_breaker_survives_any_single_fault(name: str, voters: str) -> None:
    result = perform(tasks_of("2D+1TB", voters, faults=1, only=name)[0])
    assert result.complete
    assert result.violations == ()
    assert result.limits == (), "with one fault nothing has to be excused"


@pytest.mark.parametrize("voters", scenarios.VOTER_MODES)
def test_replacing_a_copy_beside_a_tie_breaker_survives_any_single_fault(voters: str) -> None:
    result = perform(tasks_of("2D+1TB", voters, faults=1, only="a diskful replica is replaced")[0])
    assert result.complete
    assert result.violations == ()
    assert result.limits == ()


def test_two_searches_of_the_same_scenario_agree() -> None:
    task = tasks_of("2D", "static", faults=1, only="a replica object is gone")[0]
    first, second = perform(task), perform(task)
    assert (first.states, first.transitions, first.passes) == (second.states, second.transitions, second.passes)


def test_walks_are_the_same_for_the_same_seed() -> None:
    scenario = next(scenarios.wandering(scenarios.LAYOUTS["2D+1TB"], "dynamic"))

    def walked(seed: int) -> tuple[int, int]:
        outcome = walk(VolumeModel(scenario, reduce_symmetry=False), seed=seed, walks=2, depth=60)
        assert outcome.violations == ()
        return outcome.states, outcome.transitions

    assert walked(1) == walked(1)
    assert walked(1)[0] > 20


def _states(model: VolumeModel) -> Iterator[VolumeState]:
    """Everything reachable without faults."""
    todo, met = list(model.initial()), set[VolumeState]()
    while todo:
        state = todo.pop()
        if state not in met:
            met.add(state)
            yield state
            todo += [after for _, after in model.successors(state)]


def test_rest_means_that_the_layout_is_reached_and_the_volume_served() -> None:
    scenario = next(
        s for s in scenarios.complete(scenarios.LAYOUTS["1D"], "static", 0) if s.name == "the layout becomes 2D"
    )
    model = VolumeModel(scenario)
    resting = [state for state in _states(model) if model.liveness.at_rest(state)]
    members = {len(model.table.entries[state.published].status.datamesh.members) for state in resting}
    asked = {
        model.table.entries[state.published].status.configuration.guaranteed_minimum_data_redundancy  # pyright: ignore[reportOptionalMemberAccess]
        for state in resting
    }
    assert members == {1, 2}
    assert asked == {0, 1}
    for state in resting:
        entry = model.table.entries[state.published]
        nodes = model.worlds.clusters[state.world.cluster].nodes
        assert not entry.status.datamesh_transitions
        assert nodes[0].primary
    one = next(state for state in resting if len(model.table.entries[state.published].status.datamesh.members) == 1)
    assert not model.liveness.at_rest(one._replace(wanted=0)), "nobody wants it, yet it is attached"


@pytest.mark.parametrize("name", [mutant.name for mutant in MUTANTS if mutant.expected == (STUCK,)])
def test_a_system_that_gets_stuck_is_found(name: str) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    outcome = explore(VolumeModel(mutant.scenario, mutant.registry), wanted=(STUCK,))
    assert [violation.assertion for violation in outcome.violations] == [STUCK]


def test_a_forgotten_intent_is_not_a_stuck_system() -> None:
    """What people have not done yet does not count against convergence."""
    layout = scenarios.LAYOUTS["2D"]
    model = VolumeModel(Scenario(layout, "static", attached=0, kinds=(PARTITION,)))
    assert all(model.liveness.converges(state) for state in model.initial())
