"""The transport on real sockets of loopback: retries only where harmless, refresh on 401, TLS, streams."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import pytest
from aiohttp import web

from quorate.kube.credentials import Fixed, Proof, bearer
from quorate.kube.kubeconfig import Material, ServerConfig
from quorate.kube.transport import KubeTransport, TokenBucket, environment_proxy
from quorate.machinery import errors
from quorate.machinery.transport import Response
from tests.kube.certificates import Authority

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


class SkippingClock:
    """Remembers how long it was asked to sleep and does not."""

    def __init__(self) -> None:
        self.slept: list[float] = []

    def now(self) -> float:
        return 0.0

    def monotonic(self) -> float:
        return 0.0

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncGenerator[str]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    port = runner.addresses[0][1]
    try:
        yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def transport(config: ServerConfig, clock: SkippingClock) -> AsyncGenerator[KubeTransport]:
    made = KubeTransport(config, Fixed(bearer("t")), clock, Random(1))
    try:
        yield made
    finally:
        await made.close()


async def call(made: KubeTransport, method: str, body: bytes = b"") -> Response:
    return await made.request(
        method, "/api/v1/nodes", query={"limit": "5"}, headers={"Accept": "application/json"}, body=body
    )


@pytest.mark.parametrize(
    ("name", "method", "failures", "headers", "attempts", "status"),
    [
        ("429 is repeated, also for writes", "PATCH", [429, 429], {"Retry-After": "2"}, 3, 200),
        ("503 with Retry-After had no effect", "PATCH", [503], {"Retry-After": "1"}, 2, 200),
        ("503 of a write has an unknown outcome", "PATCH", [503], {}, 1, 503),
        ("500 of a read is repeated", "GET", [500, 502, 504], {}, 4, 200),
        ("500 of a write is not", "POST", [500], {}, 1, 500),
        ("409 is an answer", "PATCH", [409], {}, 1, 409),
        ("repetitions are bounded", "GET", [500] * 9, {}, 5, 500),
    ],
)
async def test_retries(
    name: str, method: str, failures: list[int], headers: dict[str, str], attempts: int, status: int
) -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        assert request.query == {"limit": "5"}
        if len(seen) <= len(failures):
            return web.Response(status=failures[len(seen) - 1], headers=headers)
        return web.Response(text="{}")

    clock = SkippingClock()
    async with serving(handler) as url, transport(ServerConfig(server=url), clock) as made:
        response = await call(made, method, b"{}" if method != "GET" else b"")
    assert (len(seen), response.status) == (attempts, status), name
    if "Retry-After" in headers and attempts > 1:
        assert all(slept >= float(headers["Retry-After"]) for slept in clock.slept)


async def test_refused_connection_is_repeated_then_unavailable() -> None:
    clock = SkippingClock()
    async with transport(ServerConfig(server="http://127.0.0.1:1"), clock) as made:
        with pytest.raises(errors.Unavailable):
            await call(made, "PATCH", b"{}")
    assert len(clock.slept) == 4


async def test_connections_are_kept_and_used_again() -> None:
    peers: list[object] = []

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.Response(text="{}")

    async with serving(handler) as url, transport(ServerConfig(server=url), SkippingClock()) as made:
        for _ in range(10):
            await call(made, "GET")
        await asyncio.gather(*(call(made, "PATCH", b"{}") for _ in range(10)))
        for _ in range(10):
            await call(made, "GET")
    assert len(peers) == 30
    assert len(set(peers[:10])) == 1
    assert set(peers[20:]) <= set(peers[:20])


async def test_broken_write_is_not_repeated() -> None:
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.method)
        assert request.transport is not None
        request.transport.close()
        return web.Response()

    async with serving(handler) as url, transport(ServerConfig(server=url), SkippingClock()) as made:
        with pytest.raises(errors.Unavailable) as caught:
            await call(made, "PATCH", b"{}")
    assert seen == ["PATCH"]
    assert caught.value.outcome_unknown


async def test_refused_identity_is_refreshed_once() -> None:
    class Rotating:
        def __init__(self) -> None:
            self.number = 0

        async def proof(self) -> Proof:
            return Proof(bearer(f"t{self.number}"))

        def refresh(self) -> None:
            self.number += 1

    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers["Authorization"])
        return web.Response(status=401)

    async with serving(handler) as url:
        made = KubeTransport(ServerConfig(server=url), Rotating(), SkippingClock(), Random(1))
        response = await call(made, "GET")
        await made.close()
    assert response.status == 401
    assert seen == ["Bearer t0", "Bearer t1"]


async def test_stream_gives_pieces_and_typed_errors() -> None:
    async def handler(request: web.Request) -> web.StreamResponse:
        if request.query.get("resourceVersion") == "1":
            return web.json_response(
                {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"}, status=410
            )
        response = web.StreamResponse()
        await response.prepare(request)
        for piece in (b'{"a":', b"1}\n", b"x" * 200_000):
            await response.write(piece)
        return response

    async def read(pieces: AsyncIterator[bytes]) -> bytes:
        return b"".join([piece async for piece in pieces])

    async with serving(handler) as url, transport(ServerConfig(server=url), SkippingClock()) as made:
        async with made.stream("GET", "/api/v1/nodes", query={"watch": "1"}, headers={}) as pieces:
            content = await read(pieces)
        assert content == b'{"a":1}\n' + b"x" * 200_000
        with pytest.raises(errors.Expired):
            async with made.stream("GET", "/api/v1/nodes", query={"resourceVersion": "1"}, headers={}) as pieces:
                await read(pieces)


async def test_tls_is_verified_and_client_certificates_are_presented(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    server, me = authority.issue("server", server=True), authority.issue("me", groups=("people",))
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.path))
    tls.load_cert_chain(server.certificate, server.key)
    tls.verify_mode = ssl.CERT_REQUIRED

    async def handler(request: web.Request) -> web.Response:
        assert request.transport is not None
        subject = request.transport.get_extra_info("peercert")["subject"]
        return web.Response(text=str(subject))

    known = Material(path=str(authority.path))
    config = ServerConfig(
        server="",
        certificate_authority=known,
        client_certificate=Material(path=str(me.certificate)),
        client_key=Material(path=str(me.key)),
    )
    async with serving(handler, tls) as url:
        async with transport(msgspec.structs.replace(config, server=url), SkippingClock()) as made:
            assert b"'me'" in (await call(made, "GET")).body
        stranger = msgspec.structs.replace(config, server=url, certificate_authority=Material())
        async with transport(stranger, SkippingClock()) as made:
            with pytest.raises(errors.Unavailable, match="certificate"):
                await call(made, "GET")


def test_rate_limit_lets_bursts_through_and_slows_a_runaway_loop() -> None:
    time = [0.0]
    bucket = TokenBucket(10.0, 3.0, lambda: time[0])
    assert [bucket.take() for _ in range(5)] == pytest.approx([0, 0, 0, 0.1, 0.2])
    time[0] = 1.0
    assert bucket.take() == 0.0


@pytest.mark.parametrize(
    ("server", "expected"),
    [
        ("https://10.0.0.1:6443", "http://proxy:3128"),
        ("http://10.0.0.1:8080", ""),
        ("https://api.inside:6443", ""),
        ("https://api.outside:6443", "http://proxy:3128"),
        ("https://127.0.0.1:6443", ""),
    ],
)
def test_proxies_of_the_environment(server: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,.inside")
    assert environment_proxy(server) == expected


async def test_a_netrc_file_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    netrc = tmp_path / "netrc"
    netrc.write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(netrc))
    seen: list[str] = []

    async def handler(request: web.Request) -> web.Response:
        seen.append(request.headers.get("authorization", ""))
        return web.Response(text="{}")

    async with serving(handler) as url, transport(ServerConfig(server=url), SkippingClock()) as made:
        await call(made, "GET")
    assert seen == ["Bearer t"], "the credentials we were given, not those of a file"
