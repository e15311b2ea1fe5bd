"""A local cluster as a process, and quorate's commands against it, as a person would type them."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import click
from click.testing import CliRunner, Result

from quorate.api.meta import ObjectMeta
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.schema import Json
from quorate.api.value import replace
from quorate.api.wire import from_builtins
from quorate.cli.common import connected, run
from quorate.cli.main import main
from quorate.local.examples import storage_class
from quorate.local.jsonvalue import JsonObject
from quorate.local.shape import Shape

COMMAND = [sys.executable, "-c", "from quorate.cli.main import main; main()"]
PATIENCE = 60.0


@dataclass(frozen=True)
class Local:
    """A running `quorate up`."""

    directory: Path
    process: subprocess.Popen[str]
    greeting: str
    """What it printed until it was ready."""

    @property
    def kubeconfig(self) -> Path:
        return self.directory / ".quorate" / "kubeconfig"

    def quorate(self, *words: str) -> Result:
        """A command in this process, without a terminal."""
        return CliRunner().invoke(main, list(words), env={"KUBECONFIG": str(self.kubeconfig)})

    def ok(self, *words: str) -> str:
        """What a command that must succeed prints."""
        result = self.quorate(*words)
        assert result.exit_code == 0, f"quorate {' '.join(words)}: {result.output} {result.exception!r}"
        return result.stdout

    def shell(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command as a process of its own, in the cluster's directory, without KUBECONFIG."""
        return subprocess.run(
            [*COMMAND, *words],
            cwd=self.directory,
            env=plain_environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    def terminal(self, *words: str) -> tuple[int, str]:
        """A command on a pseudo-terminal of 80 columns: exit code and everything it wrote."""
        return on_terminal(self.directory, *words)


def plain_environment() -> dict[str, str]:
    """The environment without anything that points to a cluster."""
    return {key: text for key, text in os.environ.items() if key not in ("KUBECONFIG", "COLUMNS", "LINES")}


def on_terminal(directory: Path, *words: str) -> tuple[int, str]:
    """Run on a pseudo-terminal."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=directory,
        env={**plain_environment(), "TERM": "xterm"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
        close_fds=True,
    )
    os.close(follower)
    written = bytearray()
    deadline = time.monotonic() + PATIENCE
    try:
        while time.monotonic() < deadline:
            ready, _, _ = select.select([leader], [], [], 1.0)
            if not ready:
                if process.poll() is not None:
                    break
                continue
            try:
                chunk = os.read(leader, 65536)
            except OSError:
                break
            if not chunk:
                break
            written += chunk
        return process.wait(timeout=PATIENCE), written.decode()
    finally:
        if process.poll() is None:
            process.kill()
        os.close(leader)


@contextmanager
def local_cluster(directory: Path, *options: str) -> Generator[Local]:
    """`quorate up` until the block is left."""
    process = subprocess.Popen(
        [*COMMAND, "up", "--port", "0", *options],
        cwd=directory,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while not lines or "Ctrl-C" not in lines[-1]:
            lines.append(process.stdout.readline())
            assert lines[-1], f"quorate up ended: {''.join(lines)}"
        yield Local(directory, process, "".join(lines))
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=PATIENCE)


def as_json(value: JsonObject) -> dict[str, Json]:
    """The same, as the other package's type."""
    return json.loads(json.dumps(value))


def create_class(local: Local, name: str, ftt: int, gmdr: int, nodes: int = 5) -> None:
    """A class over all nodes, as `kubectl apply` would create it."""
    manifest = from_builtins(ReplicatedStorageClass, as_json(storage_class(Shape(nodes=nodes))))
    spec = replace(manifest.spec, failures_to_tolerate=ftt, guaranteed_minimum_data_redundancy=gmdr)
    made = replace(manifest, metadata=ObjectMeta(name=name), spec=spec)

    async def create() -> None:
        async with connected(str(local.kubeconfig), "") as client:
            await client.create(made)

    run(create)


def plain(text: str) -> str:
    """Text without colours and cursor movements."""
    return click.unstyle(text).replace("\r", "")
