"""CEL rules: transitions, messages, reasons, Kubernetes' functions, errors as values."""

from __future__ import annotations

import pytest

from quorate.api.crd import all_crds
from quorate.local.cel import RuleSet, escape
from quorate.local.jsonvalue import Json, JsonObject
from quorate.local.structural import compile_structure
from tests.local.builders import WIDGETS, crd, make_api, widget, with_spec


def texts(schema: JsonObject, new: JsonObject, old: JsonObject | None = None) -> list[str]:
    rules = RuleSet(compile_structure(schema))
    assert rules.compile_errors() == []
    return [str(error) for error in rules.errors(new, old)]


def schema(rule: JsonObject, **properties: JsonObject) -> JsonObject:
    spec: JsonObject = {"type": "object", "properties": {**properties}, "x-kubernetes-validations": [rule]}
    return {"type": "object", "properties": {"spec": spec}}


INT: JsonObject = {"type": "integer"}
STRING: JsonObject = {"type": "string"}


def spec(**values: Json) -> JsonObject:
    return {"metadata": {"name": "n"}, "spec": {**values}}


def test_a_failing_rule_says_its_message() -> None:
    failing = schema({"rule": "self.a < self.b", "message": "a must be smaller"}, a=INT, b=INT)
    assert texts(failing, spec(a=2, b=1)) == ["spec: Invalid value: a must be smaller"]
    assert texts(failing, spec(a=1, b=2)) == []


def test_a_rule_without_message_shows_itself() -> None:
    assert texts(schema({"rule": "self.a > 1"}, a=INT), spec(a=1)) == ["spec: Invalid value: failed rule: self.a > 1"]


def test_a_message_can_be_computed() -> None:
    rule: JsonObject = {"rule": "self.a > 1", "message": "plain", "messageExpression": "'a is %d'.format([self.a])"}
    assert texts(schema(rule, a=INT), spec(a=1)) == ["spec: Invalid value: a is 1"]
    broken: JsonObject = {**rule, "messageExpression": "self.missing"}
    assert texts(schema(broken, a=INT), spec(a=1)) == ["spec: Invalid value: plain"]


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        ("FieldValueInvalid", "spec.a: Invalid value: m"),
        ("FieldValueForbidden", "spec.a: Forbidden: m"),
        ("FieldValueRequired", "spec.a: Required value: m"),
        ("FieldValueDuplicate", "spec.a: Duplicate value"),
    ],
)
def test_reason_and_field_path(reason: str, expected: str) -> None:
    rule: JsonObject = {"rule": "false", "message": "m", "reason": reason, "fieldPath": ".a"}
    assert texts(schema(rule, a=INT), spec(a=1)) == [expected]


def test_transition_rules_run_only_where_an_old_value_exists() -> None:
    rule: JsonObject = {"rule": "self == oldSelf", "message": "immutable"}
    immutable: JsonObject = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": {**STRING, "x-kubernetes-validations": [rule]}}}},
    }
    assert texts(immutable, spec(a="x")) == []
    assert texts(immutable, spec(a="x"), spec()) == []
    assert texts(immutable, spec(), spec(a="x")) == []
    assert texts(immutable, spec(a="x"), spec(a="x")) == []
    assert texts(immutable, spec(a="y"), spec(a="x")) == ['spec.a: Invalid value: "y": immutable']


def test_optional_old_self() -> None:
    rule: JsonObject = {
        "rule": "oldSelf.hasValue() ? self.a >= oldSelf.value().a : self.a == 1",
        "message": "begins at 1 and grows",
        "optionalOldSelf": True,
    }
    growing = schema(rule, a=INT)
    assert texts(growing, spec(a=1)) == []
    assert len(texts(growing, spec(a=2))) == 1
    assert texts(growing, spec(a=3), spec(a=2)) == []
    assert len(texts(growing, spec(a=1), spec(a=2))) == 1


def test_items_of_a_map_are_compared_by_key() -> None:
    api = make_api()
    api.post(WIDGETS, with_spec(parts=[{"id": 1, "fixed": "a"}, {"id": 2, "fixed": "b"}]))
    swapped = api.merge(f"{WIDGETS}/a", {"spec": {"parts": [{"id": 2, "fixed": "b"}, {"id": 1, "fixed": "a"}]}})
    assert swapped.status == 200
    changed = api.merge(f"{WIDGETS}/a", {"spec": {"parts": [{"id": 2, "fixed": "x"}, {"id": 1, "fixed": "a"}]}})
    assert changed.message.endswith('spec.parts[0].fixed: Invalid value: "x": fixed is immutable')


def test_rules_do_not_run_on_what_did_not_change() -> None:
    rule: JsonObject = {"rule": "self.a > 1", "message": "too small"}
    ratcheting = schema(rule, a=INT, b=INT)
    assert texts(ratcheting, spec(a=1), spec(a=1)) == []
    assert len(texts(ratcheting, spec(a=1, b=2), spec(a=1))) == 1


def test_the_root_sees_only_the_name() -> None:
    root: JsonObject = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"a": STRING}}},
        "x-kubernetes-validations": [
            {"rule": "self.metadata.name.startsWith(self.spec.a + '-')", "message": "wrong name"},
            {"rule": "!has(self.metadata.labels)"},
        ],
    }
    obj: JsonObject = {"metadata": {"name": "vol-1", "labels": {"a": "b"}}, "spec": {"a": "vol"}}
    assert texts(root, obj) == []
    assert texts(root, {**obj, "spec": {"a": "other"}}) == ["<nil>: Invalid value: wrong name"]


def test_errors_are_values() -> None:
    missing = schema({"rule": "self.missing == 1", "message": "m"}, a=INT)
    assert texts(missing, spec(a=1)) == ['spec: Invalid value: "object": no such key: missing evaluating rule: m']
    mixed = schema({"rule": "self.a < 'x'"}, a={"x-kubernetes-int-or-string": True})
    (text,) = texts(mixed, spec(a=1))
    assert "no such overload" in text
    assert "call arguments did not match a supported operator" in text
    divided = schema({"rule": "1 / self.a == 1"}, a=INT)
    (text,) = texts(divided, spec(a=0))
    assert "evaluating rule: 1 / self.a == 1" in text


EXPRESSIONS = [
    ("quantity('1Gi') == quantity('1024Mi')", True),
    ("quantity('1Gi').isGreaterThan(quantity('1G'))", True),
    ("quantity('100m').isLessThan(quantity('1'))", True),
    ("quantity('1').compareTo(quantity('1000m')) == 0", True),
    ("quantity('4Ki').asInteger() % 4096 == 0", True),
    ("quantity('1.5').isInteger()", False),
    ("quantity('1Ki').add(quantity('1Ki')) == quantity('2Ki')", True),
    ("quantity('1Ki').sub(24) == quantity('1000')", True),
    ("quantity('-1').sign() == -1", True),
    ("isQuantity('10Gi') && !isQuantity('ten')", True),
    ("'a-12'.find('[0-9]+') == '12'", True),
    ("'a1b2'.findAll('[0-9]') == ['1', '2']", True),
    ("'a1b2'.findAll('[0-9]', 1) == ['1']", True),
    ("[1, 2, 2].isSorted() && ![2, 1].isSorted()", True),
    ("[1, 2, 3].sum() == 6 && [3, 1].min() == 1 && [3, 1].max() == 3", True),
    ("isIP('10.0.0.1') && !isIP('x') && isCIDR('10.0.0.0/8')", True),
    ("isURL('https://a.b/c')", True),
    ("'a,b'.split(',').size() == 2 && 'AB'.lowerAscii() == 'ab'", True),
    ("duration('10m') > duration('9m59s')", True),
    ("timestamp('2024-01-01T00:00:00Z') < timestamp('2024-01-02T00:00:00Z')", True),
    ("self.?a.orValue(5) == 1 && self.?b.orValue(5) == 5", True),
    ("math.greatest(1, self.a) == 1", True),
    ("cel.bind(x, self.a, x + x == 2)", True),
]


@pytest.mark.parametrize(("expression", "expected"), EXPRESSIONS)
def test_functions_of_kubernetes(expression: str, expected: bool) -> None:
    assert (texts(schema({"rule": expression}, a=INT), spec(a=1)) == []) is expected


def test_names_that_cel_cannot_write_are_escaped() -> None:
    assert [escape(name) for name in ("a", "x-y", "a.b", "namespace", "a__b", "x/y")] == [
        "a",
        "x__dash__y",
        "a__dot__b",
        "__namespace__",
        "a__underscores__b",
        "x__slash__y",
    ]
    dashed = schema(
        {"rule": "self.x__dash__y == 'v' && self.__namespace__ == 'w'"}, **{"x-y": STRING, "namespace": STRING}
    )
    assert texts(dashed, {"metadata": {"name": "n"}, "spec": {"x-y": "v", "namespace": "w"}}) == []


def test_rules_wait_until_the_object_has_the_right_shape() -> None:
    api = make_api(crd(rules=[{"rule": "self.size < 10", "message": "small only"}]))
    answer = api.post(WIDGETS, {**widget(), "spec": {"size": "x"}})
    assert answer.causes == [("spec.size", "FieldValueTypeInvalid"), ("<nil>", "FieldValueInvalid")]
    assert "some validation rules were not checked because the object was invalid" in answer.message
    assert api.post(WIDGETS, widget(size=50)).message.endswith("spec: Invalid value: small only")


def test_all_rules_of_our_own_kinds_compile() -> None:
    assert make_api(*all_crds()).get("/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes").status == 200
