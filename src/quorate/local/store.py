"""The store: all objects in memory, one rising version, a bounded history per table.

Guarantees: every change gets the next version, which becomes the object's `resourceVersion`; readers of the past
(`at`) and watchers (`since`) see exactly the history, or `Compacted` when it is no longer kept; a stored object is
never modified; no change is shown by `since` before the journal made it durable, and `wait_durable` holds answers
back until then.

The store knows nothing about kinds: rules live in `registry.py`.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass, field
from operator import attrgetter

from quorate.local.journal import Entry, Journal, JournalError, Key
from quorate.local.jsonvalue import JsonObject, encode, with_metadata

ADDED = "ADDED"
MODIFIED = "MODIFIED"
DELETED = "DELETED"


class Compacted(Exception):
    """The requested version is older than the history."""


class Closed(Exception):
    """The store was stopped, or its journal failed, before the change became durable."""


class Stored:
    """One version of one object; its JSON text is made once."""

    __slots__ = ("_encoded", "obj", "version")

    def __init__(self, obj: JsonObject, version: int) -> None:
        self.obj = obj
        self.version = version
        self._encoded: bytes | None = None

    @property
    def encoded(self) -> bytes:
        if self._encoded is None:
            self._encoded = encode(self.obj)
        return self._encoded


@dataclass(frozen=True, slots=True)
class Change:
    """One step of a table's history; `stored` of a deletion is the last state with the version of the deletion."""

    version: int
    type: str
    key: Key
    stored: Stored
    previous: Stored | None


@dataclass
class Table:
    """All objects that share storage."""

    name: str
    objects: dict[Key, Stored] = field(default_factory=dict[Key, Stored])
    changes: list[Change] = field(default_factory=list[Change])
    compacted: int = 0
    """The version of the youngest change that is no longer kept."""
    ordered: list[Key] | None = None
    listeners: dict[int, Callable[[], None]] = field(default_factory=dict[int, Callable[[], None]])

    def sorted_keys(self) -> list[Key]:
        if self.ordered is None:
            self.ordered = sorted(self.objects)
        return self.ordered


_version_of = attrgetter("version")


class Store:
    """See the module docstring."""

    def __init__(self, journal: Journal, *, history: int = 4096) -> None:
        self._journal = journal
        self._history = history
        self._tables: dict[str, Table] = {}
        self._waiters: list[tuple[int, asyncio.Future[None]]] = []
        self._pending: dict[str, Table] = {}
        """Tables with changes that are not durable yet."""
        self._next_listener = 0
        self._closed: str | None = None
        self._observers: list[Callable[[str, Key, JsonObject | None, JsonObject | None], None]] = []
        recovered = journal.load()
        self.version = max(recovered.version, 1)
        self.durable = self.version
        self._floor = self.version
        for entry in recovered.entries:
            if entry.obj is not None:
                self.table(entry.table).objects[entry.key] = Stored(entry.obj, entry.version)
        journal.open(self._on_durable, self._on_failure)

    # Reading

    def table(self, name: str) -> Table:
        found = self._tables.get(name)
        if found is None:
            found = self._tables[name] = Table(name, compacted=self._floor)
        return found

    def tables(self) -> list[Table]:
        return list(self._tables.values())

    def get(self, table: str, key: Key) -> Stored | None:
        return self.table(table).objects.get(key)

    def all(self, table: str) -> list[tuple[Key, Stored]]:
        """The objects of a table in the order of their keys."""
        found = self.table(table)
        return [(key, found.objects[key]) for key in found.sorted_keys()]

    def at(self, table: str, version: int) -> list[tuple[Key, Stored]]:
        """The objects as they were at `version`, in the order of their keys."""
        found = self.table(table)
        if version >= self.version:
            return self.all(table)
        if version < found.compacted:
            raise Compacted
        state = dict(found.objects)
        for change in reversed(found.changes):
            if change.version <= version:
                break
            if change.previous is None:
                state.pop(change.key, None)
            else:
                state[change.key] = change.previous
        return sorted(state.items(), key=lambda item: item[0])

    def since(self, table: str, version: int) -> list[Change]:
        """The durable changes after `version`."""
        found = self.table(table)
        if version < found.compacted:
            raise Compacted
        start = bisect_right(found.changes, version, key=_version_of)
        end = len(found.changes)
        while end > start and found.changes[end - 1].version > self.durable:
            end -= 1
        return found.changes[start:end]

    # Writing

    def put(self, table: str, key: Key, obj: JsonObject) -> Stored:
        """Store a new state of an object; returns it with its `resourceVersion`."""
        self._check_open()
        found = self.table(table)
        previous = found.objects.get(key)
        self.version += 1
        stored = Stored(with_metadata(obj, resourceVersion=str(self.version)), self.version)
        found.objects[key] = stored
        if previous is None:
            found.ordered = None
        change_type = ADDED if previous is None else MODIFIED
        self._record(found, Change(self.version, change_type, key, stored, previous))
        return stored

    def remove(self, table: str, key: Key) -> Stored:
        """Remove an object; returns its last state with the version of the removal."""
        self._check_open()
        found = self.table(table)
        previous = found.objects.pop(key)
        found.ordered = None
        self.version += 1
        stored = Stored(with_metadata(previous.obj, resourceVersion=str(self.version)), self.version)
        self._record(found, Change(self.version, DELETED, key, stored, previous))
        return stored

    def _record(self, table: Table, change: Change) -> None:
        table.changes.append(change)
        # Trimmed in steps of a quarter, so that a write does not move the whole list every time.
        if len(table.changes) > self._history + self._history // 4:
            drop = len(table.changes) - self._history
            table.compacted = table.changes[drop - 1].version
            del table.changes[:drop]
        self._pending[table.name] = table
        gone = change.type == DELETED
        before = change.previous.obj if change.previous is not None else None
        for observer in self._observers:
            observer(table.name, change.key, before, None if gone else change.stored.obj)
        self._journal.append(Entry(change.version, table.name, change.key, None if gone else change.stored.obj))

    def compact(self, version: int) -> None:
        """Forget the history up to `version`."""
        self._floor = max(self._floor, version)
        for table in self._tables.values():
            keep = bisect_right(table.changes, version, key=_version_of)
            del table.changes[:keep]
            table.compacted = max(table.compacted, version)
            self._tell(table)

    def observe(self, observer: Callable[[str, Key, JsonObject | None, JsonObject | None], None]) -> None:
        """Call `observer(table, key, before, after)` with every change, inside the write."""
        self._observers.append(observer)

    # Durability and waking watchers

    def listen(self, table: str, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` when a table has new durable changes or lost history; returns the way to stop it."""
        found = self.table(table)
        self._next_listener += 1
        number = self._next_listener
        found.listeners[number] = wake

        def stop() -> None:
            found.listeners.pop(number, None)

        return stop

    def _on_durable(self, version: int) -> None:
        self.durable = version
        pending, self._pending = self._pending, {}
        for name, table in pending.items():
            if table.changes and table.changes[-1].version > version:
                self._pending[name] = table
            self._tell(table)
        still: list[tuple[int, asyncio.Future[None]]] = []
        for wanted, future in self._waiters:
            if wanted > version:
                still.append((wanted, future))
            elif not future.done():
                future.set_result(None)
        self._waiters = still

    def _tell(self, table: Table) -> None:
        for wake in list(table.listeners.values()):
            wake()

    async def wait_durable(self, version: int) -> None:
        """Return when `version` is durable; raises `Closed` when that can no longer happen."""
        if version <= self.durable:
            return
        self._check_open()
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiters.append((version, future))
        await future

    def _on_failure(self, error: JournalError) -> None:
        self.stop(f"storage failed: {error}")

    @property
    def closed(self) -> str | None:
        """Why nothing is served any more."""
        return self._closed

    def _check_open(self) -> None:
        if self._closed is not None:
            raise Closed(self._closed)

    def stop(self, why: str) -> None:
        """Refuse further work: waiting answers fail, watches end."""
        if self._closed is not None:
            return
        self._closed = why
        waiters, self._waiters = self._waiters, []
        for _, future in waiters:
            if not future.done():
                future.set_exception(Closed(why))
        for table in self._tables.values():
            self._tell(table)
