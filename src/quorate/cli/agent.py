"""`quorate agent`: the node agent on this machine, or with --check what this machine lacks to run one."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from random import SystemRandom

import click

EXIT_NOT_READY = 3
MARKS = {"ok": "ok     ", "warning": "note   ", "missing": "MISSING"}


@click.command("agent")
@click.option("--check", "only_check", is_flag=True, help="Say what this machine lacks, change nothing, and exit.")
@click.option("--node", envvar="NODE_NAME", help="Name of this node in the API; default: the host name.")
@click.option(
    "--kubeconfig",
    envvar="KUBECONFIG",
    help="Path of a kubeconfig; default: KUBECONFIG, then the pod's service account.",
)
@click.option("--min-port", envvar="DRBD_MIN_PORT", type=click.IntRange(1025, 65535), default=7000, show_default=True)
@click.option("--max-port", envvar="DRBD_MAX_PORT", type=click.IntRange(1025, 65535), default=7999, show_default=True)
@click.option(
    "--verify-alg", default="crct10dif-pclmul", show_default=True, help="Must be known to the kernel's crypto."
)
@click.option(
    "--lvm/--no-lvm", default=True, show_default=True, help="Also reconcile LVMLogicalVolume and LVMVolumeGroup."
)
@click.option("--health-port", type=click.IntRange(0, 65535), default=4269, show_default=True)
@click.option("--log-level", default="info", show_default=True)
def command(
    only_check: bool,
    node: str | None,
    kubeconfig: str | None,
    min_port: int,
    max_port: int,
    verify_alg: str,
    lvm: bool,
    health_port: int,
    log_level: str,
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
    asyncio.run(_run(name, kubeconfig, (min_port, max_port), verify_alg, lvm, health_port, log_level))


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
    kubeconfig: str | None,
    ports: tuple[int, int],
    verify_alg: str,
    lvm: bool,
    health_port: int,
    log_level: str,
) -> None:
    from quorate.agent.agent import Agent, AgentOptions
    from quorate.agent.intended import Settings
    from quorate.agent.real_host import RealHost
    from quorate.api import times
    from quorate.kube.connect import transport_of
    from quorate.kube.kubeconfig import load
    from quorate.machinery import health
    from quorate.machinery.clock import SystemClock
    from quorate.machinery.logs import Logger, LogSettings, json_sink

    clock = SystemClock()
    settings = LogSettings()
    settings.set_level(log_level)
    transport = transport_of(load(kubeconfig or ""), clock, user_agent=f"quorate/agent/{name}")
    options = AgentOptions(
        settings=Settings(verify_alg=verify_alg, minimum_port=ports[0], maximum_port=ports[1]), manage_lvm=lvm
    )
    agent = Agent(
        RealHost(name),
        transport,
        options,
        clock=clock,
        random=SystemRandom(),
        log=Logger(json_sink(sys.stderr, times.format), clock, settings),
        entropy=secrets.token_bytes,
    )
    work = asyncio.ensure_future(agent.run())
    for number in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(number, agent.stop)
    try:
        async with health.serve(health.application(agent.registry, agent.missing, settings), health_port):
            with contextlib.suppress(asyncio.CancelledError):
                await work
    finally:
        await transport.close()
