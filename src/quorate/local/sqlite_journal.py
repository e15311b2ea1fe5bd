"""A journal in a database file: objects survive restarts and kill -9.

One writer thread owns the connection. It takes everything that has arrived since its last transaction and commits it
at once (group commit), so the rate does not depend on the latency of the disk, and the event loop never waits for it.
Write-ahead log with full synchronisation: a version is durable when its commit has returned.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from pathlib import Path

from quorate.local.directory_lock import DirectoryLock
from quorate.local.journal import Entry, JournalError, Recovered
from quorate.local.jsonvalue import Json, as_object, decode, encode

_SCHEMA = """
create table if not exists objects (
    tab text not null, namespace text not null, name text not null, version integer not null, body text,
    primary key (tab, namespace, name)
) without rowid;
"""
_WRITE = """
insert or replace into objects (tab, namespace, name, version, body)
select json_extract(value, '$[0]'), json_extract(value, '$[1]'), json_extract(value, '$[2]'),
       json_extract(value, '$[3]'), json_extract(value, '$[4]')
from json_each(?)
"""
_READ = "select version, tab, namespace, name, body from objects where body is not null order by version"
_CLEAN = "delete from objects where body is null"
_STATE = ""
"""The table name of the one row that is no object: its version is the highest durable one."""
_TOMBSTONES = 10_000
"""Removed objects stay as rows without a body until there are so many, or until the next start."""


class SqliteJournal:
    """See the module docstring. Must be opened on the event loop that uses it."""

    def __init__(self, directory: Path) -> None:
        self._path = directory / "objects.sqlite"
        self._lock = DirectoryLock(directory)
        self._arrived = threading.Condition()
        self._entries: list[Entry] = []
        self._closing = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._on_durable: Callable[[int], None] | None = None
        self._on_failure: Callable[[JournalError], None] | None = None

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        connection.execute("pragma journal_mode = wal")
        connection.execute("pragma synchronous = full")
        return connection

    def load(self) -> Recovered:
        try:
            connection = self._connect()
            try:
                connection.executescript(_SCHEMA)
                connection.execute(_CLEAN)
                rows = connection.execute(_READ).fetchall()
            finally:
                connection.close()
        except sqlite3.Error as error:
            raise JournalError(f"cannot read {self._path}: {error}") from error
        newest = max((version for version, *_ in rows), default=0)
        entries = [
            Entry(version, table, (namespace, name), as_object(decode(body)))
            for version, table, namespace, name, body in rows
            if table != _STATE
        ]
        return Recovered(newest, entries)

    def open(self, on_durable: Callable[[int], None], on_failure: Callable[[JournalError], None]) -> None:
        self._loop = asyncio.get_running_loop()
        self._on_durable = on_durable
        self._on_failure = on_failure
        self._thread = threading.Thread(target=self._run, name="journal", daemon=True)
        self._thread.start()

    def append(self, entry: Entry) -> None:
        with self._arrived:
            self._entries.append(entry)
            self._arrived.notify()

    def _take(self) -> list[Entry]:
        """What has arrived, at least one change; nothing when the journal is closing."""
        with self._arrived:
            while not self._entries and not self._closing:
                self._arrived.wait()
            taken, self._entries = self._entries, []
            return taken

    def _run(self) -> None:
        tombstones = 0
        try:
            connection = self._connect()
            try:
                while entries := self._take():
                    # One statement is one transaction and one release of the interpreter lock: with a statement per object
                    # this thread would queue for the lock behind the event loop again and again.
                    connection.execute(_WRITE, (_batch(entries),))
                    self._call(self._on_durable, entries[-1].version)
                    tombstones += sum(entry.obj is None for entry in entries)
                    if tombstones > _TOMBSTONES:
                        connection.execute(_CLEAN)
                        tombstones = 0
            finally:
                connection.close()
        except sqlite3.Error as error:
            self._call(self._on_failure, JournalError(str(error)))

    def _call(self, callback: Callable[[int], None] | Callable[[JournalError], None] | None, argument: object) -> None:
        loop = self._loop
        if callback is None or loop is None or loop.is_closed():
            return
        loop.call_soon_threadsafe(callback, argument)  # pyright: ignore[reportArgumentType]

    async def close(self) -> None:
        with self._arrived:
            self._closing = True
            self._arrived.notify()
        if self._thread is not None:
            await asyncio.to_thread(self._thread.join)
            # Let the last notification of the writer be delivered.
            await asyncio.sleep(0)
        self._lock.release()


def _batch(entries: list[Entry]) -> str:
    """The changes as one parameter: the last state of every object, and the version they lead to."""
    rows: dict[tuple[str, str, str], list[Json]] = {}
    for entry in entries:
        place = (entry.table, *entry.key)
        body = encode(entry.obj).decode() if entry.obj is not None else None
        rows[place] = [*place, entry.version, body]
    state: list[Json] = [_STATE, "", "", entries[-1].version, "{}"]
    return encode([*rows.values(), state]).decode()
