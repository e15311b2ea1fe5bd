"""Ages as people read them (`5m`, `3h12m`, `2d`), like `k8s.io/apimachinery/pkg/util/duration`."""

from __future__ import annotations

from quorate.local.ports import parse_timestamp

_MINUTE, _HOUR, _DAY = 60, 3600, 86400


def human(seconds: float) -> str:
    """A duration in at most two units, coarser the longer it is."""
    whole = int(seconds)
    if whole < -1:
        return "<invalid>"
    if whole < 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    minutes = whole // _MINUTE
    if minutes < 10:
        return _two(minutes, "m", whole % _MINUTE, "s")
    if minutes < 180:
        return f"{minutes}m"
    hours = whole // _HOUR
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 24 * 8:
        return _two(days, "d", hours % 24, "h")
    if days < 730:
        return f"{days}d"
    years = days // 365
    return _two(years, "y", days % 365, "d") if years < 8 else f"{years}y"


def _two(large: int, large_unit: str, small: int, small_unit: str) -> str:
    return f"{large}{large_unit}{small}{small_unit}" if small else f"{large}{large_unit}"


def age(moment: str, now: float) -> str:
    """How long ago an RFC 3339 time is."""
    epoch = parse_timestamp(moment)
    return human(now - epoch) if epoch is not None else "<unknown>"
