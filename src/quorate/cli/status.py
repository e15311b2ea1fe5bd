"""`quorate status`: the cluster on one screen."""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Iterator

import click

from quorate.cli.common import cluster_options, connected, output_options, run
from quorate.cli.output import ago, bar, emit, fitted, size, table
from quorate.explain.overview import Overview, Protection, VolumeLine, compute_overview

STATES = {
    "Healthy": "green",
    "Changing": "cyan",
    "Forming": "cyan",
    "Waiting": "yellow",
    "Degraded": "yellow",
    "Deleting": "magenta",
    "Blocked": "red",
    "NoQuorum": "red",
    "Frozen": "red",
}
LEVELS = {"blocked": "red", "degraded": "yellow", "working": "cyan"}
MAX_ATTENTION = 8
MAX_ROWS = 20
"""Rows of each table; the rest is counted, --all shows it."""
WORST_FIRST = ("Frozen", "NoQuorum", "Blocked", "Degraded", "Waiting", "Forming", "Changing", "Deleting", "Healthy")
HOME_AND_CLEAR = "\x1b[H\x1b[J"


@click.command(
    "status",
    epilog="""\b
Examples:
  quorate status                 one screen
  quorate status --watch         the same, updated in place
  quorate status --json | jq '.attention'""",
)
@cluster_options
@output_options
@click.option("--watch", "-w", is_flag=True, help="Update in place until Ctrl-C.")
@click.option(
    "--interval", type=click.FloatRange(0.1, 3600), default=1.0, show_default=True, help="Seconds between two looks."
)
@click.option("--all", "everything", is_flag=True, help=f"Every row; otherwise the worst {MAX_ROWS} of each table.")
@click.option("--count", type=click.IntRange(1), help="With --watch: stop after so many looks.")
def command(
    kubeconfig: str,
    context: str,
    output: str,
    watch: bool,
    interval: float,
    everything: bool,
    count: int | None,
) -> None:
    """Show nodes, pools, volumes, attachments, running transitions, and what needs attention first.

    PROMISED and NOW are FTT/GMDR: how many nodes may fail, and how many further copies every write has.
    """
    rows = sys.maxsize if everything else MAX_ROWS
    run(lambda: _show(kubeconfig, context, output, interval, (count or sys.maxsize) if watch else 1, rows))


async def _show(kubeconfig: str, context: str, output: str, interval: float, looks: int, rows: int) -> None:
    from quorate.cli.reading import read_view

    async with connected(kubeconfig, context) as client:
        for look in range(looks):
            if look:
                await asyncio.sleep(interval)
            overview = compute_overview(await read_view(client))
            now = time.time()
            if looks > 1 and output == "table" and sys.stdout.isatty():
                text = "\n".join(fitted(line) for line in render(overview, now, rows))
                click.echo(HOME_AND_CLEAR + text)
            else:
                emit(output, overview, lambda overview=overview, now=now: render(overview, now, rows))


def render(overview: Overview, now: float, rows: int = MAX_ROWS) -> Iterator[str]:
    """The screen as lines; at most `rows` of each table."""
    yield from _attention(overview, now)
    yield from _section("NODES", _nodes(overview), rows)
    yield from _section("POOLS", _pools(overview), rows)
    yield from _section("VOLUMES", _volumes(overview), rows)
    if overview.attachments:
        yield from _section("ATTACHMENTS", _attachments(overview), rows)
    if overview.transitions:
        yield from _section("CHANGES", _transitions(overview, now), rows)


def _section(title: str, lines: list[str], rows: int) -> Iterator[str]:
    yield ""
    yield click.style(title, bold=True)
    yield from lines[: rows + 1]
    if len(lines) > rows + 1:
        yield f"  … and {len(lines) - rows - 1} more (--all)"


def _attention(overview: Overview, now: float) -> Iterator[str]:
    healthy = sum(volume.state == "Healthy" for volume in overview.volumes)
    ready = sum(node.ready for node in overview.nodes)
    counts = (
        f"{ready} of {len(overview.nodes)} nodes ready, {healthy} of {len(overview.volumes)} volumes healthy, "
        f"{len(overview.attachments)} attachments"
    )
    if not overview.attention:
        yield f"{click.style('OK', fg='green', bold=True)}  {counts}"
        return
    yield f"{click.style('ATTENTION', fg='red', bold=True)}  {counts}"
    for item in overview.attention[:MAX_ATTENTION]:
        since = f" ({ago(item.since, now)})" if item.since else ""
        yield f"  {click.style(item.level, fg=LEVELS[item.level])} {item.subject}{since}: {item.text}"
        if item.remedy:
            yield click.style(f"      → {item.remedy}", dim=True)
    if len(overview.attention) > MAX_ATTENTION:
        yield f"  … and {len(overview.attention) - MAX_ATTENTION} more (quorate status --json)"


def _nodes(overview: Overview) -> list[str]:
    if not overview.nodes:
        return ["  none"]
    rows = [
        (
            node.name,
            node.zone or "-",
            _yes(node.ready, "Ready", "NotReady") + (" fenced" if node.fenced else ""),
            "-" if node.agent_ready is None else _yes(node.agent_ready, "Ready", "NotReady"),
            "no" if node.cordoned else "yes",
            node.replicas or "-",
            str(node.attached),
        )
        for node in sorted(overview.nodes, key=lambda node: (node.ready and node.agent_ready is not False, node.name))
    ]
    return table(("NAME", "ZONE", "NODE", "AGENT", "SCHEDULABLE", "REPLICAS", "ATTACHED"), rows, "  ")


def _yes(value: bool, yes: str, no: str) -> str:
    return click.style(yes, fg="green") if value else click.style(no, fg="red")


def _pools(overview: Overview) -> list[str]:
    if not overview.pools:
        return ["  none: create a ReplicatedStorageClass first"]
    rows = [
        (
            ", ".join(pool.classes) or "-",
            pool.type,
            pool.phase or "-",
            str(pool.nodes),
            size(pool.size),
            size(pool.free),
            bar((pool.size - pool.free) / pool.size if pool.size else 0.0, 10),
            pool.name,
        )
        for pool in overview.pools
    ]
    return table(("CLASSES", "TYPE", "PHASE", "NODES", "SIZE", "FREE", "USED", "NAME"), rows, "  ")


def level(protection: Protection) -> str:
    """`1/1`: FTT and GMDR."""

    def one(value: int | None) -> str:
        return "?" if value is None else str(value)

    return f"{one(protection.ftt)}/{one(protection.gmdr)}"


def _volumes(overview: Overview) -> list[str]:
    if not overview.volumes:
        return ["  none: quorate volume create NAME --class CLASS --size 1Gi"]
    ordered = sorted(overview.volumes, key=lambda volume: (WORST_FIRST.index(volume.state), volume.name))
    rows = [_volume_row(volume) for volume in ordered]
    return table(("NAME", "STATE", "LAYOUT", "PROMISED", "NOW", "SIZE", "CLASS", "ATTACHED ON"), rows, "  ")


def _volume_row(volume: VolumeLine) -> tuple[str, ...]:
    layout = volume.layout or volume.wanted_layout or "-"
    if volume.layout and volume.wanted_layout and volume.layout != volume.wanted_layout:
        layout = f"{volume.layout}→{volume.wanted_layout}"
    worse = volume.state in ("Degraded", "NoQuorum", "Frozen")
    return (
        volume.name,
        click.style(volume.state, fg=STATES.get(volume.state)),
        layout,
        level(volume.promised),
        click.style(level(volume.observed), fg="yellow") if worse else level(volume.observed),
        size(volume.size),
        volume.storage_class or "(manual)",
        ", ".join(volume.attached_on) or "-",
    )


def _attachments(overview: Overview) -> list[str]:
    rows = [
        (
            line.name,
            line.volume,
            line.node,
            line.phase or "-",
            (line.device + (" (in use)" if line.in_use else "")) or "-",
            line.message,
        )
        for line in sorted(overview.attachments, key=lambda line: (not line.message, line.name))
    ]
    return table(("NAME", "VOLUME", "NODE", "PHASE", "DEVICE", "WAITS FOR"), rows, "  ")


def _transitions(overview: Overview, now: float) -> list[str]:
    rows = [
        (
            line.volume,
            f"{line.type} {line.replica}".strip(),
            f"{line.position}/{line.steps} {line.step}".strip(),
            bar(line.progress, 10),
            ago(line.since, now),
            line.message,
        )
        for line in overview.transitions
    ]
    return table(("VOLUME", "CHANGE", "STEP", "PROGRESS", "SINCE", "WAITS FOR"), rows, "  ")
