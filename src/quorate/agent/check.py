"""What this machine lacks to run an agent, in plain words. Changes nothing.

While the module is not loaded, `drbdsetup` is never run: it would load the module. Programs are only looked for, their
versions asked for with options that touch neither kernel nor disks, and only once the module is loaded.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from quorate.agent.host import Host
from quorate.agent.kernel import DISABLED, HELPER, KernelFacts, read_kernel_facts

OLDEST_MODULE = (9, 2)
OLDEST_UTILS = (9, 29)
TIMEOUT = 10.0
DIRECTORIES = ("/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin")


class Verdict(Enum):
    """How bad a finding is."""

    GOOD = "ok"
    WARNING = "warning"
    MISSING = "missing"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the answer."""

    verdict: Verdict
    subject: str
    text: str


async def check(host: Host) -> tuple[Finding, ...]:
    """Look at everything an agent needs."""
    facts = read_kernel_facts(host)
    return (
        _module(facts),
        *(_quorum_behaviour(facts) if facts else ()),
        *(_helper(host) if facts else ()),
        await _utils(host, facts),
        _metadata_tool(host),
        await _lvm(host),
        _lock_directory(host),
    )


def ready(findings: tuple[Finding, ...]) -> bool:
    return all(finding.verdict is not Verdict.MISSING for finding in findings)


def _module(facts: KernelFacts | None) -> Finding:
    if facts is None:
        text = "the drbd module is not loaded; load it with `modprobe drbd usermode_helper=disabled`"
        return Finding(Verdict.MISSING, "DRBD module", text)
    if facts.numbers[:2] < OLDEST_MODULE:
        oldest = ".".join(str(number) for number in OLDEST_MODULE)
        return Finding(
            Verdict.MISSING, "DRBD module", f"version {facts.version} is too old; {oldest} or newer is needed"
        )
    return Finding(Verdict.GOOD, "DRBD module", f"version {facts.version}")


def _quorum_behaviour(facts: KernelFacts) -> tuple[Finding, ...]:
    if facts.patched:
        text = "patched module: static voters; q is written as a number"
        return (Finding(Verdict.GOOD, "Quorum", text),)
    text = "stock module: dynamic voters; q is written as `majority` where it is the majority of the voters"
    found = [Finding(Verdict.GOOD, "Quorum", text)]
    if not facts.peer_tiebreaker:
        lacking = "the module lacks the option peer-tiebreaker (9.3): voter changes beside a tie-breaker turn it into"
        found.append(Finding(Verdict.WARNING, "Quorum", f"{lacking} a plain client meanwhile"))
    return tuple(found)


def _helper(host: Host) -> tuple[Finding, ...]:
    current = (host.read_text(HELPER) or "").strip()
    if current == DISABLED:
        return (Finding(Verdict.GOOD, "Kernel helper", "disabled"),)
    text = f"usermode_helper is {current or 'not readable'}; the agent disables it, otherwise resyncs break connections"
    return (Finding(Verdict.WARNING, "Kernel helper", text),)


async def _utils(host: Host, facts: KernelFacts | None) -> Finding:
    subject = "drbd-utils"
    if not _find(host, "drbdsetup"):
        return Finding(Verdict.MISSING, subject, "drbdsetup is not installed")
    if facts is None:
        return Finding(Verdict.WARNING, subject, "drbdsetup is installed; not run while the module is not loaded")
    version = await _first_version(host, ("drbdadm", "--version"), "DRBDADM_VERSION=")
    if version is None:
        return Finding(Verdict.WARNING, subject, "drbdsetup is installed; its version is not known")
    numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
    if numbers < OLDEST_UTILS:
        oldest = ".".join(str(number) for number in OLDEST_UTILS)
        text = f"version {version} does not say whether a device is open; {oldest} or newer is better"
        return Finding(Verdict.WARNING, subject, text)
    return Finding(Verdict.GOOD, subject, f"version {version}")


def _metadata_tool(host: Host) -> Finding:
    if not _find(host, "drbdmeta"):
        return Finding(Verdict.MISSING, "drbdmeta", "not installed")
    return Finding(Verdict.GOOD, "drbdmeta", "installed")


async def _lvm(host: Host) -> Finding:
    if not _find(host, "lvm"):
        return Finding(Verdict.MISSING, "LVM", "lvm2 is not installed")
    version = await _first_version(host, ("lvm", "version"), "LVM version:")
    return Finding(Verdict.GOOD, "LVM", f"version {version}" if version else "installed")


def _lock_directory(host: Host) -> Finding:
    """Without it every command that takes a minor fails (facts/agent 1.16)."""
    if "lock" in host.list_dir("/var/run/drbd") or "lock" in host.list_dir("/run/drbd"):
        return Finding(Verdict.GOOD, "Lock directory", "/var/run/drbd/lock exists")
    return Finding(Verdict.WARNING, "Lock directory", "/var/run/drbd/lock does not exist; drbd-utils needs it")


def _find(host: Host, program: str) -> str:
    return next((f"{place}/{program}" for place in DIRECTORIES if program in host.list_dir(place)), "")


async def _first_version(host: Host, argv: tuple[str, ...], mark: str) -> str | None:
    """The word after a mark in what a program says about itself."""
    try:
        result = await host.run(argv, timeout=TIMEOUT)
    except TimeoutError:
        return None
    for line in (result.stdout + result.stderr).splitlines():
        if mark in line:
            return line.split(mark, 1)[1].split()[0].strip('"')
    return None
