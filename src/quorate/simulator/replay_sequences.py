"""Several programs in one recorded line: `a; b`, `a && b`, `a || b`, `a | b`, with redirections.

Guarantees: programs of DRBD, LVM and dd run in their order, because later steps depend on what they did; the exit code
is compared only when the line's own exit code follows from programs that are known. Loops, substitutions and programs in
the background have forms of their own or are skipped.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from quorate.simulator.result import Result

_SIMPLE: Final = {"true": 0, ":": 0, "false": 1, "echo": 0, "sleep": 0, "sync": 0, "printf": 0}
_UNSUPPORTED: Final = frozenset({"for", "while", "until", "if", "case", "{", "(", "function", "!"})


@dataclass(frozen=True, slots=True)
class Part:
    """One program of a line and what stands before it (`;`, `&&`, `||`, `|`)."""

    operator: str
    argv: tuple[str, ...]


def split_sequence(line: str) -> tuple[Part, ...] | None:
    """The programs of a line, None when it needs more of a shell than this."""
    if "$(" in line or "`" in line or "<<" in line:
        return None
    lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    parts: list[Part] = []
    operator, words = ";", list[str]()
    try:
        tokens = list(lexer)
    except ValueError:
        return None
    while tokens:
        token = tokens.pop(0)
        if token in (";", "&&", "||", "|"):
            parts.append(Part(operator, tuple(words)))
            operator, words = token, []
        elif token in (">", ">>", "<", ">&", "&>"):
            if words and words[-1].isdigit() and len(words) > 1:
                words.pop()  # the number of a file descriptor
            if tokens:
                tokens.pop(0)
        elif set(token) <= set("();<>|&"):
            return None
        else:
            words.append(token)
    parts.append(Part(operator, tuple(words)))
    parts = [part for part in parts if part.argv]
    return tuple(parts) if parts and not any(part.argv[0] in _UNSUPPORTED for part in parts) else None


def run_sequence(
    parts: Sequence[Part], ours: Callable[[Sequence[str]], bool], run: Callable[[Sequence[str]], Result | None]
) -> Result | str | None:
    """Runs what is ours; answers the result of the line, None when it hangs, or why its exit code is not known."""
    last: Result = Result(0)
    unknown = ""
    for position, part in enumerate(parts):
        skipped = (part.operator == "&&" and last.exit_code != 0) or (part.operator == "||" and last.exit_code == 0)
        if unknown and part.operator in ("&&", "||"):
            return f"depends on the exit code of {unknown}"
        if skipped:
            continue
        name = part.argv[0]
        piped = position + 1 < len(parts) and parts[position + 1].operator == "|"
        if ours(part.argv):
            result = run(part.argv)
            if result is None:
                return None
            last, unknown = result, ""
        elif name in _SIMPLE:
            last, unknown = Result(_SIMPLE[name]), ""
        else:
            last, unknown = Result(0), name
        if piped:
            unknown = ""  # the exit code of a pipe is that of its last program
    return last if not unknown else f"ends with {unknown}, which is neither DRBD nor LVM nor dd"
