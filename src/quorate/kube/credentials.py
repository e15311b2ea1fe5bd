"""Proof of identity for each request: fixed tokens, token files that rotate, exec plugins whose answers expire.

A source answers with the headers to send and, for certificates, with what TLS must present. `refresh` is called after a
401, so that credentials revoked early are replaced at once. A source that never worked is a `ConfigError`, which ends the
process with the reason; one that stops working is an outage, which is waited out (`Unavailable`).
"""

from __future__ import annotations

import asyncio
import base64
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from quorate.api import times
from quorate.api.value import SharedSecret
from quorate.kube.kubeconfig import ConfigError, Exec, ServerConfig
from quorate.machinery import errors

TOKEN_FILE_SECONDS = 60.0
"""How long a token that was read from a file is used; kubelets rotate them long before they expire."""
EXEC_TIMEOUT = 60.0
EXPIRY_MARGIN = 30.0
"""Credentials are renewed this long before they expire."""
EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


@dataclass(frozen=True)
class Proof:
    """What one request carries."""

    authorization: SharedSecret | None = None
    """Value of the Authorization header."""
    client_certificate: str = ""
    """PEM of a client certificate that an exec plugin issued."""
    client_key: SharedSecret | None = None


class Credentials(Protocol):
    """A source of proof."""

    async def proof(self) -> Proof:
        """What to send now."""
        ...

    def refresh(self) -> None:
        """The server refused the last proof: do not use it again."""
        ...


class Fixed:
    """A token, a user name and password, or nothing."""

    def __init__(self, authorization: SharedSecret | None) -> None:
        self._proof = Proof(authorization)

    async def proof(self) -> Proof:
        return self._proof

    def refresh(self) -> None:
        return


class TokenFile:
    """A token that somebody keeps fresh in a file."""

    def __init__(self, path: str, monotonic: Callable[[], float]) -> None:
        self._path = Path(path)
        self._monotonic = monotonic
        self._read_at = float("-inf")
        self._proof = Proof()

    async def proof(self) -> Proof:
        if self._monotonic() - self._read_at >= TOKEN_FILE_SECONDS:
            try:
                self._proof = Proof(bearer(await self._read()))
                self._read_at = self._monotonic()
            except ConfigError:
                # Somebody writes the file just now, or forgot it: the server decides how long the last token is good.
                if self._proof.authorization is None:
                    raise
        return self._proof

    async def _read(self) -> str:
        try:
            token = (await asyncio.to_thread(self._path.read_text)).strip()
        except OSError as error:
            raise ConfigError(f"{self._path}: the token cannot be read: {error.strerror}") from error
        if not token:
            raise ConfigError(f"{self._path}: the token file is empty")
        return token

    def refresh(self) -> None:
        self._read_at = float("-inf")


class _ExecStatus(msgspec.Struct, rename="camel"):
    token: str = ""
    client_certificate_data: str = ""
    client_key_data: str = ""
    expiration_timestamp: str = ""


class _ExecCredential(msgspec.Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


class ExecPlugin:
    """Credentials printed by a program; used until they expire, one run at a time."""

    def __init__(self, plugin: Exec, config: ServerConfig, now: Callable[[], float]) -> None:
        if plugin.api_version not in EXEC_VERSIONS:
            raise ConfigError(
                f"exec plugin {plugin.command}: apiVersion {plugin.api_version} is not one of {', '.join(EXEC_VERSIONS)}"
            )
        self._plugin = plugin
        self._config = config
        self._now = now
        self._proof: Proof | None = None
        self._expires = float("inf")
        self._worked = False
        self._running = asyncio.Lock()

    async def proof(self) -> Proof:
        async with self._running:
            if self._proof is None or self._now() >= self._expires - EXPIRY_MARGIN:
                try:
                    status = await self._run()
                except ConfigError as error:
                    if self._worked:
                        raise errors.unavailable(str(error)) from error
                    raise
                self._worked = True
                self._expires = (
                    times.parse(status.expiration_timestamp) if status.expiration_timestamp else float("inf")
                )
                self._proof = Proof(
                    authorization=bearer(status.token) if status.token else None,
                    client_certificate=status.client_certificate_data,
                    client_key=SharedSecret(status.client_key_data) if status.client_key_data else None,
                )
            return self._proof

    def refresh(self) -> None:
        self._proof = None

    async def _run(self) -> _ExecStatus:
        plugin = self._plugin
        environment = {**os.environ, "KUBERNETES_EXEC_INFO": self._info()}
        environment.update({variable.name: variable.value for variable in plugin.env or ()})
        try:
            process = await asyncio.create_subprocess_exec(
                plugin.command,
                *(plugin.args or ()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                env=environment,
            )
        except OSError as error:
            hint = f" ({plugin.install_hint.strip()})" if plugin.install_hint else ""
            raise ConfigError(f"exec plugin {plugin.command} cannot be run: {error.strerror}{hint}") from error
        try:
            async with asyncio.timeout(EXEC_TIMEOUT):
                out, err = await process.communicate()
        except TimeoutError as error:
            process.kill()
            await process.wait()
            raise ConfigError(f"exec plugin {plugin.command} did not answer in {EXEC_TIMEOUT:.0f} s") from error
        if process.returncode != 0:
            said = err.decode(errors="replace").strip()[-300:]
            raise ConfigError(f"exec plugin {plugin.command} failed with code {process.returncode}: {said}")
        return self._parse(out)

    def _parse(self, out: bytes) -> _ExecStatus:
        try:
            found = msgspec.json.decode(out, type=_ExecCredential)
        except msgspec.MsgspecError as error:
            raise ConfigError(f"exec plugin {self._plugin.command} printed no ExecCredential: {error}") from error
        if found.api_version != self._plugin.api_version:
            raise ConfigError(
                f"exec plugin {self._plugin.command} answered with apiVersion {found.api_version}, "
                f"the kubeconfig asks for {self._plugin.api_version}"
            )
        if found.status is None or not (found.status.token or found.status.client_certificate_data):
            raise ConfigError(f"exec plugin {self._plugin.command} printed neither a token nor a certificate")
        return found.status

    def _info(self) -> str:
        spec: dict[str, object] = {"interactive": False}
        if self._plugin.provide_cluster_info:
            spec["cluster"] = {
                "server": self._config.server,
                "certificate-authority-data": self._config.certificate_authority.data,
                "insecure-skip-tls-verify": not self._config.verify,
            }
        info = {"apiVersion": self._plugin.api_version, "kind": "ExecCredential", "spec": spec}
        return msgspec.json.encode(info).decode()


def bearer(token: str) -> SharedSecret:
    """The Authorization header of a token."""
    return SharedSecret(f"Bearer {token}")


def credentials_of(config: ServerConfig, *, now: Callable[[], float], monotonic: Callable[[], float]) -> Credentials:
    """The source that a configuration asks for, in kubectl's precedence: exec, token file, token, password."""
    if config.exec is not None:
        return ExecPlugin(config.exec, config, now)
    if config.token_file:
        return TokenFile(config.token_file, monotonic)
    if config.token is not None:
        return Fixed(bearer(config.token.reveal()))
    if config.username and config.password is not None:
        pair = f"{config.username}:{config.password.reveal()}".encode()
        return Fixed(SharedSecret(f"Basic {base64.b64encode(pair).decode()}"))
    return Fixed(None)
