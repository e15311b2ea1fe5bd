"""Both servers give the recorded answers of a real kube-apiserver: status, body, texts, order.

The recordings are made by `make record-conformance` on the kube-apiserver pinned in tests/kube/go.mod; `make test` compares the
embedded server with them, `make test-kube` the real one too, so a recording cannot rot.
"""

from __future__ import annotations

import difflib
import json
import os
import re
from pathlib import Path

import pytest

from quorate.local.jsonvalue import Json, as_object, decode
from tests.conformance import cases_own, cases_places, cases_reads, cases_schema, cases_writes
from tests.conformance.backends import Backends
from tests.conformance.differences import DIFFERENCES
from tests.conformance.session import Case

MODULES: dict[str, dict[str, Case]] = {
    "writes": cases_writes.CASES,
    "reads": cases_reads.CASES,
    "schema": cases_schema.CASES,
    "own": cases_own.CASES,
    "places": cases_places.CASES,
}
RECORDED = Path(__file__).parent / "recorded"
RECORDING = os.environ.get("QUORATE_RECORD", "") == "1"
ALL = [(module, name) for module, cases in MODULES.items() for name in cases]


def recorded(module: str) -> dict[str, Json]:
    """What a kube-apiserver answered, by case."""
    path = RECORDED / f"{module}.json"
    return as_object(decode(path.read_bytes())) if path.exists() else {}


@pytest.mark.parametrize(("module", "name"), ALL, ids=[f"{module}: {name}" for module, name in ALL])
def test_answers_are_the_recorded_ones(backends: Backends, backend_name: str, module: str, name: str) -> None:
    with backends.session(backend_name) as session:
        MODULES[module][name](session)
    if RECORDING and backend_name == "kube":
        record(module, name, session.transcript)
        return
    expected = recorded(module).get(name)
    if backend_name == "embedded" and name in DIFFERENCES:
        assert session.transcript != expected, f"{name} does not differ any more: strike it from the list"
        return
    assert session.transcript == expected, difference(expected, session.transcript)


def record(module: str, name: str, transcript: list[Json]) -> None:
    """Write down what the real server answered."""
    known = recorded(module) | {name: transcript}
    kept = {case: known[case] for case in MODULES[module] if case in known}
    RECORDED.mkdir(exist_ok=True)
    (RECORDED / f"{module}.json").write_text(json.dumps(kept, indent=1, sort_keys=False) + "\n")


def difference(expected: Json, found: Json) -> str:
    """The differing lines."""
    one, other = (json.dumps(each, indent=1, sort_keys=True).splitlines() for each in (expected, found))
    return "\n" + "\n".join(difflib.unified_diff(one, other, "kube-apiserver", "this server", lineterm="", n=4))


def test_every_difference_names_a_case() -> None:
    assert set(DIFFERENCES) <= {name for _, name in ALL}


def test_the_document_lists_every_difference_with_its_reason() -> None:
    text = (Path(__file__).resolve().parents[2] / "docs" / "local-api.md").read_text()
    listed = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \|$", text, re.MULTILINE))
    assert {case: reason for case, reason in listed.items() if case != "case"} == DIFFERENCES
