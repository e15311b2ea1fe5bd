"""The simulated node as an agent sees it: commands, faults of commands, event stream, files."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

from quorate.simulator.cluster import Cluster
from quorate.simulator.result import Result


def cluster() -> Cluster:
    return Cluster(asyncio.get_running_loop(), seed=1, nodes=("a", "b"))


async def test_a_command_answers_what_the_tool_prints() -> None:
    host = cluster().host("a")
    assert (await host.run(["drbdsetup", "new-resource", "r0", "0"], timeout=5)).exit_code == 0
    answer = await host.run(["drbdsetup", "status", "--json"], timeout=5)
    assert [resource["name"] for resource in json.loads(answer.stdout)] == ["r0"]


async def test_a_hung_command_times_out_and_a_failing_one_fails() -> None:
    host = cluster().host("a")
    host.hang.add("status")
    with pytest.raises(TimeoutError):
        await host.run(["drbdsetup", "status"], timeout=0.01)
    host.hang.clear()
    host.fail["status"] = Result(20, "", "could not talk to the kernel\n")
    assert (await host.run(["drbdsetup", "status"], timeout=5)).exit_code == 20


async def read(lines: list[str], stream: AsyncIterator[str]) -> None:
    lines.extend([line async for line in stream])


async def test_the_stream_starts_with_a_dump_and_tells_what_comes_and_goes() -> None:
    simulated = cluster()
    node, lines = simulated.node("a"), list[str]()
    node.execute(["drbdsetup", "new-resource", "old", "0"])
    task = asyncio.create_task(read(lines, simulated.host("a").lines(["drbdsetup", "events2"])))
    await asyncio.sleep(0)
    node.execute(["drbdsetup", "new-resource", "r0", "0"])
    node.execute(["drbdsetup", "new-minor", "r0", "1000", "0"])
    node.execute(["drbdsetup", "rename-resource", "r0", "r1"])
    node.execute(["drbdsetup", "down", "r1"])
    simulated.crash("a")
    await asyncio.wait_for(task, 1)
    shapes = [" ".join(line.split()[:3]) for line in lines]
    assert shapes[:2] == ["exists resource name:old", "exists -"]
    assert "create resource name:r0" in shapes
    assert "create device name:r0" in shapes
    assert "rename resource name:r0" in shapes
    assert shapes[-2:] == ["destroy device name:r1", "destroy resource name:r1"]


async def test_lost_event_lines_are_lost() -> None:
    simulated = cluster()
    node, lines = simulated.node("a"), list[str]()
    task = asyncio.create_task(read(lines, simulated.host("a").lines(["drbdsetup", "events2"])))
    await asyncio.sleep(0)
    simulated.lose_events("a", 1)
    node.execute(["drbdsetup", "new-resource", "r0", "0"])
    node.execute(["drbdsetup", "new-resource", "r1", "0"])
    simulated.crash("a")
    await asyncio.wait_for(task, 1)
    assert [line.split()[2] for line in lines if line.startswith("create")] == ["name:r1"]


async def test_links_and_kernel_parameters_are_kept_per_node() -> None:
    simulated = cluster()
    host = simulated.host("a")
    host.make_link("/dev/sdsrv/x", "/dev/drbd7")
    host.make_link("/dev/sdsrv/x", "/dev/drbd8")
    assert host.read_link("/dev/sdsrv/x") == "/dev/drbd8"
    assert host.list_dir("/dev/sdsrv") == ("x",)
    host.remove("/dev/sdsrv/x")
    assert host.read_link("/dev/sdsrv/x") is None
    assert host.write_text("/sys/module/drbd/parameters/usermode_helper", "disabled")
    assert host.read_text("/sys/module/drbd/parameters/usermode_helper") == "disabled"
    assert simulated.host("b").read_text("/sys/module/drbd/parameters/usermode_helper") != "disabled"
