"""Gauges at scrape time: only from complete caches, a failure costs only itself, and a pass measures itself."""

from __future__ import annotations

from random import Random

from quorate.api.replicated_volume import ReplicatedVolume
from quorate.machinery.cache import Caches
from quorate.machinery.client import Client
from quorate.machinery.gauges import COLLECT_ERRORS, COLLECT_TIME, Gauges, Samples, register
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import MetricSpec, Registry, Sample
from quorate.machinery.reader import Reader
from quorate.machinery.tasks import OrderedTaskGroup
from tests.machinery.toy import new_volume
from tests.machinery.world import World, virtually

COUNT = MetricSpec("volumes", "gauge", "Volumes")
OTHER = MetricSpec("others", "gauge", "Others", ("x",))


def count(reader: Reader) -> Samples:
    return {COUNT.name: (Sample((), len(reader.list(ReplicatedVolume))),)}


def broken(reader: Reader) -> Samples:
    raise RuntimeError("no")


def test_gauges_appear_with_complete_caches_and_a_failure_costs_only_itself() -> None:
    async def main(world: World) -> None:
        await world.client.create(new_volume("v"))
        registry = Registry()
        metrics = MachineryMetrics(Registry())
        caches = Caches(Client(world.transport(), world.clock, metrics), world.clock, metrics, world.log, Random(1))
        caches.follow(ReplicatedVolume)
        register(Gauges((COUNT,), count), registry, caches, world.clock, world.log)
        register(Gauges((OTHER,), broken), registry, caches, world.clock, world.log)
        assert "\nvolumes " not in registry.text()
        assert registry.declare(COLLECT_TIME).count() == 0
        async with OrderedTaskGroup() as group:
            task = group.create_task(caches.run(), name="caches")
            await caches.wait_synced()
            text = registry.text()
            task.cancel()
        assert "\nvolumes 1\n" in text
        assert "# TYPE others gauge" in text
        assert "\nsds_metrics_collector_collect_errors_total 1\n" in text
        assert "\nsds_metrics_collector_collect_duration_seconds_count 2\n" in text
        assert registry.declare(COLLECT_ERRORS).value() == 1
        declared = [spec.name for spec in registry.declared()]
        assert declared == ["others", COLLECT_TIME.name, COLLECT_ERRORS.name, "volumes"]

    virtually(main)
