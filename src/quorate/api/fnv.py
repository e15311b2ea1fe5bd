"""FNV-1a with 128 bits, as Go's `hash/fnv` New128a: big-endian, 32 hexadecimal digits."""

from __future__ import annotations

_OFFSET = 0x6C62272E07BB014262B821756295C58D
_PRIME = 0x1000000000000000000013B
_MASK = (1 << 128) - 1


def fnv128a(data: bytes) -> str:
    """The hash of `data` as 32 hexadecimal digits."""
    state = _OFFSET
    for byte in data:
        state = ((state ^ byte) * _PRIME) & _MASK
    return f"{state:032x}"
