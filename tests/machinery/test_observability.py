"""Metrics, logs, events and the HTTP endpoints."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import msgspec
import pytest
from aiohttp import web

from quorate.api import times
from quorate.api.event import Event
from quorate.api.value import SharedSecret
from quorate.machinery import health
from quorate.machinery.client import Client
from quorate.machinery.clock import LoopClock, SystemClock
from quorate.machinery.events import EventRecorder
from quorate.machinery.faults import CALM, FaultPlan
from quorate.machinery.lifecycle_metrics import LIFECYCLE
from quorate.machinery.logs import Entry, Level, Logger, LogSettings, follow_level, json_sink, text_sink
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.manager import Listen, Manager, ManagerOptions
from quorate.machinery.metrics import MetricSpec, Registry, Sample
from quorate.machinery.virtual_loop import run_virtual
from tests.machinery.toy import new_volume, toy
from tests.machinery.world import World, running, virtually


def test_the_text_format_is_that_of_prometheus() -> None:
    registry = Registry()
    requests = registry.declare(MetricSpec("requests_total", "counter", "All\nrequests", ("code",)))
    requests.inc("200")
    requests.inc('4"\\\n', by=2)
    seconds = registry.declare(MetricSpec("seconds", "histogram", "Time", (), (0.5, 1.0)))
    for value in (0.1, 0.7, 0.7, 5.0):
        seconds.observe(value)
    registry.collect(MetricSpec("alive", "gauge", "Now", ("kind",)), lambda: [Sample(("rv",), 3)])
    assert registry.text() == (
        "# HELP alive Now\n"
        "# TYPE alive gauge\n"
        'alive{kind="rv"} 3\n'
        "# HELP requests_total All\\nrequests\n"
        "# TYPE requests_total counter\n"
        'requests_total{code="200"} 1\n'
        'requests_total{code="4\\"\\\\\\n"} 2\n'
        "# HELP seconds Time\n"
        "# TYPE seconds histogram\n"
        'seconds_bucket{le="0.5"} 1\n'
        'seconds_bucket{le="1"} 3\n'
        'seconds_bucket{le="+Inf"} 4\n'
        "seconds_sum 6.5\n"
        "seconds_count 4\n"
    )


def test_a_metric_is_declared_once_and_has_its_labels() -> None:
    registry = Registry()
    metric = registry.declare(MetricSpec("a_total", "counter", "A", ("x",)))
    assert registry.declare(metric.spec) is metric
    with pytest.raises(ValueError, match="declared twice"):
        registry.declare(MetricSpec("a_total", "gauge", "A"))
    with pytest.raises(ValueError, match="has labels"):
        metric.inc()
    metric.record(2.0, {"y": "ignored"})
    assert metric.value("unknown") == 2.0


def test_the_lifecycle_metrics_are_those_of_the_facts() -> None:
    assert [spec.name for spec in LIFECYCLE] == [
        "sds_rv_initial_formation_duration_seconds",
        "sds_rva_ready_duration_seconds",
        "sds_rvr_ready_transition_duration_seconds",
        "sds_rvr_backing_volume_duration_seconds",
        "sds_rv_deletion_duration_seconds",
        "sds_rvr_deletion_duration_seconds",
        "sds_rva_detach_duration_seconds",
        "sds_rv_datamesh_transition_duration_seconds",
        "sds_rv_datamesh_step_duration_seconds",
        "sds_rv_datamesh_transitions_completed_total",
    ]


def test_logs_are_structured_redacted_and_follow_the_level() -> None:
    async def main() -> None:
        stream, plain = io.StringIO(), io.StringIO()
        settings = LogSettings(Level.INFO)
        for sink in (json_sink(stream, times.format), text_sink(plain, times.format)):
            log = Logger(sink, LoopClock(), settings).bind(controller="rv-controller", object="v1")
            log.debug("hidden")
            log.info("two words", secret=SharedSecret("hush"), count=3)
        entry = msgspec.json.decode(stream.getvalue())
        assert list(entry) == ["time", "level", "msg", "controller", "object", "secret", "count"]
        assert (entry["secret"], entry["count"], entry["time"]) == ("***", 3, "2023-11-14T22:13:20Z")
        line = "2023-11-14T22:13:20Z INFO    two words controller=rv-controller object=v1 secret=*** count=3\n"
        assert plain.getvalue() == line
        settings.set_level("debug")
        log.debug("shown", text="a b")
        assert plain.getvalue().endswith('shown controller=rv-controller object=v1 text="a b"\n')
        with pytest.raises(ValueError, match="known: trace"):
            settings.set_level("loud")

    run_virtual(main)


def test_the_level_follows_a_file(tmp_path: Path) -> None:
    async def main() -> None:
        entries: list[Entry] = []
        settings = LogSettings(Level.INFO)
        log = Logger(entries.append, LoopClock(), settings)
        path = tmp_path / "level"
        task = asyncio.create_task(follow_level(path, settings, log, LoopClock()))
        await asyncio.sleep(6)
        assert settings.level is Level.INFO  # no file, no change
        for text, expected in (("debug", Level.DEBUG), ("nonsense", Level.DEBUG), ("error\n", Level.ERROR)):
            await asyncio.sleep(6)
            path.write_text(text)
            await asyncio.sleep(6)
            assert settings.level is expected
        task.cancel()
        await asyncio.wait((task,))

    run_virtual(main)


async def recorder_of(world: World) -> tuple[EventRecorder, MachineryMetrics, asyncio.Task[None]]:
    metrics = MachineryMetrics(Registry())
    transport = world.transport()
    recorder = EventRecorder(Client(transport, world.clock, metrics), world.clock, metrics, world.log, "pod-1")
    return recorder, metrics, asyncio.create_task(recorder.run())


def test_the_same_event_is_counted_across_restarts() -> None:
    async def main(world: World) -> None:
        volume = await world.client.create(new_volume("v"))
        for _ in range(2):
            recorder, _, task = await recorder_of(world)
            for _ in range(3):
                recorder.emit("rv-controller", volume, "Warning", "Waiting", "x" * 3000)
            await recorder.drained()
            await world.clock.sleep(5)
            task.cancel()
            await asyncio.wait((task,))
        events = (await world.client.list(Event)).items
        assert [(event.reason, event.count, len(event.message)) for event in events] == [("Waiting", 6, 1024)]
        assert events[0].metadata.namespace == "default"
        assert events[0].involved_object.uid == volume.metadata.uid
        assert events[0].first_timestamp != events[0].last_timestamp

    virtually(main)


def test_a_lasting_state_is_told_once_whatever_its_text_says_and_across_restarts() -> None:
    async def main(world: World) -> None:
        volume = await world.client.create(new_volume("v"))
        for restart in range(2):
            recorder, metrics, task = await recorder_of(world)
            for number in range(3):
                recorder.emit("c", volume, "Warning", "Blocked", f"{restart}/{number} confirmed", once="step 1")
                await recorder.drained()
                await world.clock.sleep(5)
            assert metrics.client_requests.total() == 1  # looking again costs no request
            task.cancel()
            await asyncio.wait((task,))
        events = (await world.client.list(Event)).items
        assert [(event.reason, event.count, event.message) for event in events] == [("Blocked", 1, "0/0 confirmed")]

    virtually(main)


def test_a_lasting_state_that_could_not_be_told_is_told_later() -> None:
    async def main(world: World) -> None:
        volume = await world.client.create(new_volume("v"))
        metrics = MachineryMetrics(Registry())
        transport = world.transport(FaultPlan(fail_before=1.0))
        recorder = EventRecorder(Client(transport, world.clock, metrics), world.clock, metrics, world.log, "pod-1")
        task = asyncio.create_task(recorder.run())
        recorder.emit("c", volume, "Warning", "Blocked", "text", once="step 1")
        await recorder.drained()
        transport.plan = CALM
        recorder.emit("c", volume, "Warning", "Blocked", "text", once="step 1")
        await recorder.drained()
        assert [event.reason for event in (await world.client.list(Event)).items] == ["Blocked"]
        task.cancel()
        await asyncio.wait((task,))

    virtually(main)


def test_one_object_cannot_flood_the_server() -> None:
    async def main(world: World) -> None:
        volume = await world.client.create(new_volume("v"))
        recorder, metrics, task = await recorder_of(world)
        for number in range(100):
            recorder.emit("c", volume, "Normal", "Busy", f"number {number}")
            await world.clock.sleep(0.1)
        recorder.emit("c", volume, "Normal", "Other", "another reason")
        await world.clock.sleep(5)
        assert len((await world.client.list(Event)).items) == 26
        assert metrics.events_dropped.value("rate") == 75
        task.cancel()
        await asyncio.wait((task,))

    virtually(main)


def test_events_that_cannot_be_sent_are_dropped_and_counted() -> None:
    async def main(world: World) -> None:
        volume = await world.client.create(new_volume("v"))
        metrics = MachineryMetrics(Registry())
        transport = world.transport(FaultPlan(fail_before=1.0))
        recorder = EventRecorder(Client(transport, world.clock, metrics), world.clock, metrics, world.log, "pod-1")
        task = asyncio.create_task(recorder.run())
        recorder.emit("c", volume, "Normal", "Lost", "never arrives")
        await recorder.drained()
        assert metrics.events_dropped.value("error") == 1
        transport.plan = CALM
        recorder.emit("c", volume, "Normal", "Found", "arrives")
        await recorder.drained()
        assert [event.reason for event in (await world.client.list(Event)).items] == ["Found"]
        task.cancel()
        await asyncio.wait((task,))

    virtually(main)


async def test_the_level_is_not_changed_from_another_machine() -> None:
    @web.middleware
    async def from_elsewhere(
        request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        return await handler(request.clone(remote="10.0.0.7"))

    settings = LogSettings()
    app = health.application(Registry(), tuple, settings, state=lambda: "leading")
    app.middlewares.append(from_elsewhere)
    async with health.serve(app, 0) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        async with session.put("/loglevel", data="debug") as answer:
            assert answer.status == 403
        async with session.get("/loglevel") as answer:
            assert (answer.status, await answer.text()) == (200, "info\n")
        async with session.get("/readyz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok: leading\n")
    assert settings.level is Level.INFO


async def test_health_readiness_metrics_and_level_over_http() -> None:
    registry = Registry()
    registry.declare(MetricSpec("up", "gauge", "Up")).set(1)
    missing = ["ReplicatedVolume"]
    settings = LogSettings()
    app = health.application(registry, lambda: tuple(missing), settings)
    async with health.serve(app, 0) as port, aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:

        async def get(path: str) -> tuple[int, str]:
            async with session.get(path) as answer:
                return answer.status, await answer.text()

        assert await get("/healthz") == (200, "ok\n")
        assert await get("/readyz") == (503, "not ready: ReplicatedVolume\n")
        missing.clear()
        assert await get("/readyz") == (200, "ok\n")
        assert [health.from_this_machine(a) for a in ("127.0.0.1", "::1", "::ffff:127.0.0.2")] == [True] * 3
        assert [health.from_this_machine(a) for a in ("10.0.0.7", "::ffff:10.0.0.7", "fd00::1", "")] == [False] * 4
        assert "up 1\n" in (await get("/metrics"))[1]
        async with session.put("/loglevel", data="debug") as answer:
            assert (answer.status, await answer.text()) == (200, "debug\n")
        assert settings.level is Level.DEBUG
        async with session.put("/loglevel", data="loud") as answer:
            assert answer.status == 400
        assert (await get("/loglevel"))[1] == "debug\n"
        assert (await get("/other"))[0] == 404


async def test_a_manager_serves_its_endpoints_from_start_to_stop() -> None:
    world = World()
    options = ManagerOptions(identity="one", listen=(Listen(0), Listen(0)))
    manager = Manager(
        world.transport(),
        (toy(),),
        options,
        clock=SystemClock(),
        random=world.random,
        entropy=world.random.randbytes,
        log=world.log,
    )
    async with running(manager), aiohttp.ClientSession() as session:
        await manager.working.wait()
        assert len(manager.ports) == 2
        for port in manager.ports:
            async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                assert answer.status == 200
        async with session.get(f"http://127.0.0.1:{manager.ports[0]}/metrics") as answer:
            assert 'quorate_cache_lists_total{kind="ReplicatedVolume"} 1' in await answer.text()


async def test_the_system_clock_moves() -> None:
    clock = SystemClock()
    before, started = clock.now(), clock.monotonic()
    await clock.sleep(0)
    assert clock.now() >= before
    assert clock.monotonic() >= started
