"""Symmetry reduction: fewer states, the same verdicts."""

from __future__ import annotations

import pytest

from quorate.verification import scenarios
from quorate.verification.mutants import MUTANTS
from quorate.verification.search import explore
from quorate.verification.symmetry import classes_of
from quorate.verification.traces import moves, unfold
from quorate.verification.volume import Intent, Scenario, VolumeModel, VolumeState
from quorate.verification.world import CRASH, PARTITION

THREE, FOUR, FIVE = (scenarios.LAYOUTS[name] for name in ("3D", "4D", "5D"))

CASES = {
    "a node fails": Scenario(THREE, "static", attached=0, kinds=(CRASH, PARTITION), in_doubt=True),
    "3D becomes 2D": Scenario(
        THREE, "dynamic", intents=(Intent("layout", 0, scenarios.LAYOUTS["2D"]),), attached=0, faults=1, spares=0
    ),
    "a replica leaves 4D": Scenario(
        FOUR, "static", intents=(Intent("layout", 0, THREE),), attached=0, faults=0, kinds=(), spares=0
    ),
}


def reached(model: VolumeModel, budget: int) -> set[VolumeState]:
    """Everything reachable, without the search's bookkeeping."""
    met: set[VolumeState] = set()
    layer = list(model.initial())
    for left in range(budget, -1, -1):
        following: list[VolumeState] = []
        while layer:
            state = model.canonical(layer.pop())
            if state in met:
                continue
            met.add(state)
            layer += [after for _, after in model.successors(state)]
            if left:
                following += [after for _, after in model.strikes(state)]
        layer = following
    return met


@pytest.mark.parametrize("name", list(CASES))
def test_the_reduced_search_reaches_exactly_one_of_each_orbit(name: str) -> None:
    scenario = CASES[name]
    reduced, whole = VolumeModel(scenario), VolumeModel(scenario, reduce_symmetry=False)
    assert len(reduced.symmetry.group) > 1
    few, many = explore(reduced), explore(whole)
    assert few.complete
    assert many.complete
    assert few.violations == many.violations == ()
    assert few.states < many.states
    # Orbits of what the whole search reaches, in the tables of one model.
    joint = VolumeModel(scenario)
    group, joint.symmetry = joint.symmetry, VolumeModel(scenario, reduce_symmetry=False).symmetry
    everything = reached(joint, scenario.faults)
    orbits = {group.canonical(state) for state in everything}
    joint.symmetry = group
    assert orbits == reached(joint, scenario.faults)


@pytest.mark.parametrize("name", ["H7"])
def test_a_mutant_is_caught_with_and_without_the_reduction(name: str) -> None:
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    for reduce in (True, False):
        model = VolumeModel(mutant.scenario, mutant.registry, reduce_symmetry=reduce)
        assert explore(model, wanted=mutant.expected).violations


def test_who_is_interchangeable() -> None:
    attached = Scenario(FIVE, "static", intents=(Intent("delete", 4),), attached=0, spares=2)
    assert classes_of(attached, 7) == ((1, 2, 3), (5, 6))
    everybody = Scenario(THREE, "static", attached=None, spares=1)
    assert classes_of(everybody, 4) == ((0, 1, 2), (3,))
    client = Scenario(THREE, "static", attached=0, client=True, spares=1)
    assert classes_of(client, 5) == ((0, 1, 2), (3,)), "the client's node has a name"


def test_images_form_a_group_and_canonical_is_the_same_for_a_whole_orbit() -> None:
    model = VolumeModel(CASES["a node fails"])
    state = next(iter(model.initial()))
    for _ in range(3):
        state = [after for _, after in moves(model, state)][-1]
    images = [model.symmetry.image(g, state) for g in range(len(model.symmetry.group))]
    assert len({model.canonical(image) for image in images}) == 1
    for g, image in enumerate(images):
        assert model.symmetry.back(g, image) == state


def test_a_trace_keeps_the_names_of_its_nodes() -> None:
    """The search swaps equal nodes; the unfolded trace is a real path of one naming."""
    mutant = next(mutant for mutant in MUTANTS if mutant.name == "H7")
    model = VolumeModel(mutant.scenario, mutant.registry)
    violation = explore(model, wanted=mutant.expected).violations[0]
    here = next(iter(model.initial()))
    for event, state in unfold(model, violation):
        assert (event, state) in set(moves(model, here))
        here = state
    assert next(iter(model.broken(here))).startswith(mutant.expected)
