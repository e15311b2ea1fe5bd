"""Every CEL rule of every CRD is exercised on the real server: an object it refuses, and objects of its kind that pass."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from quorate.api.crd import all_crds
from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, decode, dig, encode, objects
from tests.conformance.test_conformance import recorded


def rules(schema: JsonObject) -> Iterator[str]:
    """What the rules of a schema say when they refuse, at every depth."""
    for rule in objects(schema.get("x-kubernetes-validations")):
        yield as_text(rule.get("message")) or f"failed rule: {as_text(rule.get('rule'))}"
    for key in ("properties", "items", "additionalProperties"):
        below = schema.get(key)
        if isinstance(below, dict):
            parts = below.values() if key == "properties" else (below,)
            for part in parts:
                yield from rules(as_object(part))


def by_kind() -> dict[str, list[str]]:
    """The rules of each kind."""
    found: dict[str, list[str]] = {}
    for crd in all_crds():
        definition = as_object(decode(encode(as_object(crd))))
        (version,) = objects(dig(definition, "spec", "versions"))
        schema = as_object(dig(version, "schema", "openAPIV3Schema"))
        found[as_text(dig(definition, "spec", "names", "kind"))] = sorted(set(rules(schema)))
    return found


RULES = [(kind, message) for kind, messages in by_kind().items() for message in messages]


def answers(kind: str) -> Iterator[tuple[int, str]]:
    """Recorded answers about objects of a kind: status and message."""
    for name, transcript in recorded("own").items():
        if name.startswith(f"{kind}: "):
            for entry in objects(transcript):
                status: Json = entry["status"]
                assert isinstance(status, int)
                yield status, as_text(dig(entry, "body", "message"))


@pytest.mark.parametrize(("kind", "message"), RULES, ids=[f"{kind}: {message}"[:100] for kind, message in RULES])
def test_every_rule_refuses_something_and_lets_something_pass(kind: str, message: str) -> None:
    found = list(answers(kind))
    assert any(status == 422 and message in text for status, text in found), "no object is refused by this rule"
    assert any(status in (200, 201) for status, _ in found)
