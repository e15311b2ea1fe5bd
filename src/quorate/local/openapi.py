"""OpenAPI documents: `kubectl explain`, client-side validation and merge keys for strategic patches come from here.

Version 3 has one document per group and version, version 2 one for everything. Both hold the same schemas; references
differ.
"""

from __future__ import annotations

from quorate.local.builtin.shapes import METADATA
from quorate.local.jsonvalue import Json, JsonObject, as_list, as_object
from quorate.local.kinds import Catalog, Kind

_META = "io.k8s.apimachinery.pkg.apis.meta.v1"
OBJECT_META = f"{_META}.ObjectMeta"
LIST_META = f"{_META}.ListMeta"
STATUS = f"{_META}.Status"
DELETE_OPTIONS = f"{_META}.DeleteOptions"
_TITLE: JsonObject = {"title": "Quorate", "version": "v1"}


def model_name(kind: Kind) -> str:
    """`io.deckhouse.storage.v1alpha1.ReplicatedVolume`, `io.k8s.api.core.v1.Node`."""
    if not kind.custom:
        group = kind.group.removesuffix(".k8s.io") or "core"
        return f"io.k8s.api.{group}.{kind.version}.{kind.kind}"
    reverse = ".".join(reversed(kind.group.split(".")))
    return f"{reverse}.{kind.version}.{kind.kind}"


def _schema_ref(name: str, prefix: str) -> JsonObject:
    return {"$ref": f"{prefix}{name}"}


def _definition(schema: JsonObject, prefix: str) -> JsonObject:
    """A kind's schema with its metadata as a reference."""
    properties = dict(as_object(schema.get("properties")))
    properties.setdefault("apiVersion", {"type": "string"})
    properties.setdefault("kind", {"type": "string"})
    described = "Standard object's metadata."
    properties["metadata"] = (
        {"description": described, "allOf": [_schema_ref(OBJECT_META, prefix)], "default": {}}
        if prefix.startswith("#/components")
        else {"description": described, **_schema_ref(OBJECT_META, prefix)}
    )
    return {**schema, "properties": properties}


def _gvk(kind: Kind, name: str) -> JsonObject:
    return {"group": kind.group, "version": kind.version, "kind": name}


def _definitions(kinds: list[Kind], prefix: str) -> JsonObject:
    found: JsonObject = {
        OBJECT_META: METADATA,
        LIST_META: {
            "type": "object",
            "properties": {
                "resourceVersion": {"type": "string"},
                "continue": {"type": "string"},
                "remainingItemCount": {"type": "integer"},
            },
        },
        STATUS: {"type": "object", "description": "Status is the answer to a request that has no object."},
        DELETE_OPTIONS: _delete_options(kinds),
    }
    for kind in kinds:
        name = model_name(kind)
        found[name] = {
            **_definition(kind.schema, prefix),
            "x-kubernetes-group-version-kind": [_gvk(kind, kind.kind)],
        }
        items: JsonObject = {"type": "array", "items": _schema_ref(name, prefix)}
        found[f"{name}List"] = {
            "type": "object",
            "description": f"{kind.list_kind} is a list of {kind.kind}.",
            "required": ["items"],
            "properties": {
                "apiVersion": {"type": "string"},
                "kind": {"type": "string"},
                "metadata": _schema_ref(LIST_META, prefix),
                "items": items,
            },
            "x-kubernetes-group-version-kind": [_gvk(kind, kind.list_kind)],
        }
    return found


def _delete_options(kinds: list[Kind]) -> JsonObject:
    versions = sorted({(kind.group, kind.version) for kind in kinds})
    described: list[Json] = [
        {"group": group, "version": version, "kind": "DeleteOptions"} for group, version in versions
    ]
    text: JsonObject = {"type": "string"}
    return {
        "type": "object",
        "description": "DeleteOptions says how an object is deleted.",
        "properties": {
            "apiVersion": text,
            "kind": text,
            "gracePeriodSeconds": {"type": "integer", "format": "int64"},
            "propagationPolicy": text,
            "orphanDependents": {"type": "boolean"},
            "dryRun": {"type": "array", "items": text},
            "preconditions": {"type": "object", "properties": {"uid": text, "resourceVersion": text}},
        },
        "x-kubernetes-group-version-kind": described,
    }


_QUERY = {
    "get": ("pretty",),
    "list": (
        "allowWatchBookmarks", "continue", "fieldSelector", "labelSelector", "limit", "resourceVersion",
        "resourceVersionMatch", "sendInitialEvents", "timeoutSeconds", "watch",
    ),
    "post": ("dryRun", "fieldManager", "fieldValidation"),
    "put": ("dryRun", "fieldManager", "fieldValidation"),
    "patch": ("dryRun", "fieldManager", "fieldValidation", "force"),
    "delete": ("dryRun", "gracePeriodSeconds", "orphanDependents", "propagationPolicy"),
    "deletecollection": ("continue", "dryRun", "fieldSelector", "labelSelector", "limit", "propagationPolicy"),
}  # fmt: skip

_CONTENT = {
    "patch": ("application/json-patch+json", "application/merge-patch+json"),
}


def _parameter(name: str, place: str, *, v3: bool) -> JsonObject:
    parameter: JsonObject = {"name": name, "in": place}
    if place == "path":
        parameter["required"] = True
    if v3:
        parameter["schema"] = {"type": "string", "uniqueItems": True}
    else:
        parameter["type"] = "string"
        parameter["uniqueItems"] = True
    return parameter


def _operation(kind: Kind, action: str, answer: str, path: str, *, v3: bool) -> JsonObject:
    prefix = "#/components/schemas/" if v3 else "#/definitions/"
    ref = _schema_ref(answer, prefix)
    described: JsonObject = {"description": "OK"}
    if v3:
        described["content"] = {"application/json": {"schema": ref}}
    else:
        described["schema"] = ref
    parameters: list[Json] = [_parameter(name, "query", v3=v3) for name in _QUERY[action]]
    parameters += [_parameter(name, "path", v3=v3) for name in ("namespace", "name") if f"{{{name}}}" in path]
    operation: JsonObject = {
        "description": f"{action} {kind.kind}",
        "operationId": f"{action}{kind.group.title().replace('.', '')}{kind.version.title()}{kind.kind}{path.count('/')}",
        "responses": {"200": described, "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": action,
        "x-kubernetes-group-version-kind": _gvk(kind, kind.kind),
        "parameters": parameters,
    }
    if action in ("post", "put", "patch"):
        _add_body(operation, kind, action, prefix, v3=v3)
    return operation


def _add_body(operation: JsonObject, kind: Kind, action: str, prefix: str, *, v3: bool) -> None:
    types = _CONTENT.get(action, ("application/json",))
    if action == "patch" and not kind.custom:
        types = (*types, "application/strategic-merge-patch+json")
    schema: JsonObject = {"type": "object"} if action == "patch" else _schema_ref(model_name(kind), prefix)
    if v3:
        operation["requestBody"] = {"content": {media: {"schema": schema} for media in types}, "required": True}
    else:
        operation["consumes"] = list[Json](types)
        body: JsonObject = {"name": "body", "in": "body", "required": True, "schema": schema}
        operation["parameters"] = [*as_list(operation["parameters"]), body]


def _paths(kinds: list[Kind], *, v3: bool) -> JsonObject:
    paths: JsonObject = {}
    for kind in kinds:
        base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
        scoped = f"{base}/namespaces/{{namespace}}/{kind.plural}" if kind.namespaced else f"{base}/{kind.plural}"
        model = model_name(kind)

        def operations(path: str, *actions: tuple[str, str, str], of: Kind = kind) -> JsonObject:
            return {verb: _operation(of, action, answer, path, v3=v3) for verb, action, answer in actions}

        paths[scoped] = operations(
            scoped, ("get", "list", f"{model}List"), ("post", "post", model), ("delete", "deletecollection", STATUS)
        )
        one = f"{scoped}/{{name}}"
        changes = (("get", "get", model), ("put", "put", model), ("patch", "patch", model))
        paths[one] = operations(one, *changes, ("delete", "delete", STATUS))
        if kind.has_status:
            paths[f"{one}/status"] = operations(f"{one}/status", *changes)
        if kind.namespaced:
            everywhere = f"{base}/{kind.plural}"
            paths[everywhere] = operations(everywhere, ("get", "list", f"{model}List"))
    return paths


def version_three(catalog: Catalog, group: str, version: str) -> JsonObject:
    """The OpenAPI v3 document of one group and version."""
    kinds = [kind for kind in catalog.all() if (kind.group, kind.version) == (group, version)]
    return {
        "openapi": "3.0.0",
        "info": _TITLE,
        "paths": _paths(kinds, v3=True),
        "components": {"schemas": _definitions(kinds, "#/components/schemas/")},
    }


def version_two(catalog: Catalog) -> JsonObject:
    """The OpenAPI v2 document of everything."""
    kinds = catalog.all()
    return {
        "swagger": "2.0",
        "info": _TITLE,
        "paths": _paths(kinds, v3=False),
        "definitions": _definitions(kinds, "#/definitions/"),
    }
