"""The coverage table names only tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
TABLE = TESTS.parent / "docs" / "seed-coverage.md"


def named_tests() -> list[tuple[str, str, str]]:
    """Folder, test file and the rest of the node id of every test in the table, by section."""
    folder, found = "", list[tuple[str, str, str]]()
    for line in TABLE.read_text().splitlines():
        if match := re.match(r"Tests in `(.+)/`", line):
            folder = match[1]
        found += [(folder, file, rest) for file, rest in re.findall(r"`(test_\w+\.py)::([^`]+)`", line)]
    return found


def test_every_named_test_exists() -> None:
    missing: list[str] = []
    for folder, file, rest in named_tests():
        path = TESTS / folder / file
        text = path.read_text() if path.exists() else ""
        name, _, case = rest.partition("[")
        parts = name.split("::")
        known = all(re.search(rf"\b(def|class) {part}\b", text) for part in parts)
        # A case is spelled in the table of its test, without the prefix that the parametrisation adds.
        words = case.removesuffix("]").split(": ", 1)[-1].removeprefix("fact ")
        if not known or (case and words not in text):
            missing.append(f"{folder}/{file}::{rest}")
    assert missing == []


def test_the_table_is_not_empty() -> None:
    assert len(named_tests()) > 150
