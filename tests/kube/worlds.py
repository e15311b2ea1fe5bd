"""Whole systems on a real API server: the real processes under their shipped accounts, simulated nodes, real time.

The controllers run as processes of their own (`quorate controller`); the agents run here, on simulated hosts, each with
the token of its pod; the test itself and the kubelets are the administrator. Everything made is deleted at the end.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random, SystemRandom

import msgspec

from quorate.api.crd import all_crds
from quorate.api.meta import Object
from quorate.api.resources import OWN, Resource, by_kind
from quorate.kube.kubeconfig import load
from quorate.kube.transport import KubeTransport
from quorate.local.api_server import ApiServer
from quorate.local.cluster import LocalCluster, Wiring
from quorate.local.shape import NAMESPACE, Shape
from quorate.machinery.clock import SystemClock
from quorate.machinery.faults import FaultTransport
from quorate.machinery.logs import Level, Logger, LogSettings, text_sink
from quorate.verification.system.counting import CountingTransport, Writes
from quorate.verification.system.system import System, SystemOptions
from tests.kube.accounts import Admin, AgentIdentity, agent_pod
from tests.kube.audit import Audit
from tests.kube.processes import Processes
from tests.kube.servers import ControlPlane

CLEARED = (*OWN, *(by_kind(kind) for kind in ("StorageClass", "Node", "Pod", "Lease")))
"""Kinds whose objects do not outlive a test."""


PATIENCE = 5.0
"""Waits are written for virtual time. Here time is real and the machine may be busy: only what never comes is a failure."""


class PatientSystem(System):
    """A system whose waits are long; nothing waits longer than it must."""

    async def until(self, reached: Callable[[], Awaitable[bool]], seconds: float, what: str) -> None:
        """See `System.until`."""
        await super().until(reached, seconds * PATIENCE, what)


@dataclass(frozen=True)
class World:
    """A system and what is around it."""

    system: System
    processes: Processes
    plane: ControlPlane
    admin: Admin
    audit: Audit
    """What the API server logged since the world began."""

    async def lose_node(self, name: str) -> None:
        """Power off a machine, and say so as the node controller would after forty seconds."""
        await self.system.cluster.crash_node(name)
        unknown = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "no heartbeat"}
        not_ready = {"type": "Ready", "status": "False"}
        await self.admin.merge(f"/api/v1/nodes/{name}/status", {"status": {"conditions": [unknown]}})
        pod = f"/api/v1/namespaces/{NAMESPACE}/pods/{agent_pod(name)}/status"
        await self.admin.merge(pod, {"status": {"conditions": [not_ready]}})


@asynccontextmanager
async def world_on(plane: ControlPlane, shape: Shape | None = None) -> AsyncGenerator[World]:
    """Nodes with running agents; controllers are started by the test."""
    clock = SystemClock()
    options = SystemOptions(shape=shape or Shape(nodes=5), seed=secrets.randbelow(1 << 30))
    log = Logger(text_sink(sys.stderr, lambda epoch: f"{epoch:.3f}"), clock, LogSettings(Level.ERROR))
    admin = Admin(plane)
    audit = Audit(plane.audit_log)
    made: list[KubeTransport] = []

    def agent_transport(node: str) -> KubeTransport:
        config = load(str(plane.kubeconfig("username: nobody", "agents.kubeconfig")))
        transport = KubeTransport(config, AgentIdentity(admin, node), clock, SystemRandom())
        made.append(transport)
        return transport

    faulty = FaultTransport(admin.transport, Random(1), clock)
    writes = Writes()
    wiring = Wiring(
        CountingTransport(faulty, writes),
        clock,
        asyncio.get_running_loop(),
        log,
        seed=options.seed,
        entropy=secrets.token_bytes,
        agent_transport=agent_transport,
    )
    cluster = LocalCluster(options.shape, wiring)
    system = PatientSystem(options, cluster, ApiServer(all_crds()), writes, faulty, clock)
    processes = Processes(plane, admin)
    try:
        for index, name in enumerate(options.shape.node_names()):
            await admin.prepare_agent_pod(name)
            await cluster.add_node(name, index)
        yield World(system, processes, plane, admin, audit)
    finally:
        await processes.end()
        await cluster.stop()
        try:
            await clear(admin)
        finally:
            for transport in (*made, admin.transport):
                await transport.close()


@asynccontextmanager
async def system_on(plane: ControlPlane, shape: Shape | None = None) -> AsyncGenerator[World]:
    """The same with one controller that works."""
    async with world_on(plane, shape) as world:
        controller = await world.processes.controller()
        await controller.ready()
        yield world


class _Meta(msgspec.Struct):
    name: str


class _Found(msgspec.Struct):
    metadata: _Meta


class _List(msgspec.Struct):
    items: list[_Found]


async def clear(admin: Admin) -> None:
    """Delete everything that a test may have made, finalizers or not."""
    for resource in CLEARED:
        namespace = NAMESPACE if resource.namespaced else ""
        await admin.demand("DELETE", resource.path("", namespace), {"gracePeriodSeconds": 0})
        await _strip(admin, resource, namespace)


async def _strip(admin: Admin, resource: Resource[Object], namespace: str) -> None:
    for item in msgspec.json.decode(await admin.demand("GET", resource.path("", namespace)), type=_List).items:
        await admin.merge(resource.path(item.metadata.name, namespace), {"metadata": {"finalizers": None}})
