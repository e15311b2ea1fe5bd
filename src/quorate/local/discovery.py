"""Discovery: which groups, versions and resources are served, in the old and the aggregated form."""

from __future__ import annotations

from quorate.local.jsonvalue import Json, JsonObject
from quorate.local.kinds import Catalog, Kind
from quorate.local.reviews import REVIEWS

_REVIEW_VERSION = "v1"
_STATUS_VERBS: tuple[str, ...] = ("get", "patch", "update")


def group_versions(catalog: Catalog) -> dict[str, list[str]]:
    """Group -> versions, groups in the order kubectl should prefer them."""
    found: dict[str, list[str]] = {}
    reviews = [(group, _REVIEW_VERSION) for group, _ in REVIEWS]
    for group, version in [*catalog.group_versions(), *reviews]:
        versions = found.setdefault(group, [])
        if version not in versions:
            versions.append(version)
    return found


def _version(group: str, version: str) -> JsonObject:
    return {"groupVersion": f"{group}/{version}" if group else version, "version": version}


def group(name: str, versions: list[str]) -> JsonObject:
    return {
        "kind": "APIGroup",
        "apiVersion": "v1",
        "name": name,
        "versions": [_version(name, version) for version in versions],
        "preferredVersion": _version(name, versions[0]),
    }


def groups(catalog: Catalog) -> JsonObject:
    """`/apis`: all groups but the core one."""
    listed: list[Json] = [
        {key: value for key, value in group(name, versions).items() if key not in ("kind", "apiVersion")}
        for name, versions in group_versions(catalog).items()
        if name
    ]
    return {"kind": "APIGroupList", "apiVersion": "v1", "groups": listed}


def core_versions(host: str = "") -> JsonObject:
    """`/api`."""
    addresses: list[Json] = [{"clientCIDR": "0.0.0.0/0", "serverAddress": host}]
    return {"kind": "APIVersions", "versions": ["v1"], "serverAddressByClientCIDRs": addresses}


def resources(catalog: Catalog, group_name: str, version: str) -> JsonObject | None:
    """`/apis/<group>/<version>`; `None` when it is not served."""
    listed: list[Json] = []
    for kind in catalog.all():
        if kind.group == group_name and kind.version == version:
            listed.append(_resource(kind))
            if kind.has_status:
                listed.append(_status_resource(kind))
    for (review_group, plural), review_kind in REVIEWS.items():
        if review_group == group_name and version == _REVIEW_VERSION:
            verbs: list[Json] = ["create"]
            listed.append(
                {"name": plural, "singularName": "", "namespaced": False, "kind": review_kind, "verbs": verbs}
            )
    if not listed:
        return None
    group_version = f"{group_name}/{version}" if group_name else version
    return {"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": group_version, "resources": listed}


def _resource(kind: Kind) -> JsonObject:
    described: JsonObject = {
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list[Json](kind.verbs),
    }
    if kind.short_names:
        described["shortNames"] = list[Json](kind.short_names)
    if kind.categories:
        described["categories"] = list[Json](kind.categories)
    return described


def _status_resource(kind: Kind) -> JsonObject:
    return {
        "name": f"{kind.plural}/status",
        "singularName": "",
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": list[Json](_STATUS_VERBS),
    }


def aggregated(catalog: Catalog, *, core: bool) -> JsonObject:
    """Everything in one document (`apidiscovery.k8s.io/v2`)."""
    items: list[Json] = []
    for name, versions in group_versions(catalog).items():
        if (name == "") is not core:
            continue
        metadata: JsonObject = {"name": name, "creationTimestamp": None} if name else {"creationTimestamp": None}
        described: list[Json] = [_aggregated_version(catalog, name, version) for version in versions]
        items.append({"metadata": metadata, "versions": described})
    return {"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "metadata": {}, "items": items}


def _aggregated_version(catalog: Catalog, group_name: str, version: str) -> JsonObject:
    listed: list[Json] = [
        _aggregated_resource(kind) for kind in catalog.all() if (kind.group, kind.version) == (group_name, version)
    ]
    for (review_group, plural), review_kind in REVIEWS.items():
        if review_group == group_name:
            listed.append(
                {
                    "resource": plural,
                    "responseKind": {"group": group_name, "version": version, "kind": review_kind},
                    "scope": "Cluster",
                    "singularResource": "",
                    "verbs": ["create"],
                }
            )
    return {"version": version, "resources": listed, "freshness": "Current"}


def _aggregated_resource(kind: Kind) -> JsonObject:
    response: JsonObject = {"group": kind.group, "version": kind.version, "kind": kind.kind}
    described: JsonObject = {
        "resource": kind.plural,
        "responseKind": response,
        "scope": "Namespaced" if kind.namespaced else "Cluster",
        "singularResource": kind.singular,
        "verbs": list[Json](kind.verbs),
    }
    if kind.short_names:
        described["shortNames"] = list[Json](kind.short_names)
    if kind.categories:
        described["categories"] = list[Json](kind.categories)
    if kind.has_status:
        described["subresources"] = [
            {"subresource": "status", "responseKind": response, "verbs": list[Json](_STATUS_VERBS)}
        ]
    return described
