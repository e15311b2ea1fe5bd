"""`quorate extender`: the scheduler extender as a process of its own."""

from __future__ import annotations

import asyncio
import signal
import sys
from pathlib import Path
from random import SystemRandom

import click

from quorate.api import times
from quorate.cli.common import cluster_options, server_config
from quorate.cli.listening import Address, address
from quorate.extender.scoring import DEFAULT_DIVISOR
from quorate.extender.service import Endpoint, serve_extender
from quorate.kube.connect import transport_of
from quorate.kube.kubeconfig import ServerConfig
from quorate.machinery.clock import SystemClock
from quorate.machinery.logs import Logger, follow_level, json_sink


@click.command(
    "extender",
    epilog="""\b
Examples:
  quorate extender --port 8099
  quorate extender --host 0.0.0.0 --tls-certificate tls.crt --tls-key tls.key""",
)
@cluster_options
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8099,
    show_default=True,
    help="Port to listen on; 0 takes a free one.",
)
@click.option("--tls-certificate", default="", help="Certificate file; without one the protocol is plain HTTP.")
@click.option("--tls-key", default="", help="Key file of the certificate.")
@click.option(
    "--score-divisor",
    type=click.FloatRange(min=0, min_open=True),
    default=DEFAULT_DIVISOR,
    show_default=True,
    help="Scores are log2(free per cent after placement / divisor).",
)
@click.option(
    "--health-address",
    envvar="HEALTH_PROBE_BIND_ADDRESS",
    show_envvar=True,
    callback=address,
    default="0",
    help="[HOST]:PORT of /healthz, /readyz and /metrics; default: none.",
)
@click.option(
    "--log-level-file",
    envvar="SLOGH_CONFIG_PATH",
    show_envvar=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File whose content is a log level; followed while running.",
)
def command(
    kubeconfig: str,
    context: str,
    host: str,
    port: int,
    tls_certificate: str,
    tls_key: str,
    score_divisor: float,
    health_address: Address | None,
    log_level_file: Path | None,
) -> None:
    """Score volume groups by free space and reserve capacity for the scheduler, over HTTP."""
    if bool(tls_certificate) != bool(tls_key):
        raise click.UsageError("--tls-certificate and --tls-key belong together")
    config = server_config(kubeconfig, context)
    probes = health_address or Address("", 0)
    endpoint = Endpoint(
        host, port, tls_certificate, tls_key, probes.host, probes.port if health_address is not None else None
    )
    asyncio.run(_serve(config, endpoint, score_divisor, log_level_file))


async def _serve(config: ServerConfig, endpoint: Endpoint, divisor: float, log_level_file: Path | None) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    clock = SystemClock()
    log = Logger(json_sink(sys.stderr, times.format), clock)
    transport = transport_of(config, clock, user_agent="quorate/extender")
    following: asyncio.Task[None] | None = None
    if log_level_file is not None:
        following = asyncio.create_task(follow_level(log_level_file, log.settings, log, clock))
    try:
        await serve_extender(
            transport, endpoint, clock=clock, random=SystemRandom(), log=log, stop=stop, divisor=divisor
        )
    finally:
        if following is not None:
            following.cancel()
        await transport.close()
