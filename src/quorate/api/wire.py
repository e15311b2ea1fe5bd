"""Between values and JSON: encoding, tolerant decoding, and the merge-patch difference of two values.

Decoding tolerates what servers send: unknown fields are ignored, `null` means absent, `managedFields` is dropped.
List items are decoded one by one, so that one undecodable object is quarantined and counted, not the whole list.

`merge_patch` compares what two values look like on the wire (see `quorate.api.value`), without building that form:
shared subtrees are skipped by identity, text maps are compared key by key, tuples are atomic lists, removals are
`null`. It never contains metadata that the server owns, nor anything we do not know.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar, cast

import msgspec

from quorate.api.meta import Object, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.resources import resource_of
from quorate.api.schema import Json
from quorate.api.value import FrozenMap, SharedSecret, Value

V = TypeVar("V", bound=Value)
K = TypeVar("K", bound=Object)

_SERVER_OWNED = frozenset(
    {
        "name",
        "generate_name",
        "namespace",
        "uid",
        "resource_version",
        "generation",
        "creation_timestamp",
        "deletion_timestamp",
    }
)


def _enc_hook(value: object) -> object:
    match value:
        case FrozenMap():
            return value.as_dict()
        case Quantity():
            return str(value)
        case SharedSecret():
            return value.reveal()
        case _:
            raise NotImplementedError(f"cannot encode {type(value).__name__}")


def _dec_hook(kind: type[object], value: object) -> object:
    if issubclass(kind, FrozenMap):
        return kind(_text_map(value))
    if kind is Quantity:
        if isinstance(value, str | int | float) and not isinstance(value, bool):
            return Quantity.parse(value if isinstance(value, str | int) else repr(value))
        raise ValueError("a quantity is text or a number")
    if kind is SharedSecret:
        if isinstance(value, str):
            return SharedSecret(value)
        raise ValueError("a secret is text")
    raise NotImplementedError(f"cannot decode {kind.__name__}")


def _text_map(value: object) -> Mapping[str, str]:
    if not isinstance(value, dict):
        raise ValueError("expected an object of texts")
    entries = cast("dict[object, object]", value)
    for key, item in entries.items():
        if not isinstance(key, str) or not isinstance(item, str):
            raise ValueError("expected an object of texts")
    return cast("dict[str, str]", value)


_ENCODER = msgspec.json.Encoder(enc_hook=_enc_hook)
_DECODERS: dict[type[Value], msgspec.json.Decoder[Value]] = {}


def encode(obj: Value) -> bytes:
    """JSON of a value; objects carry their `apiVersion` and `kind`."""
    body = _ENCODER.encode(obj)
    if not isinstance(obj, Object):
        return body
    resource = resource_of(type(obj))
    head = f'{{"apiVersion":"{resource.api_version}","kind":"{resource.kind}",'.encode()
    return head + body[1:]


def to_builtins(obj: Value) -> dict[str, Json]:
    """The same as dictionaries and lists."""
    body = cast("dict[str, Json]", _json(obj))
    if not isinstance(obj, Object):
        return body
    resource = resource_of(type(obj))
    return {"apiVersion": resource.api_version, "kind": resource.kind, **body}


def decode(kind: type[V], data: bytes | msgspec.Raw | str) -> V:
    """The value of a JSON document; msgspec.ValidationError (or DecodeError) when it is none."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        decoder = _DECODERS[kind] = msgspec.json.Decoder(kind, dec_hook=_dec_hook)
    try:
        return cast("V", decoder.decode(data))
    except msgspec.ValidationError:
        # The quick decoder is strict about null; servers mean "absent" by it.
        return from_builtins(kind, cast("Json", msgspec.json.decode(data)))


def from_builtins(kind: type[V], value: Json) -> V:
    """The value of dictionaries and lists; msgspec.ValidationError when it is none."""
    return msgspec.convert(_without_nulls(value), kind, dec_hook=_dec_hook)


def _without_nulls(value: Json) -> Json:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value if item is not None]
    return value


@dataclass(frozen=True)
class Quarantined:
    """An object that could not be decoded; the rest of its list is unaffected."""

    namespace: str
    name: str
    error: str


@dataclass(frozen=True)
class DecodedList(Generic[K]):
    """A list response."""

    items: tuple[K, ...]
    resource_version: str
    continue_: str
    quarantined: tuple[Quarantined, ...]


class _ListMeta(Value):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(Value):
    metadata: _ListMeta = _ListMeta()
    items: tuple[msgspec.Raw, ...] = ()


class _Identity(Value):
    metadata: ObjectMeta = ObjectMeta()


def decode_list(kind: type[K], data: bytes) -> DecodedList[K]:
    """A list response, item by item; undecodable items are quarantined."""
    raw = decode(_List, data)
    items: list[K] = []
    quarantined: list[Quarantined] = []
    for item in raw.items:
        try:
            items.append(decode(kind, item))
        except msgspec.MsgspecError as error:
            quarantined.append(quarantine(item, error))
    return DecodedList(tuple(items), raw.metadata.resource_version, raw.metadata.continue_, tuple(quarantined))


def quarantine(data: bytes | msgspec.Raw, error: Exception) -> Quarantined:
    """What can be said about an undecodable object."""
    try:
        meta = decode(_Identity, data).metadata
    except msgspec.MsgspecError:
        meta = ObjectMeta()
    return Quarantined(meta.namespace, meta.name, str(error))


@dataclass(frozen=True)
class _Field:
    attribute: str
    wire_name: str
    default: object
    """The plain default (omitted on the wire), or NODEFAULT when the field is always emitted."""

    def absent(self, value: object) -> bool:
        """Whether a field with this value is omitted on the wire."""
        if value is self.default:
            return True
        if self.default is msgspec.NODEFAULT or isinstance(value, Value):
            return value is None
        return value == self.default


_FIELDS: dict[type[Value], tuple[_Field, ...]] = {}


def _fields(kind: type[Value]) -> tuple[_Field, ...]:
    fields = _FIELDS.get(kind)
    if fields is None:
        skipped = _SERVER_OWNED if kind is ObjectMeta else frozenset[str]()
        fields = _FIELDS[kind] = tuple(
            _Field(info.name, info.encode_name, info.default)
            for info in msgspec.structs.fields(kind)
            if info.name not in skipped
        )
    return fields


def merge_patch(before: V, after: V) -> dict[str, Json]:
    """The JSON merge patch from one value to another of the same type; empty when nothing changes."""
    patch: dict[str, Json] = {}
    if before is after:
        return patch
    for field in _fields(type(after)):
        old: object = getattr(before, field.attribute)
        new: object = getattr(after, field.attribute)
        if old is new:
            continue
        if isinstance(old, FrozenMap) and isinstance(new, FrozenMap):
            # Never the map as a whole: keys that others add meanwhile are not ours to remove.
            entries = _map_patch(old, new)
            if entries:
                patch[field.wire_name] = entries
        elif field.absent(new):
            if not field.absent(old):
                patch[field.wire_name] = None
        elif field.absent(old):
            encoded = _json(new)
            # An empty struct where a default struct stands says nothing; where None stands it does.
            if encoded != {} or not isinstance(field.default, Value):
                patch[field.wire_name] = encoded
        elif isinstance(old, Value) and isinstance(new, Value) and type(old) is type(new):
            part = merge_patch(old, new)
            if part:
                patch[field.wire_name] = part
        elif old != new:
            patch[field.wire_name] = _json(new)
    return patch


def _map_patch(old: FrozenMap, new: FrozenMap) -> dict[str, Json]:
    changed: dict[str, Json] = {key: value for key, value in new.items() if old.get(key) != value}
    removed: dict[str, Json] = {key: None for key in old if key not in new}
    return changed | removed


def _json(value: object) -> Json:
    """Plain JSON types (msgspec.to_builtins would keep tuples)."""
    return cast("Json", msgspec.json.decode(_ENCODER.encode(value)))
