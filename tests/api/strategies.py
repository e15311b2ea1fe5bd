"""Hypothesis strategies for API values, derived from their types."""

from __future__ import annotations

from types import NoneType, UnionType
from typing import Annotated, Literal, Union, cast, get_args, get_origin

import msgspec
from hypothesis import strategies as st

from quorate.api.meta import Object, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.schema import Json
from quorate.api.secret import SecretData
from quorate.api.value import FrozenMap, SharedSecret, Value

_TEXT = st.sampled_from(["", "a", "b", "node-1", "Diskful"])
_MAP = st.dictionaries(st.sampled_from(["k1", "k2", "k3"]), st.sampled_from(["", "x", "y"]), max_size=3)
_CACHE: dict[type[Value], st.SearchStrategy[Value]] = {}


def values(kind: type[Value]) -> st.SearchStrategy[Value]:
    """Values of a struct type; metadata that the server owns is fixed."""
    found = _CACHE.get(kind)
    if found is None:
        fields = {info.name: _of(info.type) for info in msgspec.structs.fields(kind)}
        if kind is ObjectMeta:
            fields = {name: fields[name] for name in ("labels", "annotations", "finalizers", "owner_references")}
            fields["name"] = st.just("object")
        found = st.builds(kind, **fields)
        if issubclass(kind, Object) and "status" in fields:
            # The default status instance means "no status yet".
            del fields["status"]
            found = st.one_of(found, st.builds(kind, **fields))
        _CACHE[kind] = found
    return found


def objects(kind: type[Object]) -> st.SearchStrategy[Object]:
    """Objects of a kind."""
    return cast("st.SearchStrategy[Object]", values(kind))


def _of(annotation: object) -> st.SearchStrategy[object]:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _of(arguments[0])
    if origin in (Union, UnionType):
        return st.one_of([st.none() if part is NoneType else _of(part) for part in arguments])
    if origin is Literal:
        return st.sampled_from(arguments)
    if origin is tuple:
        return st.lists(_of(arguments[0]), max_size=2).map(tuple)
    if annotation is str:
        return _TEXT
    if annotation is bool:
        return st.booleans()
    if annotation is int:
        return st.integers(0, 5)
    if annotation is Quantity:
        return st.sampled_from(["0", "4Ki", "10Gi", "512M", "7"]).map(Quantity.parse)
    if annotation is SharedSecret:
        return st.sampled_from(["s1", "s2"]).map(SharedSecret)
    if annotation is FrozenMap:
        return _MAP.map(FrozenMap)
    if annotation is SecretData:
        return _MAP.map(SecretData)
    if isinstance(annotation, type) and issubclass(annotation, Value):
        return values(annotation)
    raise TypeError(f"no strategy for {annotation!r}")


def apply_merge_patch(target: Json, patch: Json) -> Json:
    """RFC 7386."""
    if not isinstance(patch, dict):
        return patch
    result: dict[str, Json] = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = apply_merge_patch(result.get(key), value)
    return result
