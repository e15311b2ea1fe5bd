"""The machine the agent runs on: programs without a shell, a few files and links.

Guarantees: arguments are passed as they are; stdin is closed or given; output is bounded; a program that does not end in
time is left running (it may hang in the kernel, killing it would not help and hide it) and the caller gets `TimeoutError`
only after the broker's patience ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

MAXIMUM_OUTPUT = 64 * 1024 * 1024
ENVIRONMENT = {"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LVM_SUPPRESS_FD_WARNINGS": "1"}


@dataclass(frozen=True, slots=True)
class Completed:
    """What a program left behind."""

    exit_code: int
    stdout: str
    stderr: str


class RealHost:
    """This machine."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def run(self, argv: Sequence[str], *, timeout: float, stdin: str = "") -> Completed:  # noqa: ASYNC109
        """Run a program to its end. `timeout` belongs to the broker, which decides when to stop waiting: the call itself
        goes on until the program ended, so that nobody believes a hung program to be gone."""
        del timeout
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE if stdin else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=ENVIRONMENT,
            )
        except FileNotFoundError:
            return Completed(127, "", f"{argv[0]}: not found")
        except PermissionError:
            return Completed(126, "", f"{argv[0]}: permission denied")
        out, err = await process.communicate(stdin.encode() if stdin else None)
        code = process.returncode if process.returncode is not None else -1
        return Completed(code, _text(out), _text(err))

    async def lines(self, argv: Sequence[str]) -> AsyncIterator[str]:
        """Lines of a long-running program; the program is ended when the caller stops reading."""
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=ENVIRONMENT,
        )
        output = process.stdout
        if output is None:
            raise RuntimeError("the program has no output")
        try:
            while line := await output.readline():
                yield _text(line).rstrip("\n")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            await process.wait()

    def read_text(self, path: str) -> str | None:
        try:
            return Path(path).read_text(errors="replace")
        except OSError:
            return None

    def write_text(self, path: str, text: str) -> bool:
        try:
            Path(path).write_text(text)
        except OSError:
            return False
        return True

    def read_link(self, path: str) -> str | None:
        try:
            return os.readlink(path)
        except OSError:
            return None

    def make_link(self, path: str, target: str) -> None:
        """A link under another name, renamed over the old one: there is never a moment without a link."""
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        fresh = place.with_name(f".{place.name}.new")
        fresh.unlink(missing_ok=True)
        fresh.symlink_to(target)
        fresh.replace(place)

    def remove(self, path: str) -> None:
        Path(path).unlink(missing_ok=True)

    def list_dir(self, path: str) -> tuple[str, ...]:
        try:
            return tuple(sorted(os.listdir(path)))
        except OSError:
            return ()


def _text(data: bytes) -> str:
    return data[:MAXIMUM_OUTPUT].decode(errors="replace")
