"""The checker checks itself: every hazard that is put back is caught."""

from __future__ import annotations

import pytest

from quorate.datamesh.engine import DEFAULT_REGISTRY
from quorate.verification.assertions import STUCK
from quorate.verification.mutants import MUTANTS
from quorate.verification.runs import catch, mutant_names
from quorate.verification.search import explore
from quorate.verification.sequence_mutants import SEQUENCE_MUTANTS
from quorate.verification.volume import VolumeModel

ASKED_FOR = ("H1", "H2", "H3", "H4", "H7", "H8", "H15", "H31", "not-enforced")
SLOW = ("H1", "H8", "rumour", "joined-apart")
"""More states than a test may take: `make model-check` runs them."""
CLEAN = ("H2", "H3", "H4", "H14", "H15", "one-step-emergency", "rest-without-quorum", "no-copy-guards", "rumour")


@pytest.mark.parametrize("name", [name for name in mutant_names() if name not in SLOW])
def test_the_mutant_is_caught(name: str) -> None:
    found = catch(name)
    assert found.caught
    assert found.states > 0
    expected = next(m.expected for m in (*MUTANTS, *SEQUENCE_MUTANTS) if m.name == name)
    assert found.violations[0].assertion.startswith(expected)
    assert found.violations[0].steps, "a counter-example has steps"


@pytest.mark.parametrize("name", CLEAN)
def test_the_same_scenario_is_clean_in_production(name: str) -> None:
    """The violation is the mutant's doing: with the production engine and agent the whole scenario is clean."""
    mutant = next(mutant for mutant in MUTANTS if mutant.name == name)
    scenario = mutant.scenario._replace(order="strict", check_flag=True, rumours=False)
    outcome = explore(VolumeModel(scenario, judge_liveness=STUCK in mutant.expected), wanted=mutant.expected)
    assert outcome.complete
    assert outcome.violations == ()


def test_all_hazards_that_were_asked_for_are_there_and_six_more() -> None:
    names = mutant_names()
    assert set(ASKED_FOR) <= set(names)
    assert len(set(names) - set(ASKED_FOR)) >= 6
    assert len(set(names)) == len(names)


def test_every_registry_mutant_differs_from_production() -> None:
    for mutant in MUTANTS:
        scenario = mutant.scenario
        outside = scenario.order != "strict" or scenario.rumours or not scenario.check_flag
        assert mutant.registry is not DEFAULT_REGISTRY or outside, mutant.name


def test_an_unknown_mutant_is_named() -> None:
    with pytest.raises(ValueError, match="there is no mutant H99; there are H1, H2"):
        catch("H99")
