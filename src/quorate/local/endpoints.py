"""What the local cluster answers beside the Kubernetes API, below `/local/v1`: its shape, its faults, verified I/O.

Served by the same server and behind the same token. Errors are Kubernetes `Status` objects, so that every client reads
them. A server that is no local cluster answers 404 to all of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from contextlib import aclosing

import msgspec
from aiohttp import web

from quorate.local.cluster import LocalCluster
from quorate.local.faults import FaultRefused, FaultRequest, Faults
from quorate.local.io import IoRefused, IoRequest, LocalIo
from quorate.local.server import LOCAL
from quorate.local.status import StatusError

MAXIMUM_SECONDS = 3600.0
MAXIMUM_RATE = 1000.0


class Endpoints:
    """See the module docstring."""

    def __init__(self, cluster: LocalCluster, io: LocalIo, *, time_scale: float = 1.0) -> None:
        self._cluster = cluster
        self._time_scale = time_scale
        self.faults = Faults(cluster)
        self.io = io

    async def handle(self, request: web.BaseRequest, body: bytes) -> web.StreamResponse:
        """One authenticated request."""
        try:
            match (request.method, request.path.removeprefix(LOCAL)):
                case ("GET", "/cluster"):
                    return _json(self._describe())
                case ("GET", "/faults"):
                    return _json({"faults": self.faults.current()})
                case ("POST", "/faults"):
                    wish = msgspec.json.decode(body, type=FaultRequest)
                    return _json({"message": await self.faults.apply(wish)})
                case ("POST", "/io"):
                    return await self._run_io(request, _io_request(request.query))
                case (_, "/cluster" | "/faults" | "/io"):
                    raise StatusError(405, "MethodNotAllowed", f"{request.method} is not possible on {request.path}")
                case _:
                    raise StatusError(404, "NotFound", f"a local cluster has no {request.path}")
        except msgspec.MsgspecError as error:
            return _refused(StatusError(400, "BadRequest", str(error)))
        except (FaultRefused, IoRefused) as error:
            return _refused(StatusError(409, "Conflict", str(error)))
        except StatusError as error:
            return _refused(error)

    def _describe(self) -> dict[str, object]:
        shape = self._cluster.shape
        nodes = {name: {"zone": shape.zone_of(node.index)} for name, node in self._cluster.nodes.items()}
        return {"nodes": nodes, "groups": shape.groups, "thin": shape.thin, "timeScale": self._time_scale}

    async def _run_io(self, request: web.BaseRequest, wish: IoRequest) -> web.StreamResponse:
        """Progress and report, one JSON object per line."""
        response = web.StreamResponse(headers={"Content-Type": "application/x-ndjson", "Cache-Control": "no-cache"})
        async with aclosing(self.io.run(wish)) as messages:
            async for message in messages:
                with contextlib.suppress(ConnectionError):
                    if not response.prepared:
                        await response.prepare(request)
                    await response.write(msgspec.json.encode(message) + b"\n")
        with contextlib.suppress(ConnectionError):
            await response.write_eof()
        return response


def _io_request(query: Mapping[str, str]) -> IoRequest:
    wish = msgspec.convert(dict(query), type=IoRequest, strict=False)
    if not 0 <= wish.seconds <= MAXIMUM_SECONDS:
        raise StatusError(400, "BadRequest", f"seconds must be between 0 and {MAXIMUM_SECONDS:g}")
    if not 0 < wish.rate <= MAXIMUM_RATE:
        raise StatusError(400, "BadRequest", f"rate must be more than 0 and at most {MAXIMUM_RATE:g}")
    return wish


def _json(value: object) -> web.Response:
    return web.Response(body=msgspec.json.encode(value), content_type="application/json")


def _refused(error: StatusError) -> web.Response:
    body = msgspec.json.encode(error.body)
    return web.Response(status=error.code, body=body, content_type="application/json")
