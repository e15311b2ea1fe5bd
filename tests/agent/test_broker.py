"""The broker: one in flight per resource, nothing beside a hung command, the breaker."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from typing import TypeVar

import pytest

from quorate.agent.broker import Breaker, Broker, Hung, NodeWedged, Stranded
from quorate.machinery.clock import LoopClock
from quorate.machinery.virtual_loop import run_virtual
from quorate.simulator.cluster import Cluster
from quorate.simulator.host import SimulatedHost
from quorate.simulator.result import Result
from tests.agent.builders import silent

T = TypeVar("T")
STATUS = ("drbdsetup", "status", "--json")


class CountingHost(SimulatedHost):
    """A simulated host that counts programs running at the same time, per second word."""

    def __init__(self, cluster: Cluster, name: str) -> None:
        super().__init__(cluster, name)
        self.running: dict[str, int] = {}
        self.most: dict[str, int] = {}
        self.started: list[tuple[str, ...]] = []

    async def run(self, argv: Sequence[str], *, timeout: float, stdin: str = "") -> Result:  # noqa: ASYNC109
        key = argv[-1]
        self.started.append(tuple(argv))
        self.running[key] = self.running.get(key, 0) + 1
        self.most[key] = max(self.most.get(key, 0), self.running[key])
        try:
            return await super().run(argv, timeout=timeout, stdin=stdin)
        finally:
            self.running[key] -= 1


def with_broker(
    story: Callable[[Broker, CountingHost], Coroutine[object, object, T]], breaker: Breaker | None = None
) -> T:
    async def main() -> T:
        clock = LoopClock()
        host = CountingHost(Cluster(asyncio.get_running_loop(), 1, ("n0",)), "n0")
        broker = Broker(host, clock, silent(clock), breaker=breaker)
        try:
            return await story(broker, host)
        finally:
            await broker.close()

    return run_virtual(main)


def test_commands_of_one_resource_run_one_after_the_other_and_of_two_at_once() -> None:
    async def story(broker: Broker, host: CountingHost) -> float:
        started = asyncio.get_running_loop().time()
        await asyncio.gather(*(broker.run(name, (*STATUS, name)) for name in ("a", "a", "a", "b", "b")))
        assert host.most == {"a": 1, "b": 1}
        return asyncio.get_running_loop().time() - started

    assert with_broker(story) == pytest.approx(3 * 0.02, abs=0.01)


def test_nothing_is_started_beside_a_hung_command() -> None:
    async def story(broker: Broker, host: CountingHost) -> None:
        host.hang.add("attach")
        with pytest.raises(Hung):
            await broker.run("a", ("drbdsetup", "attach", "1"))
        host.hang.clear()
        with pytest.raises(Stranded):
            await broker.run("a", ("drbdsetup", "attach", "1"))
        assert len([argv for argv in host.started if "attach" in argv]) == 1
        assert (await broker.run("b", STATUS)).exit_code == 0
        assert broker.state().stranded == 1
        await asyncio.sleep(60)
        assert broker.state().stranded == 0
        assert (await broker.run("a", STATUS)).exit_code == 0

    with_broker(story)


def test_a_cancelled_caller_leaves_the_program_and_nobody_starts_a_second_one() -> None:
    async def story(broker: Broker, host: CountingHost) -> None:
        host.hang.add("attach")
        task = asyncio.ensure_future(broker.run("a", ("drbdsetup", "attach", "1")))
        await asyncio.sleep(1)
        task.cancel()
        await asyncio.wait((task,))
        with pytest.raises(Stranded):
            await broker.run("a", ("drbdsetup", "attach", "1"))

    with_broker(story)


def test_the_breaker_opens_lets_one_probe_through_and_closes() -> None:
    async def story(broker: Broker, host: CountingHost) -> None:
        host.hang.add("drbdsetup")
        for number in range(3):
            with pytest.raises(Hung):
                await broker.run(f"r{number}", STATUS)
        with pytest.raises(NodeWedged):
            await broker.run("r7", STATUS)
        await asyncio.sleep(31)
        with pytest.raises(Hung):
            await broker.run("r8", STATUS)
        with pytest.raises(NodeWedged):
            await broker.run("r9", STATUS)
        host.hang.clear()
        await asyncio.sleep(31)
        assert (await broker.run("r10", STATUS)).exit_code == 0
        assert broker.state().open_until == 0.0

    with_broker(story, Breaker(consecutive=3, pause=30.0))


def test_stdout_and_stderr_stay_apart() -> None:
    async def story(broker: Broker, host: CountingHost) -> None:
        host.fail["status"] = Result(0, "[]\n", "a warning\n")
        result = await broker.run("a", STATUS)
        assert (result.stdout, result.stderr) == ("[]\n", "a warning\n")

    with_broker(story)
