"""What the node agent costs with many resources on one node, and that the cost of one does not grow with the number.

A real agent on a simulated node, against the embedded API server, on virtual time. Figures are processor time of one core;
the time the simulated commands take is measured apart and left out. Every resource is diskful with one peer configured; a
reconcile observes (two commands), plans, finds nothing to do and writes nothing.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from random import Random

from bench.figure import Figure
from quorate.agent.agent import Agent, AgentOptions
from quorate.api import conditions
from quorate.api.common import Endpoint
from quorate.api.crd import all_crds
from quorate.api.drbd_resource import DRBDResource, DRBDResourceSpec, Peer, PeerPath
from quorate.api.lvm_logical_volume import LVMLogicalVolume, LVMLogicalVolumeSpec
from quorate.api.lvm_volume_group import Local, LVMVolumeGroup, LVMVolumeGroupSpec
from quorate.api.meta import ObjectMeta
from quorate.api.node import Node, NodeAddress, NodeStatus
from quorate.api.quantity import Quantity
from quorate.api.value import replace
from quorate.api.wire import merge_patch
from quorate.local.api_server import ApiServer
from quorate.local.ports import SeededIds
from quorate.machinery.client import Client
from quorate.machinery.clock import LoopClock
from quorate.machinery.logs import Logger, discard
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from quorate.machinery.virtual_loop import run_virtual
from quorate.simulator.cluster import Cluster
from quorate.simulator.host import SimulatedHost
from quorate.simulator.result import Result

MIB = 1024 * 1024
FEW, MANY = 100, 1000
NODE = "n0"
REPEATS = 3


class MeasuredHost(SimulatedHost):
    """Keeps the processor time its commands took."""

    spent = 0.0

    async def run(self, argv: Sequence[str], *, timeout: float, stdin: str = "") -> Result:  # noqa: ASYNC109
        await asyncio.sleep(self.latency)
        started = time.process_time()
        try:
            return self._cluster.nodes[self.name].execute(argv, stdin)
        finally:
            self.spent += time.process_time() - started


@dataclass(frozen=True)
class Cost:
    """Seconds of processor time, simulated commands left out."""

    bring_up: float
    """Per resource, from creation to Configured."""
    reconcile: float
    """Per reconcile that finds nothing to do."""
    rescan: float
    """Of a look at all resources that finds nothing new."""
    writes: float
    """API writes per bring-up, those of the benchmark itself left out."""


def measure(count: int) -> Cost:
    """Bring `count` resources up on one node, then work on all of them again and again."""
    return run_virtual(lambda: _measure(count))


async def _measure(count: int) -> Cost:
    clock = LoopClock()
    server = ApiServer(all_crds(), clock=clock, ids=SeededIds(1), history=100_000)
    cluster = Cluster(asyncio.get_running_loop(), 1, (NODE,))
    cluster.node(NODE).lvm.add_group("vg", (count + 10) * 8 * MIB)
    client = Client(server.transport(), clock, MachineryMetrics(Registry()))
    await _create_node(client)
    options = AgentOptions(rescan=1e9)
    log = Logger(discard, clock)
    entropy = Random(1).randbytes
    host = MeasuredHost(cluster, NODE)
    agent = Agent(host, server.transport(), options, clock=clock, random=Random(1), log=log, entropy=entropy)
    task = asyncio.ensure_future(agent.run())
    try:
        await asyncio.sleep(5)
        before = server.store.version
        spent = await _timed(host, lambda: _bring_up(client, count))
        written = server.store.version - before - 2 * count
        await asyncio.sleep(60)
        reconcile = min([await _timed(host, lambda: _reconcile_all(agent, count)) for _ in range(REPEATS)])
        await agent.listener.rescan()
        await asyncio.sleep(60)
        rescan = min([await _timed(host, agent.listener.rescan) for _ in range(REPEATS)])
    finally:
        task.cancel()
        await asyncio.wait((task,))
    return Cost(spent / count, reconcile / count, rescan, written / count)


async def _timed(host: MeasuredHost, work: Callable[[], Coroutine[object, object, None]]) -> float:
    started, commands = time.process_time(), host.spent
    await work()
    return time.process_time() - started - (host.spent - commands)


async def _create_node(client: Client) -> None:
    node = await client.create(Node(metadata=ObjectMeta(name=NODE)))
    addressed = NodeStatus(addresses=(NodeAddress(type="InternalIP", address="10.0.0.1"),))
    patch = merge_patch(node, replace(node, status=addressed))
    await client.patch(node, patch, subresource="status")
    spec = LVMVolumeGroupSpec(actual_vg_name_on_the_node="vg", type="Local", local=Local(node_name=NODE))
    await client.create(LVMVolumeGroup(metadata=ObjectMeta(name="vg"), spec=spec))


async def _bring_up(client: Client, count: int) -> None:
    for number in range(count):
        await client.create(_volume(number))
        await client.create(_resource(number))
    for _ in range(2000):
        await asyncio.sleep(1)
        found = await client.list(DRBDResource)
        if all(conditions.is_true(each.status.conditions, "Configured") for each in found.items):
            return
    raise RuntimeError("the resources were not configured in time")


async def _reconcile_all(agent: Agent, count: int) -> None:
    manager = agent.manager
    if manager is None:
        raise RuntimeError("the agent does not run")
    queue = manager.workers[0].queue
    for number in range(count):
        queue.add(_name(number))
    for _ in range(20 * count):
        await asyncio.sleep(0.05)
        if queue.idle:
            return
    raise RuntimeError("the reconciles did not end")


def _name(number: int) -> str:
    return f"rv{number}-0"


def _volume(number: int) -> LVMLogicalVolume:
    name = f"{_name(number)}-disk"
    spec = LVMLogicalVolumeSpec(
        actual_lv_name_on_the_node=name, type="Thick", size=Quantity.of(8 * MIB), lvm_volume_group_name="vg"
    )
    return LVMLogicalVolume(metadata=ObjectMeta(name=name), spec=spec)


def _resource(number: int) -> DRBDResource:
    path = PeerPath(system_network_name="Internal", address=Endpoint(ipv4="10.0.0.2", port=20_000 + number))
    spec = DRBDResourceSpec(
        node_name=NODE,
        node_id=0,
        system_networks=("Internal",),
        quorum=2,
        quorum_minimum_redundancy=1,
        size=Quantity.of(4 * MIB),
        lvm_logical_volume_name=f"{_name(number)}-disk",
        peers=(Peer(name=f"rv{number}-1", node_id=1, paths=(path,)),),
    )
    return DRBDResource(metadata=ObjectMeta(name=_name(number)), spec=spec)


def figures() -> list[Figure]:
    few, many = measure(FEW), measure(MANY)
    return [
        Figure("reconcile", many.reconcile * 1e3, "ms", f"one of {MANY} resources on a node, nothing to do"),
        Figure("reconcile growth", many.reconcile / few.reconcile, "ratio", f"{MANY} against {FEW} resources"),
        Figure("bring-up", many.bring_up * 1e3, "ms", f"one of {MANY} resources, from creation to Configured"),
        Figure("bring-up growth", many.bring_up / few.bring_up, "ratio", f"{MANY} against {FEW} resources"),
        Figure("bring-up writes", many.writes, "writes", "API writes of the agent per resource and its volume"),
        Figure("rescan", many.rescan * 1e3, "ms", f"a look at all {MANY} resources of a node, nothing new"),
    ]
