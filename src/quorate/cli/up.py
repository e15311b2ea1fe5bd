"""`quorate up`: the API on this machine, without a cluster, for kubectl and for trying things out."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

import click

from quorate.api.crd import all_crds
from quorate.local.serve import CannotServe, Running, serve_api
from quorate.local.server import wait_closed

EXIT_CANNOT_SERVE = 2


@click.command("up")
@click.option("--data", type=click.Path(path_type=Path), help="Keep the state in this directory across restarts.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="Port on 127.0.0.1; 0 takes a free one.",
)
def command(data: Path | None, port: int) -> None:
    """Serve the Kubernetes-compatible API with our kinds on 127.0.0.1 until Ctrl-C.

    Writes a kubeconfig with a token to DIR/kubeconfig (without --data: .quorate/kubeconfig; the state then lives in memory).
    """
    try:
        failure = _run(data, port)
    except CannotServe as error:
        click.echo(f"quorate up: {error}", err=True)
        sys.exit(EXIT_CANNOT_SERVE)
    if failure:
        click.echo(f"quorate up: {failure}", err=True)
        sys.exit(1)


def _run(data: Path | None, port: int) -> str:
    try:
        import uvloop
    except ImportError:
        return asyncio.run(_serve(data, port))
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(_serve(data, port))


async def _serve(data: Path | None, port: int) -> str:
    """Serve until a signal; returns why the server stopped by itself, or nothing."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    async with serve_api(all_crds(), data=data, port=port) as running:
        _greet(running)
        failed = asyncio.create_task(wait_closed(running.api), name="watch the journal")
        stopped = asyncio.create_task(stop.wait(), name="wait for a signal")
        await asyncio.wait((failed, stopped), return_when=asyncio.FIRST_COMPLETED)
        failure = failed.result() if failed.done() else ""
        for task in (failed, stopped):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
    click.echo("Stopped.")
    return failure


def _greet(running: Running) -> None:
    where = f"in {running.kubeconfig.parent}" if running.durable else "in memory (use --data DIR to keep it)"
    click.echo(f"The API is served at {running.url}; its state is kept {where}.")
    click.echo(f"  export KUBECONFIG={running.kubeconfig.absolute()}")
    click.echo("  kubectl api-resources --categories=quorate")
    click.echo("Ctrl-C stops it.")
