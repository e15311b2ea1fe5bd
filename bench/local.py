"""What the embedded API server costs: writes in memory and durable, watch fan-out; and that a write does not get dearer.

Writes go through the whole server (pruning, defaults, schema, CEL rules, versions) over the in-process transport, as in a
local cluster. Processor time, except for durable writes, which wait for the disk: those are wall-clock.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path

import msgspec

from bench.figure import Figure
from bench.volumes import large_volume
from quorate.api import wire
from quorate.api.crd import all_crds
from quorate.local.api_server import ApiServer
from quorate.local.journal import Journal, MemoryJournal
from quorate.local.jsonvalue import encode
from quorate.local.ports import SeededIds
from quorate.local.rest import Request
from quorate.local.sqlite_journal import SqliteJournal
from quorate.local.watch import Watch
from quorate.machinery.clock import SystemClock

VOLUMES = "/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes"
JSON = {"content-type": "application/json"}
MERGE = {"content-type": "application/merge-patch+json"}
WRITES = 1000
WATCHERS = 100
WRITERS = 64


def _small_volume(name: str) -> bytes:
    return encode(
        {
            "apiVersion": "storage.deckhouse.io/v1alpha1",
            "kind": "ReplicatedVolume",
            "metadata": {"name": name},
            "spec": {"size": "1Gi", "replicatedStorageClassName": "fast"},
        }
    )


async def _filled(journal: Journal, count: int) -> ApiServer:
    server = ApiServer(all_crds(), journal, SystemClock(), SeededIds(1))
    transport = server.transport()
    for number in range(count):
        body = _small_volume(f"pvc-{number:08}")
        answer = await transport.request("POST", VOLUMES, query={}, headers=JSON, body=body)
        assert answer.status == 201, answer.body
    return server


async def _patch_status(server: ApiServer, name: str, number: int) -> None:
    body = b'{"status":{"datameshRevision":%d,"datamesh":{"size":"1Gi"}}}' % number
    answer = await server.transport().request("PATCH", f"{VOLUMES}/{name}/status", query={}, headers=MERGE, body=body)
    assert answer.status == 200, answer.body


async def _names(server: ApiServer) -> list[str]:
    return [key[1] for key, _ in server.store.all("storage.deckhouse.io/replicatedvolumes")]


async def _memory_writes(count: int) -> float:
    """Processor seconds per status patch with `count` volumes stored."""
    server = await _filled(MemoryJournal(), count)
    names = await _names(server)
    started = time.process_time()
    for number in range(WRITES):
        await _patch_status(server, names[number * 7919 % count], number + 1)
    return (time.process_time() - started) / WRITES


async def _large_writes() -> float:
    """Processor seconds per status patch of a volume of 6 kB."""
    server = await _filled(MemoryJournal(), 1)
    transport = server.transport()
    created = await transport.request("POST", VOLUMES, query={}, headers=JSON, body=_small_volume("large"))
    assert created.status == 201, created.body
    path = f"{VOLUMES}/large/status"
    body = msgspec.json.encode({"status": wire.to_builtins(large_volume(1, 1))["status"]})
    answer = await transport.request("PATCH", path, query={}, headers=MERGE, body=body)
    assert answer.status == 200, answer.body
    started = time.process_time()
    for number in range(WRITES):
        await _patch_status(server, "large", number + 1)
    return (time.process_time() - started) / WRITES


async def _durable_writes(writers: int) -> float:
    """Wall-clock seconds per acknowledged status patch with some writers at once."""
    with tempfile.TemporaryDirectory() as directory:
        server = await _filled(SqliteJournal(Path(directory)), 100)
        names = await _names(server)
        each = WRITES // writers

        async def write(writer: int) -> None:
            for number in range(each):
                await _patch_status(server, names[writer], number + 1)

        started = time.perf_counter()
        await asyncio.gather(*(write(writer) for writer in range(writers)))
        elapsed = time.perf_counter() - started
        await server.close()
        return elapsed / (each * writers)


async def _fan_out() -> float:
    """Processor seconds per event and watcher, the writes themselves not counted."""
    server = await _filled(MemoryJournal(), 10)
    names = await _names(server)
    received = 0
    wanted = 0
    complete = asyncio.Event()

    async def follow() -> None:
        nonlocal received
        reply = server.handle(Request("GET", VOLUMES, {"watch": "true", "resourceVersion": str(server.store.version)}))
        assert isinstance(reply, Watch)
        async with aclosing(reply.lines()) as lines:
            async for chunk in lines:
                received += chunk.count(b"\n")
                if received == wanted:
                    complete.set()

    async def measure(watchers: int) -> float:
        nonlocal received, wanted
        received, wanted = 0, WRITES * watchers
        complete.clear()
        tasks = [asyncio.create_task(follow()) for _ in range(watchers)]
        await asyncio.sleep(0)
        started = time.process_time()
        for number in range(WRITES):
            await _patch_status(server, names[number % 10], server.store.version + number)
        if watchers:
            await complete.wait()
        elapsed = time.process_time() - started
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return elapsed

    alone = await measure(0)
    return (await measure(WATCHERS) - alone) / (WRITES * WATCHERS)


def _best(action: Callable[[], float], attempts: int = 3) -> float:
    """The best of some runs: other work on the machine only ever adds."""
    return min(action() for _ in range(attempts))


def figures() -> list[Figure]:
    small = _best(lambda: asyncio.run(_memory_writes(1000)))
    large = _best(lambda: asyncio.run(_memory_writes(10_000)))
    heavy = _best(lambda: asyncio.run(_large_writes()))
    durable = _best(lambda: asyncio.run(_durable_writes(WRITERS)))
    alone = _best(lambda: asyncio.run(_durable_writes(1)))
    fan_out = _best(lambda: asyncio.run(_fan_out()))
    return [
        Figure("store writes in memory", 1 / small, "writes/s", "status patch of a small volume, 1,000 volumes stored"),
        Figure("store writes in memory, 10,000 volumes", 1 / large, "writes/s", "the same with 10,000 volumes stored"),
        Figure("growth of a write from 1,000 to 10,000 volumes", large / small, "×", "1 = does not grow"),
        Figure("store writes in memory, 6 kB volume", 1 / heavy, "writes/s", "status patch of a volume of 6 kB"),
        Figure(
            "store writes durable",
            1 / durable,
            "writes/s",
            f"SQLite, {WRITERS} writers, acknowledged after commit, wall clock",
        ),
        Figure("store writes durable, one writer", 1 / alone, "writes/s", "each waits for its own commit, wall clock"),
        Figure("watch fan-out", 1 / fan_out, "events/s", f"deliveries to {WATCHERS} watchers, without the write"),
    ]
