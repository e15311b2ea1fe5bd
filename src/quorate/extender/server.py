"""The extender over HTTP: the protocol of the node configurator's extender (facts/controllers 6.3).

405 for anything but POST, 404 for other paths, 400 for a question that makes no sense (bad JSON, empty id, empty list, size
not positive, bad duration, body over 10 MB), 200 otherwise. No room anywhere is 200 with an empty list and no reservation.
A reservation that cannot be narrowed is 200 as in the original, and says so in `error`. Both handlers answer without
awaiting between check and claim: concurrent claims cannot both win.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec
from aiohttp import web

from quorate.api.scheduler_extender import (
    FILTER_AND_SCORE_PATH,
    NARROW_RESERVATION_PATH,
    FilterAndScore,
    Narrowed,
    NarrowReservation,
)
from quorate.extender.book import BadRequest, CapacityBook
from quorate.machinery.clock import Clock

BODY_LIMIT = 10 * 1024 * 1024
_SCORE = msgspec.json.Decoder(FilterAndScore)
_NARROW = msgspec.json.Decoder(NarrowReservation)
_ENCODER = msgspec.json.Encoder()


def application(book: CapacityBook, clock: Clock) -> web.Application:
    """The two questions as an application."""

    async def filter_and_score(request: web.Request) -> web.Response:
        body = await request.read()
        try:
            answer = book.filter_and_score(_SCORE.decode(body), clock.now())
        except (BadRequest, msgspec.DecodeError) as error:
            return _bad_request(error)
        return _json(answer)

    async def narrow(request: web.Request) -> web.Response:
        body = await request.read()
        try:
            error = book.narrow(_NARROW.decode(body), clock.now())
        except (BadRequest, msgspec.DecodeError) as problem:
            return _bad_request(problem)
        return _json(Narrowed(error=error))

    app = web.Application(client_max_size=BODY_LIMIT, middlewares=[_too_large_is_bad_request])
    # Only POST is registered: another method on these paths is 405, another path 404.
    app.router.add_post(FILTER_AND_SCORE_PATH, filter_and_score)
    app.router.add_post(NARROW_RESERVATION_PATH, narrow)
    return app


@web.middleware
async def _too_large_is_bad_request(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        return await handler(request)
    except web.HTTPRequestEntityTooLarge as error:
        return _bad_request(error)


def _json(value: msgspec.Struct) -> web.Response:
    return web.Response(body=_ENCODER.encode(value), content_type="application/json")


def _bad_request(error: Exception) -> web.Response:
    return web.Response(status=400, body=_ENCODER.encode({"error": str(error)}), content_type="application/json")
