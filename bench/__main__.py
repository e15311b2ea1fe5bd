"""Run all benchmarks: every module in `bench/` with a function `figures() -> list[Figure]`.

Prints a table and, as the last line, the same as JSON. Names of modules as arguments restrict what is run; `--json FILE` also
writes the JSON to a file.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pkgutil
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import bench
from bench.figure import Figure


def discover(wanted: list[str]) -> dict[str, Callable[[], list[Figure]]]:
    """The benchmarks by module name, in alphabetical order."""
    found: dict[str, Callable[[], list[Figure]]] = {}
    for info in sorted(pkgutil.iter_modules(bench.__path__), key=lambda info: info.name):
        if info.name.startswith("_") or (wanted and info.name not in wanted):
            continue
        figures = getattr(importlib.import_module(f"bench.{info.name}"), "figures", None)
        if figures is not None:
            found[info.name] = figures
    return found


def machine() -> dict[str, str]:
    """What the figures were measured on."""
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [
            line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if line.startswith("model name")
        ]
        model = names[0] if names else model
    return {
        "processor": model,
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.release()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
    }


def _number(value: float) -> str:
    return f"{value:,.4g}" if abs(value) < 1000 else f"{value:,.0f}"


def table(results: dict[str, list[Figure]]) -> str:
    """The figures for people, as a Markdown table."""
    rows = [("figure", "value", "unit", "what was measured")]
    rows += [
        (f"{module}: {figure.name}", _number(figure.value), figure.unit, figure.note)
        for module, figures in results.items()
        for figure in figures
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(4)]
    lines = [
        f"| {row[0]:{widths[0]}} | {row[1]:>{widths[1]}} | {row[2]:{widths[2]}} | {row[3]:{widths[3]}} |"
        for row in rows
    ]
    ruler = f"|{'-' * (widths[0] + 2)}|{'-' * (widths[1] + 1)}:|{'-' * (widths[2] + 2)}|{'-' * (widths[3] + 2)}|"
    return "\n".join([lines[0], ruler, *lines[1:]])


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("modules", nargs="*", help="benchmarks to run (default: all)")
    parser.add_argument("--json", type=Path, help="also write the JSON to this file")
    arguments = parser.parse_args()
    benchmarks = discover(arguments.modules)
    unknown = [name for name in arguments.modules if name not in benchmarks]
    if unknown:
        parser.error(f"no such benchmark: {', '.join(unknown)}")
    results: dict[str, list[Figure]] = {}
    for name, figures in benchmarks.items():
        sys.stderr.write(f"measuring {name}\n")
        results[name] = figures()
    where = machine()
    sys.stdout.write(", ".join(f"{key}: {value}" for key, value in where.items()) + "\n\n" + table(results) + "\n\n")
    document = {"machine": where, "figures": {name: [asdict(one) for one in found] for name, found in results.items()}}
    text = json.dumps(document)
    sys.stdout.write(text + "\n")
    if arguments.json is not None:
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
