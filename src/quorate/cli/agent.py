"""`quorate agent`: the node agent on this machine, or with --check what this machine lacks to run one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

import click

from quorate.cli.common import LEVELS, cluster_options, server_config
from quorate.cli.listening import Address, address

if TYPE_CHECKING:
    from quorate.kube.kubeconfig import ServerConfig

EXIT_NOT_READY = 3
MARKS = {"ok": "ok     ", "warning": "note   ", "missing": "MISSING"}


@click.command(
    "agent",
    epilog="""\b
Examples:
  quorate agent --check
  quorate agent --node node-1 --kubeconfig /etc/quorate/kubeconfig""",
)
@click.option("--check", "only_check", is_flag=True, help="Say what this machine lacks, change nothing, and exit.")
@click.option("--node", envvar="NODE_NAME", help="Name of this node in the API; default: the host name.")
@cluster_options
@click.option("--min-port", envvar="DRBD_MIN_PORT", type=click.IntRange(1025, 65535), default=7000, show_default=True)
@click.option("--max-port", envvar="DRBD_MAX_PORT", type=click.IntRange(1025, 65535), default=7999, show_default=True)
@click.option(
    "--verify-alg", default="crct10dif-pclmul", show_default=True, help="Must be known to the kernel's crypto."
)
@click.option(
    "--lvm/--no-lvm", default=True, show_default=True, help="Also reconcile LVMLogicalVolume and LVMVolumeGroup."
)
@click.option(
    "--health-port",
    type=click.IntRange(0, 65535),
    default=4269,
    show_default=True,
    help="Port of /healthz and /readyz, on loopback.",
)
@click.option(
    "--metrics-address",
    envvar="METRICS_BIND_ADDRESS",
    show_envvar=True,
    callback=address,
    default="0",
    help="[HOST]:PORT of /metrics for a scraper; default: only beside the health endpoints.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option(
    "--log-level-file",
    envvar="SLOGH_CONFIG_PATH",
    show_envvar=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File whose content is a log level; followed while running.",
)
def command(
    only_check: bool,
    node: str | None,
    kubeconfig: str,
    context: str,
    min_port: int,
    max_port: int,
    verify_alg: str,
    lvm: bool,
    health_port: int,
    metrics_address: Address | None,
    log_level: str,
    log_level_file: Path | None,
) -> None:
    """Bring DRBD and LVM of this node to what the API objects ask for.

    Needs root, DRBD 9 and LVM; `--check` tells what is missing.
    """
    name = node or socket.gethostname()
    if only_check:
        sys.exit(asyncio.run(_check(name)))
    if max_port < min_port:
        raise click.UsageError("--max-port is smaller than --min-port")
    if os.geteuid() != 0:
        raise click.ClickException("the agent needs root; `quorate agent --check` does not")
    # Plain asyncio: programs are spawned here, and uvloop spawns many times slower as the process grows.
    listen = (Address("127.0.0.1", health_port), *((metrics_address,) if metrics_address else ()))
    serving = Serving(listen, log_level, log_level_file)
    config = server_config(kubeconfig, context)
    asyncio.run(_run(name, config, (min_port, max_port), verify_alg, lvm, serving))


@dataclass(frozen=True)
class Serving:
    """What the agent offers to those who watch it."""

    listen: tuple[Address, ...]
    log_level: str
    log_level_file: Path | None


async def _check(name: str) -> int:
    from quorate.agent.check import check, ready
    from quorate.agent.real_host import RealHost

    findings = await check(RealHost(name))
    for finding in findings:
        click.echo(f"{MARKS[finding.verdict.value]}  {finding.subject}: {finding.text}")
    if os.geteuid() != 0:
        click.echo(f"{MARKS['warning']}  Permissions: this is not root; the agent itself needs root")
    if ready(findings):
        click.echo("This machine can run the agent.")
        return 0
    click.echo("This machine cannot run the agent yet.")
    return EXIT_NOT_READY


async def _run(
    name: str,
    config: ServerConfig,
    ports: tuple[int, int],
    verify_alg: str,
    lvm: bool,
    serving: Serving,
) -> None:
    from quorate.agent.agent import Agent, AgentOptions
    from quorate.agent.intended import Settings
    from quorate.agent.real_host import RealHost
    from quorate.api import times
    from quorate.kube.connect import transport_of
    from quorate.machinery import health
    from quorate.machinery.clock import SystemClock
    from quorate.machinery.logs import Logger, LogSettings, follow_level, json_sink

    clock = SystemClock()
    settings = LogSettings()
    settings.set_level(serving.log_level)
    log = Logger(json_sink(sys.stderr, times.format), clock, settings)
    transport = transport_of(config, clock, user_agent=f"quorate/agent/{name}")
    options = AgentOptions(
        settings=Settings(verify_alg=verify_alg, minimum_port=ports[0], maximum_port=ports[1]), manage_lvm=lvm
    )
    agent = Agent(
        RealHost(name),
        transport,
        options,
        clock=clock,
        random=SystemRandom(),
        log=log,
        entropy=secrets.token_bytes,
    )
    work = asyncio.ensure_future(agent.run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, agent.stop)
    try:
        async with AsyncExitStack() as stack:
            for place in serving.listen:
                app = health.application(agent.registry, agent.missing, settings)
                await stack.enter_async_context(health.serve(app, place.port, place.host))
            if serving.log_level_file is not None:
                following = asyncio.create_task(follow_level(serving.log_level_file, settings, log, clock))
                stack.callback(following.cancel)
            with contextlib.suppress(asyncio.CancelledError):
                await work
    finally:
        await transport.close()
