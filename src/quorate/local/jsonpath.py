"""The JSONPath subset that printer columns use: `.a.b`, `['a']`, `[0]`, `[*]`, `[?(@.type=="Ready")]`."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from quorate.local.jsonvalue import Json, decode, dig, same

Step = Callable[[list[Json]], list[Json]]

_PART = re.compile(
    r"""\.(?P<field>(?:[^.\[\\]|\\.)+)
      | \[\s*'(?P<single>(?:[^'\\]|\\.)*)'\s*\]
      | \[\s*"(?P<double>(?:[^"\\]|\\.)*)"\s*\]
      | \[\s*(?P<index>-?\d+)\s*\]
      | (?P<all>\[\s*\*\s*\])
      | \[\?\(\s*@\.(?P<path>[\w.\-]+)\s*(?P<operator>==|!=)\s*(?P<value>'[^']*'|"[^"]*"|[\w.\-]+)\s*\)\]
    """,
    re.VERBOSE,
)


def _field(name: str) -> Step:
    return lambda values: [each[name] for each in values if isinstance(each, dict) and name in each]


def _index(number: int) -> Step:
    def step(values: list[Json]) -> list[Json]:
        lists = [each for each in values if isinstance(each, list)]
        return [each[number] for each in lists if -len(each) <= number < len(each)]

    return step


def _every(values: list[Json]) -> list[Json]:
    found: list[Json] = []
    for each in values:
        if isinstance(each, list):
            found += each
        elif isinstance(each, dict):
            found += each.values()
    return found


def _filter(path: str, operator: str, literal: str) -> Step:
    wanted: Json = literal[1:-1] if literal[0] in "'\"" else decode(literal)
    keys = path.split(".")

    def step(values: list[Json]) -> list[Json]:
        items = [item for each in values if isinstance(each, list) for item in each]
        return [item for item in items if same(dig(item, *keys), wanted) is (operator == "==")]

    return step


@lru_cache(maxsize=1024)
def compile_path(path: str) -> tuple[Step, ...]:
    """The steps of a path; raises `ValueError` when it is outside the subset."""
    text = path.strip().removeprefix("{").removesuffix("}").removeprefix("$")
    if text and text[0] not in ".[":
        text = f".{text}"
    steps: list[Step] = []
    position = 0
    while position < len(text):
        match = _PART.match(text, position)
        if match is None:
            raise ValueError(f"unsupported JSONPath: {path}")
        groups = match.groupdict()
        if match["index"] is not None:
            steps.append(_index(int(match["index"])))
        elif match["all"] is not None:
            steps.append(_every)
        elif match["path"] is not None:
            steps.append(_filter(match["path"], match["operator"], match["value"]))
        else:
            name = next(groups[key] for key in ("field", "single", "double") if groups[key] is not None)
            steps.append(_every if name == "*" else _field(re.sub(r"\\(.)", r"\1", name)))
        position = match.end()
    return tuple(steps)


def find(path: str, value: Json) -> list[Json]:
    """Everything a path leads to."""
    values: list[Json] = [value]
    for step in compile_path(path):
        values = step(values)
    return values
