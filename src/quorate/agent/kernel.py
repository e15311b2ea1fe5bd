"""The DRBD module of the node: loading it the right way, its version, and what follows from the version.

A module that `drbdsetup` loads by itself calls a user space helper that does not exist here, and every resync source
then drops the connection (recordings, "Kernel helper"). So the agent loads it, and switches the helper off.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from quorate.agent.broker import Broker, CommandUnavailable
from quorate.agent.host import Host
from quorate.agent.intended import VOTER_MODE_DYNAMIC, VOTER_MODE_STATIC
from quorate.agent.observe import PROC_DRBD

HELPER = "/sys/module/drbd/parameters/usermode_helper"
DISABLED = "disabled"
"""Without a newline: the module compares the text."""
PATCHED_MARK = "-flant"
"""Modules with static voters and non-voting disks carry this in their version."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What the module is and can."""

    version: str

    @property
    def numbers(self) -> tuple[int, ...]:
        return tuple(int(part) for part in re.findall(r"\d+", self.version)[:3])

    @property
    def patched(self) -> bool:
        return PATCHED_MARK in self.version

    @property
    def voter_mode(self) -> str:
        return VOTER_MODE_STATIC if self.patched else VOTER_MODE_DYNAMIC

    @property
    def peer_tiebreaker(self) -> bool:
        """The option came with 9.3."""
        return self.numbers >= (9, 3)


def read_kernel_facts(host: Host) -> KernelFacts | None:
    """The loaded module, None when none is."""
    text = host.read_text(PROC_DRBD)
    match = re.match(r"version: (\S+)", text) if text else None
    return KernelFacts(match[1]) if match else None


async def prepare_module(broker: Broker) -> KernelFacts | None:
    """Load the module if need be and switch its helper off; None when there is no module."""
    host = broker.host
    if host.read_text(PROC_DRBD) is None:
        try:
            await broker.run("module", ("modprobe", "drbd", f"usermode_helper={DISABLED}"))
            await broker.run("module", ("modprobe", "drbd_transport_tcp"))
        except CommandUnavailable:
            return None
    facts = read_kernel_facts(host)
    if facts is not None and (host.read_text(HELPER) or "").strip() != DISABLED:
        host.write_text(HELPER, DISABLED)
    return facts
