"""Transcripts that were never seen: other names, other shell forms, commands no given recording uses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import pytest

from quorate.simulator.cluster import Cluster
from quorate.simulator.replay import Report, replay
from quorate.simulator.replay_sequences import split_sequence
from quorate.simulator.replay_shell import Shell, Skipped
from quorate.simulator.scheduler import SimulatedTime
from quorate.simulator.transcript import Json

NODES: dict[str, Json] = {
    "left": {"node_id": 0, "net_a": "10.1.0.10"},
    "right": {"node_id": 1, "net_a": "10.1.0.11"},
}


def write(path: Path, *steps: dict[str, Json]) -> Path:
    """A transcript of the format of the recordings."""
    header: dict[str, Json] = {
        "kind": "header",
        "scenario": "made up",
        "title": "",
        "nodes": NODES,
        "steps": len(steps),
    }
    lines = [header, *({"i": i, "t": 1.0 + i, "status": {}, **step} for i, step in enumerate(steps))]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def command(node: str, line: str, exit_code: int | None = 0) -> dict[str, Json]:
    return {"kind": "cmd", "node": node, "cmd": line, "rc": exit_code, "stdout": "", "stderr": "", "duration": 0.1}


def lab(action: str) -> dict[str, Json]:
    return {"kind": "lab", "action": action}


def bring_up(node: str, own: int, other: int, peer: str) -> list[dict[str, Json]]:
    return [
        command(node, "drbdmeta --force 7 v09 /dev/pool/data internal create-md 3"),
        command(node, f"drbdsetup new-resource web {own} --quorum=off; drbdsetup new-minor web 7 0"),
        command(node, f"drbdsetup new-peer web {other} --_name={peer} && echo made"),
        command(node, f"drbdsetup new-path web {other} 10.1.0.1{own}:7100 10.1.0.1{other}:7100 2>&1"),
        command(node, "drbdsetup attach 7 /dev/pool/data /dev/pool/data internal >/dev/null"),
        command(node, f"drbdsetup connect web {other} || true"),
    ]


def compare(path: Path, *steps: dict[str, Json]) -> Report:
    return replay(write(path / "unseen.jsonl", *steps))


def test_other_names_and_shell_forms_are_replayed(tmp_path: Path) -> None:
    report = compare(
        tmp_path,
        *bring_up("left", 0, 1, "right"),
        *bring_up("right", 1, 0, "left"),
        command("left", "timeout 20 drbdsetup wait-connect-resource web"),
        command("left", "drbdsetup new-current-uuid 7 --clear-bitmap"),
        command("left", "drbdsetup primary web"),
        command("left", "dd if=/dev/zero of=/dev/drbd7 bs=4k count=1 seek=3 && drbdsetup secondary web"),
        command("left", "drbdsetup status web | grep -c UpToDate"),
        lab("drop all frames from left to right"),
        lab("restore all frames between left and right"),
        lab("kill right (power loss)"),
        lab("boot right (ok=True)"),
        command("right", "drbdsetup status", 0),
        command("right", "mkfs.ext4 /dev/drbd7", 1),
    )
    assert [entry.to_json() for entry in report.mismatches] == []
    assert report.compared == report.matched == 17
    reasons = [cast("str", entry["reason"]) for entry in report.skipped]
    assert len(reasons) == 2
    assert all("neither DRBD nor LVM nor dd" in reason for reason in reasons)


def test_a_wrong_recording_is_a_mismatch_with_both_sides(tmp_path: Path) -> None:
    report = compare(tmp_path, command("left", "drbdsetup new-minor nobody 7 0", 0))
    (found,) = report.mismatches
    assert (found.recorded, str(found.simulated).startswith("10 ")) == ("0 ", True)


@pytest.fixture
def shell() -> Shell:
    cluster = Cluster(SimulatedTime(0.0), seed=1)
    cluster.add_node("n0", {"net_a": "10.1.0.10"}).lvm.add_group("vg", 1 << 28)
    shell = Shell(cluster)
    for line in (
        "lvcreate -y -n r0 -L 16M vg",
        "drbdmeta --force 1 v09 /dev/vg/r0 internal create-md 1",
        "drbdsetup new-resource r0 0 --auto-promote=no",
        "drbdsetup new-minor r0 1 0",
        "drbdsetup attach 1 /dev/vg/r0 /dev/vg/r0 internal",
        "drbdsetup new-current-uuid 1 --clear-bitmap",
    ):
        outcome = shell.run("n0", line)
        assert not isinstance(outcome, Skipped)
        assert outcome is not None
        assert outcome.exit_code == 0, (line, outcome)
    return shell


@pytest.mark.parametrize(
    ("line", "exit_code"),
    [
        ("drbdsetup role r0; drbdsetup role nobody", 10),
        ("drbdsetup role nobody || drbdsetup role r0", 0),
        ("drbdsetup role nobody && drbdsetup primary r0", 10),
        ("drbdsetup primary r0 >/dev/null 2>&1 && drbdsetup secondary r0", 0),
        ("echo before; timeout 5 drbdsetup role r0", 0),
        ("drbdsetup role r0; false", 1),
        ("drbdsetup primary r0; dd if=/dev/zero of=/dev/drbd1 bs=1M", 1),  # no space left
        ("drbdsetup primary r0; dd if=/dev/drbd1 of=/dev/null bs=64k", 0),
        ("drbdsetup frobnicate", 20),
        ("drbdmeta 1 v09 /dev/vg/r0 internal frobnicate", 20),
        ("drbdmeta 1 v09 /dev/vg/r0 flex-external dump-md", 20),
        ("lvs --nosuch", 3),
        ("lvm frobnicate", 2),
    ],
)
def test_the_exit_code_of_a_line(shell: Shell, line: str, exit_code: int) -> None:
    outcome = shell.run("n0", line)
    assert not isinstance(outcome, Skipped)
    assert outcome is not None
    assert outcome.exit_code == exit_code


@pytest.mark.parametrize(
    "line",
    [
        "ls -l /dev/drbd1",
        "rmmod drbd; modprobe drbd",
        "drbdsetup role r0 | md5sum",
        "cat /proc/drbd && drbdsetup role r0",
        "if true; then drbdsetup role r0; fi",
        "drbdsetup role $(hostname)",
        "(drbdsetup role r0)",
        "dmsetup ls",
        "dd if=/dev/zero of=/tmp/file bs=1M count=1",
    ],
)
def test_what_is_not_ours_is_skipped_with_a_reason(shell: Shell, line: str) -> None:
    outcome = shell.run("n0", line)
    assert isinstance(outcome, Skipped)
    assert outcome.reason


def test_what_is_skipped_has_run_as_far_as_it_is_ours(shell: Shell) -> None:
    assert isinstance(shell.run("n0", "drbdsetup primary r0 | md5sum"), Skipped)
    assert str(shell.cluster.node("n0").kernel.resource("r0").role) == "Primary"


def test_redirections_are_no_arguments() -> None:
    parts = split_sequence("drbdsetup status r0 --json 2>/dev/null >/tmp/out; lvs 2>&1 | grep r0")
    assert parts is not None
    assert [part.argv for part in parts] == [("drbdsetup", "status", "r0", "--json"), ("lvs",), ("grep", "r0")]


def test_offline_metadata_commands(shell: Shell) -> None:
    def run(line: str) -> tuple[int, str]:
        outcome = shell.run("n0", line)
        assert not isinstance(outcome, Skipped)
        assert outcome is not None
        return outcome.exit_code, outcome.stdout

    meta = "drbdmeta --force 1 v09 /dev/vg/r0 internal"
    assert run("drbdsetup down r0")[0] == 0
    code, text = run(f"{meta} get-gi --node-id=1")
    assert (code, text.count(":")) == (0, 8)
    assert run(f"{meta} outdate")[0] == 0
    assert run(f"{meta} invalidate")[0] == 0
    assert run(f"{meta} outdate")[0] == 5
    assert run(f"{meta} forget-peer --node-id=3")[0] == 0
