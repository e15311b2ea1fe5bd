"""CustomResourceDefinitions, generated from the types.

`quorate crds` prints them; `quorate crds --write deploy/crds` writes `deploy/crds/*.yaml`, and a test fails on drift.
"""

from __future__ import annotations

import inspect
from typing import cast

import msgspec
import yaml

from quorate.api.crd_schema import field_descriptions, object_schema, unwrap
from quorate.api.labels import LABEL_MODULE, MODULE
from quorate.api.meta import Object
from quorate.api.resources import OWN, Resource
from quorate.api.schema import Column, Crd, Json
from quorate.api.value import Value


def crd(resource: Resource[Object]) -> dict[str, Json]:
    """The CustomResourceDefinition of one of our kinds."""
    stated = resource.crd
    if stated is None:
        raise ValueError(f"{resource.kind} is not a custom resource")
    labels: dict[str, Json] = {LABEL_MODULE: MODULE, **dict(stated.labels)}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{resource.plural}.{resource.group}", "labels": labels},
        "spec": {
            "group": resource.group,
            "names": {
                "kind": resource.kind,
                "listKind": f"{resource.kind}List",
                "plural": resource.plural,
                "singular": resource.singular,
                "shortNames": list(resource.short_names),
                "categories": list(stated.categories),
            },
            "scope": "Namespaced" if resource.namespaced else "Cluster",
            "versions": [_version(resource, stated)],
        },
    }


def all_crds() -> tuple[dict[str, Json], ...]:
    """The CustomResourceDefinitions of all our kinds."""
    return tuple(crd(resource) for resource in OWN)


def file_name(definition: dict[str, Json]) -> str:
    """Name of the file a definition is kept in."""
    metadata = cast("dict[str, Json]", definition["metadata"])
    plural, _, group = cast("str", metadata["name"]).partition(".")
    return f"{group}_{plural}.yaml"


def to_yaml(definition: dict[str, Json]) -> str:
    """YAML text of a definition; stable, so that a difference is a change."""
    return yaml.safe_dump(definition, sort_keys=False, allow_unicode=True, width=120)


def _version(resource: Resource[Object], stated: Crd) -> dict[str, Json]:
    version: dict[str, Json] = {
        "name": resource.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "additionalPrinterColumns": [_column(column) for column in stated.columns],
        "schema": {"openAPIV3Schema": _root_schema(resource.type, stated)},
    }
    if stated.selectable_fields:
        version["selectableFields"] = [{"jsonPath": path} for path in stated.selectable_fields]
    return version


def _root_schema(kind: type[Object], stated: Crd) -> dict[str, Json]:
    descriptions = field_descriptions(kind)
    properties: dict[str, Json] = {
        "apiVersion": {"type": "string", "description": "Version of the API that this object is written in."},
        "kind": {"type": "string", "description": "Kind of the object."},
        "metadata": {"type": "object"},
    }
    required: list[Json] = ["metadata"]
    for info in msgspec.structs.fields(kind):
        if info.name == "metadata":
            continue
        part = object_schema(cast("type[Value]", unwrap(info.type)[0]))
        if info.name == "spec" and stated.spec_map_type:
            part["x-kubernetes-map-type"] = stated.spec_map_type
        properties[info.encode_name] = {"description": descriptions.get(info.name, ""), **part}
        if info.required:
            required.append(info.encode_name)
    root: dict[str, Json] = {
        "type": "object",
        "description": inspect.getdoc(kind) or "",
        "properties": properties,
        "required": required,
    }
    if stated.rules:
        root["x-kubernetes-validations"] = [{"rule": rule.rule, "message": rule.message} for rule in stated.rules]
    return root


def _column(column: Column) -> dict[str, Json]:
    result: dict[str, Json] = {"name": column.name, "type": column.type, "jsonPath": column.path}
    if column.description:
        result["description"] = column.description
    if column.wide:
        result["priority"] = 1
    return result
