"""The Containerfile's structure, its locked inputs, and that what it installs starts."""

from __future__ import annotations

import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
IMAGE = ROOT / "deploy" / "image"
TEXT = (ROOT / "Containerfile").read_text()


def instructions() -> list[tuple[str, str]]:
    """Instructions and their arguments, continued lines joined, comments left out."""
    lines = [line for line in TEXT.splitlines() if not line.lstrip().startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [(word, rest.strip()) for word, _, rest in (line.partition(" ") for line in joined.splitlines() if line)]


def stages() -> list[list[tuple[str, str]]]:
    found: list[list[tuple[str, str]]] = []
    for word, rest in instructions():
        if word == "FROM":
            found.append([])
        if found:
            found[-1].append((word, rest))
    return found


def pins(path: Path) -> dict[str, str]:
    """Requirements of a lock with their hashes."""
    entries = re.split(r"\n(?=\S)", path.read_text().strip())
    return {entry.split("==")[0]: entry for entry in entries}


def test_two_stages_on_one_pinned_base() -> None:
    (base,) = (rest for word, rest in instructions() if word == "ARG")
    assert re.fullmatch(r"BASE=\S+/python:\d+\.\d+\.\d+-slim-\w+(@sha256:[0-9a-f]{64})?", base)
    assert [stage[0][1] for stage in stages()] == ["${BASE} AS build", "${BASE}"]


def test_the_image_starts_the_command_as_a_user_without_rights() -> None:
    last = dict(stages()[-1])
    assert last["ENTRYPOINT"] == '["quorate"]'
    user, group = last["USER"].split(":")
    assert int(user) > 1000
    assert int(group) > 1000
    order = [word for word, _ in stages()[-1]]
    assert order.index("USER") > order.index("RUN")


def test_nothing_secret_and_nothing_remote_goes_in() -> None:
    for word, rest in instructions():
        assert word != "ADD"
        assert not re.search(r"(?i)token|password|secret|https?://|index-url", rest)
    first = stages()[0]
    assert not any(word == "COPY" and rest.split()[0] == "." for word, rest in first)


def test_only_what_is_copied_is_sent_to_the_builder() -> None:
    kept = [line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")]
    assert (ROOT / ".containerignore").read_text().startswith("*\n")
    for word, rest in stages()[0]:
        if word == "COPY":
            for source in rest.split()[:-1]:
                assert (ROOT / source).exists()
                assert any(Path(source).match(pattern) for pattern in kept), source


@pytest.mark.parametrize("name", ["requirements.lock", "build.lock"])
def test_what_is_installed_is_locked_with_hashes_and_as_tested(name: str) -> None:
    tested = pins(ROOT / "requirements.lock")
    for package, entry in pins(IMAGE / name).items():
        assert "--hash=sha256:" in entry
        if package in tested:
            assert entry == tested[package], f"{package}: run `make lock`"
    assert "://" not in (IMAGE / name).read_text()


def test_the_image_has_every_runtime_dependency() -> None:
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *(r for group in project["optional-dependencies"].values() for r in group)]
    names = [re.split(r"[><=; ]", requirement)[0] for requirement in wanted]
    assert [name for name in names if name not in pins(IMAGE / "requirements.lock")] == []


def test_the_wheel_of_the_build_stage_starts_in_a_fresh_environment(tmp_path: Path) -> None:
    def run(*command: str) -> str:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        return done.stdout

    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path / "dist")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = (tmp_path / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env"))
    site = next((tmp_path / "env" / "lib").glob("python*")) / "site-packages"
    python = str(tmp_path / "env" / "bin" / "python")
    pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index"]
    run(*pip, "--disable-pip-version-check", str(wheel))
    # The dependencies come from this environment; the package itself must come from the wheel.
    (site / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    assert Path(run(python, "-c", "import quorate; print(quorate.__file__)").strip()).is_relative_to(tmp_path)
    shown = run(str(tmp_path / "env" / "bin" / "quorate"), "--help")
    for command in ("agent", "controller", "extender"):
        assert re.search(rf"^  {command} ", shown, re.MULTILINE)
    assert "--check" in run(str(tmp_path / "env" / "bin" / "quorate"), "agent", "--help")
