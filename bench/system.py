"""Figures of the whole system: API writes per operation, decision cost, formation of many volumes.

The formation of 1,000 volumes takes some minutes; `QUORATE_BENCH_VOLUMES=100` measures less.
"""

from __future__ import annotations

import os
import time
from statistics import median

from tests.controllers.volume import builders
from tests.controllers.volume.builders import World

from bench.figure import Figure, seconds_per_call
from quorate.verification.system.measure import WriteCounts, count_writes, form_many

SEEDS = range(1, 21)
LAYOUTS = {"1D": (0, 0), "2D+1TB": (1, 0), "3D": (1, 1)}
GOALS = {"1D": 22, "2D+1TB": 44, "3D": 48}


def figures() -> list[Figure]:
    """All figures of this module."""
    return [*_writes(), *_decision(), *_formation()]


def _writes() -> list[Figure]:
    found: list[Figure] = []
    for name, layout in LAYOUTS.items():
        counts = [count_writes(*layout, seed) for seed in SEEDS]
        formation = median(WriteCounts.of(c.formation, "controller") for c in counts)
        attach = median(WriteCounts.of(c.attach, "controller") for c in counts)
        agents = median(sum(n for write, n in c.formation.items() if write.writer.startswith("agent")) for c in counts)
        found.append(Figure(f"API writes to form {name}", formation, "writes", f"controller; goal {GOALS[name]}"))
        found.append(Figure(f"API writes to form {name}, agents", agents, "writes", "all agents together"))
        found.append(Figure(f"API writes to attach {name}", attach, "writes", "controller; goal 10 for 3 members"))
    return found


def _decision() -> list[Figure]:
    """A pass over a volume at rest with three replicas."""
    world = World(builders.volume(), builders.storage_class(builders.configuration(1, 1)), builders.POOL)
    world.form()
    seconds = seconds_per_call(world.step, calls=200)
    return [Figure("decision about a volume at rest", seconds * 1e6, "µs", "3 replicas, snapshot included; goal 1000")]


def _formation() -> list[Figure]:
    most = int(os.environ.get("QUORATE_BENCH_VOLUMES", "1000"))
    found: list[Figure] = []
    costs: list[float] = []
    for count in sorted({most // 10, most}):
        began = time.process_time()
        simulated = form_many(count)
        cost = (time.process_time() - began) / count
        costs.append(cost)
        found.append(
            Figure(f"formation of {count} volumes", count / simulated, "volumes per simulated s", "3D, 10 nodes")
        )
        found.append(
            Figure(f"CPU per volume at {count}", cost * 1e3, "ms", "controllers, agents, API and kernel model")
        )
    found.append(
        Figure("growth of CPU per volume", costs[-1] / costs[0], "ratio", f"{most} against {most // 10} volumes")
    )
    return found
