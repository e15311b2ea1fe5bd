from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api import times


@pytest.mark.parametrize(
    ("text", "epoch"),
    [
        ("1970-01-01T00:00:00Z", 0.0),
        ("2026-02-14T10:11:12Z", 1771063872.0),
        ("2026-02-14T12:11:12+02:00", 1771063872.0),
        ("2026-02-14T10:11:12.500000Z", 1771063872.5),
        ("2026-02-14T10:11:12.123456789Z", 1771063872.123456789),
    ],
)
def test_rfc_3339_times_are_parsed(text: str, epoch: float) -> None:
    assert times.parse(text) == pytest.approx(epoch, abs=1e-6)


@pytest.mark.parametrize("text", ["", "2026-02-14", "2026-02-14T10:11:12", "yesterday", "2026-13-01T00:00:00Z"])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        times.parse(text)


@given(st.integers(0, 4_000_000_000))
def test_whole_seconds_round_trip(epoch: int) -> None:
    assert times.parse(times.format(epoch)) == epoch
    assert times.format(epoch + 0.999) == times.format(epoch)


def test_leases_have_microseconds() -> None:
    assert times.format_micro(1.25) == "1970-01-01T00:00:01.250000Z"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("10m", 600), ("2s", 2), ("1m0s", 60), ("1h30m", 5400), ("1.5h", 5400), ("250ms", 0.25), ("-5s", -5), ("0", 0)],
)
def test_durations_are_parsed(text: str, seconds: float) -> None:
    assert times.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "-", "5", "5x", "m", "1m x"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="duration"):
        times.parse_duration(text)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(2, "2s"), (60, "1m0s"), (3600, "1h0m0s"), (5400.5, "1h30m0.5s"), (0.5, "500ms"), (0, "0s"), (-2, "-2s")],
)
def test_durations_are_written_like_go_does(seconds: float, text: str) -> None:
    assert times.format_duration(seconds) == text
    assert times.parse_duration(text) == pytest.approx(seconds)
