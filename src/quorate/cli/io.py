"""`quorate io VOLUME`: a verified writer on the node where a volume is attached."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager

import click

from quorate.cli.local_api import LOCAL, kubeconfig_option, reached, run
from quorate.machinery import errors

COMMAND = "quorate io"
EXIT_LOST = 1


@click.command("io")
@click.argument("volume")
@click.option("--node", default="", help="Node to write on; default: where the volume is attached.")
@click.option("--seconds", type=click.FloatRange(0, 3600), default=10.0, show_default=True, help="0 only reads back.")
@click.option(
    "--rate",
    type=click.FloatRange(0, 1000, min_open=True),
    default=50.0,
    show_default=True,
    help="Writes per second at most.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@kubeconfig_option
def command(volume: str, node: str, seconds: float, rate: float, as_json: bool, kubeconfig: str) -> None:
    """Write to a volume of the local cluster, read everything back and tell what was lost (exit code 1 if anything was).

    Every block that any run was ever acknowledged on the volume is checked, through the device and on each disk below.

    \b
    Examples:
      quorate io first --seconds 30
      quorate io first --seconds 0 --json
    """
    query = {"volume": volume, "node": node, "seconds": str(seconds), "rate": str(rate)}
    show = sys.stderr.isatty() and not as_json

    async def work() -> dict[str, object]:
        async with reached(kubeconfig) as transport:
            return await _follow(transport.stream("POST", f"{LOCAL}/io", query=query, headers={}), show)

    report = run(COMMAND, work)
    report.pop("type", None)
    if as_json:
        click.echo(json.dumps(report, indent=1))
    else:
        _print(report)
    sys.exit(EXIT_LOST if report["lost"] else 0)


async def _follow(opened: AbstractAsyncContextManager[AsyncIterator[bytes]], show: bool) -> dict[str, object]:
    """Read the messages; the last one is the report."""
    rest = b""
    async with opened as pieces:
        async for piece in pieces:
            *lines, rest = (rest + piece).split(b"\n")
            for line in lines:
                message: dict[str, object] = json.loads(line)
                if message.get("type") == "report":
                    if show:
                        click.echo("\r\033[K", nl=False, err=True)
                    return message
                if show:
                    _progress(message)
    raise errors.unavailable("the writer ended without a report")


def _progress(message: dict[str, object]) -> None:
    waiting = float(str(message["waiting"]))
    held = f", the running write waits for {waiting:.0f} s" if waiting > 1 else ""
    text = f"{message['acknowledged']} writes acknowledged on {message['node']}{held}"
    click.echo(f"\r\033[K{text}", nl=False, err=True)


def _print(report: dict[str, object]) -> None:
    click.echo(f"volume        {report['volume']} on {report['node']}, {report['seconds']} s")
    click.echo(f"acknowledged  {report['acknowledged']} writes, {report['failed']} failed")
    click.echo(f"read_back     {report['read_back']} blocks, compared with {report['copies']} copies")
    click.echo(f"lost          {report['lost']}")
    click.echo(f"pauses        {report['pauses']} (longest {report['longest_pause']} s)")
    if report["ended"]:
        click.echo(f"ended early   {report['ended']}")
