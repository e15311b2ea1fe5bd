"""Recorded decisions: a whole life of a volume replays to the same decisions; the files stay small and whole."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.api.replicated_volume import ReplicatedVolume
from quorate.cli.main import main
from quorate.cli.replay_decision import replayables
from quorate.local.cluster import LocalCluster
from quorate.local.shape import Shape
from quorate.machinery.clock import SystemClock
from quorate.machinery.effects import Decision
from quorate.machinery.logs import Logger, discard
from quorate.machinery.recorder import Recorder
from quorate.verification.system.system import System, SystemOptions, run_system
from tests.cli.cluster import COMMAND, Local, create_class, local_cluster, plain_environment
from tests.machinery import toy


def record_a_life(directory: Path) -> None:
    """Class, formation, attachment, detachment and deletion on a simulated cluster, recorded."""

    async def life(system: System) -> None:
        record = Recorder(directory, Logger(discard, system.clock), keep=200)
        system.cluster = LocalCluster(system.options.shape, replace(system.cluster.wiring, record=record))
        await system.cluster.start()
        await system.create_class(ftt=1, gmdr=0)
        await system.create_volume()
        await system.formed()
        await system.detach(await system.attach("vol", "node-1"))
        await system.delete(ReplicatedVolume, "vol")
        await system.gone(ReplicatedVolume, "vol")

    run_system(life, SystemOptions(shape=Shape(nodes=3, zones=0), start_cluster=False))


@pytest.fixture(scope="module")
def life(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("life")
    record_a_life(directory)
    return directory


def test_every_decision_of_a_life_replays_to_the_same(life: Path) -> None:
    files = sorted(str(path) for path in life.rglob("*.jsonl"))
    assert {Path(file).parent.name for file in files} == set(replayables())
    result = CliRunner().invoke(main, ["replay-decision", *files])
    assert result.exit_code == 0, result.output
    last = result.output.splitlines()[-1]
    count = int(last.split()[0])
    assert count > 50
    assert last == f"{count} of {count} decisions are the same."
    assert all(b"sharedSecret" not in line or b'"sharedSecret":"***"' in line for line in _all_lines(files))


def _all_lines(files: list[str]) -> list[bytes]:
    return [line for file in files for line in Path(file).read_bytes().splitlines()]


def test_a_decision_that_would_differ_today_is_shown_and_fails(life: Path, tmp_path: Path) -> None:
    recorded = life / "rv-controller" / "vol.jsonl"
    lines = [json.loads(line) for line in recorded.read_text().splitlines()]
    file = tmp_path / "changed.jsonl"
    changed = next(entry for entry in lines if entry["decision"]["effects"])
    changed["decision"]["effects"][0]["cause"] = "something else"
    file.write_text(json.dumps(changed) + "\n")
    result = CliRunner().invoke(main, ["replay-decision", str(file)])
    assert result.exit_code == 1
    assert "DIFFERS" in result.output
    assert "something else" in result.output
    as_json = json.loads(CliRunner().invoke(main, ["replay-decision", str(file), "--json"]).output)
    assert [entry["same"] for entry in as_json] == [False]


@pytest.mark.parametrize("text", ["{}", "not json", '{"controller":"x"}'])
def test_a_file_that_is_no_recording_is_one_sentence(tmp_path: Path, text: str) -> None:
    file = tmp_path / "file"
    file.write_text(text)
    result = CliRunner().invoke(main, ["replay-decision", str(file)])
    assert result.exit_code == 2
    assert f"{file}:1: not a recorded decision" in result.output


def test_only_the_last_decisions_and_objects_are_kept(tmp_path: Path) -> None:
    log = Logger(discard, SystemClock())
    recorder = Recorder(tmp_path, log, keep=3, objects=2)

    def decide(name: str, number: int) -> None:
        recorder("c", name, toy.Snapshot(None, ()), {}, float(number), Decision())

    for number in range(20):
        decide("a", number)
    lines = (tmp_path / "c" / "a.jsonl").read_text().splitlines()
    assert 3 <= len(lines) <= 6
    assert json.loads(lines[-1])["now"] == 19.0
    for name in ("b", "namespace/c"):
        decide(name, 1)
    assert sorted(path.name for path in (tmp_path / "c").iterdir()) == ["b.jsonl", "namespace_c.jsonl"]
    again = Recorder(tmp_path, log, keep=3, objects=2)
    again("c", "d", toy.Snapshot(None, ()), {}, 2.0, Decision())
    assert len(list((tmp_path / "c").iterdir())) == 2


def test_a_directory_that_cannot_be_written_disturbs_nothing(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path / "records", Logger(discard, SystemClock()))
    (tmp_path / "records").rmdir()
    (tmp_path / "records").write_text("a file")
    recorder("c", "a", toy.Snapshot(None, ()), {}, 1.0, Decision())


def test_the_controller_process_works_records_and_stops(tmp_path: Path) -> None:
    with local_cluster(tmp_path, "--nodes", "0") as local:
        create_class(local, "fast", 1, 1)
        local.ok("volume", "create", "data", "--class", "fast", "--size", "64Mi")
        process = start_controller(local, tmp_path / "records")
        try:
            wait_until(lambda: recorded(tmp_path))
        finally:
            process.send_signal(signal.SIGTERM)
            told, _ = process.communicate(timeout=30)
        assert process.returncode == 0, told
        assert "stopped" in told
    result = CliRunner().invoke(main, ["replay-decision", str(tmp_path / "records" / "rv-controller" / "data.jsonl")])
    assert result.exit_code == 0, result.output


def start_controller(local: Local, records: Path) -> subprocess.Popen[str]:
    words = ["controller", "--namespace", "quorate-system", "--extender-url", "in-process", "--no-leader-election"]
    ports = ["--health-address", "127.0.0.1:0", "--metrics-address", "0", "--log-format", "text"]
    return subprocess.Popen(
        [*COMMAND, *words, *ports, "--record", str(records)],
        cwd=local.directory,
        env=plain_environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def recorded(directory: Path) -> bool:
    return (directory / "records" / "rv-controller" / "data.jsonl").exists()


def wait_until(reached: Callable[[], bool]) -> None:
    """A process is waited for: there is no virtual time across processes."""
    deadline = time.monotonic() + 30
    while not reached():
        assert time.monotonic() < deadline, "not reached in 30 s"
        time.sleep(0.1)


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "Missing option '--namespace' (env var: 'POD_NAMESPACE')"),
        (("--namespace", "n"), "Missing option '--extender-url'"),
        (("--namespace", "n", "--extender-url", "ftp://x"), "neither an http(s) URL nor `in-process`"),
        (
            ("--namespace", "n", "--extender-url", "in-process", "--data-node-selector", '{"a":1}'),
            "DATA_NODE_SELECTOR): not a JSON object of labels",
        ),
        (("--namespace", "n", "--extender-url", "in-process", "--kubeconfig", "nowhere"), "no such kubeconfig file"),
    ],
)
def test_wrong_settings_of_the_controller_are_named(words: tuple[str, ...], text: str) -> None:
    result = CliRunner().invoke(main, ["controller", *words], env={"KUBECONFIG": ""})
    assert result.exit_code == 2
    assert text in result.output
