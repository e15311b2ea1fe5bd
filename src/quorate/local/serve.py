"""Running the API server as a process: directory, certificate, token, kubeconfig, journal, HTTP.

`serve_api` yields a `Running` server and cleans up behind itself. Everything a person can get wrong (a directory that
cannot be written, a port that is taken, a second server on the same directory) is a `CannotServe` with one clear
sentence.
"""

from __future__ import annotations

import errno
import secrets
import ssl
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from quorate.local.api_server import ApiServer
from quorate.local.certificate import make_certificate
from quorate.local.directory_lock import DirectoryInUse, DirectoryLock
from quorate.local.journal import Journal, JournalError, MemoryJournal
from quorate.local.jsonvalue import Json
from quorate.local.kubeconfig import kubeconfig_text, write_private
from quorate.local.ports import Ids, SystemIds, WallClock
from quorate.local.server import LOOPBACK, HttpServer
from quorate.local.sqlite_journal import SqliteJournal
from quorate.machinery.clock import SystemClock

DEFAULT_DIRECTORY = Path(".quorate")


class CannotServe(Exception):
    """Why the server cannot start, as a sentence for people."""


@dataclass(frozen=True)
class Running:
    """A server that accepts requests."""

    api: ApiServer
    port: int
    kubeconfig: Path
    durable: bool
    http: HttpServer

    @property
    def url(self) -> str:
        return f"https://{LOOPBACK}:{self.port}"


@asynccontextmanager
async def serve_api(
    crds: Sequence[Mapping[str, Json]],
    *,
    data: Path | None = None,
    port: int = 0,
    clock: WallClock | None = None,
    ids: Ids | None = None,
) -> AsyncGenerator[Running]:
    """Serve the API until the block is left; with `data` the state lives in that directory, otherwise in memory."""
    clock = clock or SystemClock()
    directory = data if data is not None else DEFAULT_DIRECTORY
    _prepare(directory)
    lock: DirectoryLock | None = None
    try:
        if data is None:
            lock = DirectoryLock(directory)
        journal: Journal = SqliteJournal(directory) if data is not None else MemoryJournal()
        api = ApiServer(crds, journal, clock, ids or SystemIds())
    except (JournalError, DirectoryInUse) as error:
        raise CannotServe(f"Cannot use {directory}: {error}.") from error
    try:
        await api.store.wait_durable(api.store.version)
        token = _secret(directory / "token")
        certificate = _certificate(directory, clock.now())
        http = HttpServer(api, token, _tls(directory))
        await _start(http, port)
        try:
            kubeconfig = directory / "kubeconfig"
            write_private(kubeconfig, kubeconfig_text(http.port, token, certificate))
            yield Running(api, http.port, kubeconfig, data is not None, http)
        finally:
            # Watches end first, so that open connections do not hold up the stop.
            await api.close()
            await http.close()
    finally:
        if api.store.closed is None:
            await api.close()
        if lock is not None:
            lock.release()


def _prepare(directory: Path) -> None:
    try:
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        probe = directory / ".writable"
        probe.write_text("")
        probe.unlink()
    except OSError as error:
        raise CannotServe(f"Cannot write to the directory {directory}: {error.strerror or error}.") from error


async def _start(http: HttpServer, port: int) -> None:
    try:
        await http.start(port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise CannotServe(
                f"Port {port} on {LOOPBACK} is already in use; choose another one with --port."
            ) from error
        if error.errno == errno.EACCES:
            raise CannotServe(
                f"Port {port} on {LOOPBACK} needs more rights; choose one above 1023 with --port."
            ) from error
        raise CannotServe(f"Cannot listen on {LOOPBACK}:{port}: {error.strerror or error}.") from error
    except OverflowError as error:
        raise CannotServe(f"{port} is not a port; ports go from 0 to 65535.") from error


def _secret(path: Path) -> str:
    """The token of this directory; kept, so that kubeconfigs stay valid across restarts."""
    if path.exists():
        token = path.read_text(encoding="utf-8").strip()
        if token:
            return token
    token = secrets.token_urlsafe(32)
    write_private(path, token + "\n")
    return token


def _certificate(directory: Path, now: float) -> str:
    certificate, key = directory / "tls.crt", directory / "tls.key"
    if not (certificate.exists() and key.exists()):
        made = make_certificate(now)
        write_private(key, made.key)
        write_private(certificate, made.certificate)
    return certificate.read_text(encoding="utf-8")


def _tls(directory: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    try:
        context.load_cert_chain(directory / "tls.crt", directory / "tls.key")
    except ssl.SSLError as error:
        raise CannotServe(
            f"The certificate in {directory} cannot be used: {error.reason}; remove tls.crt and tls.key."
        ) from error
    return context
