"""Structural schemas derived from the types: one walk over the fields, their `Schema` metadata and their docstrings.

Nothing about a field is said twice. The type gives `type` and `enum`, the default decides `required`, the metadata
gives limits, server defaults, list types and rules, and the docstring under the field becomes its description.
"""

from __future__ import annotations

import ast
import inspect
import sys
from dataclasses import fields as dataclass_fields
from functools import lru_cache
from itertools import pairwise
from types import NoneType, UnionType
from typing import Annotated, Literal, Union, cast, get_args, get_origin

import msgspec

from quorate.api.quantity import Quantity
from quorate.api.schema import Json, Rule, Schema
from quorate.api.value import FrozenMap, SharedSecret, Value

QUANTITY_PATTERN = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
_NO_SCHEMA = Schema()


def object_schema(kind: type[Value]) -> dict[str, Json]:
    """Schema of a struct."""
    descriptions = field_descriptions(kind)
    properties: dict[str, Json] = {}
    required: list[Json] = []
    for info in msgspec.structs.fields(kind):
        bare, metadata = unwrap(info.type)
        properties[info.encode_name] = _described(type_schema(bare, metadata), descriptions.get(info.name, ""))
        if metadata.required if metadata.required is not None else info.required:
            required.append(info.encode_name)
    schema: dict[str, Json] = {"type": "object", "properties": properties}
    if required:
        schema["required"] = sorted(required, key=str)
    return _with_rules(schema, rules_of(kind))


def type_schema(kind: object, metadata: Schema) -> dict[str, Json]:
    """Schema of a field's bare type with its metadata."""
    return _with_rules(_constrained(_base(kind, metadata), metadata), metadata.rules)


def unwrap(annotation: object) -> tuple[object, Schema]:
    """The bare type of an annotation and its merged metadata; `T | None` counts as `T`."""
    metadata = _NO_SCHEMA
    while True:
        origin = get_origin(annotation)
        if origin is Annotated:
            annotation, *extras = get_args(annotation)
            # Inner annotations come first in the tuple; outer ones win.
            for extra in extras:
                if isinstance(extra, Schema):
                    metadata = _merged(metadata, extra)
        elif origin in (Union, UnionType) and NoneType in get_args(annotation):
            (annotation,) = (argument for argument in get_args(annotation) if argument is not NoneType)
        else:
            return annotation, metadata


def field_descriptions(kind: type[Value]) -> dict[str, str]:
    """The docstrings that stand under the fields of a struct, base classes included."""
    descriptions: dict[str, str] = {}
    for base in reversed(kind.__mro__):
        if issubclass(base, Value) and base is not Value:
            descriptions |= _descriptions_of_module(base.__module__).get(base.__name__, {})
    return descriptions


@lru_cache(maxsize=64)
def _descriptions_of_module(name: str) -> dict[str, dict[str, str]]:
    """Docstrings by class and field; a module is parsed once, because reading single classes is slow."""
    tree = ast.parse(inspect.getsource(sys.modules[name]))
    return {item.name: _descriptions_of_class(item) for item in tree.body if isinstance(item, ast.ClassDef)}


def _descriptions_of_class(definition: ast.ClassDef) -> dict[str, str]:
    return {
        statement.target.id: " ".join(following.value.value.split())
        for statement, following in pairwise(definition.body)
        if isinstance(statement, ast.AnnAssign)
        and isinstance(statement.target, ast.Name)
        and isinstance(following, ast.Expr)
        and isinstance(following.value, ast.Constant)
        and isinstance(following.value.value, str)
    }


def rules_of(kind: type[Value]) -> tuple[Rule, ...]:
    """The CEL rules that a struct states in `RULES`."""
    return cast("tuple[Rule, ...]", getattr(kind, "RULES", ()))


def _base(kind: object, metadata: Schema) -> dict[str, Json]:
    if kind is Quantity or metadata.int_or_string:
        return _int_or_string(metadata)
    if kind is str or kind is SharedSecret:
        return {"type": "string"}
    if kind is bool:
        return {"type": "boolean"}
    if kind is int:
        return {"type": "integer"}
    if get_origin(kind) is Literal:
        # "" stands for "absent" in the Python type.
        return {"type": "string", "enum": [choice for choice in cast("tuple[str, ...]", get_args(kind)) if choice]}
    if get_origin(kind) is tuple:
        bare, item = unwrap(get_args(kind)[0])
        return {"type": "array", "items": type_schema(bare, metadata.item or item)}
    if kind is FrozenMap:
        return {"type": "object", "additionalProperties": type_schema(str, metadata.item or _NO_SCHEMA)}
    if isinstance(kind, type) and issubclass(kind, Value):
        return object_schema(kind)
    raise TypeError(f"no schema for {kind!r}")


def _int_or_string(metadata: Schema) -> dict[str, Json]:
    schema: dict[str, Json] = {
        "anyOf": [{"type": "integer"}, {"type": "string"}],
        "x-kubernetes-int-or-string": True,
    }
    if not metadata.int_or_string:
        schema["pattern"] = QUANTITY_PATTERN
    return schema


def _constrained(schema: dict[str, Json], metadata: Schema) -> dict[str, Json]:
    # An object counts its entries, a list its items.
    entries = "Properties" if schema.get("type") == "object" else "Items"
    stated: dict[str, Json] = {
        "minLength": metadata.min_length,
        "maxLength": metadata.max_length,
        "pattern": metadata.pattern,
        "format": metadata.format,
        "minimum": metadata.minimum,
        "maximum": metadata.maximum,
        f"min{entries}": metadata.min_items,
        f"max{entries}": metadata.max_items,
        "default": metadata.default,
        "x-kubernetes-list-type": metadata.list_type,
    }
    result = schema | {key: value for key, value in stated.items() if value is not None}
    if metadata.enum:
        result["enum"] = list(metadata.enum)
    if metadata.list_keys:
        result["x-kubernetes-list-map-keys"] = list(metadata.list_keys)
    return result


def _merged(inner: Schema, outer: Schema) -> Schema:
    values: dict[str, object] = {}
    for field in dataclass_fields(Schema):
        name = field.name
        stated: object = getattr(outer, name)
        values[name] = getattr(inner, name) if stated == field.default else stated
    values["rules"] = (*inner.rules, *outer.rules)
    return Schema(**values)  # pyright: ignore[reportArgumentType]


def _with_rules(schema: dict[str, Json], rules: tuple[Rule, ...]) -> dict[str, Json]:
    if not rules:
        return schema
    old = cast("list[Json]", schema.get("x-kubernetes-validations", []))
    added: list[Json] = [{"rule": rule.rule, "message": rule.message} for rule in rules]
    result: dict[str, Json] = dict(schema)
    result["x-kubernetes-validations"] = [*old, *added]
    return result


def _described(schema: dict[str, Json], description: str) -> dict[str, Json]:
    result: dict[str, Json] = {"description": description} if description else {}
    result.update(schema)
    return result
