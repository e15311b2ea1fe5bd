"""Tables: how `kubectl get` shows objects, and metadata-only views."""

from __future__ import annotations

from quorate.local.builtin_tables import BUILTIN_TABLES
from quorate.local.durations import age
from quorate.local.jsonpath import find
from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, encode
from quorate.local.kinds import Column, Kind

_NAME = Column(
    "Name",
    format="name",
    description=(
        "Name must be unique within a namespace. Is required when creating resources, although some resources may allow a "
        "client to request the generation of an appropriate name automatically. Name is primarily intended for creation "
        "idempotence and configuration definition. Cannot be updated. More info: "
        "https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names"
    ),
)
_AGE = Column("Age", "date", path=".metadata.creationTimestamp")


def table(
    kind: Kind, items: list[JsonObject], now: float, version: str, include: str, metadata: JsonObject
) -> JsonObject:
    """A `Table` with one row per object; `include` says what else a row carries (`None`, `Metadata`, `Object`)."""
    builtin = BUILTIN_TABLES.get((kind.group, kind.kind))
    if builtin is not None:
        columns = (_NAME, *builtin.columns) if builtin.named else builtin.columns
    else:
        columns = (_NAME, *(kind.columns or (_AGE,)))
    rows: list[Json] = []
    for item in items:
        # A bookmark has no name and no row.
        if "name" not in as_object(item.get("metadata")):
            continue
        name = as_text(as_object(item.get("metadata")).get("name"))
        if builtin is not None:
            cells = builtin.cells(item, now)
            cells = [name, *cells] if builtin.named else cells
        else:
            cells = [name, *(_cell(column, item, now) for column in columns[1:])]
        row: JsonObject = {"cells": cells}
        if include == "Object":
            row["object"] = item
        else:
            row["object"] = partial(item, version) if include != "None" else None
        rows.append(row)
    return {
        "kind": "Table",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": metadata,
        "columnDefinitions": [_definition(column) for column in columns],
        "rows": rows,
    }


def _definition(column: Column) -> JsonObject:
    description = column.description or f"Custom resource definition column (in JSONPath format): {column.path}"
    return {
        "name": column.name,
        "type": column.type,
        "format": column.format,
        "description": description,
        "priority": column.priority,
    }


def partial(obj: JsonObject, version: str) -> JsonObject:
    """The object's metadata alone."""
    return {
        "kind": "PartialObjectMetadata",
        "apiVersion": f"meta.k8s.io/{version}",
        "metadata": as_object(obj.get("metadata")),
    }


def _cell(column: Column, obj: JsonObject, now: float) -> Json:
    found = find(column.path, obj)
    if not found:
        return None
    value = found[0]
    match column.type:
        case "integer":
            return int(value) if isinstance(value, int | float) else None
        case "number":
            return float(value) if isinstance(value, int | float) else None
        case "boolean":
            return value if isinstance(value, bool) else None
        case "date":
            return age(as_text(value), now) if isinstance(value, str) else None
        case _:
            return " ".join(_printed(each) for each in found)


def _printed(value: Json) -> str:
    if isinstance(value, str):
        return value
    return encode(value).decode() if value is not None else "<nil>"
