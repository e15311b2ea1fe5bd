"""The search itself, on models small enough to count by hand."""

from __future__ import annotations

from collections.abc import Iterator

from quorate.verification.search import explore, walk
from quorate.verification.world import Event

UP = Event("up")
FAULT = Event("fault")


class Counter:
    """Counts to `top`; a fault jumps `jump` further. `bad` is broken."""

    def __init__(self, *, top: int = 5, jump: int = 10, faults: int = 1, bad: int = -1) -> None:
        self.top, self.jump, self.bad, self._faults = top, jump, bad, faults
        self.expanded: list[int] = []

    @property
    def faults(self) -> int:
        return self._faults

    def initial(self) -> Iterator[int]:
        yield 0

    def successors(self, state: int) -> Iterator[tuple[Event, int]]:
        self.expanded.append(state)
        if state % self.jump < self.top:
            yield UP, state + 1

    def strikes(self, state: int) -> Iterator[tuple[Event, int]]:
        yield FAULT, state + self.jump

    def broken(self, state: int) -> Iterator[str]:
        if state == self.bad:
            yield f"bad: {state}"

    def canonical(self, state: int) -> int:
        return state


def test_every_state_is_visited_once_and_transitions_are_counted() -> None:
    model = Counter()
    outcome = explore(model)
    assert outcome.complete
    assert outcome.states == 12, "0 to 5, and 10 to 15 with the fault"
    assert outcome.transitions == 5 + 6 + 5
    assert sorted(model.expanded) == [*range(6), *range(10, 16)]


def test_the_number_of_faults_is_a_budget() -> None:
    assert explore(Counter(faults=0)).states == 6
    assert explore(Counter(faults=2)).states == 18


def test_a_state_that_a_fault_only_reaches_again_keeps_its_larger_budget() -> None:
    """The fault leads to 2, which is reachable without it: the search still has the fault left there."""
    outcome = explore(Counter(jump=2, top=1, faults=1))
    assert outcome.complete
    assert outcome.states == len({0, 1, 2, 3})


def test_the_trace_has_the_fewest_faults() -> None:
    violation = explore(Counter(jump=3, top=2, faults=2, bad=5)).violations[0]
    assert [event for event, _ in violation.path].count(FAULT) == 1
    assert violation.path[-1][1] == 5
    assert violation.assertion == "bad: 5"


def test_a_search_that_stops_early_is_not_complete() -> None:
    assert not explore(Counter(), max_states=3).complete
    assert not explore(Counter(bad=4)).complete
    assert explore(Counter(bad=4), max_violations=2).complete


def test_only_wanted_assertions_count() -> None:
    assert explore(Counter(bad=4), wanted=("other",)).violations == ()
    assert len(explore(Counter(bad=4), wanted=("bad",)).violations) == 1


def test_a_walk_is_the_same_for_the_same_seed() -> None:
    def visited(seed: int) -> list[int]:
        model = Counter(top=50, jump=100, faults=3)
        walk(model, seed=seed, walks=3, depth=40)
        return model.expanded

    assert visited(7) == visited(7)
    assert visited(7) != visited(8)


def test_a_walk_reports_what_it_breaks_and_never_claims_to_be_complete() -> None:
    outcome = walk(Counter(faults=0, bad=3), seed=1, walks=1, depth=10)
    assert not outcome.complete
    assert [state for _, state in outcome.violations[0].path] == [1, 2, 3]
