"""Forming and attaching volumes: cost and throughput of a crowd, then latency one by one."""

from __future__ import annotations

import asyncio
import time
from collections import Counter

from tests.kube.accounts import AGENT, CONTROLLER, user
from tests.kube.audit import Audit
from tests.kube.processes import Process
from tests.kube.servers import ControlPlane
from tests.kube.test_faults import is_formed
from tests.kube.worlds import World, world_on
from tests.system import stories

from bench.figure import Figure
from bench.kube.measure import Spread, metric_sum, processor_seconds, spread
from bench.kube.watching import watching
from quorate.api import conditions
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.local.shape import Shape

ONE_BY_ONE = 100
CROWD = 50
LAYOUT = "layout 3D on 3 simulated nodes"


async def figures(plane: ControlPlane) -> list[Figure]:
    """All figures about formation and attachment."""
    async with world_on(plane, Shape(nodes=3)) as world:
        controller = await world.processes.controller()
        await controller.ready()
        await world.system.create_class()
        # The first volume pays for what is loaded and compiled once, in all processes.
        await world.system.create_volume("first")
        await world.system.formed("first")
        return [*await crowd(world, controller), *await one_by_one(world)]


async def crowd(world: World, controller: Process) -> list[Figure]:
    """Many at once: throughput, requests, reconciles, processor time of both sides."""
    servers = [server.pid for server in world.plane.processes.values()]
    audit = Audit(world.plane.audit_log)
    before = await controller.metrics()
    names = [f"crowd-{number}" for number in range(CROWD)]
    async with watching(world.system.cluster.client, ReplicatedVolume, is_formed) as formed:
        ours, theirs = processor_seconds(controller.pid), sum(processor_seconds(pid) for pid in servers)
        started = time.monotonic()
        await asyncio.gather(*(world.system.create_volume(name) for name in names))
        await formed.all(names)
        took = time.monotonic() - started
        ours = processor_seconds(controller.pid) - ours
        theirs = sum(processor_seconds(pid) for pid in servers) - theirs
    after = await controller.metrics()
    reconciles = metric_sum(after, RECONCILES) - metric_sum(before, RECONCILES)
    note = f"{CROWD} volumes at once, {LAYOUT}"
    return [
        Figure("volumes formed per second", CROWD / took, "1/s", note),
        Figure("reconciles per formed volume", reconciles / CROWD, "", f"all six controllers, {note}"),
        Figure("processor time of the controllers per formed volume", 1000 * ours / CROWD, "ms", note),
        Figure(
            "processor time of kube-apiserver and etcd per formed volume",
            1000 * theirs / CROWD,
            "ms",
            f"{note}; requests of controllers and agents",
        ),
        Figure("controllers' processor time over the servers'", ours / theirs, "×", "goal: below 1"),
        *requests(audit),
    ]


RECONCILES = "controller_runtime_reconcile_total"


def requests(audit: Audit) -> list[Figure]:
    """Answered requests by component, verb and kind, from the API server's own log; watches run on and are not counted."""
    found: list[Figure] = []
    for component, account in (("controllers", CONTROLLER), ("agents", AGENT)):
        counted = Counter(
            f"{entry.verb} {entry.resource}" for entry in audit.entries(user(account)) if entry.verb != "watch"
        )
        total = sum(counted.values())
        note = "answered requests in the API server's audit log"
        found.append(Figure(f"API requests of the {component} per formed volume", total / CROWD, "", note))
        found += [
            Figure(f"{component}: {what}", count / CROWD, "", "of these")
            for what, count in sorted(counted.items(), key=lambda pair: (-pair[1], pair[0]))
        ]
    return found


async def one_by_one(world: World) -> list[Figure]:
    """How long one volume takes while nothing else happens."""
    system, client = world.system, world.system.cluster.client
    forming: list[float] = []
    attaching: list[float] = []
    async with (
        watching(client, ReplicatedVolume, is_formed) as formed,
        watching(client, ReplicatedVolumeAttachment, is_attached) as attached,
    ):
        for number in range(ONE_BY_ONE):
            name = f"one-{number}"
            started = time.monotonic()
            await system.create_volume(name)
            await formed.all([name])
            forming.append(formed.at[name] - started)
            node = (await stories.diskful_nodes(system, name))[0]
            started = time.monotonic()
            attachment = await system.create_attachment(name, node)
            await attached.all([attachment])
            attaching.append(attached.at[attachment] - started)
    return [*latencies("create to formed", spread(forming)), *latencies("RVA to attached", spread(attaching))]


def is_attached(attachment: ReplicatedVolumeAttachment) -> bool:
    """The device is there."""
    return conditions.is_true(attachment.status.conditions, "Ready")


def latencies(name: str, found: Spread) -> list[Figure]:
    """Two figures of one sample."""
    note = f"{ONE_BY_ONE} volumes one after the other, {LAYOUT}"
    return [Figure(f"{name}, p50", found.p50, "s", note), Figure(f"{name}, p99", found.p99, "s", note)]
