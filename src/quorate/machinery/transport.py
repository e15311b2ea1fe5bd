"""The transport port: one HTTP exchange, or one long answer read in pieces.

Three implementations exist: in process (`quorate.local`), aiohttp (`quorate.kube`) and the fault-injecting wrapper
(`machinery/faults.py`). A transport moves bytes only. It guarantees:

* an answer of the server, whatever its status code, is a `Response`; `stream` raises the typed error of a non-2xx
  answer;
* no answer is `errors.Timeout` or `errors.Unavailable`: the request may or may not have taken effect;
* the pieces of a stream have arbitrary borders; the reader splits lines itself (no limit on their length).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True)
class Response:
    """What the server answered; header names are lower case."""

    status: int
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict[str, str])


class Transport(Protocol):
    """A way to reach an API server."""

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        """One exchange. `path` is absolute and already escaped, `query` is not."""
        ...

    def stream(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """One exchange whose answer is read piece by piece until either side ends it."""
        ...
