"""`quorate agent --check`: plain words, no change, and no drbdsetup while the module is not loaded."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from click.testing import CliRunner

from quorate.agent.check import Finding, Verdict, check, ready
from quorate.agent.real_host import Completed, RealHost
from quorate.cli.main import main

VERSION = "version: {} (api:2/proto:118-124)\n"
PROGRAMS = {"/usr/sbin": ("drbdadm", "drbdmeta", "drbdsetup", "lvm"), "/var/run/drbd": ("lock",)}


@dataclass
class PaperHost:
    """A machine made of files and answers; keeps what was run."""

    files: Mapping[str, str] = field(default_factory=dict[str, str])
    directories: Mapping[str, tuple[str, ...]] = field(default_factory=lambda: PROGRAMS)
    name: str = "paper"
    ran: list[tuple[str, ...]] = field(default_factory=list[tuple[str, ...]])

    async def run(self, argv: Sequence[str], *, timeout: float, stdin: str = "") -> Completed:  # noqa: ASYNC109
        self.ran.append(tuple(argv))
        said = {"drbdadm": "DRBDADM_VERSION=9.34.0\n", "lvm": "  LVM version:     2.03.16(2) (2022-05-18)\n"}
        return Completed(0, said.get(argv[0], ""), "")

    async def lines(self, argv: Sequence[str]) -> AsyncIterator[str]:
        raise AssertionError(f"a check runs no {argv[0]}")
        yield ""

    def read_text(self, path: str) -> str | None:
        return self.files.get(path)

    def write_text(self, path: str, text: str) -> bool:
        raise AssertionError("a check writes nothing")

    def read_link(self, path: str) -> str | None:
        return None

    def make_link(self, path: str, target: str) -> None:
        raise AssertionError("a check links nothing")

    def remove(self, path: str) -> None:
        raise AssertionError("a check removes nothing")

    def list_dir(self, path: str) -> tuple[str, ...]:
        return self.directories.get(path, ())


def findings(host: PaperHost) -> dict[str, Finding]:
    return {each.subject: each for each in asyncio.run(check(host))}


def loaded(version: str) -> dict[str, str]:
    return {"/proc/drbd": VERSION.format(version), "/sys/module/drbd/parameters/usermode_helper": "disabled\n"}


def test_a_stock_module_with_everything_installed_is_ready() -> None:
    host = PaperHost(loaded("9.3.2"))
    found = findings(host)
    assert ready(tuple(found.values()))
    assert {each.verdict for each in found.values()} == {Verdict.GOOD}
    assert "stock module: dynamic voters" in found["Quorum"].text
    assert "9.34.0" in found["drbd-utils"].text
    assert "2.03.16" in found["LVM"].text


def test_a_patched_module_is_told_apart() -> None:
    assert "static voters" in findings(PaperHost(loaded("9.2.18-flant.10")))["Quorum"].text


def test_a_stock_module_without_peer_tiebreaker_is_noted() -> None:
    host = PaperHost(loaded("9.2.11"))
    notes = [each for each in asyncio.run(check(host)) if each.subject == "Quorum"]
    assert [each.verdict for each in notes] == [Verdict.GOOD, Verdict.WARNING]


def test_without_the_module_drbdsetup_is_never_run() -> None:
    host = PaperHost({})
    found = findings(host)
    assert found["DRBD module"].verdict is Verdict.MISSING
    assert "modprobe" in found["DRBD module"].text
    assert not [argv for argv in host.ran if argv[0].startswith("drbd")]


def test_an_old_module_and_missing_programs_are_named() -> None:
    found = findings(PaperHost(loaded("8.4.11"), {}))
    assert "too old" in found["DRBD module"].text
    assert found["drbd-utils"].text == "drbdsetup is not installed"
    assert found["LVM"].verdict is Verdict.MISSING
    assert not ready(tuple(found.values()))


def test_the_command_answers_on_this_machine_without_changing_it() -> None:
    result = CliRunner().invoke(main, ["agent", "--check"])
    assert result.exit_code in (0, 3)
    assert "DRBD module" in result.output
    assert "This machine can" in result.output


def test_the_real_host_runs_programs_without_a_shell() -> None:
    async def story() -> None:
        host = RealHost("here")
        result = await host.run(["printf", "%s", "a b; echo c"], timeout=5)
        assert (result.exit_code, result.stdout) == (0, "a b; echo c")
        echoed = await host.run(["cat"], timeout=5, stdin="given\n")
        assert echoed.stdout == "given\n"
        failed = await host.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout=5)
        assert (failed.exit_code, failed.stdout, failed.stderr) == (3, "out\n", "err\n")
        assert (await host.run(["no-such-program-anywhere"], timeout=5)).exit_code == 127
        assert [line async for line in host.lines(["printf", "one\\ntwo\\n"])] == ["one", "two"]

    asyncio.run(story())


def test_links_of_the_real_host_are_replaced_in_one_step(tmp_path: Path) -> None:
    host = RealHost("here")
    path = f"{tmp_path}/sdsrv/rv-0"
    host.make_link(path, "/dev/drbd1")
    host.make_link(path, "/dev/drbd2")
    assert host.read_link(path) == "/dev/drbd2"
    assert host.list_dir(f"{tmp_path}/sdsrv") == ("rv-0",)
    host.remove(path)
    host.remove(path)
    assert host.read_link(path) is None
    assert host.read_text(f"{tmp_path}/nothing") is None
    assert host.write_text(f"{tmp_path}/no/such/place", "x") is False
