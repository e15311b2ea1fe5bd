"""JSON values as they travel on the wire, and the few helpers to read and compare them.

The embedded API server works on wire objects, so dicts are its native material. Two rules keep that safe:
a stored object is never changed in place (every change builds new containers along its path), and reading
never raises on an unexpected shape (`as_object` of a string is an empty object).
"""

from __future__ import annotations

from typing import TypeAlias, cast

import msgspec

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"
JsonObject: TypeAlias = "dict[str, Json]"

_DECODER = msgspec.json.Decoder()
_ENCODER = msgspec.json.Encoder()


def decode(data: bytes | str) -> Json:
    """Parse JSON; raises `ValueError` when it is malformed."""
    return cast("Json", _DECODER.decode(data))


def encode(value: Json) -> bytes:
    """Compact JSON."""
    return _ENCODER.encode(value)


def as_object(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def as_list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def as_text(value: Json) -> str:
    return value if isinstance(value, str) else ""


def as_int(value: Json, default: int = 0) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def texts(value: Json) -> list[str]:
    """The strings of a list of strings."""
    return [item for item in as_list(value) if isinstance(item, str)]


def objects(value: Json) -> list[JsonObject]:
    """The objects of a list of objects."""
    return [item for item in as_list(value) if isinstance(item, dict)]


def dig(value: Json, *path: str) -> Json:
    """The value below a path of keys, `None` when any part is missing."""
    for key in path:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value


def with_key(obj: JsonObject, key: str, value: Json) -> JsonObject:
    """A copy of `obj` with one key set; `None` removes the key."""
    changed = dict(obj)
    if value is None:
        changed.pop(key, None)
    else:
        changed[key] = value
    return changed


def with_metadata(obj: JsonObject, **changes: Json) -> JsonObject:
    """A copy of `obj` with fields of its metadata set; `None` removes a field."""
    metadata = dict(as_object(obj.get("metadata")))
    for key, value in changes.items():
        if value is None:
            metadata.pop(key, None)
        else:
            metadata[key] = value
    return with_key(obj, "metadata", metadata)


def same(left: Json, right: Json) -> bool:
    """JSON equality: unlike Python's, `true` is not `1`."""
    if left is right:
        return True
    if left != right:
        return False
    return _same_types(left, right)


def _same_types(left: Json, right: Json) -> bool:
    if left is right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return all(_same_types(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return all(_same_types(a, b) for a, b in zip(left, right, strict=True))
    return isinstance(left, bool) == isinstance(right, bool)
