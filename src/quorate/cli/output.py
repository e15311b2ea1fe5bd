"""How results are printed: aligned tables for people, JSON and YAML for programs.

Guarantees: what a program reads never contains a secret; tables need no terminal and no further package; colours are
dropped where the output is no terminal.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import cast

import click
import msgspec

from quorate.api import times, wire
from quorate.api.meta import Object
from quorate.api.schema import Json
from quorate.machinery.recording import REDACTED, plain

GAP = "  "
_SECRETS = ("sharedSecret",)


def emit(output: str, value: object, lines: Callable[[], Iterable[str]]) -> None:
    """Print `value` as JSON or YAML, or `lines` as they are."""
    match output:
        case "json":
            click.echo(msgspec.json.format(msgspec.json.encode(builtins_of(value)), indent=2).decode())
        case "yaml":
            import yaml

            click.echo(yaml.safe_dump(builtins_of(value), sort_keys=False, allow_unicode=True), nl=False)
        case _:
            for line in lines():
                click.echo(fitted(line))


def builtins_of(value: object) -> Json:
    """JSON of a result: API objects as on the wire, without secrets; dataclasses by their fields."""
    if isinstance(value, Object):
        return redacted(cast("Json", wire.to_builtins(value)))
    if isinstance(value, list | tuple):
        return [builtins_of(item) for item in cast("Sequence[object]", value)]
    return plain(value)


def redacted(value: Json) -> Json:
    """The same without secrets."""
    if isinstance(value, dict):
        return {
            key: REDACTED if key in _SECRETS and item is not None else redacted(item) for key, item in value.items()
        }
    return [redacted(item) for item in value] if isinstance(value, list) else value


def fitted(line: str) -> str:
    """On a terminal, lines are cut to its width: a wrapped table cannot be read."""
    if not sys.stdout.isatty():
        return line
    width = shutil.get_terminal_size((80, 24)).columns
    if len(click.unstyle(line)) <= width:
        return line
    return click.unstyle(line)[: width - 1] + "…"


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], indent: str = "") -> list[str]:
    """Aligned columns; cells may be styled. The last column is not padded."""
    widths = [max(len(click.unstyle(cell)) for cell in column) for column in zip(headers, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = [cell + " " * (width - len(click.unstyle(cell))) for cell, width in zip(cells, widths, strict=True)]
        return indent + GAP.join(padded).rstrip()

    return [click.style(line(headers), dim=True), *(line(row) for row in rows)]


def bar(fraction: float, width: int = 16) -> str:
    """A progress bar: `████░░░░ 50%`."""
    share = min(max(fraction, 0.0), 1.0)
    full = round(share * width)
    return f"{'█' * full}{'░' * (width - full)} {share * 100:.0f}%"


def size(count: int | None) -> str:
    """Bytes for people: `1.5Gi`; absent is `-`."""
    if count is None:
        return "-"
    amount = float(count)
    for unit in ("", "Ki", "Mi", "Gi", "Ti"):
        if abs(amount) < 1024:
            return f"{amount:.0f}{unit}" if amount == int(amount) else f"{amount:.1f}{unit}"
        amount /= 1024
    return f"{amount:.1f}Pi"


def ago(since: str, now: float) -> str:
    """How long ago a time was: `5s`, `3m`, `2h`, `4d`; empty for none."""
    if not since:
        return ""
    seconds = max(0, int(now - times.parse(since)))
    for unit, length in (("d", 86400), ("h", 3600), ("m", 60)):
        if seconds >= 2 * length or (unit == "d" and seconds >= length):
            return f"{seconds // length}{unit}"
    return f"{seconds}s"
