"""Defaults, pruning, the words of validation errors, CEL rules."""

from __future__ import annotations

from quorate.local.jsonvalue import Json, JsonObject
from tests.conformance.session import Case, Session
from tests.local.builders import GROUP, WIDGETS, crd, widget, with_spec
from tests.local.test_cel import EXPRESSIONS
from tests.local.test_schema import REFUSED

A = f"{WIDGETS}/a"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


ONLY_EMBEDDED = ("math.", "cel.", "quantity('-1').sign()", "self.?")
"""Expressions that a kube-apiserver does not compile: unknown functions, or fields that the kind does not declare."""


def refused(spec: JsonObject) -> Case:
    def case(api: Session) -> None:
        api.post(WIDGETS, {**widget(), "spec": spec})

    return case


def defaults(api: Session) -> None:
    api.post(WIDGETS, with_spec(parts=[{"id": 1}, {"id": 2, "weight": 5}], color=None))
    api.merge(f"{A}/status", {"status": {"phase": "x"}})
    api.merge(A, {"spec": {"color": "green"}})
    api.merge(A, {"spec": {"color": None}})


def pruning(api: Session) -> None:
    body = with_spec(bogus=1, extra={"kept": {"deep": [1]}}, labels={"any": "thing"}, parts=[{"id": 1, "bogus": 2}])
    api.post(WIDGETS, {**body, "rubbish": True})
    api.merge(A, {"spec": {"bogus": 2}})


def map_items_by_key(api: Session) -> None:
    api.post(WIDGETS, with_spec(parts=[{"id": 1, "fixed": "a"}, {"id": 2, "fixed": "b"}]))
    api.merge(A, {"spec": {"parts": [{"id": 2, "fixed": "b"}, {"id": 1, "fixed": "a"}]}})
    api.merge(A, {"spec": {"parts": [{"id": 2, "fixed": "x"}, {"id": 1, "fixed": "a"}]}})


RULES: dict[str, list[JsonObject]] = {
    "message": [{"rule": "self.size < 10", "message": "small only"}],
    "no message": [{"rule": "self.size < 10"}],
    "message expression": [
        {"rule": "self.size < 10", "message": "plain", "messageExpression": "'size is %d'.format([self.size])"}
    ],
    **{
        reason: [{"rule": "self.size < 10", "message": "m", "reason": reason, "fieldPath": ".color"}]
        for reason in ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")
    },
    "transition": [{"rule": "self.size >= oldSelf.size", "message": "grows only"}],
    "optional old self": [
        {
            "rule": "oldSelf.hasValue() ? self.size >= oldSelf.value().size : self.size < 10",
            "message": "begins small and grows",
            "optionalOldSelf": True,
        }
    ],
    "missing key": [{"rule": "self.node == 'n'", "message": "on n"}],
    "division": [{"rule": "10 / (self.size - 1) == 1", "message": "m"}],
    "two lines": [{"rule": "self.size <\n 10", "message": "small only"}],
    "two": [{"rule": "self.size < 10", "message": "one"}, {"rule": "self.size < 5", "message": "two"}],
}


def rules(number: int, made: list[JsonObject]) -> Case:
    """A kind of its own per set of rules: definitions are cached by their names."""
    kind = f"Rule{number}"
    path = f"/apis/{GROUP}/v1/{kind.lower()}s"

    def case(api: Session) -> None:
        assert api.post(DEFINITIONS, crd(kind, rules=list[Json](made))).status == 201
        wait_until_served(api, path)
        api.forget()
        api.post(path, {**widget(size=50), "kind": kind})
        api.post(path, {**widget(size=2), "kind": kind})
        api.post(path, {**widget("b", size=1), "kind": kind})
        api.merge(f"{path}/a", {"spec": {"size": 1}})
        api.merge(f"{path}/a", {"spec": {"size": 3, "node": "n"}})
        api.post(path, {**widget("c"), "kind": kind, "spec": {"size": "x"}})

    return case


def wait_until_served(api: Session, path: str) -> None:
    """A definition is established a moment after it was made."""
    for _ in range(200):
        probe: JsonObject = {
            "apiVersion": f"{GROUP}/v1",
            "kind": path.rpartition("/")[2].capitalize()[:-1],
            "metadata": {"name": "p"},
        }
        if api.get(path).status == 200 and api.post(path, probe, dryRun="All").status != 404:
            return
    raise AssertionError(f"{path} is not served")


def expressions(api: Session) -> None:
    """Kubernetes' CEL functions, all as rules of one kind: none may fail, and the false one must."""
    path = f"/apis/{GROUP}/v1/expressions"
    made: list[Json] = [
        {"rule": expression.replace("self.a", "self.size").replace("self.?a", "self.?size"), "message": expression}
        for expression, _ in EXPRESSIONS
        if not expression.startswith(ONLY_EMBEDDED)
    ]
    created = api.post(DEFINITIONS, crd("Expression", rules=made))
    assert created.status == 201, created.message
    wait_until_served(api, path)
    api.forget()
    api.post(path, {**widget(size=1), "kind": "Expression"})


def bad_definitions(api: Session) -> None:
    api.post(DEFINITIONS, {**crd("Broken"), "metadata": {"name": "x"}})
    api.post(DEFINITIONS, crd("Broken", spec={"type": "object", "properties": {"a": {}}}))


CASES: dict[str, Case] = {
    **{f"refused: {name}": refused(spec) for name, spec, *_ in REFUSED},
    "refused: several": refused({"size": 0, "color": "blue"}),
    "defaults": defaults,
    "pruning": pruning,
    "map items by key": map_items_by_key,
    **{f"rules: {name}": rules(number, made) for number, (name, made) in enumerate(RULES.items())},
    "expressions": expressions,
    "bad definitions": bad_definitions,
}
