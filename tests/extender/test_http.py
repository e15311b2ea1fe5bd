"""The extender over HTTP, against the book behind it; the client against good and bad servers."""

from __future__ import annotations

import asyncio
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from aiohttp import web

from quorate.extender import server
from quorate.extender.book import CapacityBook
from quorate.extender.client import ExtenderUnavailable, HttpExtender, InProcessExtender
from quorate.machinery.extender import Extender
from quorate.machinery.health import serve
from tests.extender.builders import GIB, ask, group, keep

SCORE, NARROW = "/v1/lvg/filter-and-score", "/v1/lvg/narrow-reservation"


class FixedClock:
    """A clock that stands still."""

    def now(self) -> float:
        return 1000.0

    def monotonic(self) -> float:
        return 1000.0

    async def sleep(self, seconds: float) -> None:
        raise AssertionError("nobody sleeps here")


def book_with(size: float, *names: str) -> CapacityBook:
    book = CapacityBook()
    for name in names or ("vg",):
        book.apply_group(None, group(name, size, size))
    return book


@asynccontextmanager
async def running(book: CapacityBook) -> AsyncGenerator[str]:
    async with serve(server.application(book, FixedClock()), 0) as port:
        yield f"http://127.0.0.1:{port}"


async def post(url: str, body: bytes, method: str = "POST") -> tuple[int, bytes]:
    async with aiohttp.ClientSession() as session, session.request(method, url, data=io.BytesIO(body)) as response:
        return response.status, await response.read()


async def test_wire_form_of_the_answers() -> None:
    async with running(book_with(100)) as url:
        places = b'[{"name":"vg"},{"name":"vg","thinPoolName":"t"}]'
        body = b'{"reservationID":"a","reservationTTL":"2s","size":1073741824,"lvgs":' + places + b"}"
        assert await post(f"{url}/v1/lvg/filter-and-score", body) == (200, b'{"lvgs":[{"name":"vg","score":7}]}')
        body = b'{"reservationID":"a","reservationTTL":"1m0s","lvg":{"name":"vg"}}'
        assert await post(f"{url}/v1/lvg/narrow-reservation", body) == (200, b"{}")


async def test_no_room_is_an_empty_list() -> None:
    async with running(book_with(1)) as url:
        body = b'{"reservationID":"a","reservationTTL":"2s","size":999999999999,"lvgs":[{"name":"vg"}]}'
        assert await post(f"{url}/v1/lvg/filter-and-score", body) == (200, b'{"lvgs":[]}')


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", SCORE, b"", 405),
        ("PUT", NARROW, b"{}", 405),
        ("POST", "/v1/lvg/other", b"{}", 404),
        ("POST", SCORE, b"{", 400),
        ("POST", SCORE, b"{}", 400),
        (
            "POST",
            "/v1/lvg/filter-and-score",
            b'{"reservationID":"","reservationTTL":"2s","size":1,"lvgs":[{"name":"vg"}]}',
            400,
        ),
        ("POST", SCORE, b'{"reservationID":"a","reservationTTL":"2s","size":1,"lvgs":[]}', 400),
        (
            "POST",
            "/v1/lvg/filter-and-score",
            b'{"reservationID":"a","reservationTTL":"2s","size":0,"lvgs":[{"name":"vg"}]}',
            400,
        ),
        (
            "POST",
            "/v1/lvg/filter-and-score",
            b'{"reservationID":"a","reservationTTL":"x","size":1,"lvgs":[{"name":"vg"}]}',
            400,
        ),
        (
            "POST",
            "/v1/lvg/filter-and-score",
            b'{"reservationID":"a","reservationTTL":"2s","size":1,"lvgs":[{"name":""}]}',
            400,
        ),
        ("POST", SCORE, b" " * (10 * 1024 * 1024 + 1), 400),
        ("POST", NARROW, b'{"reservationID":"a","reservationTTL":"1m0s","lvg":{"name":""}}', 400),
        (
            "POST",
            "/v1/lvg/narrow-reservation",
            b'{"reservationID":"unknown","reservationTTL":"1m0s","lvg":{"name":"vg"}}',
            200,
        ),
    ],
)
async def test_status_codes(method: str, path: str, body: bytes, status: int) -> None:
    async with running(book_with(100)) as url:
        found, _ = await post(url + path, body, method)
        assert found == status


@pytest.mark.parametrize("over_http", [True, False])
async def test_of_k_parallel_claims_for_one_slot_exactly_one_wins(over_http: bool) -> None:
    book = book_with(10)

    async def claim(extender: Extender, id: int) -> bool:
        scores = await extender.filter_and_score(ask(f"r{id}", 10))
        if not scores.lvgs:
            return False
        await extender.narrow(keep(f"r{id}"))
        return True

    async with running(book) as url, HttpExtender(url) as remote:
        extender: Extender = remote if over_http else InProcessExtender(book, FixedClock())
        won = await asyncio.gather(*(claim(extender, id) for id in range(20)))
    assert sum(won) == 1
    assert [item.size for item in book.reservations.all()] == [10 * GIB]


async def test_two_implementations_give_the_same_answers() -> None:
    async with running(book_with(100, "x", "y")) as url, HttpExtender(url) as remote:
        local = InProcessExtender(book_with(100, "x", "y"), FixedClock())
        for question in (ask("a", 60, "x", "y"), ask("b", 60, "x"), ask("a", 10, "y", "z")):
            assert await remote.filter_and_score(question) == await local.filter_and_score(question)


@pytest.mark.parametrize("over_http", [True, False])
async def test_refusals_are_failures(over_http: bool) -> None:
    book = book_with(100)
    async with running(book) as url, HttpExtender(url) as remote:
        extender: Extender = remote if over_http else InProcessExtender(book, FixedClock())
        with pytest.raises(ExtenderUnavailable, match="no live reservation"):
            await extender.narrow(keep("unknown"))
        with pytest.raises(ExtenderUnavailable, match="reservationID"):
            await extender.filter_and_score(ask("", 1))


async def test_unreachable_server_is_a_failure() -> None:
    async with running(book_with(1)) as url:
        pass
    async with HttpExtender(url) as remote:
        with pytest.raises(ExtenderUnavailable, match="filter-and-score"):
            await remote.filter_and_score(ask("a", 1))


async def test_answers_that_are_none_are_failures() -> None:
    async def nonsense(request: web.Request) -> web.Response:
        del request
        return web.Response(text="not json")

    async def broken(request: web.Request) -> web.Response:
        del request
        return web.Response(status=500, text="boom")

    app = web.Application()
    app.router.add_post("/v1/lvg/filter-and-score", nonsense)
    app.router.add_post("/v1/lvg/narrow-reservation", broken)
    async with serve(app, 0) as port, HttpExtender(f"http://127.0.0.1:{port}/") as remote:
        with pytest.raises(ExtenderUnavailable, match="cannot be decoded"):
            await remote.filter_and_score(ask("a", 1))
        with pytest.raises(ExtenderUnavailable, match="500: boom"):
            await remote.narrow(keep("a"))
