"""Explicit-state search, layer by layer of faults, with traces; and seeded random walks.

A `Model` names its initial states, what can happen in a state without a fault (`successors`), the faults that can strike
(`strikes`), and what is broken in a state. The search knows nothing else.

Faults are a budget, not a part of the state: all states that need no fault are visited first, then those that need one, and
so on. A state met again with fewer faults left is not visited again, because everything that can follow it with the smaller
budget can follow it with the larger one. So every state is visited once, with the largest budget it can have, and the trace
kept for it has the fewest faults and, among those, the fewest steps within each layer.

The search is complete when it stopped because nothing new was left.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable
from time import perf_counter
from typing import Final, Generic, NamedTuple, Protocol, TypeVar

from quorate.verification.world import Event

S = TypeVar("S", bound=Hashable)

FAULT_RATE: Final = 0.1
"""How often a step of a random walk is a fault."""


class Model(Protocol[S]):
    """A transition system over states S."""

    @property
    def faults(self) -> int:
        """How many faults may strike."""
        ...

    def initial(self) -> Iterable[S]: ...

    def successors(self, state: S) -> Iterable[tuple[Event, S]]: ...

    def strikes(self, state: S) -> Iterable[tuple[Event, S]]: ...

    def broken(self, state: S) -> Iterable[str]: ...

    def canonical(self, state: S) -> S: ...


class Violation(NamedTuple, Generic[S]):
    """A broken assertion and the way there: the first state, then events with the states they lead to."""

    assertion: str
    states_seen: int
    start: S
    path: tuple[tuple[Event, S], ...]


class Outcome(NamedTuple, Generic[S]):
    """What a search found. `complete`: every reachable state within the bounds was visited."""

    complete: bool
    states: int
    transitions: int
    seconds: float
    violations: tuple[Violation[S], ...]


class _Search(Generic[S]):
    """States met, how each was reached, and what is broken."""

    def __init__(self, model: Model[S], wanted: tuple[str, ...]) -> None:
        self.model = model
        self.wanted = wanted
        self.parents: dict[S, tuple[S, Event] | None] = {}
        self.frontier: list[S] = []
        self.struck: dict[S, tuple[S, Event]] = {}
        self.violations: list[Violation[S]] = []
        self.transitions = 0
        self._kinds: set[str] = set()

    def visit(self, state: S, parent: tuple[S, Event] | None) -> None:
        self.parents[state] = parent
        self.frontier.append(state)
        for assertion in self.model.broken(state):
            kind = assertion.partition(":")[0]
            if kind not in self._kinds and (not self.wanted or kind in self.wanted):
                self._kinds.add(kind)
                self.violations.append(trace(self.parents, state, assertion))

    def expand(self, state: S, budget: int) -> None:
        canonical, parents, struck = self.model.canonical, self.parents, self.struck
        for event, successor in self.model.successors(state):
            self.transitions += 1
            after = canonical(successor)
            if after not in parents:
                self.visit(after, (state, event))
        if not budget:
            return
        for event, successor in self.model.strikes(state):
            self.transitions += 1
            after = canonical(successor)
            if after not in parents and after not in struck:
                struck[after] = (state, event)

    def next_layer(self) -> None:
        """States that need one more fault, short of those that turned out to be reachable without it."""
        struck, self.struck, self.frontier = self.struck, {}, []
        for state, parent in struck.items():
            if state not in self.parents:
                self.visit(state, parent)


def explore(
    model: Model[S],
    *,
    max_states: int = 10_000_000,
    max_violations: int = 1,
    wanted: tuple[str, ...] = (),
    clock: Callable[[], float] = perf_counter,
) -> Outcome[S]:
    """Visit every state; stop early at `max_violations` or `max_states`.

    With `wanted` only violations of these assertions count.
    """
    began = clock()
    search = _Search(model, wanted)
    for state in model.initial():
        first = model.canonical(state)
        if first not in search.parents:
            search.visit(first, None)
    complete = True
    for budget in range(model.faults, -1, -1):
        position = 0
        while position < len(search.frontier):
            if len(search.violations) >= max_violations or len(search.parents) >= max_states:
                complete = False
                break
            search.expand(search.frontier[position], budget)
            position += 1
        if not complete:
            break
        search.next_layer()
    complete = complete and len(search.violations) < max_violations
    return Outcome(complete, len(search.parents), search.transitions, clock() - began, tuple(search.violations))


def trace(parents: dict[S, tuple[S, Event] | None], state: S, assertion: str) -> Violation[S]:
    """The way to a state."""
    path: list[tuple[Event, S]] = []
    here = state
    while (parent := parents[here]) is not None:
        path.append((parent[1], here))
        here = parent[0]
    return Violation(assertion, len(parents), here, tuple(reversed(path)))


def walk(
    model: Model[S],
    *,
    seed: int,
    walks: int,
    depth: int,
    max_violations: int = 1,
    clock: Callable[[], float] = perf_counter,
) -> Outcome[S]:
    """Random walks of a stated depth: beyond what can be searched completely. Same seed, same walks."""
    began = clock()
    draw = random.Random(seed)
    visited: set[S] = set()
    transitions = 0
    violations: list[Violation[S]] = []
    starts = list(model.initial())
    for _ in range(walks):
        state = draw.choice(starts)
        start, left = state, model.faults
        path: list[tuple[Event, S]] = []
        for _ in range(depth):
            # Faults are rare, or all of them would strike in the first few steps.
            strike = left > 0 and draw.random() < FAULT_RATE
            choices = list(model.strikes(state) if strike else model.successors(state))
            if not choices and left and not strike:
                strike, choices = True, list(model.strikes(state))
            if not choices:
                break
            left -= strike
            event, state = draw.choice(choices)
            path.append((event, state))
            transitions += 1
            visited.add(state)
            broken = next(iter(model.broken(state)), None)
            if broken is not None:
                violations.append(Violation(broken, len(visited), start, tuple(path)))
                break
        if len(violations) >= max_violations:
            break
    return Outcome(False, len(visited), transitions, clock() - began, tuple(violations))
