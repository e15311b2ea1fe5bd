"""Where the recordings are; tests that need them are skipped when the machine has none."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

DIRECTORY = Path(os.environ.get("QUORATE_TRANSCRIPTS", Path(__file__).parents[3] / "shared" / "drbd-transcripts"))
FILES = tuple(sorted(DIRECTORY.glob("*.jsonl"))) if DIRECTORY.is_dir() else ()

needs_recordings = pytest.mark.skipif(not FILES, reason="no recordings here (QUORATE_TRANSCRIPTS)")
