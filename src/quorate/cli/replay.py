"""`quorate replay`: runs recorded scenarios against the simulated kernel and prints how well they agree."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from quorate.simulator.replay import replay, summarize


@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print everything as JSON.")
def command(files: tuple[Path, ...], as_json: bool) -> None:
    """Replay recorded DRBD scenarios (JSON Lines) and compare exit codes and states."""
    reports = {path.stem: replay(path) for path in files}
    summary = summarize(reports)
    if as_json:
        click.echo(json.dumps(summary, indent=1))
    else:
        for name, report in reports.items():
            click.echo(f"{name:6} {report.matched}/{report.compared} matched, {len(report.skipped)} skipped")
        click.echo(f"total  {summary['total']}")
    sys.exit(1 if any(report.mismatches for report in reports.values()) else 0)
