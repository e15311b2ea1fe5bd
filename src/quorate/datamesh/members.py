"""Member types: what each of them is to the others (facts/datamesh 2.1).

Guarantees: every question about a type is answered by a total function of the type's name; a type that this version does
not know is none of the things asked for, so it never votes, never counts as a copy and never crashes a pass.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Final

from quorate.api.replicated_volume import DatameshMember, MemberType

_VOTERS: Final = (MemberType.DISKFUL, MemberType.LIMINAL_DISKFUL)
_FULL_MESH: Final = (*_VOTERS, MemberType.SHADOW_DISKFUL, MemberType.LIMINAL_SHADOW_DISKFUL)
_STAR: Final = (MemberType.TIE_BREAKER, MemberType.ACCESS)
_LIMINAL: Final = (MemberType.LIMINAL_DISKFUL, MemberType.LIMINAL_SHADOW_DISKFUL)
_DISK: Final = (MemberType.DISKFUL, MemberType.SHADOW_DISKFUL)

_SYMBOLS: Final = {
    MemberType.DISKFUL: "D",
    MemberType.LIMINAL_DISKFUL: "D∅",
    MemberType.SHADOW_DISKFUL: "sD",
    MemberType.LIMINAL_SHADOW_DISKFUL: "sD∅",
    MemberType.TIE_BREAKER: "TB",
    MemberType.ACCESS: "A",
}


def is_voter(member_type: str) -> bool:
    """Counts toward q: D and D∅."""
    return member_type in _VOTERS


def has_disk(member_type: str) -> bool:
    """Runs with its disk attached: D and sD (`HasBackingVolume`)."""
    return member_type in _DISK


def needs_backing_volume(member_type: str) -> bool:
    """Keeps a backing volume provisioned: D, D∅, sD, sD∅."""
    return member_type in _FULL_MESH


def is_full_mesh(member_type: str) -> bool:
    """Connects to every other member and has a bitmap slot there."""
    return member_type in _FULL_MESH


def is_star(member_type: str) -> bool:
    """Connects to the full-mesh members only: TB and A."""
    return member_type in _STAR


def is_liminal(member_type: str) -> bool:
    """Between two types: never a steady state."""
    return member_type in _LIMINAL


def is_visible_to_quorum(member_type: str) -> bool:
    """Counted by its peers, as a voter or in ties: the peers' `allow-remote-read` is on."""
    return member_type in _VOTERS or member_type == MemberType.TIE_BREAKER


def resolved(member_type: str) -> str:
    """The replica type that a member type stands for: D∅ is a Diskful on its way."""
    if member_type == MemberType.LIMINAL_DISKFUL:
        return MemberType.DISKFUL
    if member_type == MemberType.LIMINAL_SHADOW_DISKFUL:
        return MemberType.SHADOW_DISKFUL
    return member_type


def symbol(member_type: str) -> str:
    """The short form used in step names."""
    return _SYMBOLS.get(member_type, member_type)


def member_id(member: DatameshMember) -> int:
    """The id of a member: the number at the end of its name."""
    return id_of(member.name)


@lru_cache(maxsize=8192)
def id_of(name: str) -> int:
    """The id at the end of a replica's name; ValueError when there is none."""
    return int(name[name.rindex("-") + 1 :])
