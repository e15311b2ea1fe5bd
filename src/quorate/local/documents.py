"""The documents a server gives out besides objects: health, version, discovery, OpenAPI.

Documents are built on demand and kept until the set of served kinds changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import version as package_version

from quorate.local import discovery, openapi, openapi_protobuf
from quorate.local.jsonvalue import Json, JsonObject, encode
from quorate.local.kinds import Catalog
from quorate.local.negotiation import AGGREGATED_DISCOVERY, negotiate
from quorate.local.status import not_acceptable

_HEALTH = ("/healthz", "/livez", "/readyz")
_AGGREGATED_TYPE = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
KUBERNETES_VERSION = "1.32"
"""The release of Kubernetes whose behaviour is modelled; clients compare it with their own."""


@dataclass(frozen=True)
class Document:
    body: bytes
    content_type: str = "application/json"


class Documents:
    """See the module docstring."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._revision = -1
        self._kept: dict[str, Document] = {}

    def find(self, path: str, accept: str) -> Document | None:
        """The document at a path, `None` when there is none."""
        if path in _HEALTH or path.startswith(tuple(f"{health}/" for health in _HEALTH)):
            return Document(b"ok", "text/plain")
        if self._revision != self._catalog.revision:
            self._revision = self._catalog.revision
            self._kept.clear()
        if path in ("/api", "/apis") and negotiate(accept, (AGGREGATED_DISCOVERY,)).kind == AGGREGATED_DISCOVERY:
            core = path == "/api"
            return self._keep(
                f"{path} aggregated", lambda: discovery.aggregated(self._catalog, core=core), _AGGREGATED_TYPE
            )
        if path == "/openapi/v2" and accept and "json" not in accept and "*" not in accept:
            if not any(spelling in accept for spelling in openapi_protobuf.ASKED_FOR):
                raise not_acceptable(
                    f"only the following media types are accepted: application/json, {openapi_protobuf.MEDIA_TYPE}"
                )
            return Document(
                openapi_protobuf.encode_document("Quorate", KUBERNETES_VERSION), openapi_protobuf.MEDIA_TYPE
            )
        return self._json(path)

    def _json(self, path: str) -> Document | None:
        parts = path.strip("/").split("/")
        match parts:
            case [""]:
                return self._keep(path, self._roots)
            case ["version"]:
                return self._keep(path, _version)
            case ["api"]:
                return self._keep(path, discovery.core_versions)
            case ["apis"]:
                return self._keep(path, lambda: discovery.groups(self._catalog))
            case ["api", version]:
                return self._resources(path, "", version)
            case ["apis", group]:
                versions = discovery.group_versions(self._catalog).get(group)
                return self._keep(path, lambda: discovery.group(group, versions)) if versions else None
            case ["apis", group, version]:
                return self._resources(path, group, version)
            case ["openapi", "v2"]:
                return self._keep(path, lambda: openapi.version_two(self._catalog))
            case ["openapi", "v3"]:
                return self._keep(path, self._openapi_index)
            case ["openapi", "v3", "api", version]:
                return self._openapi(path, "", version)
            case ["openapi", "v3", "apis", group, version]:
                return self._openapi(path, group, version)
            case _:
                return None

    def _keep(self, name: str, build: Callable[[], JsonObject], content_type: str = "application/json") -> Document:
        found = self._kept.get(name)
        if found is None:
            found = self._kept[name] = Document(encode(build()), content_type)
        return found

    def _resources(self, path: str, group: str, version: str) -> Document | None:
        listed = discovery.resources(self._catalog, group, version)
        return self._keep(path, lambda: listed) if listed is not None else None

    def _openapi(self, path: str, group: str, version: str) -> Document | None:
        if not self._catalog.has_group_version(group, version):
            return None
        return self._keep(path, lambda: openapi.version_three(self._catalog, group, version))

    def _openapi_index(self) -> JsonObject:
        paths: JsonObject = {}
        for group, version in self._catalog.group_versions():
            name = f"apis/{group}/{version}" if group else f"api/{version}"
            document = self._openapi(f"/openapi/v3/{name}", group, version)
            digest = hashlib.sha256(document.body if document is not None else b"").hexdigest()[:32].upper()
            paths[name] = {"serverRelativeURL": f"/openapi/v3/{name}?hash={digest}"}
        return {"paths": paths}

    def _roots(self) -> JsonObject:
        listed: list[Json] = ["/api", "/api/v1", "/apis", *_HEALTH, "/openapi/v2", "/openapi/v3", "/version"]
        for group, version in self._catalog.group_versions():
            if group:
                listed.append(f"/apis/{group}/{version}")
        return {"paths": listed}


def _version() -> JsonObject:
    major, minor = KUBERNETES_VERSION.split(".")
    return {
        "major": major,
        "minor": minor,
        "gitVersion": f"v{KUBERNETES_VERSION}.0+quorate-{package_version('quorate')}",
        "gitCommit": "",
        "gitTreeState": "clean",
        "buildDate": "1970-01-01T00:00:00Z",
        "goVersion": "",
        "compiler": "",
        "platform": "quorate/embedded",
    }
