"""A small Prometheus registry: counters, gauges, histograms, and gauges built at scrape time.

Own code instead of prometheus-client: this is all we use of it, it has no global state, no threads and reads no
clock, so a simulated process has its metrics like a real one and two managers in one process do not share theirs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

Kind: TypeAlias = Literal["counter", "gauge", "histogram"]

DEFAULT_BUCKETS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


@dataclass(frozen=True)
class MetricSpec:
    """The declaration of one metric."""

    name: str
    kind: Kind
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = DEFAULT_BUCKETS


def conventional(name: str, labels: Iterable[str]) -> MetricSpec:
    """A declaration made of a name alone, by the naming conventions of Prometheus.

    A decision may observe what nobody declared; a missing help text is no reason to fail a reconcile.
    """
    kind: Kind = "counter" if name.endswith("_total") else "histogram" if name.endswith("_seconds") else "gauge"
    return MetricSpec(name, kind, name.replace("_", " "), tuple(sorted(labels)))


@dataclass(frozen=True)
class Sample:
    """One gauge value computed at scrape time."""

    labels: tuple[str, ...]
    value: float


class _Series:
    __slots__ = ("buckets", "count", "value")

    def __init__(self, buckets: int) -> None:
        self.value = 0.0
        self.count = 0
        self.buckets = [0] * buckets


class Metric:
    """All series of one metric; label values are given in the order of the declaration."""

    def __init__(self, spec: MetricSpec) -> None:
        self.spec = spec
        self._series: dict[tuple[str, ...], _Series] = {}

    def _get(self, labels: tuple[str, ...]) -> _Series:
        series = self._series.get(labels)
        if series is None:
            if len(labels) != len(self.spec.labels):
                raise ValueError(f"{self.spec.name} has labels {self.spec.labels}, got {labels}")
            series = self._series[labels] = _Series(len(self.spec.buckets) if self.spec.kind == "histogram" else 0)
        return series

    def inc(self, *labels: str, by: float = 1.0) -> None:
        """Add to a counter or gauge."""
        self._get(labels).value += by

    def set(self, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._get(labels).value = value

    def observe(self, value: float, *labels: str) -> None:
        """Add one sample to a histogram."""
        series = self._get(labels)
        series.value += value
        series.count += 1
        for position, bound in enumerate(self.spec.buckets):
            if value <= bound:
                series.buckets[position] += 1
                break

    def record(self, value: float, labels: Mapping[str, str]) -> None:
        """What `Observe` means for this kind; a label that is not given is `unknown` (facts/controllers 8.1)."""
        values = tuple(labels.get(name) or "unknown" for name in self.spec.labels)
        match self.spec.kind:
            case "counter":
                self.inc(*values, by=value)
            case "gauge":
                self.set(value, *values)
            case "histogram":
                self.observe(value, *values)

    def value(self, *labels: str) -> float:
        """The current value, or the sum of a histogram; zero when there is no such series."""
        series = self._series.get(labels)
        return series.value if series else 0.0

    def count(self, *labels: str) -> int:
        """The number of samples of a histogram."""
        series = self._series.get(labels)
        return series.count if series else 0

    def total(self) -> float:
        """The sum over all series."""
        return sum(series.value for series in self._series.values())

    def lines(self) -> Iterable[str]:
        """The text form of all series, in the order of their labels."""
        for labels in sorted(self._series):
            series = self._series[labels]
            if self.spec.kind != "histogram":
                yield _line(self.spec.name, self.spec.labels, labels, series.value)
                continue
            cumulative = 0
            for bound, count in zip((*self.spec.buckets, math.inf), (*series.buckets, 0), strict=True):
                cumulative = series.count if bound == math.inf else cumulative + count
                yield _line(
                    f"{self.spec.name}_bucket", (*self.spec.labels, "le"), (*labels, _number(bound)), cumulative
                )
            yield _line(f"{self.spec.name}_sum", self.spec.labels, labels, series.value)
            yield _line(f"{self.spec.name}_count", self.spec.labels, labels, series.count)


Collector: TypeAlias = Callable[[], Iterable[Sample]]
GroupCollector: TypeAlias = Callable[[], Mapping[str, Iterable[Sample]]]
"""One pass that computes several gauges; samples by the name of the metric."""


class Registry:
    """The metrics of one process."""

    def __init__(self) -> None:
        self._metrics: dict[str, Metric] = {}
        self._collectors: dict[str, tuple[MetricSpec, Collector]] = {}
        self._groups: list[tuple[tuple[MetricSpec, ...], GroupCollector]] = []

    def declare(self, spec: MetricSpec) -> Metric:
        """The metric of this declaration; the same declaration twice is the same metric."""
        metric = self._metrics.get(spec.name)
        if metric is None:
            metric = self._metrics[spec.name] = Metric(spec)
        elif metric.spec != spec:
            raise ValueError(f"metric {spec.name} is declared twice and differently")
        return metric

    def find(self, name: str) -> Metric | None:
        """A declared metric by name."""
        return self._metrics.get(name)

    def collect(self, spec: MetricSpec, collector: Collector) -> None:
        """A gauge whose samples are computed at every scrape, so that deleted objects vanish by themselves."""
        self._collectors[spec.name] = (spec, collector)

    def collect_group(self, specs: tuple[MetricSpec, ...], collector: GroupCollector) -> None:
        """Gauges that one pass computes together at every scrape."""
        self._groups.append((specs, collector))

    def declared(self) -> tuple[MetricSpec, ...]:
        """Every declaration, in the order of names."""
        specs = [metric.spec for metric in self._metrics.values()]
        specs.extend(spec for spec, _ in self._collectors.values())
        specs.extend(spec for group, _ in self._groups for spec in group)
        return tuple(sorted(specs, key=lambda spec: spec.name))

    def _collected(self) -> dict[str, Metric]:
        """The gauges that are computed now."""
        found: dict[str, Metric] = {}
        for specs, collector in self._groups:
            samples = collector()
            for spec in specs:
                found[spec.name] = _gauge(spec, samples.get(spec.name, ()))
        for name, (spec, single) in self._collectors.items():
            found[name] = _gauge(spec, single())
        return found

    def text(self) -> str:
        """The Prometheus text format, version 0.0.4."""
        lines: list[str] = []
        # Computed first: what the passes say about themselves belongs to the same scrape.
        metrics = {**self._collected(), **self._metrics}
        for name in sorted(metrics):
            metric = metrics[name]
            lines.append(f"# HELP {name} {_escape_help(metric.spec.help)}")
            lines.append(f"# TYPE {name} {metric.spec.kind}")
            lines.extend(metric.lines())
        return "\n".join(lines) + "\n" if lines else ""


def _gauge(spec: MetricSpec, samples: Iterable[Sample]) -> Metric:
    metric = Metric(spec)
    for sample in samples:
        metric.set(sample.value, *sample.labels)
    return metric


def _number(value: float) -> str:
    if value == math.inf:
        return "+Inf"
    return str(int(value)) if value == int(value) else repr(value)


def _line(name: str, label_names: tuple[str, ...], labels: tuple[str, ...], value: float) -> str:
    if not label_names:
        return f"{name} {_number(value)}"
    inside = ",".join(f'{key}="{_escape(text)}"' for key, text in zip(label_names, labels, strict=True))
    return f"{name}{{{inside}}} {_number(value)}"


def _escape(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escape_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")
