"""The port through which the agent touches its node: programs, and a few files and links.

The real host (`real_host.py`) and the simulated one match it structurally; nothing in the agent asks which one it has.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Protocol


class CommandResult(Protocol):
    """What a program left behind; the two streams are never mixed (trap T11)."""

    @property
    def exit_code(self) -> int: ...
    @property
    def stdout(self) -> str: ...
    @property
    def stderr(self) -> str: ...


class Host(Protocol):
    """One node."""

    @property
    def name(self) -> str:
        """The node's name in the API."""
        ...

    async def run(self, argv: Sequence[str], *, timeout: float, stdin: str = "") -> CommandResult:  # noqa: ASYNC109
        """Run a program without a shell; `TimeoutError` when it does not end in time (it may still be running)."""
        ...

    def lines(self, argv: Sequence[str]) -> AsyncIterator[str]:
        """The lines a long-running program prints; ends when the program ends."""
        ...

    def read_text(self, path: str) -> str | None:
        """Contents of a small file, None when it cannot be read."""
        ...

    def write_text(self, path: str, text: str) -> bool:
        """Write a kernel parameter; False when that is not possible."""
        ...

    def read_link(self, path: str) -> str | None: ...

    def make_link(self, path: str, target: str) -> None:
        """Point `path` to `target`, replacing what was there in one step."""
        ...

    def remove(self, path: str) -> None:
        """Remove a link or file; nothing happens when there is none."""
        ...

    def list_dir(self, path: str) -> tuple[str, ...]:
        """Names in a directory, sorted; empty when there is no such directory."""
        ...
