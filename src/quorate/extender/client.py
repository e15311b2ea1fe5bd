"""The two ways to the extender: in this process, or over HTTP.

Both answer the same questions and fail the same way, with `ExtenderUnavailable`.
"""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar

import aiohttp
import msgspec

from quorate.api.scheduler_extender import (
    FILTER_AND_SCORE_PATH,
    NARROW_RESERVATION_PATH,
    FilterAndScore,
    Narrowed,
    NarrowReservation,
    Scores,
)
from quorate.extender.book import BadRequest, CapacityBook
from quorate.machinery.clock import Clock
from quorate.machinery.extender import Extender, ExtenderUnavailable

__all__ = ["Extender", "ExtenderUnavailable", "HttpExtender", "InProcessExtender"]

TIMEOUT = 10.0
"""Seconds for one question."""
T = TypeVar("T", bound=msgspec.Struct)


class InProcessExtender:
    """Asks a book in this process: nothing to deploy, nothing to be unreachable."""

    def __init__(self, book: CapacityBook, clock: Clock) -> None:
        self._book = book
        self._clock = clock

    async def filter_and_score(self, request: FilterAndScore) -> Scores:
        try:
            return self._book.filter_and_score(request, self._clock.now())
        except BadRequest as error:
            raise ExtenderUnavailable(str(error)) from None

    async def narrow(self, request: NarrowReservation) -> None:
        try:
            error = self._book.narrow(request, self._clock.now())
        except BadRequest as problem:
            raise ExtenderUnavailable(str(problem)) from None
        if error:
            raise ExtenderUnavailable(error)


class HttpExtender:
    """Asks an extender over HTTP. No retries: the controller decides again."""

    def __init__(self, url: str, *, verify_certificate: bool = False) -> None:
        self._url = url.rstrip("/")
        # In-cluster certificates of the extender are not issued for its service name.
        self._tls = verify_certificate
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> HttpExtender:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def filter_and_score(self, request: FilterAndScore) -> Scores:
        answer = await self._post(FILTER_AND_SCORE_PATH, request, Scores)
        if answer.error:
            raise ExtenderUnavailable(answer.error)
        return answer

    async def narrow(self, request: NarrowReservation) -> None:
        answer = await self._post(NARROW_RESERVATION_PATH, request, Narrowed)
        if answer.error:
            raise ExtenderUnavailable(answer.error)

    async def _post(self, path: str, body: msgspec.Struct, answer: type[T]) -> T:
        if self._session is None:
            self._session = aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=TIMEOUT))
        headers = {"Content-Type": "application/json"}
        try:
            async with self._session.post(
                f"{self._url}{path}", data=msgspec.json.encode(body), headers=headers, ssl=self._tls
            ) as response:
                content = await response.read()
                if response.status != 200:
                    text = content[:200].decode(errors="replace").strip()
                    raise ExtenderUnavailable(f"{path} answered {response.status}: {text}")
                return msgspec.json.decode(content or b"{}", type=answer)
        except (aiohttp.ClientError, TimeoutError) as error:
            raise ExtenderUnavailable(f"{path}: {type(error).__name__}: {error}") from None
        except msgspec.DecodeError as error:
            raise ExtenderUnavailable(f"{path} answered what cannot be decoded: {error}") from None
