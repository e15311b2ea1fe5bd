"""What the API server takes from outside: the wall clock and generated names.

Both are injected, so a simulation of a whole cluster gives the same uids and timestamps for the same seed.
"""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from random import Random
from typing import Protocol
from uuid import UUID, uuid4

_SUFFIX_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
"""Kubernetes' alphabet for generated names: no vowels, no look-alikes."""


class WallClock(Protocol):
    """Epoch seconds; `quorate.machinery.clock.Clock` fits."""

    def now(self) -> float: ...


class Ids(Protocol):
    """A source of unique identifiers."""

    def uid(self) -> str:
        """A UUID for a new object."""
        ...

    def suffix(self) -> str:
        """Five characters that complete a `generateName`."""
        ...


class SystemIds:
    """Identifiers nobody can guess."""

    def uid(self) -> str:
        return str(uuid4())

    def suffix(self) -> str:
        return "".join(secrets.choice(_SUFFIX_ALPHABET) for _ in range(5))


class SeededIds:
    """The same identifiers for the same seed."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)

    def uid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128), version=4))

    def suffix(self) -> str:
        return "".join(self._random.choice(_SUFFIX_ALPHABET) for _ in range(5))


def timestamp(epoch: float) -> str:
    """RFC 3339 in whole seconds, as `metadata.creationTimestamp` has it."""
    return datetime.fromtimestamp(int(epoch), tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def parse_timestamp(text: str) -> float | None:
    """Epoch seconds of an RFC 3339 time, `None` when it is none."""
    try:
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
    except ValueError:
        return None
    return moment.timestamp() if moment.tzinfo is not None else moment.replace(tzinfo=UTC).timestamp()
