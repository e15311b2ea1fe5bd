"""The replay over all recordings: everything compared is matched or listed as deliberate, and the list is no larger
than it must be."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.simulator.deliberate_differences import DELIBERATE, Deliberate
from quorate.simulator.replay import Report, replay
from quorate.simulator.replay_compare import Passed, find_passed, in_passing
from quorate.simulator.replay_loops import parse_loop
from quorate.simulator.transcript import Json
from tests.simulator.recordings import FILES, needs_recordings


@needs_recordings
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_everything_compared_is_matched_or_deliberate(path: Path) -> None:
    report = replay(path)
    assert [entry.to_json() for entry in report.mismatches] == []
    assert report.compared == report.matched + report.deliberate


@needs_recordings
@pytest.mark.parametrize("entry", DELIBERATE, ids=lambda entry: f"{entry.scenario}-{entry.first}")
def test_a_deliberate_difference_is_one(entry: Deliberate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without its entry the difference would be reported."""
    others = tuple(other for other in DELIBERATE if other is not entry)
    monkeypatch.setattr("quorate.simulator.replay.DELIBERATE", others)
    path = next(path for path in FILES if path.stem == entry.scenario)
    assert any(entry.covers(entry.scenario, found.step, found.what) for found in replay(path).mismatches)


def test_a_mismatch_is_reported_with_both_sides() -> None:
    report = Report("made up")
    report.note(3, "drbdsetup primary r0", "0 ", "11 refused", equal=False)
    assert report.to_json()["mismatches"] == [
        {"step": 3, "what": "drbdsetup primary r0", "recorded": "0 ", "simulated": "11 refused"}
    ]


def snapshot(link: str, replication: str, disk: str = "UpToDate", *, suspended: bool = False) -> Json:
    peers: Json = [{"replication-state": replication}]
    connection: Json = {
        "connection-state": link,
        "peer_devices": peers,
        "paths": [{"established": link == "Connected"}],
    }
    return [{"name": "r0", "suspended": suspended, "devices": [{"disk-state": disk}], "connections": [connection]}]


def test_a_reading_torn_between_two_states_is_recognised() -> None:
    """S13 #31: the connection was asked for before it stood, its peer device after."""
    history = [Passed(1.0, snapshot("Connecting", "Off")), Passed(1.1, snapshot("Connected", "Established"))]
    torn: Json = snapshot("Connecting", "Established")
    assert isinstance(torn, list)
    torn[0]["connections"][0]["paths"] = [{"established": True}]  # type: ignore[index, call-overload]
    assert find_passed(history, 0, torn) == 0


@pytest.mark.parametrize(
    "history",
    [
        pytest.param([(1.1, "Connected", "Established"), (1.2, "Connecting", "Off")], id="the wrong way round"),
        pytest.param(
            [(1.0, "Connecting", "Off"), (1.1, "Connecting", "Off"), (1.9, "Connected", "Established")],
            id="too far apart",
        ),
    ],
)
def test_what_no_reading_could_have_seen_is_not(history: list[tuple[float, str, str]]) -> None:
    passed = [Passed(moment, snapshot(link, state)) for moment, link, state in history]
    assert find_passed(passed, 0, snapshot("Connecting", "Established")) is None


def test_recorded_states_must_come_in_their_order() -> None:
    history = [Passed(1.0, snapshot("Connecting", "Off")), Passed(5.0, snapshot("Connected", "Established"))]
    assert find_passed(history, 1, snapshot("Connecting", "Off")) is None


@pytest.mark.parametrize(("link", "passing"), [("NetworkFailure", True), ("Connecting", False), ("StandAlone", False)])
def test_a_connection_between_two_tries_has_not_settled(link: str, passing: bool) -> None:
    assert in_passing(snapshot(link, "Off")) is passing


LOOPS = [
    pytest.param(
        "sh -c 'x=0; while [ $x -lt 80 ]; do dd if=/dev/urandom of=/dev/drbd1000 bs=64k count=1 seek=$((x%300)) "
        "oflag=direct || echo fail $x; x=$((x+1)); sleep 0.1; done; echo done $x' >/tmp/bgw 2>&1 & echo started",
        ("/dev/drbd1000", "5"),
        80,
        id="while",
    ),
    pytest.param(
        "(for i in $(seq 1 20); do dd if=/dev/zero of=/dev/drbd7 bs=4k count=1 seek=$i; sleep 1; done) >/dev/null 2>&1 &",
        ("/dev/drbd7", "5"),
        20,
        id="for",
    ),
    pytest.param(
        "for k in $(seq 4 9); do dd if=/dev/zero of=/dev/drbd7 bs=4k count=1 seek=$((k*2+1)) >/dev/null; done &",
        ("/dev/drbd7", "11"),
        6,
        id="arithmetic",
    ),
]


@pytest.mark.parametrize(("line", "words", "rounds"), LOOPS)
def test_a_loop_around_dd_is_recognised_by_its_form(line: str, words: tuple[str, str], rounds: int) -> None:
    loop = parse_loop(line)
    assert loop is not None
    assert len(loop.values) == rounds
    found = loop.words(5)
    assert (found["of"], found["seek"]) == words


@pytest.mark.parametrize(
    "line",
    [
        "for p in $(pidof sleep); do kill $p; done",
        "dd if=/dev/zero of=/dev/drbd0 bs=4k count=1",
        "sleep 1 & echo started",
    ],
)
def test_other_lines_are_no_loops(line: str) -> None:
    assert parse_loop(line) is None
