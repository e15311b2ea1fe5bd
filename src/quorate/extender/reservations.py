"""Reservations: capacity promised to volumes that do not exist yet. Plain data, no clock, no I/O.

Guarantees
* every reservation that has not expired counts against every place it names, whoever asks;
* one id has one reservation: a new claim under the same id replaces the old one;
* check and claim happen in one call without a pause in between, so of k claims for the last slot exactly one wins.

Times are epoch seconds handed in by the caller; `advance` drops what expired, and every reader calls it first, so an expired
entry never counts. Sums per place are kept up to date, because one claim may name a thousand places.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple


class Place(NamedTuple):
    """Where a volume can live: a volume group, or a thin pool of it."""

    volume_group: str
    thin_pool: str = ""


@dataclass(frozen=True)
class Reservation:
    """`size` bytes held in every one of `places` until `expires_at`."""

    id: str
    size: int
    places: tuple[Place, ...]
    expires_at: float


class Reservations:
    """All live reservations, and their sum per place."""

    def __init__(self) -> None:
        self._by_id: dict[str, Reservation] = {}
        self._sums: dict[Place, int] = {}
        self._expiries: list[tuple[float, str]] = []

    def __len__(self) -> int:
        return len(self._by_id)

    def get(self, id: str) -> Reservation | None:
        """The reservation under `id`, expired or not."""
        return self._by_id.get(id)

    def all(self) -> tuple[Reservation, ...]:
        """Every reservation, by id."""
        return tuple(self._by_id[id] for id in sorted(self._by_id))

    def advance(self, now: float) -> None:
        """Drop what expired; an entry counts up to and excluding its expiry."""
        while self._expiries and self._expiries[0][0] <= now:
            _, id = heapq.heappop(self._expiries)
            entry = self._by_id.get(id)
            # The id may have been claimed again with a later expiry: its own heap entry follows.
            if entry is not None and entry.expires_at <= now:
                self._drop(entry)

    def reserved(self, place: Place) -> int:
        """Bytes that reservations hold in `place`."""
        return self._sums.get(place, 0)

    def claim(self, id: str, size: int, places: Sequence[Place], expires_at: float) -> None:
        """Hold `size` in every place; without places the id holds nothing any more."""
        self.release(id)
        if places:
            self._add(Reservation(id, size, tuple(places), expires_at))

    def narrow(self, id: str, place: Place, expires_at: float, *, rename: str = "") -> bool:
        """Keep one place of a claim under a new expiry, and if asked under a new id; False when the claim does not hold it."""
        entry = self._by_id.get(id)
        if entry is None or place not in entry.places:
            return False
        self._drop(entry)
        if rename:
            self.release(rename)
        self._add(replace(entry, id=rename or id, places=(place,), expires_at=expires_at))
        return True

    def release(self, id: str) -> None:
        """Forget an id; unknown ids are fine."""
        entry = self._by_id.get(id)
        if entry is not None:
            self._drop(entry)

    def _add(self, entry: Reservation) -> None:
        self._by_id[entry.id] = entry
        heapq.heappush(self._expiries, (entry.expires_at, entry.id))
        for place in entry.places:
            self._sums[place] = self._sums.get(place, 0) + entry.size

    def _drop(self, entry: Reservation) -> None:
        del self._by_id[entry.id]
        for place in entry.places:
            rest = self._sums[place] - entry.size
            if rest:
                self._sums[place] = rest
            else:
                del self._sums[place]
