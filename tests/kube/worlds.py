"""Whole systems on a real API server: real controllers and agents, simulated nodes, real time."""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

from quorate.api.crd import all_crds
from quorate.kube.connect import transport_of
from quorate.kube.kubeconfig import load
from quorate.local.api_server import ApiServer
from quorate.local.cluster import LocalCluster, Wiring
from quorate.local.shape import Shape
from quorate.machinery.clock import SystemClock
from quorate.machinery.faults import FaultTransport
from quorate.machinery.logs import Level, Logger, LogSettings, text_sink
from quorate.verification.system.counting import CountingTransport, Writes
from quorate.verification.system.system import System, SystemOptions
from tests.kube.servers import ControlPlane


@asynccontextmanager
async def system_on(plane: ControlPlane, shape: Shape | None = None) -> AsyncGenerator[System]:
    """A running system whose objects live on the real API server; everything it made is deleted at the end."""
    clock = SystemClock()
    options = SystemOptions(shape=shape or Shape(nodes=5), seed=secrets.randbelow(1 << 30))
    log = Logger(text_sink(sys.stderr, lambda epoch: f"{epoch:.3f}"), clock, LogSettings(Level.ERROR))
    real = transport_of(load(str(plane.kubeconfig())))
    faulty = FaultTransport(real, Random(1), clock)
    writes = Writes()
    transport = CountingTransport(faulty, writes)
    wiring = Wiring(transport, clock, asyncio.get_running_loop(), log, seed=options.seed, entropy=secrets.token_bytes)
    cluster = LocalCluster(options.shape, wiring)
    system = System(options, cluster, ApiServer(all_crds()), writes, faulty, clock)
    await cluster.start()
    try:
        yield system
    finally:
        await cluster.stop()
        await real.close()
