"""`quorate extender`: the scheduler extender as a process of its own."""

from __future__ import annotations

import asyncio
import signal
import sys
from random import SystemRandom

import click

from quorate.api import times
from quorate.extender.scoring import DEFAULT_DIVISOR
from quorate.extender.service import Endpoint, serve_extender
from quorate.kube.connect import transport_of
from quorate.kube.kubeconfig import ConfigError, ServerConfig, load
from quorate.machinery.clock import SystemClock
from quorate.machinery.logs import Logger, json_sink

EXIT_NO_CLUSTER = 2


@click.command("extender")
@click.option(
    "--kubeconfig", default="", help="Kubeconfig file (default: KUBECONFIG, ~/.kube/config, the pod we run in)."
)
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
def command(kubeconfig: str, host: str, port: int, tls_certificate: str, tls_key: str, score_divisor: float) -> None:
    """Score volume groups by free space and reserve capacity for the scheduler, over HTTP."""
    try:
        config = load(kubeconfig)
    except ConfigError as error:
        click.echo(f"quorate extender: {error}", err=True)
        sys.exit(EXIT_NO_CLUSTER)
    endpoint = Endpoint(host, port, tls_certificate, tls_key)
    asyncio.run(_serve(config, endpoint, score_divisor))


async def _serve(config: ServerConfig, endpoint: Endpoint, divisor: float) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    clock = SystemClock()
    log = Logger(json_sink(sys.stderr, times.format), clock)
    transport = transport_of(config, clock, user_agent="quorate/extender")
    try:
        await serve_extender(
            transport, endpoint, clock=clock, random=SystemRandom(), log=log, stop=stop, divisor=divisor
        )
    finally:
        await transport.close()
