"""Keeps the last decisions of every object as files: `quorate controller --record DIR`.

Layout: `DIR/<controller>/<object>.jsonl`, one decision per line, oldest first (`machinery/recording.py` has the format).
Guarantees: at most twice `keep` decisions per object and `objects` objects per controller stay; a file is always whole
lines, whenever the process ends; a disk that is full or gone never disturbs a reconcile, it is logged and counted.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path

from quorate.machinery import recording
from quorate.machinery.effects import Answers, Decision
from quorate.machinery.logs import Logger

KEEP = 20
OBJECTS = 2000
SUFFIX = ".jsonl"


class Recorder:
    """The manager's `record` sink; see the module docstring."""

    def __init__(self, directory: Path, log: Logger, *, keep: int = KEEP, objects: int = OBJECTS) -> None:
        self._directory = directory
        self._log = log
        self._keep = keep
        self._objects = objects
        self._lines: dict[str, OrderedDict[Path, int]] = {}
        """Lines per file by controller, least recently written first."""
        self._failing = False
        directory.mkdir(parents=True, exist_ok=True)

    def __call__(
        self, controller: str, key: str, snapshot: object, answers: Answers, now: float, decision: Decision
    ) -> None:
        """Record one decision."""
        try:
            line = recording.encode(recording.record(controller, key, snapshot, answers, now, decision))
            self._append(controller, key, line + b"\n")
            self._failing = False
        except (OSError, TypeError) as error:
            if not self._failing:
                self._log.warning("decisions cannot be recorded", directory=self._directory, error=error)
            self._failing = True

    def _append(self, controller: str, key: str, line: bytes) -> None:
        files = self._known(controller)
        path = self._directory / controller / f"{key.replace('/', '_')}{SUFFIX}"
        count = files.pop(path, 0)
        if count >= 2 * self._keep:
            kept = b"".join(path.read_bytes().splitlines(keepends=True)[-self._keep + 1 :])
            replacement = path.with_suffix(".new")
            replacement.write_bytes(kept + line)
            replacement.replace(path)
            count = self._keep
        else:
            with path.open("ab") as file:
                file.write(line)
            count += 1
        files[path] = count
        while len(files) > self._objects:
            oldest, _ = files.popitem(last=False)
            oldest.unlink(missing_ok=True)

    def _known(self, controller: str) -> OrderedDict[Path, int]:
        """The files of a controller; those of an earlier process are continued."""
        if controller not in self._lines:
            folder = self._directory / controller
            folder.mkdir(parents=True, exist_ok=True)
            present = sorted(folder.glob(f"*{SUFFIX}"), key=lambda path: (path.stat().st_mtime, path.name))
            self._lines[controller] = OrderedDict((path, path.read_bytes().count(b"\n")) for path in present)
        return self._lines[controller]
