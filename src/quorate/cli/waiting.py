"""Waiting with progress: what is it waiting for right now?

Guarantees: progress goes to standard error, so that results stay readable by programs; on a terminal one line is updated
in place, elsewhere a line is printed when the reason changes.
"""

from __future__ import annotations

import asyncio
import shutil
import sys
import time
from collections.abc import Awaitable, Callable

import click

from quorate.cli.common import Refused
from quorate.cli.reading import read_volume_view
from quorate.explain.causes import Explanation
from quorate.explain.view import ClusterView
from quorate.explain.volumes import explain_volume
from quorate.machinery.client import Client

POLL = 0.25
CLEAR_LINE = "\r\x1b[K"


async def wait_for(
    client: Client,
    volume: str,
    reached: Callable[[ClusterView], bool],
    what: str,
    seconds: float,
    explained: Callable[[ClusterView], Explanation | None] | None = None,
) -> ClusterView:
    """Wait until `reached`; `explained` says why it is not, by default what holds the volume up."""

    async def look() -> tuple[bool, str, ClusterView]:
        view = await read_volume_view(client, volume)
        if reached(view):
            return True, "", view
        found = view.volume(volume)
        explanation = (
            explained(view) if explained is not None else (explain_volume(view, found, briefly=True) if found else None)
        )
        return False, _now(explanation) if explanation is not None else "", view

    return await _wait(look, what, seconds)


def _now(explanation: Explanation) -> str:
    """The deepest thing that is waited for."""
    if not explanation.causes:
        return explanation.summary
    chain = [cause for _, cause in explanation.causes[0].walk()]
    last = chain[-1]
    top = explanation.causes[0].text
    return top if len(chain) == 1 else f"{top} ← {last.subject}: {last.text}"


async def _wait(look: Callable[[], Awaitable[tuple[bool, str, ClusterView]]], what: str, seconds: float) -> ClusterView:
    live = sys.stderr.isatty()
    began = time.monotonic()
    said = ""
    while True:
        done, text, view = await look()
        spent = time.monotonic() - began
        if done:
            if live:
                click.echo(CLEAR_LINE, err=True, nl=False)
            return view
        if spent >= seconds:
            if live:
                click.echo("", err=True)
            raise Refused(f"after {spent:.0f} s still waiting for: {what}" + (f"; now: {text}" if text else ""))
        if live:
            line = f"waiting {spent:3.0f}s for {what}: {text}"
            click.echo(CLEAR_LINE + _cut(line), err=True, nl=False)
        elif text != said:
            click.echo(f"waiting for {what}: {text}", err=True)
        said = text
        await asyncio.sleep(POLL)


def _cut(line: str) -> str:
    width = shutil.get_terminal_size((80, 24)).columns
    return line if len(line) < width else line[: width - 2] + "…"
