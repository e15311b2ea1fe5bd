"""README and docs are true: every command in a `console` block is run, and its lines appear in this order.

In the expected lines, `…` stands for anything; a line of its own, `…` stands for any lines. Amounts of space do not matter.
"""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Generator
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.main import main
from quorate.cli.reference import reference
from tests.cli.cluster import Local, local_cluster
from tests.local.processes import kubectl_path

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
PAGES = (ROOT / "docs" / "layouts.md", ROOT / "docs" / "concepts.md")
Example = tuple[str, list[str]]


def examples(page: Path) -> list[Example]:
    """Commands of a page with the lines that they must print."""
    found: list[Example] = []
    for block in re.findall(r"```console\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line.removeprefix("$ "), []))
            else:
                found[-1][1].append(line)
    return found


def check(command: str, output: str, expected: list[str]) -> None:
    """The expected lines appear in the output, in this order."""
    lines = iter([" ".join(line.split()) for line in output.splitlines()])
    for wanted in expected:
        if not wanted.strip() or wanted.strip() == "…":
            continue
        pattern = ".*".join(re.escape(part) for part in " ".join(wanted.split()).split("…"))
        assert any(re.fullmatch(pattern, line) for line in lines), (
            f"$ {command}\nno line {wanted!r} in order in:\n{output}"
        )


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Generator[Local]:
    with local_cluster(tmp_path_factory.mktemp("docs"), "--time-scale", "5") as running:
        yield running


def play(local: Local, command: str) -> str:
    """Run a command of a page; what it prints."""
    words = shlex.split(command)
    match words[0]:
        case "export":
            assert words[1] == "KUBECONFIG=.quorate/kubeconfig"
            return ""
        case "kubectl":
            done = subprocess.run(
                [kubectl_path(), "--kubeconfig", str(local.kubeconfig), *words[1:]],
                cwd=local.directory,
                capture_output=True,
                text=True,
                timeout=90,
                check=False,
            )
            return done.stdout + done.stderr
        case "quorate" | ".venv/bin/quorate":
            return local.quorate(*words[1:]).output
        case "make":
            assert words[1] == "up"
            return re.sub(r"127\.0\.0\.1:\d+", "127.0.0.1:6443", local.greeting)
        case other:
            raise AssertionError(f"the test does not know how to run {other}")


def test_the_two_commands_run_what_the_makefile_says() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in ("demo", "up"):
        assert re.search(rf"^{target}: \$\(STAMP\).*\n\t\$\(BIN\)/quorate {target}$", makefile, re.MULTILINE)


def test_the_readme_shows_the_real_tour() -> None:
    (expected,) = [lines for command, lines in examples(README) if command == "make demo"]
    result = CliRunner().invoke(main, ["demo", "--plain", "--pace", "0"])
    assert result.exit_code == 0, result.output
    check("make demo", result.output, expected)


def test_the_commands_of_readme_and_docs_print_what_the_pages_say(local: Local) -> None:
    done = 0
    for page in (README, *PAGES):
        for command, expected in examples(page):
            if command != "make demo":
                check(command, play(local, command), expected)
                done += 1
    assert done > 10


def test_the_command_reference_is_what_the_help_says() -> None:
    page = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")
    assert page == reference(), "run: python -m quorate.cli.reference > docs/cli.md"


@pytest.mark.parametrize("page", [README, *PAGES], ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_every_command_has_an_example_and_a_summary() -> None:
    text = reference()
    for name in main.list_commands(None):  # pyright: ignore[reportArgumentType]
        assert f"## quorate {name}\n" in text
    for name in ("status", "explain", "plan volume", "volume create", "controller", "replay-decision", "completion"):
        section = text.partition(f"## quorate {name}\n")[2].partition("\n## ")[0]
        assert "Example" in section, name
