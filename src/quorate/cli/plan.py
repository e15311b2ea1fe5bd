"""`quorate plan`: a change of a volume as steps, before it is made."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from quorate.api.quantity import Quantity
from quorate.cli.common import EXIT_FAILED, Refused, cluster_options, connected, output_options, run
from quorate.cli.output import emit, size, table
from quorate.cli.parameters import SIZE
from quorate.datamesh.layout import MAX_LEVEL

if TYPE_CHECKING:
    from quorate.explain.view import ClusterView
    from quorate.preview.results import Level, Preview, Step

LEVEL = click.IntRange(0, MAX_LEVEL)


@click.group("plan", epilog="Example: quorate plan volume data --ftt 2 --gmdr 1")
def command() -> None:
    """Preview a change as steps, without changing anything.

    A copy of the volume is made in memory, on simulated nodes with the same zones, capacity and faults, and the real
    controllers carry the change out there.
    """


@command.command(
    "volume",
    epilog="""\b
Examples:
  quorate plan volume data --ftt 2 --gmdr 1      more copies
  quorate plan volume data --replace-node node-3 move a replica elsewhere
  quorate plan volume data --size 20Gi --json""",
)
@click.argument("name")
@click.option("--ftt", type=LEVEL, help="Nodes that may fail without stopping I/O.")
@click.option("--gmdr", type=LEVEL, help="Further copies that every write has.")
@click.option("--size", "new_size", type=SIZE, help="New size.")
@click.option("--replace-node", default="", metavar="NODE", help="Move the replica on this node somewhere else.")
@click.option("--guards", is_flag=True, help="Also list every guard that is checked.")
@cluster_options
@output_options
def volume(
    name: str,
    ftt: int | None,
    gmdr: int | None,
    new_size: Quantity | None,
    replace_node: str,
    guards: bool,
    kubeconfig: str,
    context: str,
    output: str,
) -> None:
    """Preview a change of volume NAME: steps, guards, who must confirm, lowest protection, bytes to copy, nodes.

    Exit code 1 when the change is impossible; the reason is printed.
    """
    if ftt is None and gmdr is None and new_size is None and not replace_node:
        raise click.UsageError("say what shall change: --ftt, --gmdr, --size or --replace-node")
    view = run(lambda: _read(kubeconfig, context))
    found = _preview(view, name, ftt, gmdr, new_size, replace_node)
    emit(output, found, lambda: render(found, guards=guards))
    if not found.possible:
        sys.exit(EXIT_FAILED)


async def _read(kubeconfig: str, context: str) -> ClusterView:
    from quorate.cli.reading import read_view

    async with connected(kubeconfig, context) as client:
        return await read_view(client)


def _preview(
    view: ClusterView, name: str, ftt: int | None, gmdr: int | None, new_size: Quantity | None, replace_node: str
) -> Preview:
    try:
        from quorate.preview.results import Edit
        from quorate.preview.run import preview
    except ModuleNotFoundError as error:
        raise Refused(f"`quorate plan` needs the extra `local` (pip install 'quorate[local]'): {error}") from error
    edit = Edit(ftt, gmdr, None if new_size is None else new_size.value, replace_node)
    return preview(view, name, edit, time.time())


def render(found: Preview, *, guards: bool = False) -> Iterator[str]:
    """The preview as lines."""
    if not found.possible:
        yield f"{click.style('IMPOSSIBLE', fg='red', bold=True)}  volume {found.volume}: {found.reason}"
        if found.steps:
            yield "It would come this far and then wait:"
    elif not found.steps:
        yield f"volume {found.volume}: nothing would change"
        return
    else:
        count = f"{len(found.steps)} steps" if len(found.steps) != 1 else "1 step"
        yield f"{click.style('POSSIBLE', fg='green', bold=True)}  volume {found.volume}: {count}"
    for step in found.steps:
        yield from _step(step, guards=guards)
    if found.steps:
        yield ""
        yield from _summary(found)
    yield from (f"note: {note}" for note in found.notes)
    yield click.style("Nothing was changed.", dim=True)


def _step(step: Step, *, guards: bool) -> Iterator[str]:
    what = f"{step.what}: {step.step}" if step.step else step.what
    where = f" on {step.node}" if step.node else ""
    yield f"{step.number:3}. {click.style(what, bold=True)}{where}  [{_level(step.protection)}]"
    if step.why and step.kind == "replica":
        yield f"     {step.why}"
    if step.confirmed_by:
        yield f"     confirmed by {', '.join(step.confirmed_by)}"
    for wait in step.waits:
        yield f"     {wait}"
    if step.guards and guards:
        for guard in step.guards:
            yield click.style(f"     guard {guard.name}: {guard.text}", dim=True)
    elif step.guards:
        yield click.style(f"     guards: {', '.join(guard.name for guard in step.guards)}", dim=True)


def _level(level: Level | None) -> str:
    if level is None:
        return "?"
    return f"FTT {'?' if level.ftt is None else level.ftt}, GMDR {'?' if level.gmdr is None else level.gmdr}"


def _summary(found: Preview) -> Iterator[str]:
    yield f"promised           {_level(found.promised_before)} → {_level(found.promised_after)}"
    yield f"lowest protection  {_level(found.lowest_protection)} on the way"
    yield f"bytes to copy      {size(found.bytes_to_copy)}"
    yield ""
    rows = [(place.replica, place.type, place.node, place.change) for place in found.nodes]
    yield from table(("REPLICA", "TYPE", "NODE", "CHANGE"), rows)
