"""`quorate up`: the whole of Quorate on this machine: API, controllers, extender, agents and simulated nodes."""

from __future__ import annotations

import asyncio
import contextlib
import re
import signal
import sys
from pathlib import Path

import click

from quorate.local.run import LocalOptions, LocalRun, run_local
from quorate.local.serve import CannotServe
from quorate.local.server import wait_closed
from quorate.local.shape import Shape
from quorate.local.shape_file import ShapeMismatch, ShapeWish, choose_shape
from quorate.machinery.logs import Level

EXIT_CANNOT_SERVE = 2
LEVELS = [level.name.lower() for level in Level]
_GROUP = re.compile(r"[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?")


@click.command("up")
@click.option(
    "--nodes",
    type=click.IntRange(0, 100),
    help="Simulated nodes; 0 serves the API alone.  [default: 5, or as DIR was made]",
)
@click.option("--zones", type=click.IntRange(0, 26), help="Zones the nodes are dealt to.  [default: 3]")
@click.option("--vgs", help="Volume groups of every node, with commas between them.  [default: data]")
@click.option("--thin/--thick", "thin", default=None, help="Thin pools or plain volumes.  [default: thin]")
@click.option("--data", type=click.Path(path_type=Path), help="Keep the state in this directory across restarts.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes a free one.",
)
@click.option(
    "--time-scale",
    type=click.FloatRange(0.1, 1000),
    default=1.0,
    show_default=True,
    help="How many times faster the simulated machines live: timeouts, reconnects and resyncs of DRBD.",
)
@click.option("--log-level", type=click.Choice(LEVELS), default="error", show_default=True, help="Logs on stderr.")
def command(
    nodes: int | None,
    zones: int | None,
    vgs: str | None,
    thin: bool | None,
    data: Path | None,
    port: int,
    time_scale: float,
    log_level: str,
) -> None:
    """Run a replicated cluster on this machine until Ctrl-C: no root, no Kubernetes, no kernel module.

    The real controllers and node agents work on simulated nodes behind a Kubernetes-compatible API on 127.0.0.1. Writes
    a kubeconfig to DIR/kubeconfig (without --data: .quorate/kubeconfig; the state then lives in memory). With --data a
    later run continues where this one ended, however it ended.

    \b
    Examples:
      quorate up
      quorate up --nodes 20 --zones 4 --data ~/quorate
    """
    try:
        shape = choose_shape(data, ShapeWish(nodes, zones, _groups(vgs), thin))
        options = LocalOptions(shape, data, port, time_scale, Level[log_level.upper()])
        failure = _run(options)
    except (CannotServe, ShapeMismatch) as error:
        click.echo(f"quorate up: {error}", err=True)
        sys.exit(EXIT_CANNOT_SERVE)
    if failure:
        click.echo(f"quorate up: {failure}", err=True)
        sys.exit(1)


def _groups(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    names = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    wrong = [name for name in names if not _GROUP.fullmatch(name)]
    if wrong:
        raise click.BadParameter(
            f"{wrong[0]!r} is no name for a volume group; use lower case letters, digits and dashes",
            param_hint="'--vgs'",
        )
    return names


def _run(options: LocalOptions) -> str:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_serve(options))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(options))


async def _serve(options: LocalOptions) -> str:
    """Run until a signal; returns why it stopped by itself, or nothing."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with run_local(options) as local:
        _greet(local, options.shape)
        watched = [asyncio.create_task(wait_closed(local.running.api), name="watch the journal")]
        if local.cluster is not None:
            watched.append(asyncio.create_task(local.cluster.wait_failed(), name="watch the parts"))
        stopped = asyncio.create_task(stop.wait(), name="wait for a signal")
        await asyncio.wait((*watched, stopped), return_when=asyncio.FIRST_COMPLETED)
        failure = next((task.result() for task in watched if task.done()), "")
        for task in (*watched, stopped):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    click.echo("Stopped.")
    return failure


def _greet(local: LocalRun, shape: Shape) -> None:
    running = local.running
    where = f"in {running.kubeconfig.parent}" if running.durable else "in memory (use --data DIR to keep it)"
    click.echo(f"The API is served at {running.url}; its state is kept {where}.")
    if local.cluster is not None:
        zones = f" in {shape.zones} zones" if shape.zones else ""
        pools = "thin pools" if shape.thin else "plain volumes"
        click.echo(f"{shape.nodes} nodes{zones} are ready; volume groups: {', '.join(shape.groups)} ({pools}).")
    click.echo("Try in another terminal:")
    click.echo(f"  export KUBECONFIG={running.kubeconfig.absolute()}")
    for line in _next_steps(local):
        click.echo(f"  {line}")
    click.echo("Ctrl-C stops it.")


def _next_steps(local: LocalRun) -> tuple[str, ...]:
    if local.cluster is None:
        return ("kubectl api-resources --categories=quorate",)
    examples = local.examples.absolute()
    return (
        "kubectl get nodes,lvmvolumegroups",
        f"kubectl apply -f {examples}    # a class, a volume, an attachment",
        "kubectl get rv,rvr,rva -w",
        "quorate io first --seconds 30      # verified writes on the attached node",
        "quorate fault node down node-2     # … while they run",
        "quorate fault list",
    )
