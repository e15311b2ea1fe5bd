"""A whole local cluster as a process, and the commands that talk to it."""

from __future__ import annotations

import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import yaml
from click.testing import CliRunner, Result

from quorate.cli.main import main
from quorate.local.jsonvalue import JsonObject, as_object, as_text, dig, objects
from tests.local.processes import COMMAND, Served

API = "/apis/storage.deckhouse.io/v1alpha1"
FAST = "20"
"""Simulated machines live so many times faster than the tests."""


@dataclass
class Cluster(Served):
    """A running `quorate up`."""

    greeting: str = ""

    def quorate(self, *arguments: str) -> Result:
        """A command of ours against it."""
        return CliRunner().invoke(main, [*arguments, "--kubeconfig", str(self.kubeconfig)])

    def report(self, *arguments: str) -> dict[str, int | float | str]:
        """`quorate io --json`, which must succeed."""
        done = self.quorate("io", "--json", *arguments)
        assert done.exit_code == 0, done.output
        return cast("dict[str, int | float | str]", json.loads(done.output))

    def create(self, manifest: JsonObject, plural: str) -> None:
        status, body = self.send("POST", f"{API}/{plural}", json.dumps(manifest).encode())
        assert status == 201, body

    def apply_examples(self, *names: str) -> None:
        """Create the objects of example manifests."""
        plurals = {
            "storage-class": "replicatedstorageclasses",
            "volume": "replicatedvolumes",
            "attachment": "replicatedvolumeattachments",
        }
        for name in names:
            text = (self.directory / "examples" / f"{name}.yaml").read_text()
            self.create(as_object(yaml.safe_load(text)), plurals[name])

    def get(self, plural: str, name: str) -> JsonObject:
        return self.send("GET", f"{API}/{plural}/{name}")[1]

    def items(self, plural: str) -> list[JsonObject]:
        return list(objects(self.send("GET", f"{API}/{plural}")[1]["items"]))

    def until(self, reached: Callable[[], bool], what: str, seconds: float = 60.0) -> None:
        """Wait for the process; each look is a request, so nothing spins."""
        pause = threading.Event()
        deadline = time.monotonic() + seconds
        while not reached():
            assert time.monotonic() < deadline, f"not reached: {what}"
            assert self.process.poll() is None, "the cluster has stopped"
            pause.wait(0.1)

    def attached(self, name: str = "first-on-node-1") -> bool:
        return as_text(dig(self.get("replicatedvolumeattachments", name), "status", "phase")) == "Attached"

    def healthy(self, volume: str = "first", copies: int = 3) -> bool:
        """Every copy is there and UpToDate, and nothing is under way."""
        status = as_object(self.get("replicatedvolumes", volume).get("status"))
        observed = as_object(status.get("observedProtection"))
        return (
            not status.get("datameshTransitions")
            and observed.get("totalVoters") == copies
            and observed.get("upToDateVoters") == copies
        )


@contextmanager
def cluster(directory: Path, *arguments: str, scale: str = FAST) -> Generator[Cluster]:
    """`quorate up` with its nodes; killed at the end."""
    process = subprocess.Popen(
        [*COMMAND, "up", "--data", str(directory), "--port", "0", "--time-scale", scale, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        lines: list[str] = []
        while line := process.stdout.readline():
            lines.append(line)
            if line.startswith("Ctrl-C"):
                break
        if not lines:
            raise AssertionError(f"no cluster: {process.communicate()[1]}")
        port = int(lines[0].split("https://127.0.0.1:")[1].split(";")[0])
        yield Cluster(process, directory, port, "".join(lines))
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()
