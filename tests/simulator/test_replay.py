"""The replay over all recordings: every exit code is matched or deliberate, and the total may only rise."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.simulator.deliberate_differences import DELIBERATE
from quorate.simulator.replay import replay
from tests.simulator.recordings import FILES, needs_recordings

MATCHED_AT_LEAST = 4680
"""Measured: 4680 of 4797 (26 skipped, 41 deliberate). Replays are deterministic, so this may only rise."""


@needs_recordings
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_exit_code_is_matched_or_deliberate(path: Path) -> None:
    mismatches = replay(path).mismatches
    assert [entry for entry in mismatches if not isinstance(entry.recorded, list)] == []


@needs_recordings
def test_the_total_does_not_fall() -> None:
    assert sum(replay(path).matched for path in FILES) >= MATCHED_AT_LEAST


@needs_recordings
@pytest.mark.parametrize("scenario", sorted({entry.scenario for entry in DELIBERATE}))
def test_a_deliberate_difference_is_one(scenario: str) -> None:
    path = next(path for path in FILES if path.stem == scenario)
    assert replay(path).deliberate > 0
