"""`quorate explain`: why something is not as wished, who must act, what helps."""

from __future__ import annotations

import time
from collections.abc import Iterator

import click

from quorate.api import times
from quorate.cli.common import Refused, cluster_options, connected, output_options, run
from quorate.cli.output import ago, emit
from quorate.explain.attachments import explain_attachment
from quorate.explain.causes import Cause, Explanation
from quorate.explain.nodes import explain_node
from quorate.explain.replicas import explain_replica
from quorate.explain.view import ClusterView
from quorate.explain.volumes import explain_volume

KINDS = ("volume", "replica", "attachment", "node")
COLOURS = {"healthy": "green", "working": "cyan", "degraded": "yellow", "blocked": "red", "deleting": "magenta"}


@click.command(
    "explain",
    epilog="""\b
Examples:
  quorate explain volume data
  quorate explain node node-3          may it be stopped now?
  quorate explain attachment data-on-node-2 --json""",
)
@click.argument("kind", type=click.Choice(KINDS))
@click.argument("name")
@cluster_options
@output_options
def command(kind: str, name: str, kubeconfig: str, context: str, output: str) -> None:
    """Explain a volume, replica, attachment or node: the causal chain, who must act, since when, what helps.

    For a healthy one: what keeps it healthy and which failures it would survive. For a node: whether it may be stopped now.
    """

    async def main() -> Explanation:
        from quorate.cli.reading import read_view

        async with connected(kubeconfig, context) as client:
            return explain(await read_view(client), kind, name)

    found = run(main)
    emit(output, found, lambda: render(found, time.time()))


def explain(view: ClusterView, kind: str, name: str) -> Explanation:
    """The explanation of one object."""
    if kind == "volume" and (volume := view.volume(name)) is not None:
        return explain_volume(view, volume)
    if kind == "replica" and (replica := view.replica(name)) is not None:
        return explain_replica(view, replica)
    if kind == "attachment" and (attachment := view.attachment(name)) is not None:
        return explain_attachment(view, attachment)
    if kind == "node" and view.node(name) is not None:
        return explain_node(view, name)
    raise Refused(f"there is no {kind} {name}{_similar(view, kind, name)}")


def _similar(view: ClusterView, kind: str, name: str) -> str:
    import difflib

    items = {"volume": view.volumes, "replica": view.replicas, "attachment": view.attachments, "node": view.nodes}[kind]
    known = [item.metadata.name for item in items]
    close = difflib.get_close_matches(name, known, n=3)
    if close:
        return f"; did you mean {', '.join(close)}?"
    return f"; there are: {', '.join(known[:10])}" if known else f"; there are no {kind}s"


def render(found: Explanation, now: float) -> Iterator[str]:
    """The explanation as lines."""
    verdict = click.style(found.verdict, fg=COLOURS[found.verdict], bold=True)
    yield f"{found.kind} {found.name}: {verdict}"
    yield f"  {found.summary}"
    if found.causes:
        yield ""
        yield click.style("Why", bold=True)
        for cause in found.causes:
            yield from _chain(cause, now)
    for title, lines in (("What keeps it healthy", found.keeps_healthy), ("What it survives", found.survives)):
        if lines:
            yield ""
            yield click.style(title, bold=True)
            yield from (f"  {line}" for line in lines)
    if found.safe_to_stop is not None:
        yield ""
        yield from _stopping(found)


def _chain(cause: Cause, now: float) -> Iterator[str]:
    for depth, link in cause.walk():
        indent = "  " * (depth + 1)
        arrow = "└ because " if depth else ""
        yield f"{indent}{arrow}{click.style(link.subject, bold=True)}: {link.text}"
        details = [text for text in (link.reason, _since(link.since, now)) if text]
        below = indent + "  " + ("  " if depth else "")
        if details:
            yield click.style(f"{below}{', '.join(details)}", dim=True)
        if link.actor and not link.because:
            yield f"{below}must act: {link.actor}"
        if link.remedy:
            yield f"{below}you can: {click.style(link.remedy, fg='cyan')}"


def _since(since: str, now: float) -> str:
    if not since:
        return ""
    return f"for {ago(since, now)} (since {times.format(times.parse(since))})"


def _stopping(found: Explanation) -> Iterator[str]:
    title = click.style("May it be stopped now?", bold=True)
    yield f"{title} {click.style('yes', fg='green') if found.safe_to_stop else click.style('NO', fg='red', bold=True)}"
    for impact in found.impacts:
        mark = click.style("✗", fg="red") if impact.fatal else click.style("·", dim=True)
        yield f"  {mark} volume {impact.volume}: {impact.text}"
    if not found.impacts:
        yield "  no volume has a member on it"
