"""The event listener: dump, gaps, restart, rescan."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence

import pytest

from quorate.agent.addresses import Ports
from quorate.agent.broker import Broker
from quorate.agent.listener import Listener, Mirror
from quorate.agent.parsers.events import parse_event
from quorate.machinery.clock import LoopClock
from quorate.machinery.virtual_loop import run_virtual
from quorate.simulator.cluster import Cluster
from quorate.simulator.host import SimulatedHost
from tests.agent.builders import silent

DUMP = (
    "exists resource name:sdsrv-a role:Secondary suspended:no",
    "exists device name:sdsrv-a volume:0 minor:1 disk:UpToDate",
    "exists connection name:sdsrv-a peer-node-id:1 conn-name:peer-1 connection:Connected role:Secondary",
    "exists path name:sdsrv-a peer-node-id:1 conn-name:peer-1 local:ipv4:10.0.0.1:7005 peer:ipv4:10.0.0.2:7000",
    "exists -",
)


def fits(lines: Sequence[str]) -> list[bool]:
    mirror = Mirror()
    events = [event for line in lines if (event := parse_event(line)) is not None and not event.ends_dump]
    return [mirror.apply(event) for event in events]


@pytest.mark.parametrize(
    ("what", "lines", "whole"),
    [
        ("a change of something known", ["change device name:sdsrv-a volume:0 minor:1 disk:Outdated"], True),
        ("a change of something unknown", ["change device name:sdsrv-b volume:0 minor:2 disk:Outdated"], False),
        ("a creation of something known", ["create device name:sdsrv-a volume:0 minor:1 disk:Diskless"], False),
        ("a part of an unknown resource", ["create device name:sdsrv-b volume:0 minor:2 disk:Diskless"], False),
        ("a new resource and its part", ["create resource name:b role:Secondary", "create device name:b volume:0"], True),
        ("a removal of something unknown", ["destroy connection name:sdsrv-a peer-node-id:7 conn-name:peer-7"], False),
        ("a resource that ends before its parts", ["destroy resource name:sdsrv-a"], False),
        ("a rename keeps the parts", ["rename resource name:sdsrv-a new_name:x", "change device name:x volume:0"], True),
        (
            "an orderly end",
            [
                "destroy path name:sdsrv-a peer-node-id:1 conn-name:peer-1 local:ipv4:10.0.0.1:7005 peer:ipv4:10.0.0.2:7000",
                "destroy connection name:sdsrv-a peer-node-id:1 conn-name:peer-1",
                "destroy device name:sdsrv-a volume:0",
                "destroy resource name:sdsrv-a",
            ],
            True,
        ),
    ],
)  # fmt: skip
def test_gaps_are_noticed(what: str, lines: list[str], whole: bool) -> None:
    assert all(fits([*DUMP, *lines])) is whole, what


class ScriptedStream(SimulatedHost):
    """A simulated host whose event stream says given lines, one life after the other; the last one stays open."""

    def __init__(self, cluster: Cluster, name: str, lives: Sequence[Sequence[str]]) -> None:
        super().__init__(cluster, name)
        self._lives = list(lives)

    async def lines(self, argv: Sequence[str]) -> AsyncIterator[str]:
        del argv
        life = self._lives.pop(0)
        for line in life:
            yield line
        if not self._lives:
            await asyncio.get_running_loop().create_future()


def listen(lives: Sequence[Sequence[str]], seconds: float) -> tuple[list[str], Listener, tuple[int, int]]:
    """What was woken, the listener, and the ports that two resources then get."""

    async def main() -> tuple[list[str], Listener, tuple[int, int]]:
        clock = LoopClock()
        host = ScriptedStream(Cluster(asyncio.get_running_loop(), 1, ("n0",)), "n0", lives)
        broker = Broker(host, clock, silent(clock))
        ports = Ports(host, clock, 7000, 7010)
        woken: list[str] = []
        listener = Listener(broker, ports, clock, silent(clock), woken.append)
        tasks = [asyncio.ensure_future(listener.run()), asyncio.ensure_future(listener.run_rescans())]
        await asyncio.sleep(seconds)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        other = ports.allocate("b", "sdsrv-b", "10.0.0.1", frozenset(range(7000, 7005)))
        return woken, listener, (other, ports.allocate("a", "sdsrv-a", "10.0.0.1", frozenset()))

    return run_virtual(main)


def test_the_dump_wakes_every_resource_once_and_tells_the_ports() -> None:
    woken, listener, ports = listen([DUMP], 5)
    assert woken == ["sdsrv-a"]
    assert listener.ready.is_set()
    # 7005 belongs to sdsrv-a in the kernel: others do not get it, sdsrv-a gets it back (adoption).
    assert ports == (7006, 7005)


def test_readiness_waits_for_the_stream_and_bears_a_short_restart() -> None:
    _, listener, _ = listen([DUMP], 5)
    assert listener.following
    assert listener.missing() == ()

    async def main() -> list[tuple[float, tuple[str, ...], bool]]:
        clock = LoopClock()
        lives: list[Sequence[str]] = [DUMP, *([()] * 8)]
        host = ScriptedStream(Cluster(asyncio.get_running_loop(), 1, ("n0",)), "n0", [*lives, ["exists -"]])
        ports = Ports(host, clock, 7000, 7010)
        listener = Listener(Broker(host, clock, silent(clock)), ports, clock, silent(clock), lambda name: None)
        task = asyncio.ensure_future(listener.run())
        seen: list[tuple[float, tuple[str, ...], bool]] = []
        for pause in (0.5, 20.0, 20.0, 400.0):
            await asyncio.sleep(pause)
            seen.append((pause, listener.missing(), listener.following))
        task.cancel()
        await asyncio.wait((task,))
        return seen

    assert run_virtual(main) == [
        (0.5, (), False),  # the first life has just ended
        (20.0, (), False),
        (20.0, ("event stream",), False),
        (400.0, (), True),
    ]


def test_a_stream_that_ends_is_restarted_and_looks_at_what_vanished() -> None:
    woken, listener, _ = listen([DUMP, ["exists -"]], 10)
    assert woken == ["sdsrv-a", "sdsrv-a"]
    assert listener.restarts == 1


def test_a_broken_line_counts_as_a_gap() -> None:
    _, listener, _ = listen([[*DUMP, "change resource na"]], 5)
    assert listener.gaps == 1


def test_restarts_wait_longer_while_no_dump_is_complete() -> None:
    _, listener, _ = listen([["exists resource name:sdsrv-a role:Secondary"]] * 20, 60)
    # 1 + 2 + 4 + 8 + 16 s, then every 30 s.
    assert listener.restarts == 6
