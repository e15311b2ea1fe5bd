"""Every way to change one field of an object: for the property "what changes a decision passes the predicate"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

import msgspec

from quorate.api import wire
from quorate.api.meta import Object
from quorate.api.quantity import Quantity
from quorate.api.value import FrozenMap, SharedSecret, Value, replace

IDENTITY = ("name", "namespace", "generate_name", "resource_version", "creation_timestamp")
"""Fields of the metadata that name the object or its version: they are no content."""
SOMETHING_ELSE = "2027-01-15T07:30:00Z"
"""A text that is also a time."""


def mutations(obj: Object) -> Iterator[tuple[str, Object]]:
    """Path and object for every single change of a field that can stand on the wire."""
    for path, changed in _changed(obj, ""):
        found = _as_decoded(cast("Object", changed))
        if found is not None and found != obj:
            yield path, found


def _as_decoded(obj: Object) -> Object | None:
    """The object as a reader gets it; None when the change makes it undecodable."""
    try:
        return wire.decode(type(obj), wire.encode(obj))
    except (msgspec.MsgspecError, TypeError, ValueError):
        return None


def _changed(value: object, path: str) -> Iterator[tuple[str, object]]:
    match value:
        case Value():
            yield from _changed_struct(value, path)
        case FrozenMap():
            yield f"{path}{{}}", value.with_entry("mutation.example.com/key", "value")
            for key in value:
                yield f"{path}{{{key}}}", value.without(key)
                yield f"{path}{{{key}}}", value.with_entry(key, SOMETHING_ELSE)
        case tuple():
            yield from _changed_tuple(cast("tuple[object, ...]", value), path)
        case bool():
            yield path, not value
        case int():
            yield path, value + 1
            yield path, max(value - 1, 0)
        case str():
            yield path, SOMETHING_ELSE if value != SOMETHING_ELSE else ""
            if value:
                yield path, ""
        case Quantity():
            yield path, Quantity.of(value.value + 4096)
        case SharedSecret():
            yield path, SharedSecret("another")
        case None:
            yield from ((path, other) for other in (True, 7, SOMETHING_ELSE, Quantity.of(4096)))
        case _:
            raise TypeError(f"cannot mutate {type(value).__name__} at {path}")


def _changed_struct(value: Value, path: str) -> Iterator[tuple[str, object]]:
    for field in msgspec.structs.fields(value):
        if path.endswith("metadata") and field.name in IDENTITY:
            continue
        inner: object = getattr(value, field.name)
        for where, changed in _changed(inner, f"{path}.{field.name}" if path else field.name):
            yield where, replace(value, **{field.name: changed})
        if inner is not None:
            yield f"{path}.{field.name}=None", replace(value, **{field.name: None})


def _changed_tuple(value: tuple[object, ...], path: str) -> Iterator[tuple[str, object]]:
    if value:
        yield f"{path}[]", ()
    for position, item in enumerate(value):
        yield f"{path}[-{position}]", value[:position] + value[position + 1 :]
        for where, changed in _changed(item, f"{path}[{position}]"):
            yield where, (*value[:position], changed, *value[position + 1 :])
    if not value or isinstance(value[0], str):
        # A list of texts may grow; an empty list of values is filled by the worlds that have some.
        yield f"{path}[+]", (*value, SOMETHING_ELSE)
