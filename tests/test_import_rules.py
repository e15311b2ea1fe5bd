"""The package table of the design, enforced by import-linter (`[tool.importlinter]` in pyproject.toml)."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import cast

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROJECT = ROOT / "pyproject.toml"
FREE = ("cli", "web")
"""Packages that may import everything."""


def _contracts() -> list[dict[str, object]]:
    document = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    return cast("list[dict[str, object]]", document["tool"]["importlinter"]["contracts"])


def _lint(package_parent: Path, working_directory: Path) -> tuple[int, str]:
    environment = {**os.environ, "PYTHONPATH": str(package_parent), "NO_COLOR": "1"}
    code = (
        "from importlinter.cli import lint_imports; "
        f"raise SystemExit(lint_imports(config_filename={str(PROJECT)!r}, no_cache=True))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=working_directory,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout + done.stderr


def _skeleton(directory: Path) -> Path:
    """A package of the same shape with nothing in it."""
    for contract in _contracts():
        for module in cast("list[str]", contract["source_modules"]) + cast("list[str]", contract["forbidden_modules"]):
            package = directory / Path(*module.split("."))
            package.mkdir(parents=True, exist_ok=True)
            (package / "__init__.py").touch()
    (directory / "quorate" / "__init__.py").touch()
    return directory


def test_the_packages_keep_to_the_table() -> None:
    code, output = _lint(ROOT / "src", ROOT)
    assert code == 0, output


def test_a_violation_of_any_contract_is_found(tmp_path: Path) -> None:
    tree = _skeleton(tmp_path / "src")
    assert _lint(tree, tmp_path)[0] == 0
    for contract in _contracts():
        (source,) = cast("list[str]", contract["source_modules"])
        forbidden = cast("list[str]", contract["forbidden_modules"])[-1]
        offender = tree / Path(*source.split(".")) / "offender.py"
        offender.write_text(f"import {forbidden}\n", encoding="utf-8")

    code, output = _lint(tree, tmp_path)

    assert code == 1
    for contract in _contracts():
        assert f"{contract['name']} BROKEN" in output


def test_every_package_is_named_in_the_table() -> None:
    packages = sorted(path.parent.name for path in (ROOT / "src" / "quorate").glob("*/__init__.py"))
    named = [module.removeprefix("quorate.") for c in _contracts() for module in cast("list[str]", c["source_modules"])]
    assert [package for package in packages if package not in named and package not in FREE] == []


@pytest.mark.parametrize(
    ("package", "may_import"),
    [
        ("api", ()),
        ("simulator", ()),
        ("datamesh", ("api",)),
        ("machinery", ("api",)),
        ("controllers", ("api", "datamesh", "machinery")),
        ("kube", ("api", "machinery")),
        ("agent", ("api", "machinery")),
        ("extender", ("api", "machinery")),
        ("explain", ("api", "datamesh")),
    ],
)
def test_the_contracts_say_what_the_table_says(package: str, may_import: tuple[str, ...]) -> None:
    (contract,) = (c for c in _contracts() if c["source_modules"] == [f"quorate.{package}"])
    others = sorted(path.parent.name for path in (ROOT / "src" / "quorate").glob("*/__init__.py"))
    forbidden = [module.removeprefix("quorate.") for module in cast("list[str]", contract["forbidden_modules"])]
    assert [name for name in others if name not in (package, *may_import, *forbidden)] == []
    assert [name for name in may_import if name in forbidden] == []
