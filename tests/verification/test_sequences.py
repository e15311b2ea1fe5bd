"""The rulings of docs/decisions/voter-changes-beside-a-tie-breaker.md: which order of revisions is safe, per voter mode.

The remaining rows of its tables need more states than a test may take; `quorate model-check --rulings` plays them all.
"""

from __future__ import annotations

import pytest

from quorate.verification import sequences
from quorate.verification.assertions import STALE_SIDE, TWO_SIDES
from quorate.verification.runs import perform_sequence, play
from quorate.verification.search import Outcome
from quorate.verification.sequences import RULINGS, Ruling, SequenceState
from quorate.verification.tables import RULING_HEADS, markdown, ruling_rows

QUICK = tuple(ruling for ruling in RULINGS if ruling.quick)
MODES = ("dynamic", "static")


def played(ruling: Ruling, voters: str) -> Outcome[SequenceState]:
    return perform_sequence(ruling, voters)


@pytest.mark.parametrize("voters", MODES)
@pytest.mark.parametrize("ruling", QUICK, ids=lambda ruling: ruling.name)
def test_the_ruling_holds(ruling: Ruling, voters: str) -> None:
    outcome = played(ruling, voters)
    found = [violation.assertion.partition(":")[0] for violation in outcome.violations]
    assert bool(found) != ruling.safe, found
    assert all(assertion in (TWO_SIDES, STALE_SIDE) for assertion in found)
    assert outcome.complete == ruling.safe


def test_both_answers_occur_among_the_quick_ones() -> None:
    assert {ruling.safe for ruling in QUICK} == {True, False}


def test_the_direct_join_is_the_recorded_split_brain() -> None:
    """X1a: one old half with the tie-breaker against the other half with the newcomer."""
    ruling = next(r for r in RULINGS if r.name == "join, direct")
    violation = played(ruling, "dynamic").violations[0]
    assert violation.assertion == f"{TWO_SIDES}: n0 n2 | n1 n3", "n2 is the newcomer, n3 the tie-breaker"


@pytest.mark.parametrize("voters", MODES)
def test_dropping_majority_to_the_peers_is_unsafe_only_where_majority_is_written(voters: str) -> None:
    sequence = sequences.removing(2, 1, 1, "q + 1")._replace(quorate=True, order="unpinned")
    outcome = perform_sequence(Ruling("unpinned", sequence, safe=voters == "static"), voters)
    assert bool(outcome.violations) == (voters == "dynamic"), "static voters have numbers"


def test_a_ruling_is_told_as_a_row() -> None:
    played = play("join, direct", "dynamic")
    assert (played.safe, played.holds) == (False, True)
    table = markdown(RULING_HEADS, ruling_rows((played,))).splitlines()
    assert table[2].startswith("| join, direct | dynamic | no | yes | ")
