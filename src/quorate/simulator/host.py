"""A simulated node as the node agent uses it: commands with latency, an event stream, and a few files.

Matches the agent's `Host` port by shape and imports nothing of it. Works under any asyncio loop, a virtual one
included, because it only sleeps on the running loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Final

from quorate.simulator.result import Result

if TYPE_CHECKING:
    from quorate.simulator.cluster import Cluster

LATENCY: Final = 0.02


class SimulatedHost:
    """One node; `hang` and `fail` are faults by command word."""

    def __init__(self, cluster: Cluster, name: str, latency: float = LATENCY) -> None:
        self.name = name
        self.latency = latency
        self.hang: set[str] = set()
        self.fail: dict[str, Result] = {}
        self._cluster = cluster
        self._links: dict[str, str] = {}
        self._written: dict[str, str] = {}

    async def run(self, argv: Sequence[str], *, timeout: float, stdin: str = "") -> Result:  # noqa: ASYNC109
        """Runs a command; raises TimeoutError when it takes longer than `timeout`."""
        words = frozenset(argv[:2])
        if words & self.hang or not self._cluster.nodes[self.name].running:
            await asyncio.sleep(timeout)
            raise TimeoutError(f"{argv[0]} did not end within {timeout} s")
        await asyncio.sleep(self.latency)
        for word, result in self.fail.items():
            if word in words:
                return result
        return self._cluster.nodes[self.name].execute(argv, stdin)

    async def lines(self, argv: Sequence[str]) -> AsyncIterator[str]:
        """The event stream of `drbdsetup events2`; ends when the node goes down."""
        async for line in self._cluster.event_lines(self.name, argv):
            yield line

    def write_text(self, path: str, text: str) -> bool:
        """Kernel parameters of the module; they are lost with the node."""
        if not path.startswith("/sys/module/drbd/"):
            return False
        self._written[path] = text
        return True

    def read_text(self, path: str) -> str | None:
        node = self._cluster.nodes[self.name]
        if path in self._written:
            return self._written[path]
        if path == "/proc/drbd":
            return node.kernel.module.proc
        if path == "/sys/module/drbd/parameters/usermode_helper":
            return "/sbin/drbdadm\n"
        if path.startswith("/sys/block/drbd") and path.endswith("/size"):
            minor = path.removeprefix("/sys/block/drbd").removesuffix("/size")
            volume = node.kernel.minors.get(int(minor)) if minor.isdigit() else None
            return f"{volume.blocks * 8}\n" if volume is not None else None
        return None

    def read_link(self, path: str) -> str | None:
        return self._links.get(path)

    def make_link(self, path: str, target: str) -> None:
        self._links[path] = target

    def remove(self, path: str) -> None:
        self._links.pop(path, None)

    def list_dir(self, path: str) -> tuple[str, ...]:
        if path.rstrip("/") == "/sys/block":
            return tuple(f"drbd{minor}" for minor in sorted(self._cluster.nodes[self.name].kernel.minors))
        prefix = path.rstrip("/") + "/"
        return tuple(sorted(link[len(prefix) :] for link in self._links if link.startswith(prefix)))
