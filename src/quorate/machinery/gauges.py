"""Gauges that are computed from the caches at every scrape, so that deleted objects vanish by themselves.

A controller brings its gauges as data: declarations and one pure function over a `Reader`. Guarantees: nothing is shown before
every cache was read completely (half a count is a wrong count); a function that fails costs its own gauges and a counter, never
the scrape; how long each pass took is a metric itself. Every process shows them, leading or not: rules aggregate with `max by`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from quorate.machinery.cache import Caches
from quorate.machinery.clock import Clock
from quorate.machinery.logs import Logger
from quorate.machinery.metrics import MetricSpec, Registry, Sample
from quorate.machinery.reader import Reader

Samples: TypeAlias = Mapping[str, Iterable[Sample]]
"""Samples by the name of their metric."""

_COLLECT = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

COLLECT_TIME = MetricSpec(
    "sds_metrics_collector_collect_duration_seconds",
    "histogram",
    "Time to compute the gauges of a controller at a scrape",
    (),
    _COLLECT,
)
COLLECT_ERRORS = MetricSpec(
    "sds_metrics_collector_collect_errors_total", "counter", "Scrapes whose gauges could not be computed"
)


@dataclass(frozen=True)
class Gauges:
    """The gauges of one controller."""

    specs: tuple[MetricSpec, ...]
    compute: Callable[[Reader], Samples]
    """Pure; reads only kinds that the controller watches or names in `reads`."""


def register(gauges: Gauges, registry: Registry, caches: Caches, clock: Clock, log: Logger) -> None:
    """Let the registry compute these gauges at every scrape."""
    seconds = registry.declare(COLLECT_TIME)
    failures = registry.declare(COLLECT_ERRORS)
    failures.inc(by=0.0)

    def collect() -> Samples:
        if caches.unsynced():
            return {}
        started = clock.monotonic()
        try:
            return gauges.compute(caches)
        except Exception as error:
            failures.inc()
            log.error("gauges cannot be computed", error=repr(error))
            return {}
        finally:
            seconds.observe(clock.monotonic() - started)

    registry.collect_group(gauges.specs, collect)
