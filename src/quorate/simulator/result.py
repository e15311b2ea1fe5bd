"""What a simulated program leaves behind: exit code and the two output streams, as text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Result:
    """The outcome of one command, in the shape every host command has."""

    exit_code: int
    stdout: str = ""
    stderr: str = ""


OK = Result(0)
