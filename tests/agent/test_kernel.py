"""The module: loaded by the agent with its helper off, never by drbdsetup; what follows from its version."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from quorate.agent.broker import Broker
from quorate.agent.converge import Converger
from quorate.agent.intended import Intended, Settings
from quorate.agent.kernel import HELPER, KernelFacts, prepare_module
from quorate.agent.patience import Patience
from quorate.machinery.clock import LoopClock
from quorate.machinery.virtual_loop import run_virtual
from quorate.simulator.cluster import Cluster
from quorate.simulator.host import SimulatedHost
from quorate.simulator.result import OK, Result
from tests.agent.builders import silent


class Bare(SimulatedHost):
    """A simulated host whose module is loaded by modprobe, if at all."""

    def __init__(self, cluster: Cluster, *, loadable: bool) -> None:
        super().__init__(cluster, "n0")
        self.loaded = False
        self.ran: list[tuple[str, ...]] = []
        self._loadable = loadable

    async def run(self, argv: Sequence[str], *, timeout: float, stdin: str = "") -> Result:  # noqa: ASYNC109
        self.ran.append(tuple(argv))
        if argv[0] == "modprobe":
            self.loaded = self._loadable
            return OK
        return await super().run(argv, timeout=timeout, stdin=stdin)

    def read_text(self, path: str) -> str | None:
        return None if path == "/proc/drbd" and not self.loaded else super().read_text(path)


def with_host(loadable: bool) -> tuple[Bare, KernelFacts | None, str, str]:
    """The host, what is known of its module, the helper, and what a resource gets told that shall be up."""

    async def main() -> tuple[Bare, KernelFacts | None, str, str]:
        clock = LoopClock()
        host = Bare(Cluster(asyncio.get_running_loop(), 1, ("n0",)), loadable=loadable)
        broker = Broker(host, clock, silent(clock))
        facts = await prepare_module(broker)
        converger = Converger(broker, Patience(clock), Settings(), silent(clock))
        outcome = await converger.converge(Intended("sdsrv-a", 0, "/dev/sdsrv/a", diskless=True))
        told = outcome.problems[0].message if outcome.problems else ""
        return host, facts, (host.read_text(HELPER) or "").strip(), told

    return run_virtual(main)


def test_the_module_is_loaded_with_its_helper_off() -> None:
    host, facts, helper, told = with_host(loadable=True)
    assert host.ran[0] == ("modprobe", "drbd", "usermode_helper=disabled")
    assert facts is not None
    assert (facts.version, helper, told) == ("9.3.2", "disabled", "")


def test_without_a_module_nothing_is_started_that_would_load_it() -> None:
    host, facts, _, told = with_host(loadable=False)
    assert facts is None
    assert told == "the DRBD module is not loaded"
    assert {argv[0] for argv in host.ran} == {"modprobe"}


@pytest.mark.parametrize(
    ("version", "mode", "option"),
    [
        ("9.3.2", "dynamic", True),
        ("9.2.11", "dynamic", False),
        ("9.2.18-flant.10", "static", False),
        ("10.0.0", "dynamic", True),
    ],
)
def test_what_follows_from_the_version(version: str, mode: str, option: bool) -> None:
    facts = KernelFacts(version)
    assert (facts.voter_mode, facts.peer_tiebreaker) == (mode, option)
