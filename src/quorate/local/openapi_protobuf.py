"""OpenAPI v2 in the protobuf form that kubectl asks for when it validates a `kind: List`.

kubectl reads per-kind schemas from OpenAPI v3; of the v2 document it needs only that it exists. So the protobuf form says
what is served (title, version) and leaves paths empty; the JSON form of the same document is complete.
"""

from __future__ import annotations

MEDIA_TYPE = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"
ASKED_FOR = ("application/com.github.proto-openapi.spec.v2@v1.0+protobuf", MEDIA_TYPE)
"""What clients send: the older spelling is no valid media type, so it is never answered with."""

# Field numbers of openapi.v2.Document and openapi.v2.Info, all length-delimited.
_SWAGGER, _INFO, _PATHS = 1, 2, 8
_TITLE, _VERSION = 1, 2


def encode_document(title: str, version: str) -> bytes:
    """The document as bytes."""
    info = _field(_TITLE, title.encode()) + _field(_VERSION, version.encode())
    return _field(_SWAGGER, b"2.0") + _field(_INFO, info) + _field(_PATHS, b"")


def _field(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
