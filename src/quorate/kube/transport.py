"""The transport for a real API server: aiohttp, one session, kept-alive connections.

* Requests that surely had no effect (429, 503 with Retry-After, connection refused, any failed GET) are repeated with
  jitter, a bounded number of times; a write whose outcome is unknown is never repeated here (rule 2).
* A 401 makes the credentials refresh once.
* Every request has a timeout; a watch has one for silence.
* Proxies of the environment are honoured, looked up once; a netrc file is not: it would mix other people's passwords in.
* A client-side rate limit far above normal use keeps a runaway loop from hurting the server.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from random import Random
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

import aiohttp
from yarl import URL

from quorate.kube.credentials import Credentials, Proof
from quorate.kube.kubeconfig import ServerConfig
from quorate.kube.tls import context_of
from quorate.machinery import errors
from quorate.machinery.clock import Clock
from quorate.machinery.transport import Response

REQUEST_TIMEOUT = 60.0
CONNECT_TIMEOUT = 10.0
WATCH_SILENCE = 330.0
"""A watch that says nothing for longer than its own time limit is dead."""
ATTEMPTS = 5
BACKOFF = 0.2
BACKOFF_LIMIT = 10.0
REQUESTS_PER_SECOND = 1000.0
BURST = 2000.0
CHUNK = 64 * 1024
SAFE_METHODS = ("GET", "HEAD")


class KubeTransport:
    """See the module docstring. Close it when done."""

    def __init__(
        self,
        config: ServerConfig,
        credentials: Credentials,
        clock: Clock,
        random: Random,
        *,
        user_agent: str = "quorate",
    ) -> None:
        self._config = config
        self._credentials = credentials
        self._clock = clock
        self._random = random
        self._user_agent = user_agent
        self._session: aiohttp.ClientSession | None = None
        self._tls: tuple[Proof, ssl.SSLContext | None] | None = None
        self._preparing = asyncio.Lock()
        self._proxy = config.proxy or environment_proxy(config.server)
        self._bucket = TokenBucket(REQUESTS_PER_SECOND, BURST, clock.monotonic)

    async def close(self) -> None:
        """Close all connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None
            await asyncio.sleep(0)  # let the loop close the sockets before somebody closes the loop

    async def request(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        """One exchange, repeated only where a repetition cannot do harm."""
        attempt = 0
        refreshed = False
        while True:
            attempt += 1
            await self._throttle()
            try:
                response = await self._once(method, path, query, headers, body)
            except (errors.Unavailable, errors.Timeout) as error:
                harmless = method in SAFE_METHODS or isinstance(error.__cause__, aiohttp.ClientConnectorError)
                if not harmless or attempt >= ATTEMPTS:
                    raise
                await self._clock.sleep(self._pause(attempt, None))
                continue
            if response.status == 401 and not refreshed:
                refreshed = True
                self._credentials.refresh()
                continue
            if attempt < ATTEMPTS and is_retriable(method, response):
                await self._clock.sleep(self._pause(attempt, response.headers.get("retry-after")))
                continue
            return response

    async def _once(
        self, method: str, path: str, query: Mapping[str, str], headers: Mapping[str, str], body: bytes
    ) -> Response:
        session, tls, sent = await self._prepare(headers)
        timeout = aiohttp.ClientTimeout(total=REQUEST_TIMEOUT, connect=CONNECT_TIMEOUT)
        try:
            async with session.request(
                method,
                self._url(path, query),
                data=body or None,
                headers=sent,
                ssl=tls if tls is not None else True,
                timeout=timeout,
                proxy=self._proxy or None,
                server_hostname=self._config.server_name or None,
                allow_redirects=False,
            ) as answer:
                content = await answer.read()
                return Response(
                    status=answer.status,
                    body=content,
                    headers={name.lower(): value for name, value in answer.headers.items()},
                )
        except TimeoutError as error:
            raise errors.Timeout(504, "Timeout", f"{method} {path}: no answer in {REQUEST_TIMEOUT:.0f} s") from error
        except aiohttp.ClientError as error:
            raise errors.Unavailable(503, "ServiceUnavailable", f"{method} {path}: {error}") from error

    @asynccontextmanager
    async def stream(
        self, method: str, path: str, *, query: Mapping[str, str], headers: Mapping[str, str]
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """One long answer in pieces; ends with an error when the server falls silent."""
        await self._throttle()
        session, tls, sent = await self._prepare(headers)
        timeout = aiohttp.ClientTimeout(total=None, connect=CONNECT_TIMEOUT, sock_read=WATCH_SILENCE)
        try:
            async with session.request(
                method,
                self._url(path, query),
                headers=sent,
                ssl=tls if tls is not None else True,
                timeout=timeout,
                proxy=self._proxy or None,
                server_hostname=self._config.server_name or None,
                allow_redirects=False,
            ) as answer:
                if answer.status == 401:
                    self._credentials.refresh()
                if answer.status >= 300:
                    raise errors.from_status(answer.status, await answer.read())
                yield _pieces(answer)
        except TimeoutError as error:
            raise errors.Timeout(504, "Timeout", f"{method} {path}: the server fell silent") from error
        except aiohttp.ClientError as error:
            raise errors.Unavailable(503, "ServiceUnavailable", f"{method} {path}: {error}") from error

    async def _prepare(
        self, headers: Mapping[str, str]
    ) -> tuple[aiohttp.ClientSession, ssl.SSLContext | None, dict[str, str]]:
        proof = await self._credentials.proof()
        async with self._preparing:
            if self._tls is None or _certificate(self._tls[0]) != _certificate(proof):
                # A new client certificate needs new connections: the old ones carry the old identity.
                await self.close()
                self._tls = (proof, await asyncio.to_thread(context_of, self._config, proof))
            if self._session is None:
                connector = aiohttp.TCPConnector(limit=0, ttl_dns_cache=60)
                # trust_env would cost two threads per request and read ~/.netrc.
                self._session = aiohttp.ClientSession(connector=connector, trust_env=False, auto_decompress=True)
        sent = {"User-Agent": self._user_agent, **headers}
        if proof.authorization is not None:
            sent["Authorization"] = proof.authorization.reveal()
        return self._session, self._tls[1], sent

    def _url(self, path: str, query: Mapping[str, str]) -> URL:
        return URL(f"{self._config.server}{path}", encoded=True).with_query(dict(query))

    def _pause(self, attempt: int, retry_after: str | None) -> float:
        """Exponential with full jitter, never shorter than the server asks."""
        asked = float(retry_after) if retry_after and retry_after.isdigit() else 0.0
        return asked + self._random.uniform(0, min(BACKOFF * 2 ** (attempt - 1), BACKOFF_LIMIT))

    async def _throttle(self) -> None:
        wait = self._bucket.take()
        if wait > 0:
            await self._clock.sleep(wait)


def environment_proxy(server: str) -> str:
    """The proxy that HTTPS_PROXY, HTTP_PROXY and NO_PROXY name for a server, empty when it is reached directly."""
    parts = urlsplit(server)
    if proxy_bypass(parts.netloc):
        return ""
    return getproxies_environment().get(parts.scheme, "")


class TokenBucket:
    """How long to wait before the next request."""

    def __init__(self, rate: float, burst: float, monotonic: Callable[[], float]) -> None:
        self._rate = rate
        self._burst = burst
        self._monotonic = monotonic
        self._tokens = burst
        self._at = monotonic()

    def take(self) -> float:
        """Take one token; the answer is the time until it is really there."""
        now = self._monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._at) * self._rate)
        self._at = now
        self._tokens -= 1.0
        return max(0.0, -self._tokens / self._rate)


def is_retriable(method: str, response: Response) -> bool:
    """Answers that say the request had no effect, and failures of requests that never have one."""
    if response.status == 429:
        return True
    if response.status in (500, 502, 503, 504):
        return method in SAFE_METHODS or (response.status == 503 and "retry-after" in response.headers)
    return False


def _certificate(proof: Proof) -> tuple[str, object]:
    return proof.client_certificate, proof.client_key


async def _pieces(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for piece in answer.content.iter_any():
        yield piece
