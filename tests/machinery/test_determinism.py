"""Same seed, same history: in one process, and in processes whose hashes and addresses differ."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.machinery.history import history

ROOT = Path(__file__).parents[2]


def in_process(seed: int, hash_seed: str) -> str:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-m", "tests.machinery.history", str(seed)],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


@pytest.mark.parametrize("seed", [1, 2])
def test_one_seed_is_one_history_in_processes_with_different_hashes(seed: int) -> None:
    first, second = in_process(seed, "1"), in_process(seed, "4242")
    assert first == second
    assert first == history(seed)
    requests = int(first.split()[0])
    assert requests > 300


def test_another_seed_is_another_history() -> None:
    assert history(1) != history(2)
