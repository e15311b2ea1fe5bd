"""`quorate demo`: a guided tour of about a minute on a simulated cluster."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict

import click


@click.command("demo")
@click.option("--json", "as_json", is_flag=True, help="Play as fast as possible and print the record as JSON.")
@click.option("--plain", is_flag=True, help="Lines of text instead of a live picture; the default without a terminal.")
@click.option("--seed", type=click.IntRange(0, 2**32), default=1, show_default=True, help="Another seed, another run.")
@click.option(
    "--pace",
    type=click.FloatRange(0, 100),
    default=1.0,
    show_default=True,
    help="2 is twice as fast, 0 is as fast as the machine can.",
)
def command(as_json: bool, plain: bool, seed: int, pace: float) -> None:
    """Watch volumes form, survive the loss of a node, change their layout in use, and go away again.

    Five simulated nodes in three zones run the real controllers and agents; nothing on this machine is changed. The exit
    code is 0 only if every check held.

    \b
    Examples:
      quorate demo
      quorate demo --json --seed 7
    """
    from quorate.demo.screens import LiveScreen, PlainScreen, SilentScreen
    from quorate.demo.tour import play_tour

    if as_json:
        record = play_tour(SilentScreen(), seed=seed, pace=0.0)
        acts = [{**asdict(act), "ok": act.ok} for act in record.acts]
        body = {"ok": record.ok, "seed": seed, "acknowledged": record.acknowledged, "acts": acts}
        click.echo(json.dumps(body, indent=1))
    elif plain or not sys.stdout.isatty():
        record = play_tour(PlainScreen(click.echo), seed=seed, pace=pace)
    else:
        with LiveScreen() as screen:
            record = play_tour(screen, seed=seed, pace=pace)
    if not as_json:
        _say_goodbye(record.ok, sum(len(act.checks) for act in record.acts), record.acknowledged)
    sys.exit(0 if record.ok else 1)


def _say_goodbye(ok: bool, checks: int, acknowledged: int) -> None:
    click.echo("")
    if ok:
        click.echo(f"All {checks} checks held; {acknowledged} acknowledged writes, none lost.")
        click.echo("Next: `quorate up` starts such a cluster to play with.")
    else:
        click.echo("A check did not hold; see FAIL above.")
