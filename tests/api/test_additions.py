"""Our schemas are those of the original API, plus one list of additions, minus one list of omissions."""

from __future__ import annotations

from pathlib import Path
from typing import cast

from quorate.api.additions import ADDITIONS, LEFT_OUT, Addition, as_markdown
from quorate.api.crd import crd
from quorate.api.resources import OWN
from quorate.api.schema import Json

HERE = Path(__file__).parent
DOCUMENT = HERE.parent.parent / "docs" / "api-additions.md"


def _published() -> set[tuple[str, str]]:
    lines = (HERE / "v1alpha1_fields.txt").read_text(encoding="utf-8").splitlines()
    return {cast("tuple[str, str]", tuple(line.split(" "))) for line in lines if not line.startswith("#")}


def _ours() -> set[tuple[str, str]]:
    found: set[tuple[str, str]] = set()
    for resource in OWN:
        definition = cast("dict[str, dict[str, list[dict[str, dict[str, dict[str, Json]]]]]]", crd(resource))
        root = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        found |= {(resource.kind, path) for path in _paths(root, "")}
    return found


def _paths(schema: dict[str, Json], prefix: str) -> list[str]:
    found: list[str] = []
    for name, value in cast("dict[str, dict[str, Json]]", schema.get("properties", {})).items():
        if not prefix and name in ("apiVersion", "kind", "metadata"):
            continue
        is_list = value.get("type") == "array"
        path = f"{prefix}.{name}" + ("[]" if is_list else "")
        found += [path, *_paths(cast("dict[str, Json]", value["items"]) if is_list else value, path)]
    return found


def _covers(addition: Addition, kind: str, path: str) -> bool:
    return addition.kind == kind and (
        path == addition.path or path.startswith((f"{addition.path}.", f"{addition.path}["))
    )


def test_every_field_is_published_or_listed_as_added() -> None:
    unexplained = {
        (kind, path)
        for kind, path in _ours() - _published()
        if not any(_covers(addition, kind, path) for addition in ADDITIONS)
    }
    assert unexplained == set()


def test_every_listed_addition_exists_and_is_not_published() -> None:
    ours, published = _ours(), _published()
    for addition in ADDITIONS:
        assert any(_covers(addition, *field) for field in ours), addition
        assert not any(_covers(addition, *field) for field in published), addition


def test_every_published_field_is_there_or_listed_as_left_out() -> None:
    assert _published() - _ours() == {(left.kind, left.path) for left in LEFT_OUT}


def test_the_document_shows_the_list() -> None:
    assert DOCUMENT.read_text(encoding="utf-8") == as_markdown()
