"""The processes beside thousands of formed volumes: memory, and how soon the controller works after a start.

One volume is formed for real; its objects, as etcd stores them, are copied under other names and uids straight into etcd. To
the API server and its clients they are volumes like any other.
"""

from __future__ import annotations

import asyncio
import re
import time
import uuid

from tests.kube import etcd
from tests.kube.accounts import CONTROLLER, user
from tests.kube.audit import Audit
from tests.kube.processes import Process
from tests.kube.servers import ControlPlane
from tests.kube.worlds import World, world_on

from bench.figure import Figure
from bench.kube.measure import processor_seconds, resident_bytes
from quorate.api.resources import OWN
from quorate.local.shape import Shape

TEMPLATE = "template-0000000"
COPIED = ("replicatedvolumes", "replicatedvolumereplicas", "drbdresources", "lvmlogicalvolumes")
SIZES = (1_000, 5_000)
BATCH = 100
UID = re.compile(rb'"uid":"([0-9a-f-]{36})"')
QUIET = 3.0
"""Seconds without much processor time that count as rest."""


async def figures(plane: ControlPlane) -> list[Figure]:
    """Memory at both sizes, and the time to the first useful write after a start."""
    async with world_on(plane, Shape(nodes=3)) as world:
        first = await world.processes.controller("template")
        await first.ready()
        await world.system.create_class()
        await world.system.create_volume(TEMPLATE)
        await world.system.formed(TEMPLATE)
        await first.end()
        await world.system.cluster.stop()
        objects = stored(plane)
        found: list[Figure] = []
        copied = 0
        for size in SIZES:
            copy(plane, objects, range(copied, size))
            copied = size
            await read_anew(world)
            found += await at_size(world, size, len(objects))
        remove(plane)
        await read_anew(world)
        return found


async def read_anew(world: World, seconds: float = 600) -> None:
    """Restart the API server, and read everything once: it would work off what was put beneath it for minutes."""
    await asyncio.to_thread(world.plane.stop, "kube-apiserver")
    await asyncio.to_thread(world.plane.start_api_server)
    deadline = time.monotonic() + seconds
    for resource in OWN:
        while (await world.admin.send("GET", resource.path())).status != 200:
            if time.monotonic() > deadline:
                raise TimeoutError(f"the API server does not read {resource.plural}")
            await asyncio.sleep(1)


async def at_size(world: World, size: int, objects: int) -> list[Figure]:
    """Start a controller, let it come to rest, and look."""
    waiting = f"late-{size}"
    await world.system.create_volume(waiting)
    audit = Audit(world.plane.audit_log)
    started = time.time()
    process = await world.processes.controller(f"size-{size}")
    await process.ready(300)
    ready = time.time() - started
    useful = await first_write(audit, waiting) - started
    await rest(process)
    note = f"{size:,} formed volumes of {objects} objects each"
    found = [
        Figure(
            f"controller memory at {size:,} volumes", resident_bytes(process.pid) / 2**20, "MiB", f"{note}, at rest"
        ),
        Figure(
            f"controller memory at {size:,} volumes, peak",
            resident_bytes(process.pid, peak=True) / 2**20,
            "MiB",
            "the most since the start",
        ),
        Figure(f"start to ready at {size:,} volumes", ready, "s", "process start until all caches are read"),
        Figure(
            f"start to first useful reconcile at {size:,} volumes", useful, "s", "first write about a volume that waits"
        ),
        Figure(
            f"processor time of the start at {size:,} volumes", processor_seconds(process.pid), "s", "until at rest"
        ),
    ]
    await process.end()
    return [*found, await extender_memory(world, size)]


async def extender_memory(world: World, size: int) -> Figure:
    """The extender keeps logical volumes and groups of the whole cluster; so does each agent, beside its own node's objects."""
    extender = await world.processes.extender()
    await extender.ready()
    await rest(extender)
    memory = resident_bytes(extender.pid) / 2**20
    await extender.end()
    return Figure(f"extender memory at {size:,} volumes", memory, "MiB", f"{3 * size:,} logical volumes, at rest")


async def first_write(audit: Audit, volume: str, seconds: float = 300) -> float:
    """When the controllers first wrote about a volume, in epoch seconds, by the API server's clock."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        for entry in audit.writes(user(CONTROLLER)):
            if entry.name.startswith(volume):
                return (
                    time.mktime(time.strptime(entry.received[:19], "%Y-%m-%dT%H:%M:%S"))
                    - time.timezone
                    + float(f"0{entry.received[19:].rstrip('Z')}")
                )
        await asyncio.sleep(0.2)
    raise TimeoutError(f"no write about {volume}")


async def rest(process: Process, seconds: float = 600) -> None:
    """Wait until the process has little to do."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        before = processor_seconds(process.pid)
        await asyncio.sleep(QUIET)
        if processor_seconds(process.pid) - before < QUIET * 0.03:
            return
    raise TimeoutError("the controllers do not come to rest")


def stored(plane: ControlPlane) -> dict[str, bytes]:
    """The objects of the template as etcd has them, by key."""
    found: dict[str, bytes] = {}
    for resource in OWN:
        if resource.plural in COPIED:
            prefix = f"/registry/{resource.group}/{resource.plural}/{TEMPLATE}"
            found |= etcd.read(plane, prefix)
    assert len(found) == 10, sorted(found)
    return found


def copy(plane: ControlPlane, objects: dict[str, bytes], numbers: range) -> None:
    """Put copies under other names and uids."""
    known = sorted({found for value in objects.values() for found in UID.findall(value)})
    pairs: list[tuple[str, bytes]] = []
    for number in numbers:
        name = f"volume-{number:09}"
        fresh = {old: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{name}{old!r}")).encode() for old in known}
        for key, value in objects.items():
            renamed = value.replace(TEMPLATE.encode(), name.encode())
            for old, new in fresh.items():
                renamed = renamed.replace(old, new)
            pairs.append((key.replace(TEMPLATE, name), renamed))
    for start in range(0, len(pairs), BATCH):
        etcd.put(plane, pairs[start : start + BATCH])


def remove(plane: ControlPlane) -> None:
    """Take the copies away again, faster than through the API."""
    for resource in OWN:
        if resource.plural in COPIED:
            etcd.delete(plane, f"/registry/{resource.group}/{resource.plural}/volume-")
