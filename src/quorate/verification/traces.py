"""Counter-examples for people and for machines: a readable list of steps, and a file that can be replayed.

A trace file holds the scenario and the events; replaying it plays the same events against the model of today and says where
it leads now: to the same broken assertion, or where an event is no longer possible.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from quorate.verification.cluster import STORE_NAMES
from quorate.verification.configuration import GONE, KIND_NAMES
from quorate.verification.search import Violation
from quorate.verification.volume import Scenario, VolumeModel, VolumeState, summary
from quorate.verification.world import Event, names

FORMAT = 1


class Step(NamedTuple):
    """An event and what the kernels look like after it."""

    event: Event
    state: VolumeState


def moves(model: VolumeModel, state: VolumeState) -> Iterator[tuple[Event, VolumeState]]:
    """Everything that can happen, faults included."""
    yield from model.successors(state)
    yield from model.strikes(state)


def unfold(model: VolumeModel, violation: Violation[VolumeState]) -> tuple[Step, ...]:
    """The way to a violation with node names that stay the same all along; the search may have swapped equal nodes."""
    here = next(state for state in model.initial() if model.canonical(state) == violation.start)
    steps: list[Step] = []
    for _, wanted in violation.path:
        event, here = next((event, after) for event, after in moves(model, here) if model.canonical(after) == wanted)
        steps.append(Step(event, here))
    return tuple(steps)


def render_event(event: Event) -> str:
    """One event in words."""
    who = names(event.nodes)
    return " ".join(part for part in (who, event.verb, event.detail) if part)


def render_state(model: VolumeModel, state: VolumeState) -> list[str]:
    """The published configuration and every node that takes part."""
    entry = model.table.entries[state.published]
    lines = [f"published {summary(entry)}"]
    cluster = model.worlds.clusters[state.world.cluster]
    for i, node in enumerate(cluster.nodes):
        held = node.configuration
        if held.kind == GONE and node.up and not entry.members >> i & 1:
            continue
        if not node.up:
            fenced = ", fenced" if state.world.fenced >> i & 1 else ""
            lines.append(f"  n{i}: down{fenced}, disk {_data(node.store, node.current)}")
            continue
        quorum = {-1: "majority"}.get(held.quorum, str(held.quorum))
        flags = [
            "Primary" if node.primary else "Secondary",
            "quorum" if node.quorum else "no quorum",
            f"disk {_data(node.store, node.current)}",
            f"q {quorum}, qmr {held.minimum_redundancy}",
            f"connected to {names(cluster.links[i]) or 'nobody'}",
        ]
        lines.append(f"  n{i} {KIND_NAMES[held.kind]}: " + ", ".join(flags))
    return lines


def _data(store: int, current: bool) -> str:
    return STORE_NAMES[store] if store == 0 else f"{STORE_NAMES[store]} ({'current' if current else 'stale'})"


def render(model: VolumeModel, assertion: str, steps: tuple[Step, ...]) -> str:
    """The whole counter-example."""
    lines = [f"VIOLATED: {assertion}", f"scenario: {describe(model.scenario)}", ""]
    lines += [f"{number:3}. {render_event(step.event)}" for number, step in enumerate(steps, 1)]
    if steps:
        lines += ["", "then:", *render_state(model, steps[-1].state)]
    return "\n".join(lines)


def describe(scenario: Scenario) -> str:
    """A scenario in one line."""
    where = "" if scenario.attached is None else ", attached to " + ("a client" if scenario.client else "n0")
    return f"{scenario.layout}, {scenario.voters} voters, {scenario.name}{where}, {scenario.faults} fault(s)"


# Files ---------------------------------------------------------------------------------------------------------------


class TraceFile(msgspec.Struct, frozen=True):
    """What a trace file holds."""

    format: int
    mutant: str
    assertion: str
    scenario: Scenario
    events: tuple[Event, ...]


def to_json(scenario: Scenario, mutant: str, assertion: str, steps: tuple[Step, ...]) -> bytes:
    """The contents of a trace file."""
    trace = TraceFile(FORMAT, mutant, assertion, scenario, tuple(step.event for step in steps))
    return msgspec.json.format(msgspec.json.encode(trace), indent=2)


def read(path: Path) -> TraceFile:
    """Read a trace file; ValueError when it is none."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=TraceFile)
    except msgspec.MsgspecError as error:
        raise ValueError(f"{path} is not a trace: {error}") from error
    if found.format != FORMAT:
        raise ValueError(f"{path} is a trace of format {found.format}, this version reads format {FORMAT}")
    return found


def replay(model: VolumeModel, events: tuple[Event, ...]) -> tuple[tuple[Step, ...], str]:
    """Play events again; the steps that were possible, and what is broken in the end (empty = nothing)."""
    here = next(iter(model.initial()))
    steps: list[Step] = []
    for event in events:
        found = next((after for other, after in moves(model, here) if other == event), None)
        if found is None:
            found = next((after for other, after in moves(model, here) if other[:2] == event[:2]), None)
        if found is None:
            return tuple(steps), f"event {len(steps) + 1} is not possible any more: {render_event(event)}"
        here = found
        steps.append(Step(event, here))
    return tuple(steps), next(iter(model.broken(here)), "")
