"""`quorate up` as a process: starting, stopping, and what it says when it cannot."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from pathlib import Path

import pytest

from quorate.local.jsonvalue import encode
from tests.local.processes import COMMAND, serving, start
from tests.local.test_http import VOLUME, VOLUMES


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_stops_cleanly_and_keeps_its_state(tmp_path: Path, number: int) -> None:
    with serving(tmp_path / "data") as first:
        status, created = first.send("POST", VOLUMES, encode(VOLUME))
        assert status == 201
        token = first.token
        # An open watch must not hold up the stop.
        connection = first.connection()
        connection.request("GET", f"{VOLUMES}?watch=true", headers={"Authorization": f"Bearer {token}"})
        assert connection.getresponse().readline().startswith(b'{"type":"ADDED"')
        assert first.stop(number) == 0
        connection.close()
        assert first.process.stdout is not None
        assert first.process.stdout.read().endswith("Stopped.\n")
    with serving(tmp_path / "data") as second:
        assert second.token == token
        assert second.send("GET", f"{VOLUMES}/v") == (200, created)


def failure(process: subprocess.Popen[str]) -> tuple[int, str]:
    _, told = process.communicate(timeout=30)
    return process.returncode, told


def test_a_port_in_use_is_one_sentence(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, told = failure(start(tmp_path / "data", port=port))
    assert (code, told) == (
        2,
        f"quorate up: Port {port} on 127.0.0.1 is already in use; choose another one with --port.\n",
    )


def test_a_directory_in_use_is_one_sentence(tmp_path: Path) -> None:
    with serving(tmp_path / "data"):
        code, told = failure(start(tmp_path / "data"))
    assert (code, len(told.splitlines())) == (2, 1)
    assert "another server uses the directory" in told


def test_an_unwritable_directory_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    code, told = failure(start(tmp_path / "file" / "data"))
    assert (code, told) == (
        2,
        f"quorate up: Cannot write to the directory {tmp_path / 'file' / 'data'}: Not a directory.\n",
    )


def test_a_damaged_database_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "objects.sqlite").write_bytes(b"not a database at all" * 500)
    code, told = failure(start(tmp_path / "data"))
    assert (code, len(told.splitlines())) == (2, 1)
    assert "cannot read" in told


def test_without_data_the_state_lives_in_memory(tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*COMMAND, "up", "--nodes", "0", "--port", "0"],
        stdout=subprocess.PIPE,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    assert "in memory" in process.stdout.readline()
    assert (tmp_path / ".quorate" / "kubeconfig").exists()
    assert not (tmp_path / ".quorate" / "objects.sqlite").exists()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode == 0
