"""Counter-examples are readable, can be kept and played again."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.verification import traces
from quorate.verification.mutants import MUTANTS, Mutant
from quorate.verification.search import explore
from quorate.verification.traces import Step
from quorate.verification.volume import VolumeModel
from quorate.verification.world import Event

H4 = next(mutant for mutant in MUTANTS if mutant.name == "H4")


def counter_example(mutant: Mutant) -> tuple[VolumeModel, str, tuple[Step, ...]]:
    model = VolumeModel(mutant.scenario, mutant.registry)
    violation = explore(model, wanted=mutant.expected).violations[0]
    return model, violation.assertion, traces.unfold(model, violation)


def test_a_trace_round_trips_through_a_file_and_breaks_the_same_again(tmp_path: Path) -> None:
    model, assertion, steps = counter_example(H4)
    path = tmp_path / "trace.json"
    path.write_bytes(traces.to_json(model.scenario, "H4", assertion, steps))
    file = traces.read(path)
    assert file.scenario == H4.scenario
    assert file.events == tuple(step.event for step in steps)
    again, broken = traces.replay(VolumeModel(file.scenario, H4.registry), file.events)
    assert len(again) == len(steps)
    assert broken == assertion


def test_the_production_engine_does_not_follow_a_mutant() -> None:
    _, assertion, steps = counter_example(H4)
    _, broken = traces.replay(VolumeModel(H4.scenario), tuple(step.event for step in steps))
    assert broken != assertion


def test_an_event_that_is_not_possible_any_more_is_named() -> None:
    _, _, steps = counter_example(H4)
    events = (*(step.event for step in steps[:2]), Event("boots", 1))
    done, broken = traces.replay(VolumeModel(H4.scenario, H4.registry), events)
    assert len(done) == 2
    assert broken == "event 3 is not possible any more: n0 boots"


def test_a_counter_example_reads_like_a_story() -> None:
    model, assertion, steps = counter_example(H4)
    text = traces.render(model, assertion, steps)
    lines = text.splitlines()
    assert lines[0] == f"VIOLATED: {assertion}"
    assert lines[1] == "scenario: 1D, static voters, 1D becomes 2D, attached to n0, 1 fault(s)"
    assert lines[3] == "  1. somebody does layout 2D"
    assert "then:" in lines
    assert any(line.startswith("  n0 D: Primary, quorum, disk UpToDate (current)") for line in lines)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("{}", "is not a trace"),
        ("no json", "is not a trace"),
    ],
)
def test_a_file_that_is_no_trace_is_refused(tmp_path: Path, content: str, text: str) -> None:
    path = tmp_path / "trace.json"
    path.write_text(content)
    with pytest.raises(ValueError, match=text):
        traces.read(path)


def test_a_trace_of_another_format_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(traces.to_json(H4.scenario, "H4", "x", ()).replace(b'"format": 1', b'"format": 9'))
    with pytest.raises(ValueError, match="format 9, this version reads format 1"):
        traces.read(path)


def test_events_are_told_with_their_nodes() -> None:
    assert traces.render_event(Event("crashes", 0b101)) == "n0 n2 crashes"
    assert traces.render_event(Event("network fault", 0, "link n0-n1 cut")) == "network fault link n0-n1 cut"
