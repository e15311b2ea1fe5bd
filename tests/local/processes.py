"""Running `quorate up` as a process, and talking to it over TLS."""

from __future__ import annotations

import json
import os
import shutil
import signal
import ssl
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPSConnection
from pathlib import Path
from typing import IO

import pytest

from quorate.local.jsonvalue import JsonObject, as_object, decode

COMMAND = [sys.executable, "-c", "from quorate.cli.main import main; main()"]


@dataclass
class Served:
    """A running server process."""

    process: subprocess.Popen[str]
    directory: Path
    port: int

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "kubeconfig"

    @property
    def token(self) -> str:
        return (self.directory / "token").read_text().strip()

    def connection(self) -> HTTPSConnection:
        context = ssl.create_default_context(cafile=str(self.directory / "tls.crt"))
        return HTTPSConnection("127.0.0.1", self.port, context=context, timeout=30)

    def send(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        token: str | None = None,
        content_type: str = "application/json",
    ) -> tuple[int, JsonObject]:
        headers = {"Content-Type": content_type}
        bearer = self.token if token is None else token
        if bearer:
            headers["Authorization"] = f"Bearer {bearer}"
        connection = self.connection()
        try:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, as_object(decode(response.read() or b"{}"))
        finally:
            connection.close()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def stop(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=30)


def start(directory: Path, *, port: int = 0) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*COMMAND, "up", "--nodes", "0", "--data", str(directory), "--port", str(port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )


def _first_line(stream: IO[str] | None) -> str:
    return stream.readline() if stream is not None else ""


@contextmanager
def serving(directory: Path) -> Generator[Served]:
    """A server on a free port, ready for requests; killed at the end."""
    process = start(directory)
    try:
        line = _first_line(process.stdout)
        if "https://127.0.0.1:" not in line:
            process.kill()
            raise AssertionError(f"no server: {line}{process.communicate()[1]}")
        yield Served(process, directory, int(line.split("https://127.0.0.1:")[1].split(";")[0]))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def kubectl_path() -> str:
    """The kubectl binary; without one the test is skipped, in CI it fails."""
    found = os.environ.get("KUBECTL") or shutil.which("kubectl")
    if found is None:
        if os.environ.get("CI") == "true":
            pytest.fail("kubectl is missing; CI must provide one (KUBECTL or PATH)")
        pytest.skip("no kubectl here: set KUBECTL or put it on PATH to run these tests")
    return found


def as_json(text: str) -> JsonObject:
    return as_object(json.loads(text))
