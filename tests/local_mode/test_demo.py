"""The guided tour: for machines, without a terminal, in a terminal of 80 columns; and it notices what is wrong."""

from __future__ import annotations

import json
import os
import pty
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import cast

from quorate.demo.acts import ACTS, HERO, Act, Check, Checks
from quorate.demo.picture import Picture, lines
from quorate.demo.screens import PlainScreen, SilentScreen
from quorate.demo.stage import Stage
from quorate.demo.tour import play_tour
from quorate.local.jsonvalue import JsonObject, as_object, objects
from tests.local.processes import COMMAND


class WatchingScreen(PlainScreen):
    """Lines of text, and every picture."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.pictures: list[Picture] = []
        super().__init__(self.said.append)

    def show(self, picture: Picture) -> None:
        self.pictures.append(picture)
        super().show(picture)


def test_every_act_is_told_shown_and_checked() -> None:
    screen = WatchingScreen()
    record = play_tour(screen, seed=3, pace=0.0)
    assert record.ok, [check for act in record.acts for check in act.checks if not check.ok]
    assert [act.name for act in record.acts] == [act.name for act in ACTS]
    assert all(len(line) <= 80 for line in screen.said)
    assert all(line in "\n".join(screen.said) for act in ACTS for line in (act.title, *act.lines))
    drawn = ["".join(text for text, _ in pieces) for picture in screen.pictures for pieces in lines(picture)]
    assert max(len(line) for line in drawn) <= 80
    cells = {cell.text for picture in screen.pictures for volume in picture.volumes for cell in volume.cells.values()}
    assert {"copy", "copy*", "tie-break", "lost", "joining"} <= cells
    assert any("%" in text for text in cells), "a running copy shows its progress"


async def _damage(stage: Stage, checks: Checks) -> None:
    """Somebody writes below DRBD, on one copy."""
    node, volume = next(iter((await stage.disks_of(HERO)).items()))
    assert volume.backing is not None
    volume.backing.device.write(0, 0)
    checks.that("damaged", True, f"one block on {node}")


def test_a_lost_write_fails_the_tour() -> None:
    damage = Act("damage", "A disk lies", ("One copy forgets", "one block."), _damage, 1.0)
    by_name = {act.name: act for act in ACTS}
    acts = (by_name["classes"], by_name["volumes"], by_name["attach"], damage, by_name["data"])
    record = play_tour(SilentScreen(), seed=1, pace=0.0, acts=acts)
    assert not record.ok
    wrong = [(act.name, check.name) for act in record.acts for check in act.checks if not check.ok]
    assert ("data", "data") in wrong


def test_something_that_never_happens_ends_the_tour() -> None:
    async def wait(stage: Stage, checks: Checks) -> None:
        del checks

        async def never() -> bool:
            return False

        await stage.until(never, 5, "the moon is full")

    record = play_tour(SilentScreen(), seed=1, pace=0.0, acts=(replace(ACTS[0], play=wait), ACTS[1]))
    assert not record.ok
    assert [act.checks for act in record.acts] == [(Check("reached", False, "not within 5 s: the moon is full"),)]


def test_json_without_a_terminal(tmp_path: Path) -> None:
    done = subprocess.run(
        [*COMMAND, "demo", "--json", "--seed", "5"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        timeout=300,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    record = cast("JsonObject", json.loads(done.stdout))
    assert record["ok"] is True
    acts = list(objects(record["acts"]))
    assert len(acts) == len(ACTS)
    for act in acts:
        assert set(act) >= {"name", "seconds", "checks", "ok"}
        assert all(as_object(check)["ok"] is True for check in objects(act["checks"]))
    assert not list(tmp_path.iterdir()), "the tour leaves nothing behind"


def test_a_live_picture_in_a_terminal(tmp_path: Path) -> None:
    leader, follower = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "80", "LINES": "30"}
    process = subprocess.Popen(
        [*COMMAND, "demo", "--pace", "0"], stdout=follower, stdin=follower, cwd=tmp_path, env=environment
    )
    os.close(follower)
    shown = bytearray()
    try:
        while piece := _read(leader):
            shown += piece
    finally:
        os.close(leader)
    assert process.wait(timeout=60) == 0
    assert b"\x1b[" in shown, "the picture is redrawn in place"
    assert b"checks held" in shown


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 65536)
    except OSError:
        return b""
