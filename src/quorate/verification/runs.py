"""Runs of the checker: which scenarios make up a run, spread over processes, and what came out, ready for JSON.

A run is one layout in one voter mode. It is complete when every scenario of it was searched to the last state. Scenarios are
independent, so they are handed to worker processes one by one, the expensive ones first; the result does not depend on the
number of workers.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from time import process_time
from typing import Final

import msgspec

from quorate.verification import mutants, scenarios, sequence_mutants, traces
from quorate.verification.assertions import STUCK
from quorate.verification.search import Outcome, explore, walk
from quorate.verification.sequences import RULINGS, Ruling, SequenceModel, SequenceState
from quorate.verification.volume import Scenario, VolumeModel, VolumeState

MAX_STATES: Final = 3_000_000

ABSTRACTED: Final = (
    "data: a disk holds every acknowledged write or it does not; no blocks, bitmaps or sizes",
    "an event of a kernel is atomic with everything the kernels then do by themselves",
    "agents apply in three steps (stricter options, peers and disk, laxer options), then the role; each may be interleaved",
    "a report is what the node's agent can read at the moment of the pass; no stale caches, no lost writes to the API",
    "time: no timeouts; a synchronisation ends at any moment or never",
    "one volume, at most one node attached at a time unless a scenario moves it; no resize, no network change",
)
"""What the model leaves out."""


class Task(msgspec.Struct, frozen=True):
    """One search or one set of walks."""

    scenario: Scenario
    walks: scenarios.Walks | None = None
    max_states: int = MAX_STATES
    mutant: str = ""


class Found(msgspec.Struct, frozen=True):
    """A violation in words."""

    assertion: str
    scenario: str
    steps: tuple[str, ...]
    then: tuple[str, ...]


class Result(msgspec.Struct, frozen=True):
    """What one task found."""

    scenario: str
    faults: int
    complete: bool
    states: int
    transitions: int
    passes: int
    violations: tuple[Found, ...]
    limits: tuple[str, ...]
    seconds: float
    """Processor time."""
    trace: str = ""
    """A trace file of the first violation."""


class Scope(msgspec.Struct, frozen=True):
    """What was searched, and what the model leaves out."""

    scenarios: tuple[Result, ...]
    abstracted: tuple[str, ...] = ABSTRACTED


class Run(msgspec.Struct, frozen=True):
    """One layout in one voter mode."""

    layout: str
    voters: str
    faults: int
    scope: Scope
    complete: bool
    states: int
    transitions: int
    violations: tuple[Found, ...]
    limits: tuple[str, ...]
    seconds: float


class Caught(msgspec.Struct, frozen=True):
    """A mutant and what the checker made of it."""

    name: str
    hazard: str
    layout: str
    voters: str
    caught: bool
    states: int
    seconds: float
    violations: tuple[Found, ...]
    trace: str = ""


# One task --------------------------------------------------------------------------------------------------------------


def perform(task: Task) -> Result:
    """Search or walk one scenario of the production engine."""
    model = VolumeModel(task.scenario, reduce_symmetry=task.walks is None)
    outcome = _explored(model, task)
    return Result(
        scenario=task.scenario.name,
        faults=task.scenario.faults,
        complete=outcome.complete,
        states=outcome.states,
        transitions=outcome.transitions,
        passes=model.passes,
        violations=tuple(_found(model, outcome)),
        limits=tuple(sorted(model.limits)),
        seconds=round(outcome.seconds, 3),
        trace=_trace(model, outcome, task.mutant),
    )


def _explored(model: VolumeModel, task: Task) -> Outcome[VolumeState]:
    if task.walks is None:
        return explore(model, max_states=task.max_states, clock=process_time)
    chosen = task.walks
    return walk(model, seed=chosen.seed, walks=chosen.walks, depth=chosen.depth, clock=process_time)


def _found(model: VolumeModel, outcome: Outcome[VolumeState]) -> Iterator[Found]:
    for violation in outcome.violations:
        steps = traces.unfold(model, violation)
        yield Found(
            violation.assertion,
            traces.describe(model.scenario),
            tuple(traces.render_event(step.event) for step in steps),
            tuple(traces.render_state(model, steps[-1].state)) if steps else (),
        )


def _trace(model: VolumeModel, outcome: Outcome[VolumeState], mutant: str) -> str:
    if not outcome.violations:
        return ""
    first = outcome.violations[0]
    return traces.to_json(model.scenario, mutant, first.assertion, traces.unfold(model, first)).decode()


def catch(name: str) -> Caught:
    """Run one mutant in its scenario."""
    for sequence in sequence_mutants.SEQUENCE_MUTANTS:
        if sequence.name == name:
            return _catch_sequence(sequence)
    mutant = find_mutant(name)
    model = VolumeModel(mutant.scenario, mutant.registry, judge_liveness=STUCK in mutant.expected)
    outcome = explore(model, max_states=MAX_STATES, wanted=mutant.expected, clock=process_time)
    return Caught(
        mutant.name,
        mutant.hazard,
        str(mutant.scenario.layout),
        mutant.scenario.voters,
        bool(outcome.violations),
        outcome.states,
        round(outcome.seconds, 3),
        tuple(_found(model, outcome)),
        _trace(model, outcome, name),
    )


def _catch_sequence(mutant: sequence_mutants.SequenceMutant) -> Caught:
    outcome = explore(mutant.model(), max_states=MAX_STATES, wanted=mutant.expected, clock=process_time)
    found = tuple(
        Found(v.assertion, mutant.sequence.name, tuple(traces.render_event(event) for event, _ in v.path), ())
        for v in outcome.violations
    )
    return Caught(
        mutant.name,
        mutant.hazard,
        mutant.sequence.name.partition(" ")[0].rstrip(","),
        mutant.voters,
        bool(outcome.violations),
        outcome.states,
        round(outcome.seconds, 3),
        found,
    )


def perform_sequence(ruling: Ruling, voters: str) -> Outcome[SequenceState]:
    """Play a ruling of the decision about voter changes."""
    model = SequenceModel(
        ruling.sequence, dynamic=voters == "dynamic", faults=ruling.faults, primaries=ruling.primaries
    )
    return explore(model, max_states=MAX_STATES, clock=process_time)


class Played(msgspec.Struct, frozen=True):
    """A ruling of the decision about voter changes, and whether it holds."""

    ruling: str
    voters: str
    safe: bool
    """What the decision says."""
    holds: bool
    """Whether the search agrees: nothing broken to the last state, or a violation found."""
    states: int
    seconds: float


def play(name: str, voters: str) -> Played:
    """Play one ruling in one voter mode."""
    ruling = next(ruling for ruling in RULINGS if ruling.name == name)
    outcome = perform_sequence(ruling, voters)
    holds = outcome.complete and not outcome.violations if ruling.safe else bool(outcome.violations)
    return Played(name, voters, ruling.safe, holds, outcome.states, round(outcome.seconds, 3))


def play_all(jobs: int) -> tuple[Played, ...]:
    """Play every ruling in both voter modes."""
    chosen = [(ruling.name, voters) for ruling in RULINGS for voters in scenarios.VOTER_MODES]
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=4) as pool:
        return tuple(pool.starmap(play, chosen, chunksize=1))


def find_mutant(name: str) -> mutants.Mutant:
    """A mutant of the volume model by its name."""
    for mutant in mutants.MUTANTS:
        if mutant.name == name:
            return mutant
    raise ValueError(f"there is no mutant {name}; there are {', '.join(mutant_names())}")


def mutant_names() -> tuple[str, ...]:
    """All mutants."""
    return tuple(m.name for m in (*mutants.MUTANTS, *sequence_mutants.SEQUENCE_MUTANTS))


# Many tasks ------------------------------------------------------------------------------------------------------------


def tasks_of(
    layout: str,
    voters: str,
    *,
    faults: int | None = None,
    only: str = "",
    walks: scenarios.Walks | None = None,
    max_states: int = MAX_STATES,
) -> tuple[Task, ...]:
    """What a run consists of; ValueError when the layout or the scenario is unknown."""
    found = scenarios.LAYOUTS.get(layout)
    if found is None:
        raise ValueError(f"there is no layout {layout}; there are {', '.join(scenarios.LAYOUTS)}")
    if walks is not None:
        chosen = tuple(scenarios.wandering(found, voters))
        if faults is not None:
            chosen = tuple(scenario._replace(faults=faults) for scenario in chosen)
    else:
        chosen = tuple(scenarios.complete(found, voters, scenarios.default_faults(found) if faults is None else faults))
    named = tuple(scenario for scenario in chosen if not only or scenario.name == only)
    if not named:
        names = "; ".join(scenario.name for scenario in chosen)
        raise ValueError(f"{layout} has no scenario {only!r}; it has: {names}")
    return tuple(Task(scenario, walks, max_states) for scenario in named)


def summarize(layout: str, voters: str, results: tuple[Result, ...]) -> Run:
    """One run from the results of its tasks."""
    return Run(
        layout=layout,
        voters=voters,
        faults=max(result.faults for result in results),
        scope=Scope(results),
        complete=all(result.complete for result in results),
        states=sum(result.states for result in results),
        transitions=sum(result.transitions for result in results),
        violations=tuple(found for result in results for found in result.violations),
        limits=tuple(sorted({limit for result in results for limit in result.limits})),
        seconds=round(sum(result.seconds for result in results), 3),
    )


def perform_all(
    tasks: tuple[Task, ...], jobs: int, told: Callable[[Task, Result], None] = lambda task, result: None
) -> tuple[Result, ...]:
    """Perform tasks in worker processes; the results stand in the order of the tasks. `told` hears of each at once."""
    found: dict[int, Result] = {}
    for i, result in _performed(tasks, jobs):
        found[i] = result
        told(tasks[i], result)
    return tuple(found[i] for i in range(len(tasks)))


def _performed(tasks: tuple[Task, ...], jobs: int) -> Iterator[tuple[int, Result]]:
    if jobs <= 1 or len(tasks) == 1:
        yield from enumerate(map(perform, tasks))
        return
    order = sorted(range(len(tasks)), key=lambda i: -_weight(tasks[i]))
    # A fresh process for every few tasks gives the memory of large searches back.
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=4) as pool:
        yield from pool.imap_unordered(_numbered, [(i, tasks[i]) for i in order])


def _numbered(numbered: tuple[int, Task]) -> tuple[int, Result]:
    return numbered[0], perform(numbered[1])


def _weight(task: Task) -> int:
    """Larger volumes, more faults and replacements cost most."""
    scenario = task.scenario
    nodes = scenario.layout.diskful + scenario.layout.tie_breakers + scenario.spares
    return 4 ** (scenario.faults) * nodes * (2 if "replaced" in scenario.name else 1)


def catch_all(names: Iterable[str], jobs: int) -> tuple[Caught, ...]:
    """Run mutants in worker processes."""
    chosen = tuple(names)
    if jobs <= 1 or len(chosen) == 1:
        return tuple(map(catch, chosen))
    with multiprocessing.get_context("spawn").Pool(jobs, maxtasksperchild=4) as pool:
        return tuple(pool.imap(catch, chosen))
