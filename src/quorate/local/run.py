"""The local cluster as a process: API over HTTPS, controllers, extender, agents and simulated nodes on one event loop.

`run_local` yields when everything is ready and takes everything down in the order in which it would be missed: first
the parts that write, then the API. With a directory, both the objects and the disks of the machines are kept in it, so
that a later run continues; the end of the process, however it comes, is a power loss of all machines.
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from quorate.api import times
from quorate.api.crd import all_crds
from quorate.local.cluster import LocalCluster, Wiring
from quorate.local.endpoints import Endpoints
from quorate.local.examples import write_examples
from quorate.local.io import LocalIo
from quorate.local.io_ledger import IoLedger
from quorate.local.pace import ScaledTime
from quorate.local.serve import CannotServe, Running, serve_api
from quorate.local.shape import Shape
from quorate.local.shape_file import write_shape
from quorate.local.turns import Turns
from quorate.machinery.clock import SystemClock
from quorate.machinery.logs import Level, Logger, LogSettings, text_sink
from quorate.simulator.persistence import DiskJournal, DisksDamaged

POLL = 0.02
PATIENCE = 30.0
REQUESTS_PER_TURN = 2
"""In-process requests per turn of the event loop: kubectl waits for these, not for everything that is ready."""
"""Seconds to wait for the agents before the greeting is printed anyway."""


@dataclass(frozen=True)
class LocalOptions:
    """How a local cluster is run."""

    shape: Shape
    data: Path | None = None
    port: int = 6443
    time_scale: float = 1.0
    """How many times faster than the wall clock the simulated machines live."""
    log_level: Level = Level.ERROR


@dataclass(frozen=True)
class LocalRun:
    """A running local cluster."""

    running: Running
    cluster: LocalCluster | None
    """None when only the API is served."""
    examples: Path


@asynccontextmanager
async def run_local(options: LocalOptions) -> AsyncGenerator[LocalRun]:
    """Run until the block is left."""
    clock = SystemClock()
    async with serve_api(all_crds(), data=options.data, port=options.port, clock=clock) as running:
        directory = running.kubeconfig.parent
        if options.data is not None:
            write_shape(directory, options.shape)
        examples = write_examples(directory, options.shape)
        if not options.shape.nodes:
            yield LocalRun(running, None, examples)
            return
        ledger, disks = IoLedger(options.data), _disks(options.data)
        cluster = LocalCluster(options.shape, _wiring(running, options, clock, disks))
        await cluster.start()
        try:
            # Numbers grow over all runs: a larger one is a later write.
            highest = max(ledger.highest(), disks.highest() if disks is not None else 0)
            endpoints = Endpoints(cluster, LocalIo(cluster, clock, ledger, highest), time_scale=options.time_scale)
            running.http.local = endpoints.handle
            await _until_ready(cluster)
            yield LocalRun(running, cluster, examples)
        finally:
            running.http.local = None
            await cluster.stop()
            if disks is not None:
                disks.commit()
                disks.close()
            ledger.close()


def _disks(directory: Path | None) -> DiskJournal | None:
    if directory is None:
        return None
    try:
        return DiskJournal(directory, asyncio.get_running_loop().call_soon)
    except (DisksDamaged, OSError) as error:
        raise CannotServe(f"Cannot use {directory}: {error}.") from error


def _wiring(running: Running, options: LocalOptions, clock: SystemClock, disks: DiskJournal | None) -> Wiring:
    loop = asyncio.get_running_loop()
    sink = text_sink(sys.stderr, times.format)
    return Wiring(
        running.api.transport(Turns(REQUESTS_PER_TURN)),
        clock,
        ScaledTime(loop, scale=options.time_scale, start=clock.now()),
        Logger(sink, clock, LogSettings(options.log_level)),
        # Never a fixed seed: generation numbers drawn twice would make different data look equal after a restart.
        seed=secrets.randbits(63),
        entropy=secrets.token_bytes,
        disks=disks,
    )


async def _until_ready(cluster: LocalCluster) -> None:
    """Every agent and the controllers have their caches."""
    for _ in range(int(PATIENCE / POLL)):
        if cluster.ready():
            return
        await asyncio.sleep(POLL)
