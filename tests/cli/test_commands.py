"""The commands as a person runs them against a local cluster: in order, with and without a terminal."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner

from quorate.cli.main import main
from tests.cli.cluster import Local, create_class, local_cluster, plain


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Generator[Local]:
    with local_cluster(tmp_path_factory.mktemp("cluster"), "--time-scale", "5") as running:
        create_class(running, "fast", 1, 1)
        yield running


def test_the_life_of_a_volume(local: Local) -> None:
    assert "volume data created (dry run)" in local.ok(
        "volume", "create", "data", "--class", "fast", "--size", "64Mi", "--dry-run"
    )
    assert json.loads(local.ok("status", "--json"))["volumes"] == []
    created = local.quorate("volume", "create", "data", "--class", "fast", "--size", "64Mi", "--wait")
    assert created.stdout == "volume data is ready\n"
    assert "waiting for volume data: " in created.stderr
    attached = json.loads(local.ok("volume", "attach", "data", "--node", "node-1", "--wait", "--json"))
    assert attached["kind"] == "ReplicatedVolumeAttachment"
    assert attached["status"]["devicePath"].startswith("/dev/sdsrv/data-")
    assert "attachment data-on-node-1 created" in local.ok("volume", "attach", "data", "--node", "node-1")
    grown = yaml.safe_load(local.ok("volume", "resize", "data", "128Mi", "--wait", "-o", "yaml"))
    assert grown["spec"]["size"] == "128Mi"
    assert grown["status"]["datamesh"]["sharedSecret"] == "***"
    refused = local.quorate("volume", "set-layout", "data", "--ftt", "0", "--gmdr", "1")
    assert refused.exit_code == 1
    assert "data follows class fast" in refused.output
    assert "--manual" in refused.output
    changed = local.ok("volume", "set-layout", "data", "--ftt", "0", "--gmdr", "1", "--manual", "--wait")
    assert changed == "volume data is 2D (FTT 0, GMDR 1)\n"
    status(local)
    explanations(local)
    preview(local)
    assert "data is detached from node-1" in local.ok("volume", "detach", "data", "--wait")
    assert local.ok("volume", "delete", "data", "--wait") == "volume data is gone\n"
    assert json.loads(local.ok("status", "-o", "json"))["volumes"] == []


def status(local: Local) -> None:
    """The same facts in every form; the directory's own kubeconfig is found."""
    told = local.shell("status")
    assert told.returncode == 0, told.stderr
    lines = told.stdout.splitlines()
    assert lines[0] == "OK  5 of 5 nodes ready, 1 of 1 volumes healthy, 1 attachments"
    assert any(line.split()[:6] == ["data", "Healthy", "2D", "0/1", "0/1", "128Mi"] for line in lines)
    assert "\x1b" not in told.stdout
    facts = json.loads(local.ok("status", "--json"))
    assert [pool["classes"] for pool in facts["pools"]] == [["fast"]]
    assert facts["volumes"][0]["promised"] == {"ftt": 0, "gmdr": 1}
    assert [node["name"] for node in facts["nodes"]] == [f"node-{number}" for number in range(1, 6)]
    assert facts["attention"] == []
    code, screen = local.terminal("status", "--watch", "--count", "2", "--interval", "0.1")
    assert code == 0
    assert screen.count("\x1b[H\x1b[J") == 2
    assert all(len(line) <= 80 for line in plain(screen).replace("\x1b[H\x1b[J", "").splitlines())


def explanations(local: Local) -> None:
    text = local.ok("explain", "volume", "data")
    assert text.startswith("volume data: healthy\n")
    assert "would stop I/O" in text
    replica = json.loads(local.ok("status", "--json"))["volumes"][0]
    node = replica["nodes"][0]
    told = json.loads(local.ok("explain", "node", node, "--json"))
    assert told["safe_to_stop"] is False
    assert told["impacts"][0]["volume"] == "data"
    assert "attachment data-on-node-1: healthy" in local.ok("explain", "attachment", "data-on-node-1")
    wrong = local.quorate("explain", "volume", "dat")
    assert (wrong.exit_code, wrong.output) == (1, "Error: there is no volume dat; did you mean data?\n")


def preview(local: Local) -> None:
    before = local.ok("status", "--json")
    told = json.loads(local.ok("plan", "volume", "data", "--size", "256Mi", "--json"))
    assert told["possible"] is True
    assert [step["what"] for step in told["steps"]] == ["ResizeVolume"]
    assert {"reason", "lowest_protection", "bytes_to_copy", "nodes"} <= set(told)
    assert json.loads(local.ok("status", "--json"))["volumes"] == json.loads(before)["volumes"]
    impossible = local.quorate("plan", "volume", "data", "--size", "1Mi")
    assert impossible.exit_code == 1
    assert "never shrink" in impossible.output


def test_a_person_at_a_terminal_sees_what_is_waited_for_in_place(local: Local) -> None:
    code, screen = local.terminal("volume", "create", "seen", "--class", "fast", "--size", "64Mi", "--wait")
    assert code == 0, screen
    assert "\r\x1b[Kwaiting " in screen
    assert plain(screen).splitlines()[-1].endswith("volume seen is ready")
    late = local.quorate("volume", "attach", "seen", "--node", "node-9", "--wait", "--timeout", "1s")
    assert late.exit_code == 1
    assert "still waiting for: seen on node-9; now: " in late.output
    local.ok("volume", "detach", "seen", "--wait")
    local.ok("volume", "delete", "seen", "--wait")


WRONG = [
    (("volume", "create", "x", "--size", "1Gi"), 2, "give either --class NAME, or --pool NAME"),
    (
        ("volume", "create", "x", "--size", "lots", "--class", "fast"),
        2,
        "'lots' is not a size; write for example 500Mi",
    ),
    (("volume", "create", "x", "--size", "1Gi", "--class", "nope"), 1, "there is no such class; known: fast"),
    (("volume", "create", "x", "--size", "1Gi", "--class", "fast", "--ftt", "1"), 2, "belong to --pool"),
    (("volume", "create", "x", "--size", "1Gi", "--pool", "p", "--ftt", "2", "--gmdr", "0"), 2, "try --gmdr 1"),
    (("volume", "create", "x" * 93, "--size", "1Gi", "--class", "fast"), 1, "no longer than 92 characters"),
    (("volume", "create", "Bad_Name", "--size", "1Gi", "--class", "fast"), 1, "metadata.name"),
    (("volume", "attach", "nope", "--node", "node-1"), 1, "there is no volume nope"),
    (("volume", "detach", "nope"), 1, "nope has no attachment"),
    (("volume", "delete", "nope"), 1, "there is no volume nope"),
    (("volume", "resize", "nope", "1Gi"), 1, "there is no volume nope"),
    (("volume", "set-layout", "nope", "--ftt", "3", "--gmdr", "1"), 2, "3 is not in the range 0<=x<=2"),
    (("explain", "node", "node-77"), 1, "there is no node node-77"),
    (("explain", "thing", "x"), 2, "'thing' is not one of"),
    (("plan", "volume", "nope"), 2, "say what shall change"),
    (("plan", "volume", "nope", "--ftt", "1"), 1, "there is no volume nope"),
    (("status", "--kubeconfig", "nowhere"), 2, "nowhere: no such kubeconfig file"),
    (("status", "--context", "other"), 2, "there is no context other"),
    (("status", "-o", "xml"), 2, "'xml' is not one of"),
    (("replay-decision", "nowhere"), 2, "'nowhere' does not exist"),
]


@pytest.mark.parametrize(("words", "code", "text"), WRONG)
def test_wrong_input_is_one_sentence_that_names_the_fix(
    local: Local, words: tuple[str, ...], code: int, text: str
) -> None:
    result = local.quorate(*words)
    assert result.exit_code == code, result.output
    assert text in result.output
    assert "Traceback" not in result.output
    assert isinstance(result.exception, SystemExit)


def test_a_server_that_is_gone_is_one_sentence(tmp_path: Path) -> None:
    config = tmp_path / "kubeconfig"
    config.write_text(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\n"
        "clusters: [{name: c, cluster: {server: 'https://127.0.0.1:1'}}]\n"
        "contexts: [{name: c, context: {cluster: c}}]\n"
    )
    result = CliRunner().invoke(main, ["status", "--kubeconfig", str(config)])
    assert result.exit_code == 1
    assert result.output.startswith("Error: the API server does not answer: ")
    assert "ssl:" not in result.output
