"""Building blocks of the hand-kept schemas of built-in kinds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from quorate.local.jsonvalue import Json, JsonObject


def _described(schema: JsonObject, description: str) -> JsonObject:
    return {"description": description, **schema} if description else schema


def text(description: str = "", *, enum: Sequence[str] = (), default: str = "", **more: Json) -> JsonObject:
    schema: JsonObject = {"type": "string", **more}
    if enum:
        schema["enum"] = list[Json](enum)
    if default:
        schema["default"] = default
    return _described(schema, description)


def integer(description: str = "", **more: Json) -> JsonObject:
    return _described({"type": "integer", "format": "int64", **more}, description)


def boolean(description: str = "") -> JsonObject:
    return _described({"type": "boolean"}, description)


def time(description: str = "") -> JsonObject:
    return _described({"type": "string", "format": "date-time", "nullable": True}, description)


def obj(
    properties: Mapping[str, JsonObject] | None = None,
    description: str = "",
    *,
    required: Sequence[str] = (),
    more: bool = False,
) -> JsonObject:
    """An object; `more` keeps fields that are not listed."""
    schema: JsonObject = {"type": "object"}
    if properties:
        schema["properties"] = dict[str, Json](properties)
    if required:
        schema["required"] = list[Json](required)
    if more:
        schema["x-kubernetes-preserve-unknown-fields"] = True
    return _described(schema, description)


def free(description: str = "") -> JsonObject:
    """Any object."""
    return obj(None, description, more=True)


def array(items: JsonObject, description: str = "", **more: Json) -> JsonObject:
    return _described({"type": "array", "items": items, **more}, description)


def keyed(items: JsonObject, key: str, description: str = "") -> JsonObject:
    """A list whose items are merged by a key in strategic patches and are unique by it."""
    more: JsonObject = {
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": [key],
        "x-kubernetes-patch-merge-key": key,
        "x-kubernetes-patch-strategy": "merge",
    }
    return array(items, description, **more)


def mapping(values: JsonObject, description: str = "") -> JsonObject:
    return _described({"type": "object", "additionalProperties": values}, description)


def quantity() -> JsonObject:
    return {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
        "pattern": r"^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$",
    }


def condition(**more: JsonObject) -> JsonObject:
    properties = {
        "type": text("What the condition is about."),
        "status": text("True, False or Unknown."),
        "reason": text("A word for programs."),
        "message": text("A sentence for people."),
        "lastTransitionTime": time("When the status changed last."),
        **more,
    }
    return obj(properties, required=("type", "status"), more=True)


def reference(description: str = "") -> JsonObject:
    """`core/v1 ObjectReference`."""
    names = ("apiVersion", "kind", "name", "namespace", "uid", "resourceVersion", "fieldPath")
    return obj({name: text() for name in names}, description)


METADATA: JsonObject = {
    "type": "object",
    "description": "Standard object's metadata.",
    "properties": {
        "name": text("Unique name."),
        "generateName": text("Prefix of a name the server completes."),
        "namespace": text("The namespace of the object."),
        "uid": text("Unique in time and space."),
        "resourceVersion": text("Changes with every write."),
        "generation": integer("Counts changes of the wanted state."),
        "creationTimestamp": time("When the object was created."),
        "deletionTimestamp": time("When the object's deletion was requested."),
        "deletionGracePeriodSeconds": integer("Seconds until the object is removed."),
        "labels": mapping(text(), "Keys and values for selection."),
        "annotations": mapping(text(), "Keys and values for everything else."),
        "finalizers": array(
            text(),
            "What must happen before the object is removed.",
            **{"x-kubernetes-list-type": "set", "x-kubernetes-patch-strategy": "merge"},
        ),
        "ownerReferences": keyed(
            obj(
                {
                    "apiVersion": text(),
                    "kind": text(),
                    "name": text(),
                    "uid": text(),
                    "controller": boolean(),
                    "blockOwnerDeletion": boolean(),
                },
                required=("apiVersion", "kind", "name", "uid"),
            ),
            "uid",
            "Objects this object depends on.",
        ),
    },
}


def root(description: str, properties: Mapping[str, JsonObject], *, required: Sequence[str] = ()) -> JsonObject:
    """The schema of a whole object."""
    head: dict[str, JsonObject] = {
        "apiVersion": text("The versioned schema of this representation of an object."),
        "kind": text("The kind of the object."),
        "metadata": METADATA,
    }
    return obj({**head, **properties}, description, required=required)
