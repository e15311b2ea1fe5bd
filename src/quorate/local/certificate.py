"""A self-signed certificate for the loopback interface.

kubectl sends its token over TLS only, so the local server needs a certificate, and nothing else in the project needs
a cryptography library. This module makes one ECDSA P-256 key and one certificate for `127.0.0.1`, `::1` and
`localhost`, in plain Python. It is not constant-time, which does not matter for one signature made in the owner's own
process.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
from dataclasses import dataclass
from datetime import UTC, datetime
from ipaddress import ip_address

_P = 0xFFFFFFFF00000001000000000000000000000000FFFFFFFFFFFFFFFFFFFFFFFF
_N = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
_A = _P - 3
_G = (
    0x6B17D1F2E12C4247F8BCE6E563A440F277037D812DEB33A0F4A13945D898C296,
    0x4FE342E2FE1A7F9B8EE7EB4A7C0F9E162BCE33576B315ECECBB6406837BF51F5,
)
_YEARS = 10

Point = tuple[int, int]


@dataclass(frozen=True)
class Certificate:
    """A certificate and its key, in PEM."""

    certificate: str
    key: str


# The curve


def _add(left: Point | None, right: Point | None) -> Point | None:
    if left is None or right is None:
        return left or right
    if left[0] == right[0]:
        if (left[1] + right[1]) % _P == 0:
            return None
        slope = (3 * left[0] * left[0] + _A) * pow(2 * left[1], -1, _P) % _P
    else:
        slope = (right[1] - left[1]) * pow(right[0] - left[0], -1, _P) % _P
    x = (slope * slope - left[0] - right[0]) % _P
    return x, (slope * (left[0] - x) - left[1]) % _P


def _multiply(scalar: int, point: Point) -> Point:
    result: Point | None = None
    addend: Point | None = point
    while scalar:
        if scalar & 1:
            result = _add(result, addend)
        addend = _add(addend, addend)
        scalar >>= 1
    if result is None:
        raise ValueError("the scalar is a multiple of the group order")
    return result


def _sign(key: int, message: bytes) -> bytes:
    digest = int.from_bytes(hashlib.sha256(message).digest(), "big")
    while True:
        nonce = 1 + secrets.randbelow(_N - 1)
        r = _multiply(nonce, _G)[0] % _N
        s = pow(nonce, -1, _N) * (digest + r * key) % _N
        if r and s:
            return _sequence(_integer(r), _integer(s))


# DER


def _tlv(tag: int, *contents: bytes) -> bytes:
    body = b"".join(contents)
    size = len(body)
    if size < 0x80:
        return bytes((tag, size)) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + body


def _sequence(*contents: bytes) -> bytes:
    return _tlv(0x30, *contents)


def _integer(value: int) -> bytes:
    return _tlv(0x02, value.to_bytes(value.bit_length() // 8 + 1, "big"))


def _oid(text: str) -> bytes:
    first, second, *rest = [int(part) for part in text.split(".")]
    body = bytes((first * 40 + second,))
    for number in rest:
        digits = [number & 0x7F]
        while number := number >> 7:
            digits.append(0x80 | (number & 0x7F))
        body += bytes(reversed(digits))
    return _tlv(0x06, body)


def _bits(value: bytes) -> bytes:
    return _tlv(0x03, b"\0", value)


def _extension(oid: str, value: bytes, *, critical: bool = False) -> bytes:
    flag = _tlv(0x01, b"\xff") if critical else b""
    return _sequence(_oid(oid), flag, _tlv(0x04, value))


def _time(moment: datetime) -> bytes:
    return _tlv(0x18, moment.strftime("%Y%m%d%H%M%SZ").encode())


_EC_KEY = "1.2.840.10045.2.1"
_CURVE = "1.2.840.10045.3.1.7"
_ECDSA_SHA256 = "1.2.840.10045.4.3.2"


def _extensions() -> bytes:
    addresses = [_tlv(0x87, ip_address(address).packed) for address in ("127.0.0.1", "::1")]
    names = _sequence(*addresses, _tlv(0x82, b"localhost"))
    return _tlv(
        0xA3,
        _sequence(
            _extension("2.5.29.19", _sequence(_tlv(0x01, b"\xff")), critical=True),  # basicConstraints: CA
            _extension("2.5.29.15", _tlv(0x03, b"\x02\x84"), critical=True),  # digitalSignature, keyCertSign
            _extension("2.5.29.37", _sequence(_oid("1.3.6.1.5.5.7.3.1"))),  # serverAuth
            _extension("2.5.29.17", names),
        ),
    )


def _pem(label: str, der: bytes) -> str:
    text = base64.b64encode(der).decode()
    lines = [text[start : start + 64] for start in range(0, len(text), 64)]
    return "\n".join([f"-----BEGIN {label}-----", *lines, f"-----END {label}-----", ""])


def make_certificate(now: float) -> Certificate:
    """A fresh key and its certificate, valid from yesterday for ten years."""
    key = 1 + secrets.randbelow(_N - 1)
    x, y = _multiply(key, _G)
    public = b"\x04" + x.to_bytes(32, "big") + y.to_bytes(32, "big")
    name = _sequence(_tlv(0x31, _sequence(_oid("2.5.4.3"), _tlv(0x0C, b"quorate-local"))))
    algorithm = _sequence(_oid(_ECDSA_SHA256))
    begin = datetime.fromtimestamp(now - 86400, tz=UTC)
    validity = _sequence(_time(begin), _time(begin.replace(year=begin.year + _YEARS, day=1)))
    body = _sequence(
        _tlv(0xA0, _integer(2)),
        _integer(secrets.randbits(120) | 1),
        algorithm,
        name,
        validity,
        name,
        _sequence(_sequence(_oid(_EC_KEY), _oid(_CURVE)), _bits(public)),
        _extensions(),
    )
    certificate = _sequence(body, algorithm, _bits(_sign(key, body)))
    private = _sequence(
        _integer(1), _tlv(0x04, key.to_bytes(32, "big")), _tlv(0xA0, _oid(_CURVE)), _tlv(0xA1, _bits(public))
    )
    return Certificate(_pem("CERTIFICATE", certificate), _pem("EC PRIVATE KEY", private))
