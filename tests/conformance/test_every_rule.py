"""Every CEL rule of every CRD, at every place it stands, meets an object that it refuses and one that it lets pass.

What is looked at are the recorded answers of a real kube-apiserver; `test_conformance` holds both servers to them, so the
refusals name the same paths with the same words on both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from quorate.api.crd import all_crds
from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, decode, dig, encode, objects
from tests.conformance.differences import DIFFERENCES
from tests.conformance.test_conformance import MODULES, recorded

OURS = ("own", "places")
"""The modules with cases about our CRDs."""
NEVER_REFUSES = {
    (
        "LVMVolumeGroup",
        "spec.type",
    ): "Local is the only type: another one is refused by the schema before rules are asked",
}
INDEX = re.compile(r"\[[^\]]*\]")


@dataclass(frozen=True)
class Rule:
    """A rule at its place."""

    kind: str
    path: tuple[str, ...]
    """Fields from the object down; `*` is any item."""
    said: str
    """What it says when it refuses."""
    compares: bool
    """Whether it looks at the old value, so that only an update can meet it."""

    @property
    def place(self) -> str:
        """The path in one word."""
        return ".".join(self.path)


def rules_of(kind: str, schema: JsonObject, path: tuple[str, ...] = ()) -> Iterator[Rule]:
    """The rules of a schema, at every depth."""
    for rule in objects(schema.get("x-kubernetes-validations")):
        text = as_text(rule.get("rule"))
        yield Rule(kind, path, as_text(rule.get("message")) or f"failed rule: {text}", "oldSelf" in text)
    for name, part in as_object(schema.get("properties") or {}).items():
        yield from rules_of(kind, as_object(part), (*path, name))
    for key in ("items", "additionalProperties"):
        below = schema.get(key)
        if isinstance(below, dict):
            yield from rules_of(kind, below, (*path, "*"))


def all_rules() -> Iterator[Rule]:
    """The rules of all kinds."""
    for crd in all_crds():
        definition = as_object(decode(encode(as_object(crd))))
        (version,) = objects(dig(definition, "spec", "versions"))
        kind = as_text(dig(definition, "spec", "names", "kind"))
        yield from rules_of(kind, as_object(dig(version, "schema", "openAPIV3Schema")))


RULES = tuple(all_rules())


@cache
def answers(kind: str) -> tuple[JsonObject, ...]:
    """Recorded answers about objects of a kind."""
    return tuple(
        entry
        for module in OURS
        for name, transcript in recorded(module).items()
        if name.startswith(f"{kind}: ")
        for entry in objects(transcript)
    )


def reaches(value: Json, path: tuple[str, ...]) -> bool:
    """Whether an object has something at a place."""
    if not path:
        return True
    head, rest = path[0], path[1:]
    if head == "*":
        items = value if isinstance(value, list) else list(as_object(value).values())
        return any(reaches(item, rest) for item in items)
    return isinstance(value, dict) and head in value and reaches(value[head], rest)


def lets_pass(rule: Rule, answer: JsonObject) -> bool:
    """Whether an accepted object was looked at by a rule."""
    accepted = answer["status"] in (200, 201)
    created = as_text(answer["asked"]).startswith("POST")
    return accepted and not (created and rule.compares) and reaches(answer["body"], rule.path)


def refuses(rule: Rule, answer: JsonObject) -> bool:
    """Whether the refusal names the rule's place and has its words."""
    if answer["status"] != 422:
        return False
    for cause in objects(dig(answer, "body", "details", "causes")):
        field = INDEX.sub(".*", as_text(cause.get("field")))
        below = not rule.path or field == rule.place or field.startswith(f"{rule.place}.")
        if below and rule.said in as_text(cause.get("message")):
            return True
    return False


@pytest.mark.parametrize("rule", RULES, ids=[f"{rule.kind} {rule.place}: {rule.said}"[:120] for rule in RULES])
def test_every_rule_refuses_something_and_lets_something_pass(rule: Rule) -> None:
    found = answers(rule.kind)
    assert any(lets_pass(rule, answer) for answer in found), "no object that has something at this place passes"
    unreachable = (rule.kind, rule.place) in NEVER_REFUSES
    assert any(refuses(rule, answer) for answer in found) != unreachable, "no object is refused at this place"


def test_both_servers_answer_the_same_about_our_own_kinds() -> None:
    assert not {name for module in OURS for name in MODULES[module]} & set(DIFFERENCES)
