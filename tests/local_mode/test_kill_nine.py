"""kill -9 at any moment is a power loss of all machines: everything converges, and nothing acknowledged is lost."""

from __future__ import annotations

import json
import re
from http.client import HTTPException, HTTPResponse, HTTPSConnection
from pathlib import Path

from quorate.simulator.lvm import Lvm
from quorate.simulator.persistence import DiskJournal
from tests.local_mode.running import Cluster, cluster

WRITING = ("volume=first", "seconds=60", "rate=200")


def write_until_killed(running: Cluster, acknowledged: dict[int, int], count: int) -> None:
    """Start a writer and remember what we were told; the cluster dies once so many writes are acknowledged."""
    connection = running.connection()
    try:
        answer = follow_writes(running, connection, acknowledged, count)
        running.kill()
        drain(answer, acknowledged)
        answer.close()
    finally:
        connection.close()


def follow_writes(
    running: Cluster, connection: HTTPSConnection, acknowledged: dict[int, int], count: int
) -> HTTPResponse:
    headers = {"Authorization": f"Bearer {running.token}"}
    connection.request("POST", f"/local/v1/io?{'&'.join(WRITING)}", headers=headers)
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    told = 0
    while told < count:
        message = json.loads(answer.readline())
        acknowledged.update(dict(message["writes"]))
        told = message["acknowledged"]
    return answer


def drain(answer: HTTPResponse, acknowledged: dict[int, int]) -> None:
    """What was still told before the process died."""
    try:
        while line := answer.readline():
            acknowledged.update(dict(json.loads(line)["writes"]))
    except (OSError, HTTPException, ValueError):
        return


def copies(directory: Path, nodes: int) -> dict[str, dict[int, int]]:
    """What lies on the disks of the volume, read from the file that the process left behind."""
    journal = DiskJournal(directory, lambda _: None)
    found: dict[str, dict[int, int]] = {}
    for number in range(1, nodes + 1):
        lvm = Lvm(f"node-{number}")
        journal.adopt(f"node-{number}", lvm)
        for group in lvm.state.groups.values():
            for volume in group.volumes.values():
                if volume.disk is not None and re.fullmatch(r"first-\d+-[0-9a-f]+", volume.name):
                    found[f"node-{number}"] = volume.disk.contents()
    return found


def test_killed_in_the_middle_of_a_formation_and_of_writes(tmp_path: Path) -> None:
    data = tmp_path / "data"
    acknowledged: dict[int, int] = {}
    with cluster(data, "--nodes", "4") as running:
        running.apply_examples("storage-class", "volume", "attachment")
        running.until(lambda: bool(running.items("replicatedvolumereplicas")), "the formation has begun")
        running.kill()
    for told in (5, 70):
        with cluster(data) as running:
            running.until(running.attached, "the volume is attached")
            running.until(running.healthy, "all copies are current")
            running.until(lambda: running.quorate("io", "first", "--seconds", "0").exit_code == 0, "no write is lost")
            write_until_killed(running, acknowledged, told)
    with cluster(data) as running:
        running.until(running.healthy, "all copies are current again")
        running.until(lambda: running.quorate("io", "first", "--seconds", "0").exit_code == 0, "the device is back")
        report = running.report("first", "--seconds", "0")
        assert (report["lost"], report["copies"]) == (0, 3)
        assert int(report["read_back"]) >= len(acknowledged) >= 70
        assert running.stop() == 0
    disks = copies(data, 4)
    assert len(disks) == 3
    for node, contents in disks.items():
        lost = [block for block, value in acknowledged.items() if contents.get(block, 0) < value]
        assert not lost, f"{node} lacks blocks {lost} that we were told are written"
