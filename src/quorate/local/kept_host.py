"""A simulated host whose disks are kept: what a command changed is in the file before its result is known."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

from quorate.simulator.host import SimulatedHost
from quorate.simulator.result import Result


class KeptHost:
    """Everything as the host below, with a commit after each command."""

    def __init__(self, host: SimulatedHost, commit: Callable[[], None]) -> None:
        self.name = host.name
        self._host = host
        self._commit = commit

    async def run(self, argv: Sequence[str], *, timeout: float, stdin: str = "") -> Result:  # noqa: ASYNC109
        result = await self._host.run(argv, timeout=timeout, stdin=stdin)
        self._commit()
        return result

    def lines(self, argv: Sequence[str]) -> AsyncIterator[str]:
        return self._host.lines(argv)

    def write_text(self, path: str, text: str) -> bool:
        return self._host.write_text(path, text)

    def read_text(self, path: str) -> str | None:
        return self._host.read_text(path)

    def read_link(self, path: str) -> str | None:
        return self._host.read_link(path)

    def make_link(self, path: str, target: str) -> None:
        self._host.make_link(path, target)

    def remove(self, path: str) -> None:
        self._host.remove(path)

    def list_dir(self, path: str) -> tuple[str, ...]:
        return self._host.list_dir(path)
