"""The phase of every class, at every scrape."""

from __future__ import annotations

from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.machinery.gauges import Gauges, Samples
from quorate.machinery.metrics import MetricSpec, Sample
from quorate.machinery.reader import Reader

PHASE = MetricSpec("sds_rsc_phase", "gauge", "1 for the phase that a class is in", ("name", "phase"))


def compute(reader: Reader) -> Samples:
    """One series per class: a phase it is not in has none."""
    classes = reader.list(ReplicatedStorageClass)
    return {PHASE.name: tuple(Sample((c.metadata.name, c.status.phase or "Unknown"), 1.0) for c in classes)}


GAUGES = Gauges((PHASE,), compute)
