"""The scheduler extender's protocol (facts/controllers 6.3): which volume groups have room, and holding the room.

Two questions, as frozen values: `FilterAndScore` asks which places can take a volume of a size and reserves the size in all of
them for a moment; `NarrowReservation` keeps one of them for a minute. On the wire they are JSON over HTTP POST with durations
in Go's text form (`2s`, `1m0s`), compatible with the extender of the node configurator in both directions.

`newReservationID` is ours: a reservation that was made before the place was known is renamed to the logical volume that will
use it, so that it ends when that volume appears. A server that does not know the field ignores it.
"""

from __future__ import annotations

import re

import msgspec

from quorate.api.value import Value, always

FILTER_AND_SCORE_PATH = "/v1/lvg/filter-and-score"
NARROW_RESERVATION_PATH = "/v1/lvg/narrow-reservation"

SCORING_TTL = 2.0
"""Seconds that all scored places stay reserved while the scheduler chooses."""
NARROWED_TTL = 60.0
"""Seconds that the chosen place stays reserved until its logical volume appears."""


class VolumeGroupRef(Value):
    """A volume group, or a thin pool of it."""

    name: str
    """Name of the LVMVolumeGroup."""
    thin_pool_name: str = ""
    """Thin pool; empty for a thick volume."""


class VolumeGroupScore(Value):
    """A place that has room."""

    name: str
    """Name of the LVMVolumeGroup."""
    score: int
    """The higher, the better: 1 to 10."""
    thin_pool_name: str = ""
    """Thin pool; empty for a thick volume."""


class FilterAndScore(Value):
    """Which of these places can take a volume of this size? The ones that can are reserved under the id."""

    reservation_id: str = msgspec.field(name="reservationID")
    """Who asks; a new question under the same id replaces the old reservation."""
    reservation_ttl: str = msgspec.field(name="reservationTTL")
    """How long the places stay reserved, as a Go duration."""
    size: int
    """Bytes."""
    lvgs: tuple[VolumeGroupRef, ...] = always(())
    """The places in question."""


class Scores(Value):
    """The places that have room."""

    lvgs: tuple[VolumeGroupScore, ...] = always(())
    """The places, scored; places without room are left out."""
    error: str = ""
    """Why there is no answer."""


class NarrowReservation(Value):
    """Keep one place of a reservation."""

    reservation_id: str = msgspec.field(name="reservationID")
    """The reservation."""
    reservation_ttl: str = msgspec.field(name="reservationTTL")
    """How long the place stays reserved."""
    lvg: VolumeGroupRef
    """The place to keep."""
    new_reservation_id: str = msgspec.field(default="", name="newReservationID")
    """Id under which it is kept from now on; empty = the same."""


class Narrowed(Value):
    """The answer to `NarrowReservation`."""

    error: str = ""
    """Why the place is not reserved."""


_GO_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ns|us|µs|ms|s|m|h)")
_GO_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


def parse_go_duration(text: str) -> float:
    """Seconds of a Go duration (`1m0s`, `300ms`); ValueError when it is none or negative."""
    parts = _GO_DURATION.findall(text)
    if not parts or "".join(number + unit for number, unit in parts) != text:
        raise ValueError(f"not a duration: {text!r}")
    return sum(float(number) * _GO_UNITS[unit] for number, unit in parts)


def format_go_duration(seconds: float) -> str:
    """Seconds as Go writes a duration of whole seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours}h{minutes}m{rest}s"
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"
