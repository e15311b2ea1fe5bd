"""Watches: the changes of one table from a version on, as a stream of JSON lines.

A watcher is a cursor into the table's history; it holds no queue, so a slow reader costs nothing and is told to start
over (410) when the history moves on without it. Guarantees: every durable change of a selected object exactly once
and in order; an object that leaves the selection is reported as deleted, one that enters as added; bookmarks never
overtake changes.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass

from quorate.local.jsonvalue import Json, JsonObject, encode, with_metadata
from quorate.local.kinds import Kind
from quorate.local.reading import ListQuery, list_page, too_old
from quorate.local.registry import served
from quorate.local.selectors import Selection
from quorate.local.status import StatusError, bad_request, expired, forbidden_field, invalid
from quorate.local.store import ADDED, DELETED, MODIFIED, Change, Compacted, Store, Stored

BOOKMARK_SECONDS = 60.0
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Render = Callable[[JsonObject], JsonObject]
"""Gives an event's object the form the client asked for (a table row, metadata only)."""


@dataclass(frozen=True)
class WatchQuery:
    """The parameters of a watch request."""

    selection: Selection
    version: str = ""
    bookmarks: bool = False
    timeout: float = 0.0
    send_initial_events: bool = False
    match: str = ""


class Watch:
    """One watch; iterate `lines()`."""

    def __init__(self, store: Store, kind: Kind, query: WatchQuery, render: Render | None = None) -> None:
        self._store = store
        self._kind = kind
        self._query = query
        self._render = render
        self._selection = query.selection
        self._initial: list[Stored] | None = None
        self._cursor = self._start()

    def _start(self) -> int:
        """Where the stream begins; raises the refusal before anything is streamed."""
        query = self._query
        if query.send_initial_events and query.match != "NotOlderThan":
            text = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"
            raise invalid("meta.k8s.io", "ListOptions", "", [forbidden_field("resourceVersionMatch", text)])
        if query.match and not query.send_initial_events:
            raise bad_request("resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided")
        if query.version in ("", "0") or query.send_initial_events:
            if query.version.isdecimal() and int(query.version) > self._store.version:
                raise too_old(int(query.version), self._store.version)
            page = list_page(self._store, self._kind, ListQuery(self._selection))
            self._initial = page.items
            return page.version
        if not query.version.isdecimal():
            raise bad_request(f"Invalid value: {query.version!r}: invalid resource version")
        version = int(query.version)
        # A version from the future is from another life of this server: the client must list again.
        if version > self._store.version or version < self._store.table(self._kind.storage).compacted:
            raise too_old(version, self._store.version)
        return version

    async def lines(self) -> AsyncGenerator[bytes]:
        """Chunks of complete JSON lines until the timeout, or until the history or the server ends."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._query.timeout if self._query.timeout else None
        next_bookmark = loop.time() + BOOKMARK_SECONDS
        wake = asyncio.Event()
        stop = self._store.listen(self._kind.storage, wake.set)
        try:
            if self._initial is not None:
                await self._store.wait_durable(self._cursor)
                yield self._initial_lines()
                self._initial = None
            while self._store.closed is None:
                wake.clear()
                try:
                    changes = self._store.since(self._kind.storage, self._cursor)
                except Compacted:
                    yield error_line(expired("The resourceVersion for the provided watch is too old."))
                    return
                if changes:
                    self._cursor = changes[-1].version
                    chunk = b"".join(line for line in map(self._line, changes) if line)
                    if chunk:
                        yield chunk
                    continue
                # Nothing durable is left to send, so history before this moment is no longer needed.
                self._cursor = max(self._cursor, self._store.durable)
                now = loop.time()
                if deadline is not None and now >= deadline:
                    return
                if now >= next_bookmark:
                    next_bookmark = now + BOOKMARK_SECONDS
                    if self._query.bookmarks:
                        yield self._bookmark()
                await _wait(wake, min(deadline or next_bookmark, next_bookmark) - loop.time())
        finally:
            stop()

    def _initial_lines(self) -> bytes:
        lines = [self._event(ADDED, stored) for stored in self._initial or []]
        if self._query.send_initial_events and self._query.bookmarks:
            lines.append(self._bookmark(initial_end=True))
        return b"".join(lines)

    def _line(self, change: Change) -> bytes | None:
        if self._selection.everything:
            return self._event(change.type, change.stored)
        before = change.previous is not None and self._matches(change.previous)
        after = change.type != DELETED and self._matches(change.stored)
        if after:
            return self._event(MODIFIED if before else ADDED, change.stored)
        if not before or change.previous is None:
            return None
        # The object left the selection or is gone: its last selected state with the version of the change.
        last = with_metadata(change.previous.obj, resourceVersion=str(change.version))
        return self._event(DELETED, Stored(last, change.version))

    def _matches(self, stored: Stored) -> bool:
        return self._selection.matches(served(self._kind, stored.obj))

    def _event(self, kind: str, stored: Stored) -> bytes:
        obj = served(self._kind, stored.obj)
        if self._render is None and obj is stored.obj:
            return b'{"type":"' + kind.encode() + b'","object":' + stored.encoded + b"}\n"
        return _line(kind, self._render(obj) if self._render is not None else obj)

    def _bookmark(self, *, initial_end: bool = False) -> bytes:
        metadata: JsonObject = {"resourceVersion": str(self._cursor)}
        if initial_end:
            metadata["annotations"] = {INITIAL_EVENTS_END: "true"}
        obj: JsonObject = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": metadata}
        return _line("BOOKMARK", self._render(obj) if self._render is not None else obj)


def _line(kind: str, obj: Json) -> bytes:
    return encode({"type": kind, "object": obj}) + b"\n"


def error_line(error: StatusError) -> bytes:
    return _line("ERROR", error.body)


async def _wait(wake: asyncio.Event, seconds: float) -> None:
    if seconds <= 0:
        return
    try:
        async with asyncio.timeout(seconds):
            await wake.wait()
    except TimeoutError:
        return
