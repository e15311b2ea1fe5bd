"""What the machinery costs: caches, queue, reconciles, decoding, memory; and that cost per event does not grow.

All times are processor time of one core. The server is a script that answers from prepared bytes, so only our side counts.
"""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random

from bench.figure import Figure, seconds_per_call
from bench.volumes import large_volume, replica, volume, with_phase
from quorate.api import wire
from quorate.api.indexes import RVR_BY_VOLUME, indexes_of
from quorate.api.meta import Object
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.resources import resource_of
from quorate.api.value import replace
from quorate.machinery.cache import Caches
from quorate.machinery.client import Client
from quorate.machinery.clock import SystemClock
from quorate.machinery.controller import ControllerSpec, for_, watches
from quorate.machinery.effects import Answers, Decision
from quorate.machinery.logs import Logger, discard
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.manager import Manager, ManagerOptions
from quorate.machinery.metrics import Metric, Registry
from quorate.machinery.queue import Queue
from quorate.machinery.reader import Reader
from quorate.machinery.transport import Response

ROOT = Path(__file__).parents[1]
EVENTS_PER_CHUNK = 50
ATTEMPTS = 3
"""The best of these counts: other work on the machine only ever adds."""


class Script:
    """A server that answers lists from prepared bytes and sends the watch lines it is given."""

    def __init__(self, objects: Mapping[type[Object], list[bytes]], version: int) -> None:
        self._lists: dict[str, bytes] = {}
        self._streams: dict[str, asyncio.Queue[bytes]] = {}
        head = b'{"metadata":{"resourceVersion":"%d"},"items":[' % version
        for kind, items in objects.items():
            path = resource_of(kind).path()
            self._lists[path] = head + b",".join(items) + b"]}"
            self._streams[path] = asyncio.Queue()

    def send(self, kind: type[Object], lines: bytes) -> None:
        """Deliver watch lines of a kind."""
        self._streams[resource_of(kind).path()].put_nowait(lines)

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        if method != "GET":
            raise AssertionError(f"a no-op reconcile wrote: {method} {path}")
        return Response(200, self._lists[path])

    def stream(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._stream(self._streams[path])

    @asynccontextmanager
    async def _stream(self, queue: asyncio.Queue[bytes]) -> AsyncGenerator[AsyncIterator[bytes]]:
        yield _forever(queue)


async def _forever(queue: asyncio.Queue[bytes]) -> AsyncIterator[bytes]:
    while True:
        yield await queue.get()


@dataclass(frozen=True)
class Snapshot:
    """What the measured controller reads: a volume and its replicas."""

    volume: ReplicatedVolume | None
    replicas: tuple[ReplicatedVolumeReplica, ...]


def _gather(reader: Reader, key: str) -> Snapshot:
    return Snapshot(reader.get(ReplicatedVolume, key), reader.by_index(ReplicatedVolumeReplica, RVR_BY_VOLUME, key))


def _decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    return Decision()


def _volume_of(
    old: ReplicatedVolumeReplica | None, new: ReplicatedVolumeReplica | None, reader: Reader
) -> tuple[str, ...]:
    found = new or old
    return (found.spec.replicated_volume_name,) if found is not None else ()


SPEC = ControllerSpec(
    name="bench",
    watches=(for_(ReplicatedVolume), watches(ReplicatedVolumeReplica, _volume_of)),
    gather=_gather,
    decide=_decide,
)


def _prepared(volumes: int) -> dict[type[Object], list[bytes]]:
    return {
        ReplicatedVolume: [wire.encode(volume(number, number + 1)) for number in range(volumes)],
        ReplicatedVolumeReplica: [
            wire.encode(replica(number, index, number + 1)) for number in range(volumes) for index in range(3)
        ],
    }


def _lines(volumes: int, events: int, version: int) -> list[bytes]:
    """Status changes of replicas all over the volumes."""
    lines: list[bytes] = []
    for event in range(events):
        number, index = (event * 7919) % volumes, event % 3
        changed = with_phase(replica(number, index, 1), version + event, f"Phase{event % 5}")
        lines.append(b'{"type":"MODIFIED","object":' + wire.encode(changed) + b"}\n")
    return lines


def _chunks(lines: list[bytes]) -> list[bytes]:
    starts = range(0, len(lines), EVENTS_PER_CHUNK)
    return [b"".join(lines[start : start + EVENTS_PER_CHUNK]) for start in starts]


def cache_events(volumes: int = 1_000, events: int = 5_000) -> float:
    """Processor seconds per watch event: bytes to lines, decoding, three indexes, metrics."""

    async def main() -> float:
        clock, metrics = SystemClock(), MachineryMetrics(Registry())
        script = Script(_prepared(volumes), 100_000)
        caches = Caches(Client(script, clock, metrics), clock, metrics, Logger(discard, clock), Random(1))
        store = caches.follow(ReplicatedVolumeReplica)
        assert len(indexes_of(ReplicatedVolumeReplica)) == 3
        seen = 0

        def count(change: object) -> None:
            nonlocal seen
            seen += 1

        task = asyncio.create_task(caches.run())
        await caches.wait_synced()
        store.subscribe(count)
        seen = 0
        chunks = _chunks(_lines(volumes, events, 200_000))
        started = time.process_time()
        for chunk in chunks:
            script.send(ReplicatedVolumeReplica, chunk)
        while seen < events:
            await _turns(1)
        spent = time.process_time() - started
        task.cancel()
        await asyncio.wait((task,))
        return spent / events

    return asyncio.run(main())


@dataclass(frozen=True)
class ReconcileCost:
    """Processor seconds."""

    per_event: float
    """From the bytes of a watch event to the end of the reconcile it causes."""
    per_reconcile: float
    """Of one reconcile that finds nothing to do."""


def reconcile_costs(volumes: int, events: int = 5_000) -> ReconcileCost:
    """A running manager with that many volumes: events through to reconciles, and reconciles alone."""

    async def main() -> ReconcileCost:
        script = Script(_prepared(volumes), 100_000)
        clock = SystemClock()
        manager = Manager(
            script,
            (SPEC,),
            ManagerOptions(identity="bench"),
            clock=clock,
            random=Random(1),
            entropy=bytes,
            log=Logger(discard, clock),
        )
        task = asyncio.create_task(manager.run())
        await manager.working.wait()
        queue, done = manager.workers[0].queue, manager.metrics.reconciles
        await _idle(queue)
        gc.collect()
        gc.freeze()
        per_event = per_reconcile = float("inf")
        for attempt in range(1, ATTEMPTS + 1):
            per_event = min(per_event, await _events(script, done, _lines(volumes, events, attempt * 1_000_000)))
            per_reconcile = min(per_reconcile, await _reconciles(queue, min(volumes, events)))
        gc.unfreeze()
        manager.stop()
        await task
        return ReconcileCost(per_event, per_reconcile)

    return asyncio.run(main())


async def _events(script: Script, done: Metric, lines: list[bytes]) -> float:
    before, started = done.total(), time.process_time()
    for number, chunk in enumerate(_chunks(lines), start=1):
        # The events of one chunk concern different volumes, so each causes a reconcile of its own.
        script.send(ReplicatedVolumeReplica, chunk)
        while done.total() < before + number * EVENTS_PER_CHUNK:
            await _turns(1)
    return (time.process_time() - started) / len(lines)


async def _reconciles(queue: Queue, count: int) -> float:
    started = time.process_time()
    for number in range(count):
        queue.add(f"pvc-{number:08d}-aaaa-bbbb-cccc-dddddddddddd")
    await _idle(queue)
    return (time.process_time() - started) / count


async def _turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


async def _idle(queue: Queue) -> None:
    await _turns(1)
    while not queue.idle:
        await _turns(1)


def queue_operation() -> float:
    """Processor seconds to add a key, hand it out and be done with it."""

    async def main() -> float:
        queue = Queue("bench", SystemClock(), MachineryMetrics(Registry()))
        keys = [f"key-{number}" for number in range(1_000)]
        started = time.process_time()
        for _ in range(20):
            for key in keys:
                queue.add(key)
            for _ in keys:
                queue.done(await queue.get())
        return (time.process_time() - started) / 20_000

    return asyncio.run(main())


def cache_memory() -> int:
    """Bytes of resident memory that 10,000 volumes with 3 replicas each take in the cache; run in a fresh process."""

    async def main() -> int:
        clock, metrics = SystemClock(), MachineryMetrics(Registry())
        client = Client(Script({}, 1), clock, metrics)
        caches = Caches(client, clock, metrics, Logger(discard, clock), Random(1))
        volumes, replicas = caches.follow(ReplicatedVolume), caches.follow(ReplicatedVolumeReplica)
        data = (wire.encode(volume(1, 1)), wire.encode(replica(1, 1, 1)))
        wire.decode(ReplicatedVolume, data[0])
        wire.decode(ReplicatedVolumeReplica, data[1])
        before = _resident()
        for number in range(10_000):
            volumes.apply(wire.decode(ReplicatedVolume, wire.encode(volume(number, number + 1))))
            for index in range(3):
                encoded = wire.encode(replica(number, index, number + 1))
                replicas.apply(wire.decode(ReplicatedVolumeReplica, encoded))
        gc.collect()
        return _resident() - before

    return asyncio.run(main())


def _resident() -> int:
    pages = Path("/proc/self/statm").read_text().split()[1]
    return int(pages) * 4096


def _in_fresh_process(function: Callable[[], int]) -> int:
    code = f"from bench.machinery import {function.__name__}; print({function.__name__}())"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stdout)


def value_costs() -> list[Figure]:
    """Decoding and difference of a volume of 6 kB."""
    large = large_volume(1, 1)
    data = wire.encode(large)
    condition = replace(large.status.conditions[3], reason="Changed")
    changed = (*large.status.conditions[:3], condition, *large.status.conditions[4:])
    after = replace(large, status=replace(large.status, conditions=changed))
    again = wire.decode(ReplicatedVolume, data)
    size = f"{len(data):,} bytes of JSON"
    decode = seconds_per_call(lambda: wire.decode(ReplicatedVolume, data), calls=2_000)
    shared = seconds_per_call(lambda: wire.merge_patch(large, after), calls=2_000)
    same = seconds_per_call(lambda: wire.merge_patch(large, large), calls=2_000)
    equal = seconds_per_call(lambda: wire.merge_patch(large, again), calls=2_000)
    return [
        Figure("decode a volume", decode * 1e6, "µs", size),
        Figure("difference, one condition changed", shared * 1e6, "µs", "the rest is shared"),
        Figure("difference of equal values that share nothing", equal * 1e6, "µs", "decoded twice"),
        Figure("difference of a value with itself", same * 1e6, "µs", "no change, no write"),
    ]


def figures() -> list[Figure]:
    """All figures of the machinery."""
    event = cache_events()
    operation = queue_operation()
    small, large = reconcile_costs(1_000), reconcile_costs(10_000)
    memory = _in_fresh_process(cache_memory)
    return [
        Figure("events through a cache with three indexes", 1 / event, "1/s", "replica status changes, 3,000 cached"),
        Figure("one event through that cache", event * 1e6, "µs", "lines, decoding, indexes, metrics"),
        Figure("queue operations", 1 / operation, "1/s", "add, get and done of one key"),
        Figure("no-op reconcile", small.per_reconcile * 1e6, "µs", "gather volume and replicas, decide nothing"),
        *value_costs(),
        Figure("memory of a volume with 3 replicas in cache", memory / 10_000 / 1024, "KiB", "resident, of 10,000"),
        Figure("memory of 10,000 volumes with 3 replicas each", memory / 2**20, "MiB", "resident, indexes included"),
        Figure("event to end of reconcile, 1,000 volumes", small.per_event * 1e6, "µs", "3,000 replicas cached"),
        Figure("event to end of reconcile, 10,000 volumes", large.per_event * 1e6, "µs", "30,000 replicas cached"),
        Figure("growth of cost per event", large.per_event / small.per_event, "×", "10,000 against 1,000 volumes"),
    ]
