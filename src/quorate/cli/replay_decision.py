"""`quorate replay-decision`: takes recorded decisions again and compares; a recording becomes a regression test."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorate.cli.common import EXIT_FAILED, WrongInput, output_options
from quorate.cli.output import emit

if TYPE_CHECKING:
    from quorate.machinery.effects import Answers, Decision
    from quorate.machinery.recording import JsonObject, Recording


@dataclass(frozen=True)
class Replayable:
    """How decisions of one controller are taken again."""

    snapshot: type[object]
    decide: Callable[[object, Answers, float], Decision]
    answers: Mapping[type[object], object]


@dataclass(frozen=True)
class Replayed:
    """One decision, recorded and taken again."""

    file: str
    line: int
    controller: str
    object: str
    same: bool
    effects: tuple[str, ...]
    """What was decided, by name."""
    recorded: JsonObject | None = None
    """Both decisions, when they differ."""
    now: JsonObject | None = None


@click.command(
    "replay-decision",
    epilog="""\b
Examples:
  quorate replay-decision /var/tmp/decisions/rv-controller/vol.jsonl
  quorate replay-decision --json recordings/*.jsonl""",
)
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@output_options
def command(files: tuple[Path, ...], output: str) -> None:
    """Take the decisions recorded in FILES again (`quorate controller --record DIR`); exit code 1 when one differs."""
    results = [result for path in files for result in replay_file(path)]
    emit(output, results, lambda: _lines(results))
    if not all(result.same for result in results):
        sys.exit(EXIT_FAILED)


def replay_file(path: Path) -> Iterator[Replayed]:
    """Every decision of a file."""
    from quorate.machinery import recording

    table = replayables()
    for number, line in enumerate(path.read_bytes().splitlines(), start=1):
        try:
            recorded = recording.decode(line)
            found = table[recorded.controller]
        except KeyError as error:
            raise WrongInput(f"{path}:{number}: no controller is called {error}") from error
        except ValueError as error:
            raise WrongInput(f"{path}:{number}: not a recorded decision ({error})") from error
        yield _replay(path, number, recorded, found)


def _replay(path: Path, number: int, recorded: Recording, found: Replayable) -> Replayed:
    from quorate.machinery import recording

    try:
        before, after = recording.replay(recorded, found.snapshot, found.decide, found.answers)
    except ValueError as error:
        raise WrongInput(f"{path}:{number}: the recording is of another version ({error})") from error
    same = before == after
    return Replayed(
        file=str(path),
        line=number,
        controller=recorded.controller,
        object=recorded.key,
        same=same,
        effects=tuple(_effect_name(effect) for effect in _effects(after)),
        recorded=None if same else before,
        now=None if same else after,
    )


def _effects(decision: JsonObject) -> list[object]:
    found = decision["effects"]
    return list(found) if isinstance(found, list) else []


def _effect_name(effect: object) -> str:
    if not isinstance(effect, dict):
        return str(effect)
    entries: dict[str, object] = effect  # pyright: ignore[reportUnknownVariableType]
    about = entries.get("before") or entries.get("obj") or entries.get("about") or ""
    if isinstance(about, dict):
        named: dict[str, object] = about  # pyright: ignore[reportUnknownVariableType]
        about = named.get("kind", "")
    return f"{entries['effect']} {about}".strip()


def _lines(results: list[Replayed]) -> Iterator[str]:
    for result in results:
        verdict = "same" if result.same else click.style("DIFFERS", fg="red")
        what = ", ".join(result.effects) or "nothing to do"
        yield f"{result.file}:{result.line}  {result.controller} {result.object}: {verdict} ({what})"
        if not result.same:
            yield f"  recorded: {result.recorded}"
            yield f"  now:      {result.now}"
    same = sum(result.same for result in results)
    yield f"{same} of {len(results)} decisions are the same."


def replayables() -> dict[str, Replayable]:
    """Snapshot types, decisions and answers of every controller, by its name."""
    from quorate.api.scheduler_extender import FilterAndScore, NarrowReservation, Scores
    from quorate.controllers.node import controller as node
    from quorate.controllers.process import ProcessSettings, controller_specs
    from quorate.controllers.replica import controller as replica
    from quorate.controllers.replica.publish import HeldSince
    from quorate.controllers.replica.refusal import WouldBeRefused
    from quorate.controllers.scheduling import controller as scheduling
    from quorate.controllers.scheduling.placement import ExtenderFailure
    from quorate.controllers.storage_class import controller as storage_class
    from quorate.controllers.storage_pool import controller as storage_pool
    from quorate.controllers.volume import controller as volume
    from quorate.extender.book import CapacityBook
    from quorate.extender.client import InProcessExtender
    from quorate.machinery.clock import SystemClock

    answers: dict[str, Mapping[type[object], object]] = {
        replica.NAME: {HeldSince: float, WouldBeRefused: str},
        scheduling.NAME: {FilterAndScore: (ExtenderFailure, Scores), NarrowReservation: (None, ExtenderFailure)},
    }
    snapshots: dict[str, type[object]] = {
        module.NAME: module.Snapshot for module in (volume, replica, scheduling, storage_class, storage_pool, node)
    }
    # The very functions that the process runs; nothing asks the extender, as every answer is in the recording.
    clock = SystemClock()
    specs = controller_specs(ProcessSettings(namespace=""), clock, InProcessExtender(CapacityBook(), clock))
    return {spec.name: Replayable(snapshots[spec.name], spec.decide, answers.get(spec.name, {})) for spec in specs}
