"""What a person can get wrong with `quorate up`: one sentence, exit code 2; and the examples that it offers."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from quorate.cli.main import main
from quorate.local.examples import manifests
from quorate.local.shape import Shape
from quorate.local.shape_file import ShapeMismatch, ShapeWish, choose_shape, read_shape, write_shape
from quorate.simulator.persistence import FILE

EXAMPLES = Path(__file__).resolve().parents[2] / "docs" / "examples"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--nodes", "many"), "'many' is not a valid integer"),
        (("--nodes", "-1"), "-1 is not in the range"),
        (("--zones", "27"), "27 is not in the range"),
        (("--vgs", "data,No Good"), "'No Good' is no name for a volume group"),
        (("--time-scale", "0"), "0.0 is not in the range"),
        (("--port", "70000"), "70000 is not in the range"),
        (("--log-level", "loud"), "'loud' is not one of"),
        (("--unknown",), "No such option"),
    ],
)
def test_a_bad_flag_is_named(arguments: tuple[str, ...], sentence: str) -> None:
    done = CliRunner().invoke(main, ["up", *arguments])
    assert done.exit_code == 2
    assert sentence in done.output


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        (ShapeWish(nodes=3), "can grow but not shrink to 3"),
        (ShapeWish(zones=2), "made with --zones 3; 2 needs another directory"),
        (ShapeWish(groups=("fast",)), "made with --vgs data; fast needs another directory"),
        (ShapeWish(thin=False), "made with --thin/--thick thin; thick needs another directory"),
    ],
)
def test_a_directory_is_continued_with_its_own_shape(tmp_path: Path, wish: ShapeWish, sentence: str) -> None:
    write_shape(tmp_path, Shape())
    assert choose_shape(tmp_path, ShapeWish()) == Shape()
    assert choose_shape(tmp_path, ShapeWish(nodes=7)) == Shape(nodes=7)
    with pytest.raises(ShapeMismatch, match=sentence):
        choose_shape(tmp_path, wish)
    arguments = ["--nodes", "3"] if wish.nodes else []
    if arguments:
        done = CliRunner().invoke(main, ["up", "--data", str(tmp_path), *arguments])
        assert (done.exit_code, len(done.output.splitlines())) == (2, 1)


def test_a_new_directory_gets_what_was_asked_for(tmp_path: Path) -> None:
    assert read_shape(tmp_path) is None
    assert choose_shape(tmp_path, ShapeWish(nodes=2, thin=False)) == Shape(nodes=2, thin=False)


@pytest.mark.parametrize("file", ["cluster.json", FILE])
def test_damaged_files_are_one_sentence(tmp_path: Path, file: str) -> None:
    (tmp_path / file).write_text("not what it should be")
    done = CliRunner().invoke(main, ["up", "--data", str(tmp_path), "--port", "0"])
    assert (done.exit_code, len(done.output.splitlines())) == (2, 1), done.output
    assert done.output.startswith("quorate up: Cannot use")


def test_the_documented_examples_are_those_of_the_default_cluster() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in EXAMPLES.glob("*.yaml")}
    assert {name: written.get(name) for name in manifests(Shape())} == manifests(Shape())


def test_a_small_cluster_gets_a_class_that_it_can_keep() -> None:
    assert "failuresToTolerate: 0" in manifests(Shape(nodes=2))["storage-class.yaml"]
    assert "thinPoolName" not in manifests(Shape(thin=False))["storage-class.yaml"]
