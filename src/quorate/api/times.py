"""RFC 3339 times (text on the wire, whole seconds) and Go-style durations (`10m`, `1h30m`, `1m0s`)."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIME = re.compile(r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d:\d\d)(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)", re.ASCII)


def parse(text: str) -> float:
    """Epoch seconds of an RFC 3339 time, any offset and precision; ValueError when it is none."""
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(f"not an RFC 3339 time: {text!r}")
    date, time, fraction, offset = match.groups()
    moment = datetime.fromisoformat(f"{date}T{time}{'+00:00' if offset in 'Zz' else offset}")
    return (moment - _EPOCH).total_seconds() + (float(fraction) if fraction else 0.0)


def format(epoch: float) -> str:
    """The time of `epoch` seconds in UTC, whole seconds, as Kubernetes writes timestamps."""
    return (_EPOCH + timedelta(seconds=int(epoch // 1))).strftime("%Y-%m-%dT%H:%M:%SZ")


def format_micro(epoch: float) -> str:
    """The same with microseconds, as Leases want it."""
    return (_EPOCH + timedelta(microseconds=round(epoch * 1e6))).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def parse_duration(text: str) -> float:
    """Seconds of a Go-style duration; ValueError when it is none."""
    sign, rest = (-1.0, text[1:]) if text.startswith("-") else (1.0, text.removeprefix("+"))
    if rest == "0":
        return 0.0
    total, position = 0.0, 0
    while position < len(rest):
        match = _PART.match(rest, position)
        if match is None:
            raise ValueError(f"not a duration: {text!r}")
        total += float(match[1]) * _UNITS[match[2]]
        position = match.end()
    if not rest:
        raise ValueError(f"not a duration: {text!r}")
    return sign * total


def format_duration(seconds: float) -> str:
    """Go's text form of a duration of whole milliseconds: `2s`, `1m0s`, `1h0m0s`, `500ms`."""
    milliseconds = round(abs(seconds) * 1000)
    sign = "-" if seconds < 0 else ""
    if milliseconds == 0:
        return "0s"
    if milliseconds < 1000:
        return f"{sign}{milliseconds}ms"
    minutes, rest = divmod(milliseconds, 60_000)
    hours, minutes = divmod(minutes, 60)
    whole, fraction = divmod(rest, 1000)
    text = f"{whole}.{fraction:03d}".rstrip("0").rstrip(".") + "s"
    if hours:
        return f"{sign}{hours}h{minutes}m{text}"
    return f"{sign}{minutes}m{text}" if minutes else sign + text
