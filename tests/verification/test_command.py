"""`quorate model-check`: what it prints, and its exit codes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorate.cli.model_check import command

KEYS = {
    "layout",
    "voters",
    "faults",
    "scope",
    "complete",
    "states",
    "transitions",
    "violations",
    "limits",
    "seconds",
}


def run(*arguments: str) -> Result:
    return CliRunner().invoke(command, [*arguments, "--jobs", "1"])


def test_one_layout_is_one_object() -> None:
    result = run("--layout", "1D", "--voters", "static", "--faults", "1", "--json")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert set(found) == KEYS
    assert (found["layout"], found["voters"], found["faults"]) == ("1D", "static", 1)
    assert found["complete"] is True
    assert found["violations"] == []
    assert found["states"] == sum(scenario["states"] for scenario in found["scope"]["scenarios"]) > 100
    assert found["scope"]["abstracted"]


def test_the_stock_module_is_the_default_voter_mode_of_a_layout() -> None:
    result = run("--layout", "2D", "--scenario", "the attachment moves", "--json")
    assert json.loads(result.stdout)["voters"] == "dynamic"


def test_all_layouts_are_a_table_and_a_list_of_runs() -> None:
    bounded = ("--scenario", "a node fails", "--faults", "0")
    table = run(*bounded)
    assert table.exit_code == 0
    rows = table.stdout.splitlines()
    assert rows[0].split() == [
        "layout", "voters", "faults", "scenarios", "states", "transitions", "seconds", "complete", "violations",
    ]  # fmt: skip
    assert len(rows) == 1 + 7 * 2
    found = json.loads(run(*bounded, "--json").stdout)
    assert [(one["layout"], one["voters"]) for one in found["runs"][:3]] == [
        ("1D", "dynamic"),
        ("1D", "static"),
        ("2D", "dynamic"),
    ]


def test_a_bound_makes_a_search_incomplete() -> None:
    found = json.loads(run("--layout", "2D", "--scenario", "a node fails", "--max-states", "10", "--json").stdout)
    assert found["complete"] is False


def test_a_mutant_prints_its_trace_and_exits_1(tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    result = run("--mutant", "H31", "--save", str(path))
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0] == "H31: a vote changes beside a tie-breaker in one revision"
    assert lines[1].startswith("caught in ")
    assert "VIOLATED: two disjoint writable sides" in result.stdout
    assert "  1. somebody does delete n1" in lines
    again = run("--replay", str(path))
    assert again.exit_code == 1
    assert "now: two disjoint writable sides" in again.stdout
    replayed = json.loads(run("--replay", str(path), "--json").stdout)
    assert replayed["possible"] is True
    assert replayed["recorded"] == replayed["broken"]


def test_a_mutant_as_json_has_its_steps() -> None:
    result = run("--mutant", "H3", "--json")
    found = json.loads(result.stdout)
    assert result.exit_code == 1
    assert found["caught"] is True
    assert found["violations"][0]["steps"][0] == "somebody does layout 2D"


def test_walks_are_seeded_and_never_complete() -> None:
    asked = ("--layout", "2D", "--walks", "2", "--depth", "30", "--seed", "5", "--json")
    first, second = (json.loads(run(*asked).stdout) for _ in range(2))
    assert first["complete"] is False
    assert first["faults"] == 5
    assert (first["states"], first["transitions"]) == (second["states"], second["transitions"])


def test_markdown_for_the_documents() -> None:
    lines = run("--layout", "1D", "--faults", "0", "--markdown").stdout.splitlines()
    assert lines[0].startswith("| layout | voters | faults |")
    assert lines[2].startswith("| 1D | dynamic | 0 | ")


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--layout", "2X"), "there is no layout 2X; there are 1D, 2D, 2D+1TB, 3D, 4D, 4D+1TB, 5D"),
        (("--layout", "1D", "--scenario", "x"), "1D has no scenario 'x'; it has: a node fails; "),
        (("--mutant", "H99"), "there is no mutant H99; there are H1, H2, "),
    ],
)
def test_nonsense_is_answered_with_one_sentence_and_exit_code_2(arguments: tuple[str, ...], sentence: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stderr.startswith(f"Error: {sentence}")
    assert len(result.stderr.splitlines()) == 1


def test_a_file_that_is_no_trace_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "no-trace"
    path.write_text("{}")
    result = run("--replay", str(path))
    assert result.exit_code == 2
    assert "is not a trace" in result.stderr
