"""What runs found, as text and as Markdown: the tables of `quorate model-check` and of docs/invariants.md."""

from __future__ import annotations

from collections.abc import Sequence

from quorate.verification.runs import Caught, Found, Played, Run

RUN_HEADS = ("layout", "voters", "faults", "scenarios", "states", "transitions", "seconds", "complete", "violations")
MUTANT_HEADS = ("mutant", "hazard put back", "searched in", "caught", "states", "steps", "assertion")
LIMIT_HEADS = ("layout", "voters", "scenario", "limit")
RULING_HEADS = ("sequence", "voters", "safe", "holds", "states", "seconds")


def run_rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """One row per run; faults as the range over its scenarios."""
    return [
        (
            run.layout,
            run.voters,
            "-".join(sorted({str(result.faults) for result in run.scope.scenarios})),
            str(len(run.scope.scenarios)),
            f"{run.states:,}",
            f"{run.transitions:,}",
            f"{run.seconds:.0f}",
            "yes" if run.complete else "no",
            str(len(run.violations)),
        )
        for run in runs
    ]


def limit_rows(runs: Sequence[Run]) -> list[tuple[str, ...]]:
    """What the kernel's rules do not give, and where it was met."""
    return [
        (run.layout, run.voters, f"{result.scenario} ({result.faults} faults)", limit)
        for run in runs
        for result in run.scope.scenarios
        for limit in result.limits
    ]


def mutant_rows(caught: Sequence[Caught]) -> list[tuple[str, ...]]:
    """One row per mutant."""
    return [
        (
            mutant.name,
            mutant.hazard,
            f"{mutant.layout}, {mutant.voters}",
            "yes" if mutant.caught else "**no**",
            f"{mutant.states:,}",
            str(len(mutant.violations[0].steps)) if mutant.violations else "",
            mutant.violations[0].assertion.partition(":")[0] if mutant.violations else "",
        )
        for mutant in caught
    ]


def ruling_rows(played: Sequence[Played]) -> list[tuple[str, ...]]:
    """One row per sequence and voter mode."""
    return [
        (
            row.ruling,
            row.voters,
            "yes" if row.safe else "no",
            "yes" if row.holds else "**no**",
            f"{row.states:,}",
            f"{row.seconds:.0f}",
        )
        for row in played
    ]


def markdown(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table."""
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    lines += [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join(lines)


def plain(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """The same for a terminal."""
    widths = [max(len(row[i]) for row in (heads, *rows)) for i in range(len(heads))]
    return "\n".join("  ".join(cell.ljust(widths[i]) for i, cell in enumerate(row)).rstrip() for row in (heads, *rows))


def violation_text(found: Found) -> str:
    """A counter-example as a list of steps."""
    lines = [f"VIOLATED: {found.assertion}", f"scenario: {found.scenario}", ""]
    lines += [f"{number:3}. {step}" for number, step in enumerate(found.steps, 1)]
    if found.then:
        lines += ["", "then:", *found.then]
    return "\n".join(lines)
