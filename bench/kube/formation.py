"""Forming and attaching volumes: latency one by one, then cost and throughput of a crowd."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from functools import partial

from tests.kube.accounts import AGENT, CONTROLLER, user
from tests.kube.audit import Audit
from tests.kube.servers import ControlPlane
from tests.kube.test_faults import is_formed
from tests.kube.worlds import World, world_on
from tests.system import stories

from bench.figure import Figure
from bench.kube.measure import Spread, metric_sum, processor_seconds, spread
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.local.shape import Shape
from quorate.verification.system import system as system_module

ONE_BY_ONE = 20
CROWD = 30
POLL = 0.05
"""Seconds between two looks at what is waited for: the resolution of the latencies."""
LAYOUT = "3 nodes, layout 3D, simulated nodes"


async def figures(plane: ControlPlane) -> list[Figure]:
    """All figures about formation and attachment."""
    system_module.POLL = POLL
    async with world_on(plane, Shape(nodes=3)) as world:
        controller = await world.processes.controller()
        await controller.ready()
        await world.system.create_class()
        formed, attached = await one_by_one(world)
        return [
            *latencies("create to formed", formed),
            *latencies("RVA to attached", attached),
            *await crowd(world, controller.pid),
        ]


def latencies(name: str, found: Spread) -> list[Figure]:
    """Two figures of one sample."""
    note = f"{ONE_BY_ONE} volumes one after the other, {LAYOUT}"
    return [Figure(f"{name}, p50", found.p50, "s", note), Figure(f"{name}, p99", found.p99, "s", note)]


async def one_by_one(world: World) -> tuple[Spread, Spread]:
    """How long one volume takes while nothing else happens."""
    system = world.system
    forming: list[float] = []
    attaching: list[float] = []
    for number in range(ONE_BY_ONE):
        name = f"one-{number}"
        started = time.monotonic()
        await system.create_volume(name)
        await system.formed(name)
        forming.append(time.monotonic() - started)
        node = (await stories.diskful_nodes(system, name))[0]
        started = time.monotonic()
        await system.attach(name, node)
        attaching.append(time.monotonic() - started)
    return spread(forming), spread(attaching)


async def crowd(world: World, controller: int) -> list[Figure]:
    """Many at once: throughput, requests, reconciles, processor time of both sides."""
    system = world.system
    process = next(each for each in world.processes.running if each.pid == controller)
    servers = [server.pid for server in world.plane.processes.values()]
    audit = Audit(world.plane.audit_log)
    before = await process.metrics()
    ours, theirs = processor_seconds(controller), sum(processor_seconds(pid) for pid in servers)
    started = time.monotonic()
    names = [f"crowd-{number}" for number in range(CROWD)]
    await asyncio.gather(*(system.create_volume(name) for name in names))
    await system.until(partial(all_formed, world, names), 600, "the crowd is formed")
    took = time.monotonic() - started
    ours = processor_seconds(controller) - ours
    theirs = sum(processor_seconds(pid) for pid in servers) - theirs
    after = await process.metrics()
    name = "controller_runtime_reconcile_total"
    reconciles = (metric_sum(after, name) - metric_sum(before, name)) / CROWD
    note = f"{CROWD} volumes at once, {LAYOUT}"
    return [
        Figure("volumes formed per second", CROWD / took, "1/s", note),
        Figure("reconciles of the controllers per formed volume", reconciles, "", note),
        Figure("processor time of the controllers per formed volume", ours / CROWD, "s", note),
        Figure(
            "processor time of kube-apiserver and etcd per formed volume", theirs / CROWD, "s", f"{note}, all clients"
        ),
        Figure("controllers' processor time over the servers'", ours / theirs, "", "goal: below 1"),
        *requests(audit),
    ]


async def all_formed(world: World, names: list[str]) -> bool:
    """Whether the crowd is formed."""
    found = {volume.metadata.name for volume in await world.system.list(ReplicatedVolume) if is_formed(volume)}
    return set(names) <= found


def requests(audit: Audit) -> list[Figure]:
    """Answered requests by component, verb and kind, from the API server's own log; watches run on and are not counted."""
    found: list[Figure] = []
    for component, account in (("controllers", CONTROLLER), ("agents", AGENT)):
        counted = Counter(
            f"{entry.verb} {entry.resource}" for entry in audit.entries(user(account)) if entry.verb != "watch"
        )
        total = sum(counted.values())
        found.append(Figure(f"API requests of the {component} per formed volume", total / CROWD, "", "audit log"))
        found += [
            Figure(f"  {component}: {what}", count / CROWD, "", "per formed volume")
            for what, count in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
            if count >= CROWD / 10
        ]
    return found
