"""`quorate model-check`: searches the states of small clusters that run the production engine, and prints what is broken."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

if TYPE_CHECKING:
    from quorate.verification.runs import Caught, Result, Run, Task
    from quorate.verification.scenarios import Walks

_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")


class _Nonsense(click.ClickException):
    """A question that cannot be asked: one sentence."""

    exit_code = 2


@click.command()
@click.option("--layout", help="One layout (1D, 2D, 2D+1TB, 3D, 4D, 4D+1TB, 5D) instead of all, in one voter mode.")
@click.option(
    "--voters",
    type=click.Choice(("static", "dynamic")),
    help="Voter mode: dynamic is the stock module's (default with --layout), static the patched one's.",
)
@click.option(
    "--faults", type=click.IntRange(0, 4), help="Faults that may strike; a partition is one.  [default: 2 or 1]"
)
@click.option("--scenario", default="", help="One scenario of the layout, by its name.")
@click.option(
    "--walks", type=click.IntRange(1), help="Random walks instead of complete searches: how many per scenario."
)
@click.option("--depth", type=click.IntRange(1), default=300, show_default=True, help="Steps of a walk.")
@click.option(
    "--seed", type=int, default=1, show_default=True, help="Seed of the walks; the same seed walks the same way."
)
@click.option("--max-states", type=click.IntRange(1), help="Stop a search there; it is not complete then.")
@click.option("--mutant", help="Put a hazard back and print how it is caught (H31, ...), or `all` for a table.")
@click.option("--rulings", is_flag=True, help="Play the sequences of the decision about voter changes, as a table.")
@click.option(
    "--replay", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Play a saved trace again."
)
@click.option("--save", type=click.Path(dir_okay=False, path_type=Path), help="Write the trace of the first violation.")
@click.option("--jobs", type=click.IntRange(1), help="Worker processes.  [default: the number of processors]")
@click.option("--markdown", "as_markdown", is_flag=True, help="Print tables as Markdown.")
@_JSON
def command(
    layout: str | None,
    voters: str | None,
    faults: int | None,
    scenario: str,
    walks: int | None,
    depth: int,
    seed: int,
    max_states: int | None,
    mutant: str | None,
    rulings: bool,
    replay: Path | None,
    save: Path | None,
    jobs: int | None,
    as_markdown: bool,
    as_json: bool,
) -> None:
    """Search the states of small clusters for two writable sides or lost writes.

    The production engine runs against a model of agents, DRBD kernels, network and faults. Every order of events is tried.
    Without --layout all seven layouts are searched in both voter modes.

    Exit code 1: an assertion is violated. So --mutant NAME exits 1 when the mutant is caught; --mutant all exits 1 when one is
    missed, and --rulings when one does not hold. Exit code 2: the question makes no sense.
    """
    from quorate.verification.runs import MAX_STATES

    workers = jobs or os.cpu_count() or 1
    try:
        if replay is not None:
            sys.exit(_replay(replay, as_json=as_json))
        if rulings:
            sys.exit(_rulings(workers, as_json=as_json, as_markdown=as_markdown))
        if mutant is not None:
            sys.exit(_mutants(mutant, workers, save, as_json=as_json, as_markdown=as_markdown))
        runs = _runs(
            _questions(layout, voters),
            faults=faults,
            only=scenario,
            walks=_walks(walks, depth, seed),
            max_states=max_states or MAX_STATES,
            jobs=workers,
            save=save,
        )
    except ValueError as error:
        raise _Nonsense(str(error)) from error
    if as_json:
        _print_json(runs[0] if layout is not None else {"runs": runs})
    else:
        _print_runs(runs, as_markdown=as_markdown)
    sys.exit(1 if any(run.violations for run in runs) else 0)


def _walks(walks: int | None, depth: int, seed: int) -> Walks | None:
    from quorate.verification.scenarios import Walks

    return None if walks is None else Walks(walks, depth, seed)


def _questions(layout: str | None, voters: str | None) -> tuple[tuple[str, str], ...]:
    """Layouts and voter modes to search."""
    from quorate.verification.scenarios import LAYOUTS, VOTER_MODES

    if layout is not None:
        return ((layout, voters or "dynamic"),)
    return tuple((name, mode) for name in LAYOUTS for mode in VOTER_MODES if voters in (None, mode))


def _runs(
    questions: tuple[tuple[str, str], ...],
    *,
    faults: int | None,
    only: str,
    walks: Walks | None,
    max_states: int,
    jobs: int,
    save: Path | None,
) -> tuple[Run, ...]:
    from quorate.verification import runs

    tasks: list[Task] = []
    shares: list[int] = []
    for name, mode in questions:
        found = runs.tasks_of(name, mode, faults=faults, only=only, walks=walks, max_states=max_states)
        tasks += found
        shares.append(len(found))
    results = runs.perform_all(tuple(tasks), jobs, _tell)
    trace = next((result.trace for result in results if result.trace), "")
    if save is not None and trace:
        save.write_text(trace)
    done: list[Run] = []
    for (name, mode), share in zip(questions, shares, strict=True):
        done.append(runs.summarize(name, mode, results[:share]))
        results = results[share:]
    return tuple(done)


def _tell(task: Task, result: Result) -> None:
    """Progress, for people who watch: searches may take minutes."""
    if sys.stderr.isatty():
        verdict = f"{len(result.violations)} violations" if result.violations else "nothing broken"
        scenario = task.scenario
        click.echo(
            f"{scenario.layout} {scenario.voters}, {scenario.name}: {result.states:,} states, {verdict}", err=True
        )


def _print_json(value: object) -> None:
    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=1))


def _print_runs(runs: tuple[Run, ...], *, as_markdown: bool) -> None:
    from quorate.verification import tables

    table = tables.markdown if as_markdown else tables.plain
    click.echo(table(tables.RUN_HEADS, tables.run_rows(runs)))
    limits = tables.limit_rows(runs)
    if limits:
        click.echo("\nLimits of the kernel's rules that were met:\n")
        click.echo(table(tables.LIMIT_HEADS, limits))
    for run in runs:
        for found in run.violations:
            click.echo("\n" + tables.violation_text(found))


def _mutants(name: str, jobs: int, save: Path | None, *, as_json: bool, as_markdown: bool) -> int:
    from quorate.verification import runs, tables

    if name == "all":
        found = runs.catch_all(runs.mutant_names(), jobs)
        if as_json:
            _print_json({"mutants": found})
        else:
            table = tables.markdown if as_markdown else tables.plain
            click.echo(table(tables.MUTANT_HEADS, tables.mutant_rows(found)))
        return 0 if all(mutant.caught for mutant in found) else 1
    if name not in runs.mutant_names():
        raise ValueError(f"there is no mutant {name}; there are {', '.join(runs.mutant_names())}")
    caught = runs.catch(name)
    if save is not None and caught.trace:
        save.write_text(caught.trace)
    if as_json:
        _print_json(caught)
    else:
        _print_mutant(caught)
    return 1 if caught.caught else 0


def _rulings(jobs: int, *, as_json: bool, as_markdown: bool) -> int:
    from quorate.verification import runs, tables

    played = runs.play_all(jobs)
    if as_json:
        _print_json({"rulings": played})
    else:
        table = tables.markdown if as_markdown else tables.plain
        click.echo(table(tables.RULING_HEADS, tables.ruling_rows(played)))
    return 0 if all(each.holds for each in played) else 1


def _print_mutant(caught: Caught) -> None:
    from quorate.verification import tables

    click.echo(f"{caught.name}: {caught.hazard}")
    click.echo(f"{'caught' if caught.caught else 'NOT caught'} in {caught.states:,} states, {caught.seconds:.1f} s\n")
    for found in caught.violations:
        click.echo(tables.violation_text(found))


def _replay(path: Path, *, as_json: bool) -> int:
    """Play a trace again; 1 when it leads to a violation."""
    from quorate.verification import runs, traces
    from quorate.verification.volume import VolumeModel

    file = traces.read(path)
    model = (
        VolumeModel(file.scenario, runs.find_mutant(file.mutant).registry)
        if file.mutant
        else VolumeModel(file.scenario)
    )
    steps, broken = traces.replay(model, file.events)
    whole = len(steps) == len(file.events)
    if as_json:
        lines = [traces.render_event(step.event) for step in steps]
        _print_json({"recorded": file.assertion, "possible": whole, "broken": broken if whole else "", "steps": lines})
    else:
        for number, step in enumerate(steps, 1):
            click.echo(f"{number:3}. {traces.render_event(step.event)}")
        if steps:
            click.echo("\nthen:\n" + "\n".join(traces.render_state(model, steps[-1].state)))
        click.echo(f"\nrecorded: {file.assertion}\nnow: {broken or 'nothing is broken'}")
    return 1 if whole and broken else 0
