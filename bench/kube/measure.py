"""What processes cost and how long things take."""

from __future__ import annotations

import os
import statistics
from dataclasses import dataclass
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """User and system time of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid: int, *, peak: bool = False) -> int:
    """Memory of a process now, or the most it had so far."""
    field = "VmHWM:" if peak else "VmRSS:"
    line = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith(field))
    return int(line.split()[1]) * 1024


@dataclass(frozen=True)
class Spread:
    """Median and 99th percentile of some durations."""

    p50: float
    p99: float


def spread(seconds: list[float]) -> Spread:
    """Of a sample; with less than a hundred values the 99th percentile is close to the largest."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return Spread(statistics.median(seconds), cuts[98])


def metric_sum(text: str, name: str) -> float:
    """The sum of a counter over all labels, from the text of /metrics."""
    lines = (line for line in text.splitlines() if line.startswith((f"{name}{{", f"{name} ")))
    return sum(float(line.rpartition(" ")[2]) for line in lines)
