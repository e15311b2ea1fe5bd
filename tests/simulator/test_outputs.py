"""What the tools print for people, word by word as recorded; and the commands that no recording uses."""

from __future__ import annotations

import re

import pytest

from quorate.simulator.deliberate_differences import UNCOMPARED
from quorate.simulator.replay import Replay
from quorate.simulator.replay_shell import Skipped
from quorate.simulator.setup_arguments import COMMANDS
from quorate.simulator.setup_tool import HANDLERS
from quorate.simulator.states import Disk, Link, Replication
from quorate.simulator.transcript import Command, read_transcript
from tests.simulator.lab import Lab
from tests.simulator.recordings import FILES, needs_recordings

READING = re.compile(r"drbdsetup (status|show|role|cstate|dstate|events2)\b[^;|]*\Z")
COUNTERS = {*UNCOMPARED, "done", "dbdt1", "eta", "out-of-sync"}
STAMP = re.compile(r"\d{4}-\d\d-\d\dT[\d:.]+[+-]\d\d:\d\d")


def words(text: str) -> list[str]:
    """A text without layout and without what measures work or time."""
    found = [word for word in text.split() if word.partition(":")[0] not in COUNTERS]
    return ["(time)" if STAMP.fullmatch(word) else word for word in found]


class Listener(Replay):
    """Compares what a reading command prints."""

    def __init__(self, path: str) -> None:
        super().__init__(read_transcript(next(each for each in FILES if each.stem == path)))
        self.heard: list[tuple[str, list[str], list[str]]] = []

    def _command(self, step: Command) -> None:
        super()._command(step)
        if READING.match(step.line) and "--json" not in step.line and step.exit_code == 0:
            outcome = self.shell.run(step.node, step.line)
            assert outcome is not None
            assert not isinstance(outcome, Skipped)
            self.heard.append((f"{step.index} {step.line}", words(step.stdout), words(outcome.stdout)))


@needs_recordings
@pytest.mark.parametrize("scenario", ["S1", "S2", "S3", "S7", "S9c", "S15", "S18", "S19", "X3"])
def test_texts_for_people_are_as_recorded(scenario: str) -> None:
    listener = Listener(scenario)
    listener.run()
    assert listener.heard
    for line, recorded, simulated in listener.heard:
        assert (line, simulated) == (line, recorded)


def test_every_command_of_the_grammar_is_answered() -> None:
    assert set(COMMANDS) == set(HANDLERS)


def test_nothing_configured_is_said_so() -> None:
    lab = Lab()
    assert lab.run(3, "drbdsetup status").stdout == "# No currently configured DRBD found.\n"


# --- commands that no recording uses ------------------------------------------------------------------------------


def test_verify_marks_what_differs_and_copies_nothing() -> None:
    lab = Lab(ties=())
    for index in (0, 1):
        lab.must(index, f"drbdsetup net-options r0 {1 - index} --verify-alg=crc32c")
    disk = lab.cluster.node("n1").lvm.disk("/dev/vg/r0")
    disk.write(7, 99)
    lab.must(0, "drbdsetup verify r0 1 0")
    assert lab.connection(0, 1).peer_volumes[0].replication is Replication.VERIFY_S
    assert lab.connection(1, 0).peer_volumes[0].replication is Replication.VERIFY_T
    assert lab.run(0, "drbdsetup verify r0 1 0").exit_code == 11  # (-8): one runs already
    lab.wait(30)
    for index in (0, 1):
        peer = lab.connection(index, 1 - index).peer_volumes[0]
        assert peer.replication is Replication.ESTABLISHED
        assert peer.out_of_sync is not None
        assert list(peer.out_of_sync) == [(7, 8)]
    assert (lab.disk(1), disk.read(7)) == (Disk.UP_TO_DATE, 99)
    lab.must(1, "drbdsetup invalidate 1000 --reset-bitmap=no")
    lab.wait(10)
    assert (lab.disk(1), disk.read(7)) == (Disk.UP_TO_DATE, 0)


@pytest.mark.parametrize(
    ("prepare", "line", "exit_code", "text"),
    [
        ("", "drbdsetup verify r0 1 0", 11, "(-14)"),
        ("drbdsetup disconnect r0 1", "drbdsetup verify r0 1 0", 11, "(-15)"),
        ("drbdsetup detach 1000", "drbdsetup verify r0 1 0", 10, "(138)"),
        ("", "drbdsetup outdate 1000", 11, "(-6) Refusing to be Outdated while Connected"),
        ("drbdsetup detach 1000", "drbdsetup outdate 1000", 5, "(-16)"),
        ("drbdsetup disconnect r0 1", "drbdsetup outdate 1000", 0, ""),
        ("", "drbdsetup wait-connect-resource r0", 0, ""),
        ("", "drbdsetup wait-sync-connection r0 1", 0, ""),
        ("drbdsetup disconnect r0 1", "drbdsetup wait-connect-connection r0 1 --wfc-timeout=3", 5, ""),
        ("", "drbdsetup wait-connect-volume r0 1 0 --no-such-option", 20, "unrecognized option"),
        ("", "drbdsetup status --color=always r0", 0, ""),
    ],
)
def test_answers_of_commands_without_a_recording(prepare: str, line: str, exit_code: int, text: str) -> None:
    lab = Lab(ties=())
    if prepare:
        lab.must(0, prepare)
    result = lab.run(0, line)
    assert (result.exit_code, text in result.stderr) == (exit_code, True)


def test_waiting_lets_time_pass() -> None:
    lab = Lab(ties=())
    lab.must(0, "drbdsetup disconnect r0 1")
    lab.must(0, "drbdsetup connect r0 1")
    before = lab.time.time()
    lab.must(0, "drbdsetup wait-connect-resource r0 --wfc-timeout=30")
    assert lab.link(0, 1) is Link.CONNECTED
    assert 0 < lab.time.time() - before < 30
