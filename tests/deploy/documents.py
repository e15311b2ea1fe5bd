"""Commands in the documents: fenced blocks marked `sh` are run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parents[2] / "docs"
_BLOCK = re.compile(r"^([ ]*)```sh\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)


def scripts(name: str) -> tuple[str, ...]:
    """The blocks of a document, in order, without the indentation of the list they stand in."""
    text = (DOCS / name).read_text(encoding="utf-8")
    return tuple(
        "".join(line.removeprefix(found[1]) for line in found[2].splitlines(keepends=True))
        for found in _BLOCK.finditer(text)
    )


def inline(name: str, beginning: str) -> str:
    """The one command that a document's sentences name with this beginning."""
    text = (DOCS / name).read_text(encoding="utf-8")
    found = dict.fromkeys(re.findall(rf"`({re.escape(beginning)}[^`]*)`", text))
    (command,) = found
    return command
