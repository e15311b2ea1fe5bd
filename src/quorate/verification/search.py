"""Explicit-state search: breadth first with traces, and seeded random walks.

A `Model` is anything that can name its initial states, the successors of a state and what is broken in a state. The
search knows nothing else. It is complete when it stopped because nothing new was left; the shortest trace to every
violation is kept.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Hashable, Iterable
from time import perf_counter
from typing import Generic, NamedTuple, Protocol, TypeVar

from quorate.verification.world import Event

S = TypeVar("S", bound=Hashable)


class Model(Protocol[S]):
    """A transition system over states S."""

    def initial(self) -> Iterable[S]: ...

    def successors(self, state: S) -> Iterable[tuple[Event, S]]: ...

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


def explore(
    model: Model[S],
    *,
    max_states: int = 10_000_000,
    max_violations: int = 1,
    wanted: tuple[str, ...] = (),
    clock: Callable[[], float] = perf_counter,
) -> Outcome[S]:
    """Visit every state in breadth-first order; stop early at `max_violations` or `max_states`.

    With `wanted` only violations of these assertions count.
    """
    began = clock()
    parents: dict[S, tuple[S, Event] | None] = {}
    frontier: list[S] = []
    violations: list[Violation[S]] = []
    transitions = 0
    seen_assertions: set[str] = set()

    def visit(state: S, parent: tuple[S, Event] | None) -> None:
        parents[state] = parent
        frontier.append(state)
        for assertion in model.broken(state):
            kind = assertion.partition(":")[0]
            if kind not in seen_assertions and (not wanted or kind in wanted):
                seen_assertions.add(kind)
                violations.append(trace(parents, state, assertion))

    for state in model.initial():
        first = model.canonical(state)
        if first not in parents:
            visit(first, None)
    position = 0
    while position < len(frontier) and len(violations) < max_violations and len(parents) < max_states:
        state = frontier[position]
        position += 1
        for event, successor in model.successors(state):
            transitions += 1
            after = model.canonical(successor)
            if after not in parents:
                visit(after, (state, event))
    complete = position == len(frontier)
    return Outcome(complete, len(parents), transitions, clock() - began, tuple(violations))


def trace(parents: dict[S, tuple[S, Event] | None], state: S, assertion: str) -> Violation[S]:
    """The shortest way to a state."""
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
    visited: set[int] = set()
    transitions = 0
    violations: list[Violation[S]] = []
    starts = list(model.initial())
    for _ in range(walks):
        state = draw.choice(starts)
        start = state
        path: list[tuple[Event, S]] = []
        for _ in range(depth):
            choices = list(model.successors(state))
            if not choices:
                break
            event, state = draw.choice(choices)
            path.append((event, state))
            transitions += 1
            visited.add(hash(state))
            broken = next(iter(model.broken(state)), None)
            if broken is not None:
                violations.append(Violation(broken, len(visited), start, tuple(path)))
                break
        if len(violations) >= max_violations:
            break
    return Outcome(False, len(visited), transitions, clock() - began, tuple(violations))
