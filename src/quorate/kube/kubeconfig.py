"""Reading kubeconfig files and the service account of a pod: where the server is and how to prove who we are.

A small module of our own, because no maintained library covers what is needed at an acceptable price (figures in
docs/decisions/kube-kubeconfig.md). Everything read is checked; an error names the file, the entry and the fix.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec

from quorate.api.value import SharedSecret

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class ConfigError(Exception):
    """The configuration cannot be used; the text says what to change."""


class ExecVariable(msgspec.Struct, frozen=True):
    """An environment variable for an exec plugin."""

    name: str
    value: str


class Exec(msgspec.Struct, frozen=True, rename="camel"):
    """A program that prints credentials."""

    command: str
    api_version: str
    args: list[str] | None = None
    env: list[ExecVariable] | None = None
    provide_cluster_info: bool = False
    interactive_mode: str = "IfAvailable"
    install_hint: str = ""


class _Cluster(msgspec.Struct, frozen=True, rename="kebab"):
    server: str = ""
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    insecure_skip_tls_verify: bool = False
    tls_server_name: str = ""
    proxy_url: str = ""


class _User(msgspec.Struct, frozen=True, rename="kebab"):
    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = msgspec.field(default="", name="tokenFile")
    username: str = ""
    password: str = ""
    exec: Exec | None = None


class _Context(msgspec.Struct, frozen=True):
    cluster: str = ""
    user: str = ""
    namespace: str = ""


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: _Cluster


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: _User


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: _Context


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    current_context: str = ""
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None


class Material(msgspec.Struct, frozen=True):
    """A certificate or key: a file to read, or the bytes themselves."""

    path: str = ""
    data: str = ""
    """Base64, as in the file."""

    def __bool__(self) -> bool:
        return bool(self.path or self.data)


class ServerConfig(msgspec.Struct, frozen=True):
    """Everything needed to talk to one API server."""

    server: str
    namespace: str = "default"
    certificate_authority: Material = Material()
    verify: bool = True
    server_name: str = ""
    proxy: str = ""
    client_certificate: Material = Material()
    client_key: Material = Material()
    token: SharedSecret | None = None
    token_file: str = ""
    username: str = ""
    password: SharedSecret | None = None
    exec: Exec | None = None


def load(
    path: str = "", *, context: str = "", environment: Mapping[str, str] = os.environ, home: Path | None = None
) -> ServerConfig:
    """The configuration of a named file, of KUBECONFIG, of ~/.kube/config, or of the pod we run in; in this order."""
    files = _candidates(path, environment, home or Path.home())
    found = tuple(file for file in files if file.is_file())
    if not found:
        if path:
            raise ConfigError(f"{path}: no such kubeconfig file")
        if in_cluster(environment):
            return service_account(environment)
        named = ", ".join(str(file) for file in files)
        raise ConfigError(f"no kubeconfig found ({named}); name one with --kubeconfig or KUBECONFIG")
    return _select(tuple((file, _read(file)) for file in found), context)


def _candidates(path: str, environment: Mapping[str, str], home: Path) -> tuple[Path, ...]:
    if path:
        return (Path(path),)
    listed = tuple(Path(part) for part in environment.get("KUBECONFIG", "").split(os.pathsep) if part)
    return listed or (home / ".kube" / "config",)


def _read(path: Path) -> _File:
    try:
        return msgspec.yaml.decode(path.read_bytes(), type=_File)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise ConfigError(f"{path}: not a kubeconfig file: {error}") from error


def _select(files: tuple[tuple[Path, _File], ...], wanted: str) -> ServerConfig:
    """Merge as kubectl does: the first file that defines an entry wins."""
    name = wanted or next((file.current_context for _, file in files if file.current_context), "")
    if not name:
        raise ConfigError(f"{files[0][0]}: no current-context; choose one with --context")
    context = next((c.context for _, f in files for c in f.contexts or () if c.name == name), None)
    if context is None:
        known = ", ".join(c.name for _, f in files for c in f.contexts or ()) or "none"
        raise ConfigError(f"{files[0][0]}: there is no context {name}; known contexts: {known}")
    cluster = next(((p, c.cluster) for p, f in files for c in f.clusters or () if c.name == context.cluster), None)
    if cluster is None:
        raise ConfigError(f"{files[0][0]}: context {name} names cluster {context.cluster}, which is not defined")
    user = next(((p, u.user) for p, f in files for u in f.users or () if u.name == context.user), None)
    if user is None and context.user:
        raise ConfigError(f"{files[0][0]}: context {name} names user {context.user}, which is not defined")
    return _assemble(*cluster, *(user or (files[0][0], _User())), context.namespace or "default")


def _assemble(cluster_file: Path, cluster: _Cluster, user_file: Path, user: _User, namespace: str) -> ServerConfig:
    if not cluster.server:
        raise ConfigError(f"{cluster_file}: the cluster has no server")

    def beside(file: Path, path: str) -> str:
        return str(file.parent / path) if path and not Path(path).is_absolute() else path

    return ServerConfig(
        server=cluster.server.rstrip("/"),
        namespace=namespace,
        certificate_authority=Material(
            path=beside(cluster_file, cluster.certificate_authority), data=cluster.certificate_authority_data
        ),
        verify=not cluster.insecure_skip_tls_verify,
        server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
        client_certificate=Material(path=beside(user_file, user.client_certificate), data=user.client_certificate_data),
        client_key=Material(path=beside(user_file, user.client_key), data=user.client_key_data),
        token=SharedSecret(user.token) if user.token else None,
        token_file=beside(user_file, user.token_file),
        username=user.username,
        password=SharedSecret(user.password) if user.password else None,
        exec=_located(user_file, user.exec),
    )


def _located(file: Path, plugin: Exec | None) -> Exec | None:
    """A command with a slash is relative to the file; a bare name is looked up on the PATH."""
    if plugin is None or "/" not in plugin.command or Path(plugin.command).is_absolute():
        return plugin
    return msgspec.structs.replace(plugin, command=str(file.parent / plugin.command))


def in_cluster(environment: Mapping[str, str]) -> bool:
    """Whether this process runs in a pod."""
    return bool(environment.get("KUBERNETES_SERVICE_HOST")) and (SERVICE_ACCOUNT / "token").is_file()


def service_account(environment: Mapping[str, str], directory: Path = SERVICE_ACCOUNT) -> ServerConfig:
    """The pod's service account; the token is read again as it rotates."""
    host, port = environment.get("KUBERNETES_SERVICE_HOST", ""), environment.get("KUBERNETES_SERVICE_PORT", "443")
    if not host:
        raise ConfigError("KUBERNETES_SERVICE_HOST is not set: this process does not run in a pod")
    shown = f"[{host}]" if ":" in host else host
    namespace = directory / "namespace"
    return ServerConfig(
        server=f"https://{shown}:{port}",
        namespace=namespace.read_text().strip() if namespace.is_file() else "default",
        certificate_authority=Material(path=str(directory / "ca.crt")),
        token_file=str(directory / "token"),
    )
