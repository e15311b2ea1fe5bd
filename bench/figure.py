"""A measured figure, and how to measure one."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Figure:
    """One number with its unit; `note` says what exactly was measured."""

    name: str
    value: float
    unit: str
    note: str = ""


def seconds_per_call(action: Callable[[], object], *, calls: int, repeat: int = 5) -> float:
    """The best of several runs, in processor seconds per call, without garbage collection in between."""
    best = float("inf")
    for _ in range(repeat):
        gc.collect()
        gc.disable()
        try:
            started = time.process_time()
            for _ in range(calls):
                action()
            best = min(best, (time.process_time() - started) / calls)
        finally:
            gc.enable()
    return best


def processor_seconds(action: Callable[[], object]) -> float:
    """Processor seconds of one run."""
    gc.collect()
    started = time.process_time()
    action()
    return time.process_time() - started
