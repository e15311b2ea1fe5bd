"""The `Journal` port: where accepted writes become durable.

The store keeps all objects in memory and appends every change to its journal in order of version. A journal promises:
once it has called `on_durable(version)`, every change up to that version survives a crash of the process and is given
back by `load`. The API server releases no answer and no watch event that rests on a version which is not durable yet.

* `MemoryJournal`: nothing survives, everything is durable at once.
* `SimulatedJournal`: durable after a simulated fsync on the running loop; a crash loses the unsynced tail.
* `SqliteJournal` (`sqlite_journal.py`): a database file.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from quorate.local.jsonvalue import JsonObject, decode, encode

Key = tuple[str, str]
"""(namespace, name); the namespace of cluster-scoped objects is empty."""


@dataclass(frozen=True)
class Entry:
    """One change of one object; `obj` is `None` when the object is gone."""

    version: int
    table: str
    key: Key
    obj: JsonObject | None


@dataclass(frozen=True)
class Recovered:
    """The state a journal holds: the highest durable version and the objects alive at it."""

    version: int
    entries: Sequence[Entry]


class JournalError(Exception):
    """Durable storage failed; what was not acknowledged by then is lost."""


class Journal(Protocol):
    """See the module docstring."""

    def load(self) -> Recovered:
        """What survived; called once, before `open`."""
        ...

    def open(self, on_durable: Callable[[int], None], on_failure: Callable[[JournalError], None]) -> None:
        """Start taking changes. Callbacks run on the event loop's thread."""
        ...

    def append(self, entry: Entry) -> None:
        """Take one change; versions rise."""
        ...

    async def close(self) -> None:
        """Make everything durable and let go of the storage."""
        ...


def _ignore_version(version: int) -> None:
    del version


def _ignore_failure(error: JournalError) -> None:
    del error


class MemoryJournal:
    """Keeps nothing: state lives as long as the process."""

    def __init__(self) -> None:
        self._on_durable = _ignore_version

    def load(self) -> Recovered:
        return Recovered(0, ())

    def open(self, on_durable: Callable[[int], None], on_failure: Callable[[JournalError], None]) -> None:
        del on_failure
        self._on_durable = on_durable

    def append(self, entry: Entry) -> None:
        self._on_durable(entry.version)

    async def close(self) -> None:
        self._on_durable = _ignore_version


class SimulatedJournal:
    """A disk in a simulation: changes become durable `fsync_seconds` after the group they are written with begins.

    The journal outlives the server that uses it. `crash` loses the unsynced tail and detaches that server; the next one
    loads what was synced. `fail` makes the disk refuse everything from then on.
    """

    def __init__(self, fsync_seconds: float = 0.002) -> None:
        self.fsync_seconds = fsync_seconds
        self._synced: dict[tuple[str, Key], tuple[int, bytes]] = {}
        self._version = 0
        self._tail: list[Entry] = []
        self._writing: list[Entry] = []
        self._timer: asyncio.TimerHandle | None = None
        self._on_durable = _ignore_version
        self._on_failure = _ignore_failure
        self._broken = False

    def load(self) -> Recovered:
        ordered = sorted(self._synced.items(), key=lambda item: item[1][0])
        entries = [Entry(version, table, key, _object(body)) for (table, key), (version, body) in ordered]
        return Recovered(self._version, entries)

    def open(self, on_durable: Callable[[int], None], on_failure: Callable[[JournalError], None]) -> None:
        self._on_durable = on_durable
        self._on_failure = on_failure

    def append(self, entry: Entry) -> None:
        self._tail.append(entry)
        if self._timer is None:
            self._begin()

    def _begin(self) -> None:
        self._writing, self._tail = self._tail, []
        self._timer = asyncio.get_running_loop().call_later(self.fsync_seconds, self._sync)

    def _sync(self) -> None:
        self._timer = None
        if self._broken:
            self._on_failure(JournalError("the simulated disk failed"))
            return
        self._store(self._writing)
        self._writing = []
        self._on_durable(self._version)
        if self._tail and self._timer is None:
            self._begin()

    def _store(self, entries: list[Entry]) -> None:
        for entry in entries:
            self._version = entry.version
            if entry.obj is None:
                self._synced.pop((entry.table, entry.key), None)
            else:
                self._synced[entry.table, entry.key] = (entry.version, encode(entry.obj))

    def crash(self) -> int:
        """Lose what is not synced; returns the number of lost changes."""
        lost = len(self._writing) + len(self._tail)
        self._writing, self._tail = [], []
        self._detach()
        return lost

    def fail(self) -> None:
        """From now on every sync fails."""
        self._broken = True

    async def close(self) -> None:
        self._store([*self._writing, *self._tail])
        self._writing, self._tail = [], []
        on_durable = self._on_durable
        self._detach()
        on_durable(self._version)

    def _detach(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._on_durable = _ignore_version
        self._on_failure = _ignore_failure


def _object(body: bytes) -> JsonObject:
    value = decode(body)
    if not isinstance(value, dict):
        raise JournalError("the journal holds something that is no object")
    return value
