"""Bodies in Kubernetes' protobuf encoding, for the few kinds that kubectl sends that way.

`kubectl create namespace|configmap|secret|serviceaccount`, `kubectl auth` and deletions by typed clients arrive as
protobuf. The field numbers are those of Kubernetes' `generated.proto` files, which never change them. Answers are always
JSON.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from quorate.local.jsonvalue import Json, JsonObject, as_list, as_object
from quorate.local.ports import timestamp
from quorate.local.status import bad_request, unsupported_media_type

MEDIA_TYPE = "application/vnd.kubernetes.protobuf"
_MAGIC = b"k8s\x00"


@dataclass(frozen=True)
class Field:
    """One field of a message; `type` is a scalar, `time`, `map:<scalar>` or the name of a message."""

    name: str
    type: str = "string"
    repeated: bool = False


def _message(*names: str, **special: Field) -> dict[int, Field]:
    """Fields numbered from one in the given order; a dash skips a number, `special` replaces plain strings."""
    return {number: special.get(name, Field(name)) for number, name in enumerate(names, 1) if name != "-"}


_META = Field("metadata", "ObjectMeta")

_MESSAGES: Mapping[str, Mapping[int, Field]] = {
    "ObjectMeta": _message(
        "name",
        "generateName",
        "namespace",
        "selfLink",
        "uid",
        "resourceVersion",
        "generation",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "labels",
        "annotations",
        "ownerReferences",
        "finalizers",
        generation=Field("generation", "int"),
        creationTimestamp=Field("creationTimestamp", "time"),
        deletionTimestamp=Field("deletionTimestamp", "time"),
        deletionGracePeriodSeconds=Field("deletionGracePeriodSeconds", "int"),
        labels=Field("labels", "map:string"),
        annotations=Field("annotations", "map:string"),
        ownerReferences=Field("ownerReferences", "OwnerReference", repeated=True),
        finalizers=Field("finalizers", repeated=True),
    ),
    "OwnerReference": _message(
        "kind",
        "-",
        "name",
        "uid",
        "apiVersion",
        "controller",
        "blockOwnerDeletion",
        controller=Field("controller", "bool"),
        blockOwnerDeletion=Field("blockOwnerDeletion", "bool"),
    ),
    "Namespace": _message("metadata", "spec", metadata=_META, spec=Field("spec", "NamespaceSpec")),
    "NamespaceSpec": _message("finalizers", finalizers=Field("finalizers", repeated=True)),
    "ConfigMap": _message(
        "metadata",
        "data",
        "binaryData",
        "immutable",
        metadata=_META,
        data=Field("data", "map:string"),
        binaryData=Field("binaryData", "map:bytes"),
        immutable=Field("immutable", "bool"),
    ),
    "Secret": _message(
        "metadata",
        "data",
        "type",
        "stringData",
        "immutable",
        metadata=_META,
        data=Field("data", "map:bytes"),
        stringData=Field("stringData", "map:string"),
        immutable=Field("immutable", "bool"),
    ),
    "ServiceAccount": _message(
        "metadata",
        "-",
        "imagePullSecrets",
        "automountServiceAccountToken",
        metadata=_META,
        imagePullSecrets=Field("imagePullSecrets", "LocalReference", repeated=True),
        automountServiceAccountToken=Field("automountServiceAccountToken", "bool"),
    ),
    "LocalReference": _message("name"),
    "SelfSubjectAccessReview": _message("metadata", "spec", metadata=_META, spec=Field("spec", "AccessReviewSpec")),
    "AccessReviewSpec": _message(
        "resourceAttributes",
        "nonResourceAttributes",
        resourceAttributes=Field("resourceAttributes", "ResourceAttributes"),
        nonResourceAttributes=Field("nonResourceAttributes", "NonResourceAttributes"),
    ),
    "ResourceAttributes": _message("namespace", "verb", "group", "version", "resource", "subresource", "name"),
    "NonResourceAttributes": _message("path", "verb"),
    "SelfSubjectRulesReview": _message("metadata", "spec", metadata=_META, spec=Field("spec", "RulesReviewSpec")),
    "RulesReviewSpec": _message("namespace"),
    "SelfSubjectReview": _message("metadata", metadata=_META),
    "DeleteOptions": _message(
        "gracePeriodSeconds",
        "preconditions",
        "orphanDependents",
        "propagationPolicy",
        "dryRun",
        gracePeriodSeconds=Field("gracePeriodSeconds", "int"),
        preconditions=Field("preconditions", "Preconditions"),
        orphanDependents=Field("orphanDependents", "bool"),
        dryRun=Field("dryRun", repeated=True),
    ),
    "Preconditions": _message("uid", "resourceVersion"),
    "Unknown": {1: Field("typeMeta", "TypeMeta"), 2: Field("raw", "bytes")},
    "TypeMeta": _message("apiVersion", "kind"),
}


def _varint(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 63:
            raise ValueError("truncated number")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, position
        shift += 7


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    position = 0
    while position < len(data):
        tag, position = _varint(data, position)
        match tag & 7:
            case 0:
                value, position = _varint(data, position)
                yield tag >> 3, value
                continue
            case 1:
                size = 8
            case 2:
                size, position = _varint(data, position)
            case 5:
                size = 4
            case _:
                raise ValueError("unknown wire type")
        if position + size > len(data):
            raise ValueError("truncated field")
        yield tag >> 3, data[position : position + size]
        position += size


def _decode(data: bytes, message: str) -> JsonObject:
    known = _MESSAGES[message]
    result: JsonObject = {}
    for number, raw in _fields(data):
        field = known.get(number)
        if field is None:
            continue
        if field.type.startswith("map:") and isinstance(raw, bytes):
            entry = dict(_fields(raw))
            value = _scalar(entry.get(2, b""), field.type.removeprefix("map:"))
            key = _scalar(entry.get(1, b""), "string")
            result[field.name] = {**as_object(result.get(field.name)), str(key): value}
            continue
        value = _scalar(raw, field.type)
        if field.repeated:
            result[field.name] = [*as_list(result.get(field.name)), value]
        elif value not in (None, ""):
            # Go writes empty strings out; in JSON they are absent, and defaults apply.
            result[field.name] = value
    return result


def _scalar(raw: int | bytes, kind: str) -> Json:
    match kind, raw:
        case "string", bytes():
            return raw.decode("utf-8")
        case "bytes", bytes():
            return base64.b64encode(raw).decode()
        case "bool", int():
            return bool(raw)
        case "int", int():
            return raw - (1 << 64) if raw >= 1 << 63 else raw
        case "time", bytes():
            seconds = dict(_fields(raw)).get(1)
            return timestamp(seconds) if isinstance(seconds, int) else None
        case _, bytes() if kind in _MESSAGES:
            return _decode(raw, kind)
        case _:
            raise ValueError("field of another type")


def decode_protobuf(body: bytes) -> Json:
    """The JSON form of a body; raises 415 for kinds that are not expected in this encoding and 400 for nonsense."""
    if not body.startswith(_MAGIC):
        raise bad_request("the body is not in Kubernetes' protobuf encoding")
    try:
        envelope = _decode(body[len(_MAGIC) :], "Unknown")
        head = as_object(envelope.get("typeMeta"))
        kind = str(head.get("kind", ""))
        if kind not in _MESSAGES:
            raise unsupported_media_type(f"{kind} is not accepted as {MEDIA_TYPE}; send application/json")
        content = _decode(base64.b64decode(str(envelope.get("raw", ""))), kind)
    except (ValueError, UnicodeDecodeError) as error:
        raise bad_request(f"error decoding protobuf: {error}") from None
    return {"apiVersion": head.get("apiVersion"), "kind": kind, **content}
