"""`quorate up` as a person uses it: apply the examples, write, break things, mend them, stop."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.local.jsonvalue import as_list, as_text, dig
from tests.local.processes import kubectl_path, serving
from tests.local_mode.running import Cluster, cluster


@pytest.fixture(scope="module")
def up(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("up") / "data") as running:
        running.apply_examples("storage-class", "volume", "attachment")
        running.until(running.attached, "the example volume is attached")
        running.until(running.healthy, "all copies are current")
        yield running


def test_it_says_what_to_try_next(up: Cluster) -> None:
    assert "5 nodes in 3 zones are ready; volume groups: data (thin pools)." in up.greeting
    assert f"export KUBECONFIG={up.kubeconfig}" in up.greeting
    assert f"kubectl apply -f {up.directory / 'examples'}" in up.greeting
    assert len(as_list(up.send("GET", "/api/v1/nodes")[1]["items"])) == 5


def test_kubectl_sees_the_cluster(up: Cluster, tmp_path: Path) -> None:
    def kubectl(*arguments: str) -> str:
        command = [kubectl_path(), "--kubeconfig", str(up.kubeconfig), "--cache-dir", str(tmp_path), *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    assert "created (server dry run)" not in kubectl("apply", "--dry-run=server", "-f", str(up.directory / "examples"))
    listed = kubectl("get", "rvr", "--no-headers").splitlines()
    assert [line.split()[2] for line in listed] == ["Diskful"] * 3
    assert kubectl("get", "nodes", "--no-headers").count(" Ready ") == 5


def test_writes_are_acknowledged_and_read_back(up: Cluster) -> None:
    report = up.report("first", "--seconds", "1", "--rate", "100")
    assert report["node"] == "node-1"
    assert int(report["acknowledged"]) > 10
    assert report["read_back"] == min(256, int(report["acknowledged"]))
    assert (report["lost"], report["failed"], report["copies"]) == (0, 0, 3)


def test_writes_go_on_when_a_node_loses_power(up: Cluster) -> None:
    victim = next(
        as_text(dig(replica, "spec", "nodeName"))
        for replica in up.items("replicatedvolumereplicas")
        if as_text(dig(replica, "spec", "nodeName")) != "node-1"
    )
    assert up.quorate("fault", "node", "down", victim).exit_code == 0
    report = up.report("first", "--seconds", "3")
    assert (report["lost"], report["failed"], report["copies"]) == (0, 0, 2)
    again = up.quorate("fault", "node", "down", victim)
    assert (again.exit_code, again.output) == (2, f"quorate fault: {victim} is down already.\n")
    listed = up.quorate("fault", "list")
    assert f"end: quorate fault node up {victim}" in listed.output
    assert up.quorate("fault", "node", "up", victim).exit_code == 0
    up.until(lambda: up.report("first", "--seconds", "0")["copies"] == 3, "the third copy is current again")
    assert up.quorate("fault", "list").output == "Nothing is broken.\n"


def test_a_slow_link_makes_writes_slow(up: Cluster) -> None:
    other = next(
        as_text(dig(replica, "spec", "nodeName"))
        for replica in up.items("replicatedvolumereplicas")
        if as_text(dig(replica, "spec", "nodeName")) != "node-1"
    )
    # The machines live 20 times faster: a round trip of 0.4 s takes 20 ms here. With more than DRBD's ping timeout of half a
    # second the peer would be given up instead.
    assert up.quorate("fault", "link", "slow", "node-1", other, "--seconds", "0.4").exit_code == 0
    slow = int(up.report("first", "--seconds", "1", "--rate", "200")["acknowledged"])
    assert 0 < slow <= 51, "one write after the other, each waits for the slow copy"
    assert up.quorate("fault", "link", "heal", other, "node-1").exit_code == 0
    assert up.quorate("fault", "list").output == "Nothing is broken.\n"


def test_a_failed_disk_is_left_out_and_nothing_is_lost(up: Cluster) -> None:
    assert up.quorate("fault", "disk", "fail", "node-1", "first").exit_code == 0
    report = up.report("first", "--seconds", "1")
    assert (report["lost"], report["failed"]) == (0, 0)
    listed = json.loads(up.quorate("fault", "list", "--json").output)["faults"]
    assert [(fault["subject"], fault["what"]) for fault in listed] == [("disk", "failed")]
    assert up.quorate("fault", "disk", "repair", "node-1", "first").exit_code == 0
    up.until(lambda: up.report("first", "--seconds", "0")["copies"] == 3, "the disk is attached and current again")


def test_a_stopped_agent_and_a_full_pool_are_listed_and_ended(up: Cluster) -> None:
    for action in (("agent", "stop", "node-5"), ("pool", "full", "node-5")):
        assert up.quorate("fault", *action).exit_code == 0
    listed = json.loads(up.quorate("fault", "list", "--json").output)["faults"]
    assert {(fault["subject"], fault["what"]) for fault in listed} == {("agent", "stopped"), ("pool", "full")}
    for action in (("agent", "start", "node-5"), ("pool", "free", "node-5")):
        assert up.quorate("fault", *action).exit_code == 0
    assert up.quorate("fault", "list").output == "Nothing is broken.\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("fault", "node", "down", "node-9"), "there is no node node-9; nodes: node-1, node-2, node-3, node-4, node-5"),
        (("fault", "node", "up", "node-2"), "node-2 is running"),
        (("fault", "agent", "start", "node-2"), "the agent of node-2 is not stopped"),
        (("fault", "link", "cut", "node-1", "node-1"), "a link has two different ends"),
        (("fault", "link", "slow", "node-1", "node-2", "--seconds", "9"), "more than 0 and at most 5 seconds"),
        (("fault", "disk", "fail", "node-1", "nothing"), "node-1 has no volume group and no disk of a volume nothing"),
        (("fault", "pool", "full", "node-1", "nothing"), "node-1 has no volume group nothing; it has data"),
        (("io", "nothing"), "there is no volume nothing"),
        (("io", "first", "--node", "node-9"), "there is no node node-9"),
        (("io", "first", "--node", "node-5"), "first is not attached on node-5; it is attached on node-1"),
    ],
)
def test_wrong_wishes_are_one_sentence(up: Cluster, arguments: tuple[str, ...], sentence: str) -> None:
    done = up.quorate(*arguments)
    assert (done.exit_code, len(done.output.splitlines())) == (2, 1), done.output
    assert sentence in done.output


def test_faults_need_the_token(up: Cluster) -> None:
    body = b'{"subject":"node","action":"down","node":"node-2"}'
    assert up.send("POST", "/local/v1/faults", body, token="wrong")[0] == 401
    assert up.send("POST", "/local/v1/faults", b'{"subject":"moon"}')[0] == 400
    assert up.send("GET", "/local/v1/nothing")[0] == 404


def test_a_server_without_nodes_has_no_faults(tmp_path: Path) -> None:
    with serving(tmp_path / "data") as served:
        alone = Cluster(served.process, served.directory, served.port)
        done = alone.quorate("fault", "list")
    assert (done.exit_code, len(done.output.splitlines())) == (2, 1)
    assert "not a local cluster" in done.output


def test_without_a_cluster_the_commands_say_so(up: Cluster, tmp_path: Path) -> None:
    stale = tmp_path / "kubeconfig"
    stale.write_text(up.kubeconfig.read_text().replace(f":{up.port}", ":1"))
    up_is_elsewhere = Cluster(up.process, tmp_path, 1)
    done = up_is_elsewhere.quorate("fault", "list")
    assert (done.exit_code, len(done.output.splitlines())) == (2, 1)
    assert "is `quorate up` running?" in done.output


def test_ctrl_c_stops_cleanly_and_a_restart_continues(tmp_path: Path) -> None:
    with cluster(tmp_path / "data", "--nodes", "3", "--thick") as first:
        first.apply_examples("storage-class", "volume", "attachment")
        first.until(first.attached, "the example volume is attached")
        written = first.report("first", "--seconds", "1")
        assert first.stop() == 0
        assert first.process.stdout is not None
        assert first.process.stdout.read().endswith("Stopped.\n")
    with cluster(tmp_path / "data") as second:
        assert "3 nodes in 3 zones are ready; volume groups: data (plain volumes)." in second.greeting
        second.until(second.healthy, "all copies are current again")
        second.until(lambda: second.quorate("io", "first", "--seconds", "0").exit_code == 0, "the device is back")
        report = second.report("first", "--seconds", "0")
        assert (report["read_back"], report["lost"]) == (min(256, int(written["acknowledged"])), 0)
