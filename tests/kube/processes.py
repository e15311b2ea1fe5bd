"""Controller and extender processes on a real API server, each under its own service account; ended by pid."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

from quorate.local.shape import NAMESPACE
from tests.kube.accounts import CONTROLLER, EXTENDER, Admin
from tests.kube.servers import ControlPlane, free_port

QUORATE = str(Path(sys.executable).parent / "quorate")
STARTING = 300.0
"""Seconds that a process has to become ready."""


@dataclass
class Process:
    """One running program with a health port."""

    name: str
    port: int
    """Health, readiness and metrics."""
    popen: subprocess.Popen[bytes]
    log: Path
    serves: int = 0
    """Port of what it offers, if anything."""
    log_from: int = 0
    """Where its part of the log begins: processes of one name share a file."""

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.popen.pid

    async def ready(self, seconds: float = STARTING) -> None:
        """Wait until it says that it is ready."""
        for _ in range(int(seconds * 10)):
            if self.popen.poll() is not None:
                raise RuntimeError(f"{self.name} ended with {self.popen.returncode}:\n{self.tail()}")
            if await asyncio.to_thread(self._is_ready):
                return
            await asyncio.sleep(0.1)
        raise RuntimeError(f"{self.name} is not ready after {seconds:.0f} s:\n{self.tail()}")

    def _is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/readyz", timeout=10) as answer:
                return answer.status == 200
        except (urllib.error.URLError, OSError):
            return False

    async def metrics(self) -> str:
        """The text of its metrics."""
        return await asyncio.to_thread(self._read, "/metrics")

    async def readiness(self) -> str:
        """What a ready process says that it does."""
        return (await asyncio.to_thread(self._read, "/readyz")).strip()

    def _read(self, path: str) -> str:
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}{path}", timeout=60) as answer:
            return answer.read().decode()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        self.popen.send_signal(number)

    async def kill(self) -> None:
        """End it at once, wherever it is."""
        self.popen.kill()
        await asyncio.to_thread(self.popen.wait)

    async def end(self) -> None:
        """Ask it to end, and wait."""
        if self.popen.poll() is None:
            self.popen.send_signal(signal.SIGCONT)
            self.popen.terminate()
            try:
                await asyncio.to_thread(self.popen.wait, 30)
            except subprocess.TimeoutExpired:
                await self.kill()

    def said(self) -> str:
        """Its log."""
        return self.log.read_bytes()[self.log_from :].decode(errors="replace")

    def tail(self) -> str:
        """The end of its log."""
        return self.said()[-3000:]


@dataclass
class Processes:
    """Starts processes and ends those that are left."""

    plane: ControlPlane
    admin: Admin
    running: list[Process] = field(default_factory=list[Process])

    async def controller(
        self, name: str = "controller", *, elect: bool = False, extender: str = "in-process"
    ) -> Process:
        """A controller process; with election it may have to wait for the lease before it works."""
        config = await self.config_of(CONTROLLER, name)
        port = free_port()
        arguments = ["--kubeconfig", str(config), "--namespace", NAMESPACE, "--extender-url", extender]
        arguments += ["--health-address", f"127.0.0.1:{port}", "--metrics-address", f"127.0.0.1:{port}"]
        arguments += ["--leader-election" if elect else "--no-leader-election"]
        return self._start(name, port, ["controller", *arguments])

    async def extender(self) -> Process:
        """The scheduler extender."""
        config = await self.config_of(EXTENDER, "extender")
        port, health = free_port(), free_port()
        arguments = ["--kubeconfig", str(config), "--port", str(port), "--health-address", f"127.0.0.1:{health}"]
        return self._start("extender", health, ["extender", *arguments], serves=port)

    async def config_of(self, account: str, name: str) -> Path:
        """A kubeconfig with a token of an account."""
        token = await self.admin.token(account)
        return self.plane.kubeconfig(f"token: {token}", f"{name}.kubeconfig")

    def _start(self, name: str, port: int, arguments: list[str], *, serves: int = 0) -> Process:
        log = self.plane.directory / f"{name}.log"
        environment = {**os.environ, "NO_PROXY": "*"}
        begin = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            popen = subprocess.Popen(
                [QUORATE, *arguments], stdout=output, stderr=output, cwd=self.plane.directory, env=environment
            )
        process = Process(name, port, popen, log, serves, begin)
        self.running.append(process)
        return process

    async def end(self) -> None:
        """End everything that still runs."""
        for process in self.running:
            await process.end()
        self.running.clear()
