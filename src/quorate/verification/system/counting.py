"""Counts API writes by writer and object: the tracked figure of the design ("few writes")."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import NamedTuple

from quorate.machinery.transport import Response, Transport

WRITES = ("POST", "PUT", "PATCH", "DELETE")
UNCOUNTED = ("events", "leases")
"""Events are deduplicated side notes; leases are the election's heartbeat."""


class Write(NamedTuple):
    """One kind of write."""

    writer: str
    verb: str
    resource: str
    """Plural of the kind, with `/status` for the status half."""


@dataclass
class Writes:
    """What was written, in total and in order."""

    counts: Counter[Write] = field(default_factory=Counter[Write])
    conflicts: int = 0
    log: list[tuple[Write, str]] = field(default_factory=list[tuple[Write, str]])

    def reset(self) -> None:
        """Forget everything."""
        self.counts.clear()
        self.log.clear()
        self.conflicts = 0

    def of(self, writer: str) -> int:
        """All writes of one writer."""
        return sum(count for write, count in self.counts.items() if write.writer == writer)


class CountingTransport:
    """Passes everything through and counts the writes that succeeded."""

    def __init__(self, inner: Transport, writes: Writes) -> None:
        self._inner = inner
        self._writes = writes

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        response = await self._inner.request(method, path, query=query, headers=headers, body=body)
        if method in WRITES:
            self._count(method, path, headers, response.status)
        return response

    def _count(self, method: str, path: str, headers: Mapping[str, str], status: int) -> None:
        resource, name = split_path(path)
        if resource.split("/")[0] in UNCOUNTED:
            return
        if status == 409:
            self._writes.conflicts += 1
        if status >= 300:
            return
        agent = next((value for key, value in headers.items() if key.lower() == "user-agent"), "")
        write = Write(agent.removeprefix("quorate/"), method.lower(), resource)
        self._writes.counts[write] += 1
        self._writes.log.append((write, name))

    def stream(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        return self._inner.stream(method, path, query=query, headers=headers)


def split_path(path: str) -> tuple[str, str]:
    """Resource (with subresource) and object name of a request path."""
    parts = [part for part in path.split("/") if part]
    parts = parts[3:] if parts[0] == "apis" else parts[2:]
    if parts[:1] == ["namespaces"] and len(parts) > 2:
        parts = parts[2:]
    resource, name, *rest = [*parts, ""]
    subresource = next((part for part in rest if part), "")
    return f"{resource}/{subresource}" if subresource else resource, name
