"""`quorate controller`: the controllers of this deployment as one process (facts/controllers 8.3)."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from random import SystemRandom
from typing import TYPE_CHECKING

import click
import msgspec

from quorate.cli.common import EXIT_FAILED, LEVELS, WrongInput, cluster_options, run, server_config
from quorate.cli.listening import Address, address

if TYPE_CHECKING:
    from quorate.api.value import FrozenMap
    from quorate.controllers.process import ProcessSettings
    from quorate.extender.book import CapacityBook
    from quorate.kube.kubeconfig import ServerConfig
    from quorate.machinery.client import Client
    from quorate.machinery.clock import SystemClock
    from quorate.machinery.extender import Extender
    from quorate.machinery.logs import Logger
    from quorate.machinery.manager import Listen, Manager, ManagerOptions
    from quorate.machinery.recorder import Recorder
    from quorate.machinery.transport import Transport

LEASE = "sds-replicated-volume-controller"
IN_PROCESS = "in-process"


@dataclass(frozen=True)
class Options:
    """What the command line says, checked."""

    server: ServerConfig
    settings: ProcessSettings
    extender_url: str
    listen: tuple[Listen, ...]
    elect: bool
    lease_namespace: str
    log_level: str
    log_format: str
    log_level_file: Path | None
    record: Path | None
    record_keep: int


@click.command(
    "controller",
    epilog="""\b
Examples:
  quorate controller --namespace quorate-system --extender-url in-process
  quorate controller --no-leader-election --enable rv-controller,rvr-controller --log-format text
  quorate controller --record /var/tmp/decisions     then: quorate replay-decision FILE""",
)
@cluster_options
@click.option(
    "--namespace",
    envvar="POD_NAMESPACE",
    show_envvar=True,
    required=True,
    help="Own namespace: the agents' pods and the lease are there.",
)
@click.option(
    "--extender-url",
    envvar="SCHEDULER_EXTENDER_URL",
    show_envvar=True,
    required=True,
    metavar="URL",
    help=f"Scheduler extender; `{IN_PROCESS}` counts capacity in this process instead.",
)
@click.option(
    "--data-node-selector",
    envvar="DATA_NODE_SELECTOR",
    show_envvar=True,
    default="",
    metavar="JSON",
    help="Labels that data nodes have, as a JSON object; empty = all nodes.",
)
@click.option(
    "--enable",
    envvar="ENABLED_CONTROLLERS",
    show_envvar=True,
    default="",
    metavar="NAMES",
    help="Controllers to run, separated by commas; empty = all.",
)
@click.option(
    "--health-address",
    envvar="HEALTH_PROBE_BIND_ADDRESS",
    show_envvar=True,
    default=":4271",
    show_default=True,
    callback=address,
    help="[HOST]:PORT of /healthz and /readyz; 0 = off.",
)
@click.option(
    "--metrics-address",
    envvar="METRICS_BIND_ADDRESS",
    show_envvar=True,
    default=":4272",
    show_default=True,
    callback=address,
    help="[HOST]:PORT of /metrics; 0 = off.",
)
@click.option(
    "--leader-election/--no-leader-election",
    default=True,
    show_default=True,
    help=f"Work only while holding the lease {LEASE}.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="info", show_default=True)
@click.option("--log-format", type=click.Choice(("json", "text")), default="json", show_default=True)
@click.option(
    "--log-level-file",
    envvar="SLOGH_CONFIG_PATH",
    show_envvar=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="File whose content is a log level; followed while running.",
)
@click.option(
    "--record",
    type=click.Path(path_type=Path, file_okay=False),
    help="Keep the last inputs and effects of every object in this directory.",
)
@click.option(
    "--record-keep", type=click.IntRange(1, 10_000), default=20, show_default=True, help="Decisions per object."
)
def command(
    kubeconfig: str,
    context: str,
    namespace: str,
    extender_url: str,
    data_node_selector: str,
    enable: str,
    health_address: Address | None,
    metrics_address: Address | None,
    leader_election: bool,
    log_level: str,
    log_format: str,
    log_level_file: Path | None,
    record: Path | None,
    record_keep: int,
) -> None:
    """Run the controllers until a signal; several processes may run, one leads."""
    from quorate.controllers.process import ProcessSettings
    from quorate.machinery.manager import Listen

    _check_extender(extender_url)
    enabled = tuple(name.strip() for name in enable.split(",") if name.strip())
    settings = ProcessSettings(namespace, _selector(data_node_selector), enabled)
    addresses = dict.fromkeys(found for found in (health_address, metrics_address) if found is not None)
    options = Options(
        server=server_config(kubeconfig, context),
        settings=settings,
        extender_url=extender_url,
        listen=tuple(Listen(found.port, found.host) for found in addresses),
        elect=leader_election,
        lease_namespace=namespace,
        log_level=log_level,
        log_format=log_format,
        log_level_file=log_level_file,
        record=record,
        record_keep=record_keep,
    )
    failure = run(lambda: _run(options))
    if failure:
        click.echo(f"quorate controller: {failure}", err=True)
        sys.exit(EXIT_FAILED)


def _check_extender(url: str) -> None:
    if url != IN_PROCESS and not url.startswith(("http://", "https://")):
        raise click.BadParameter(
            f"{url!r} is neither an http(s) URL nor `{IN_PROCESS}`",
            param_hint="--extender-url (SCHEDULER_EXTENDER_URL)",
        )


def _selector(text: str) -> FrozenMap:
    """The selector of facts/controllers 8.3: a JSON object of labels; empty, `{}` and `null` mean all nodes."""
    from quorate.api.value import FrozenMap

    hint = "--data-node-selector (DATA_NODE_SELECTOR)"
    try:
        found = msgspec.json.decode(text or "null", type=dict[str, str] | None)
    except msgspec.MsgspecError as error:
        raise click.BadParameter(f"not a JSON object of labels: {error}", param_hint=hint) from error
    return FrozenMap(found or {})


async def _run(options: Options) -> str:
    """Run until a signal; the answer is why the process ended by itself, if it did."""
    from quorate.controllers.process import controller_specs
    from quorate.kube.connect import transport_of
    from quorate.machinery.clock import SystemClock
    from quorate.machinery.leader import LeadershipLost
    from quorate.machinery.manager import Manager

    clock = SystemClock()
    log = _logger(options, clock)
    transport = transport_of(options.server, clock, user_agent="quorate/controller")
    try:
        async with _extender(options, clock) as (extender, book):
            try:
                specs = controller_specs(options.settings, clock, extender, _client(transport, clock))
            except ValueError as error:
                raise WrongInput(f"--enable (ENABLED_CONTROLLERS): {error}") from error
            manager = Manager(
                transport,
                specs,
                _manager_options(options),
                clock=clock,
                random=SystemRandom(),
                entropy=secrets.token_bytes,
                log=log,
                record=_recorder(options, log),
            )
            if book is not None:
                book.follow(manager.caches)
            try:
                await _until_signal(manager, options, clock, log)
            except LeadershipLost as lost:
                return f"leadership lost: {lost}"
    finally:
        await transport.close()
    return ""


def _client(transport: Transport, clock: SystemClock) -> Client:
    """For what a controller asks the server besides its caches, with counters of its own."""
    from quorate.machinery.client import Client
    from quorate.machinery.machinery_metrics import MachineryMetrics
    from quorate.machinery.metrics import Registry

    return Client(transport, clock, MachineryMetrics(Registry()), user_agent="quorate/controller")


def _logger(options: Options, clock: SystemClock) -> Logger:
    from quorate.api import times
    from quorate.machinery.logs import Logger, LogSettings, json_sink, text_sink

    settings = LogSettings()
    settings.set_level(options.log_level)
    sink = json_sink if options.log_format == "json" else text_sink
    return Logger(sink(sys.stderr, times.format), clock, settings)


@asynccontextmanager
async def _extender(options: Options, clock: SystemClock) -> AsyncGenerator[tuple[Extender, CapacityBook | None]]:
    from quorate.extender.book import CapacityBook
    from quorate.extender.client import HttpExtender, InProcessExtender

    if options.extender_url == IN_PROCESS:
        book = CapacityBook()
        yield InProcessExtender(book, clock), book
        return
    async with HttpExtender(options.extender_url) as extender:
        yield extender, None


def _manager_options(options: Options) -> ManagerOptions:
    from quorate.api.pod import Pod
    from quorate.machinery.cache import Scope
    from quorate.machinery.leader import Election
    from quorate.machinery.manager import ManagerOptions

    # Unique per process: a restarted process is another candidate.
    identity = f"{socket.gethostname()}_{os.getpid()}_{secrets.token_hex(4)}"
    election = Election(LEASE, options.lease_namespace, identity) if options.elect else None
    return ManagerOptions(
        identity="controller",
        election=election,
        scopes={Pod: Scope(namespace=options.settings.namespace)},
        listen=options.listen,
    )


def _recorder(options: Options, log: Logger) -> Recorder | None:
    from quorate.machinery.recorder import Recorder

    return None if options.record is None else Recorder(options.record, log, keep=options.record_keep)


async def _until_signal(manager: Manager, options: Options, clock: SystemClock, log: Logger) -> None:
    from quorate.machinery.logs import follow_level

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, manager.stop)
    following: asyncio.Task[None] | None = None
    if options.log_level_file is not None:
        following = asyncio.create_task(follow_level(options.log_level_file, log.settings, log, clock))
    try:
        await manager.run()
    finally:
        if following is not None:
            following.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await following
