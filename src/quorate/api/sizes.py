"""DRBD size arithmetic: from usable size to the size of the lower volume and back (facts/controllers 5.7).

Internal metadata takes a superblock, an activity log of 32 KiB and one bitmap bit per 4 KiB for each of seven peers.
`usable_size(lower_size(u)) >= u`, with equality for sizes that are multiples of 4 KiB.
"""

from __future__ import annotations

ALIGNMENT = 4096
BITMAP_PEERS = 7
_SECTOR = 512
_SECTORS_PER_BIT = 8
_SUPERBLOCK_SECTORS = 8
_ACTIVITY_LOG_SECTORS = 64
_MAX_ROUNDS = 10


def _align(value: int, alignment: int) -> int:
    return -(-value // alignment) * alignment


def align_4ki(size: int) -> int:
    """`size` bytes rounded up to a multiple of 4 KiB; 0 stays 0."""
    return _align(size, ALIGNMENT)


def metadata_sectors(lower_sectors: int) -> int:
    """Sectors that internal metadata takes on a lower volume of that many sectors."""
    bits = _align(lower_sectors, _SECTORS_PER_BIT) // _SECTORS_PER_BIT
    bitmap_bytes = _align(_align(bits, 64) // 8 * BITMAP_PEERS, ALIGNMENT)
    return bitmap_bytes // _SECTOR + _SUPERBLOCK_SECTORS + _ACTIVITY_LOG_SECTORS


def usable_size(lower: int) -> int:
    """Bytes that DRBD offers on a lower volume of `lower` bytes; 0 when metadata alone does not fit."""
    sectors = lower // _SECTOR
    return max(sectors - metadata_sectors(sectors), 0) * _SECTOR


def lower_size(usable: int) -> int:
    """Bytes that the lower volume needs so that DRBD offers `usable` bytes."""
    wanted = -(-usable // _SECTOR)
    lower = wanted
    for _ in range(_MAX_ROUNDS):
        required = _align(wanted + metadata_sectors(lower), _SECTORS_PER_BIT)
        if required <= lower:
            return required * _SECTOR
        lower = required
    raise ArithmeticError(f"no lower size found for {usable} bytes")
