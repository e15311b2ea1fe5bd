"""Defaults, pruning, validation and the words of its errors, ratcheting."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.local.jsonvalue import Json, JsonObject, as_object, dig, encode, objects, with_key
from quorate.local.structural import apply_defaults, compile_structure, duplicates, prune
from tests.local.builders import GROUP, WIDGET_SPEC, WIDGETS, Api, crd, make_api, widget, with_spec


@pytest.fixture
def api() -> Api:
    return make_api()


HEAD = 'Widget.test.quorate.dev "a" is invalid: '
BLOCKING = (
    "FieldValueRequired", "FieldValueTypeInvalid", "FieldValueTooLong", "FieldValueTooMany", "FieldValueNotSupported"
)  # fmt: skip
"""After these, CEL rules are not evaluated, and the answer says so."""
NOT_CHECKED = (
    "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; correct the "
    "existing errors to complete validation"
)
REFUSED: list[tuple[str, JsonObject, str, str, str]] = [
    # name, spec, field, reason, text
    ("required", {}, "spec.size", "FieldValueRequired", "spec.size: Required value"),
    (
        "type", {"size": "x"}, "spec.size", "FieldValueTypeInvalid",
        'spec.size: Invalid value: "string": spec.size in body must be of type integer: "string"',
    ),
    (
        "no integer", {"size": 1.5}, "spec.size", "FieldValueTypeInvalid",
        'spec.size: Invalid value: "number": spec.size in body must be of type integer: "number"',
    ),
    ("null", {"size": None}, "spec.size", "FieldValueRequired", "spec.size: Required value"),
    (
        "minimum", {"size": 0}, "spec.size", "FieldValueInvalid",
        "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
    ),
    (
        "maximum", {"size": 101}, "spec.size", "FieldValueInvalid",
        "spec.size: Invalid value: 101: spec.size in body should be less than or equal to 100",
    ),
    (
        "enum", {"size": 1, "color": "blue"}, "spec.color", "FieldValueNotSupported",
        'spec.color: Unsupported value: "blue": supported values: "red", "green"',
    ),
    (
        "too short", {"size": 1, "name": ""}, "spec.name", "FieldValueInvalid",
        'spec.name: Invalid value: "": spec.name in body should be at least 1 chars long',
    ),
    (
        "too long", {"size": 1, "name": "abcdef"}, "spec.name", "FieldValueTooLong",
        "spec.name: Too long: may not be more than 5 bytes",
    ),
    (
        "pattern", {"size": 1, "name": "A"}, "spec.name", "FieldValueInvalid",
        "spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]*$'",
    ),
    (
        "too many", {"size": 1, "zones": ["a", "b", "c", "d"]}, "spec.zones", "FieldValueTooMany",
        "spec.zones: Too many: 4: must have at most 3 items",
    ),
    ("set", {"size": 1, "zones": ["a", "a"]}, "spec.zones[1]", "FieldValueDuplicate", 'spec.zones[1]: Duplicate value: "a"'),
    (
        "map", {"size": 1, "parts": [{"id": 1}, {"id": 2}, {"id": 1}]}, "spec.parts[2]", "FieldValueDuplicate",
        'spec.parts[2]: Duplicate value: {"id":1}',
    ),
    ("nested", {"size": 1, "parts": [{}]}, "spec.parts[0].id", "FieldValueRequired", "spec.parts[0].id: Required value"),
    (
        "int or string", {"size": 1, "volume": True}, "spec.volume", "FieldValueTypeInvalid",
        'spec.volume: Invalid value: "boolean": spec.volume in body must be of type integer,string: "boolean"',
    ),
    (
        "format", {"size": 1, "since": "yesterday"}, "spec.since", "FieldValueTypeInvalid",
        'spec.since: Invalid value: "yesterday": spec.since in body must be of type date-time: "yesterday"',
    ),
]  # fmt: skip


@pytest.mark.parametrize(("name", "spec", "field", "reason", "text"), REFUSED, ids=[case[0] for case in REFUSED])
def test_errors_have_the_words_of_kubernetes(
    api: Api, name: str, spec: JsonObject, field: str, reason: str, text: str
) -> None:
    answer = api.post(WIDGETS, {**widget(), "spec": spec})
    assert (answer.status, answer.reason) == (422, "Invalid")
    blocking = reason in BLOCKING
    assert answer.message == HEAD + (f"[{text}, {NOT_CHECKED}]" if blocking else text)
    assert answer.causes == [(field, reason), *([("<nil>", "FieldValueInvalid")] if blocking else [])]
    assert dig(answer.body, "details", "kind") == "Widget"
    assert dig(answer.body, "details", "group") == GROUP
    assert api.get(f"{WIDGETS}/a").status == 404


def test_several_errors_stand_in_brackets(api: Api) -> None:
    answer = api.post(WIDGETS, {**widget(), "spec": {"size": 0, "color": "blue"}})
    assert answer.message == (
        HEAD + "[spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1, "
        f'spec.color: Unsupported value: "blue": supported values: "red", "green", {NOT_CHECKED}]'
    )


def test_defaults_are_filled_in_at_every_depth(api: Api) -> None:
    answer = api.post(WIDGETS, with_spec(parts=[{"id": 1}, {"id": 2, "weight": 5}]))
    assert answer.body["spec"] == {"size": 1, "color": "red", "parts": [{"id": 1, "weight": 1}, {"id": 2, "weight": 5}]}
    status = api.merge(f"{WIDGETS}/a/status", {"status": {"phase": "x"}})
    assert status.body["status"] == {"phase": "x", "count": 0}


def test_a_null_gives_way_to_the_default(api: Api) -> None:
    assert dig(api.post(WIDGETS, with_spec(color=None)).body, "spec", "color") == "red"


def test_a_removed_field_with_a_default_comes_back(api: Api) -> None:
    api.post(WIDGETS, with_spec(color="green"))
    assert dig(api.merge(f"{WIDGETS}/a", {"spec": {"color": None}}).body, "spec", "color") == "red"


def test_unknown_fields_go_unless_they_are_preserved(api: Api) -> None:
    body = with_spec(bogus=1, extra={"kept": {"deep": [1]}}, labels={"any": "thing"}, parts=[{"id": 1, "bogus": 2}])
    answer = api.post(WIDGETS, {**body, "rubbish": True})
    assert "rubbish" not in answer.body
    assert answer.body["spec"] == {
        "size": 1,
        "color": "red",
        "extra": {"kept": {"deep": [1]}},
        "labels": {"any": "thing"},
        "parts": [{"id": 1, "weight": 1}],
    }


def with_maximum(maximum: int, *, weight: int = 10) -> JsonObject:
    """The widget's spec schema with other limits."""
    properties = dict(as_object(WIDGET_SPEC["properties"]))
    properties["size"] = {"type": "integer", "maximum": maximum}
    parts = as_object(properties["parts"])
    items = as_object(parts["items"])
    limited = with_key(as_object(items["properties"]), "weight", {"type": "integer", "default": 1, "maximum": weight})
    properties["parts"] = {**parts, "items": {**items, "properties": limited}}
    return {**WIDGET_SPEC, "properties": properties}


def tighten(api: Api, spec: JsonObject) -> None:
    path = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{GROUP}"
    current = api.get(path).body
    assert api.put(path, {**current, "spec": crd(spec=spec)["spec"]}).status == 200


def test_an_object_that_became_invalid_stays_writable_where_it_is_not_touched(api: Api) -> None:
    """Ratcheting."""
    api.post(WIDGETS, with_spec(size=50, parts=[{"id": 1, "weight": 9}, {"id": 2, "weight": 2}]))
    tighten(api, with_maximum(10, weight=5))
    assert api.post(WIDGETS, widget("b", size=50)).status == 422
    assert api.merge(f"{WIDGETS}/a", {"spec": {"color": "green"}}).status == 200
    assert api.merge(f"{WIDGETS}/a/status", {"status": {"phase": "x"}}).status == 200
    # Items of a map are compared by key: the offending one may move, but not change.
    moved = api.merge(f"{WIDGETS}/a", {"spec": {"parts": [{"id": 2, "weight": 3}, {"id": 1, "weight": 9}]}})
    assert moved.status == 200
    touched = api.merge(f"{WIDGETS}/a", {"spec": {"parts": [{"id": 1, "weight": 8}, {"id": 2, "weight": 3}]}})
    assert (touched.status, touched.causes) == (422, [("spec.parts[0].weight", "FieldValueInvalid")])
    assert api.merge(f"{WIDGETS}/a", {"spec": {"size": 51}}).status == 422
    assert api.merge(f"{WIDGETS}/a", {"spec": {"size": 9}}).status == 200


def test_a_definition_that_cannot_work_is_refused(api: Api) -> None:
    path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    untyped = api.post(path, crd("Gadget", spec={"properties": {"a": {}}}))
    assert ("spec.versions[0].schema.openAPIV3Schema.properties[spec].type", "FieldValueRequired") in untyped.causes
    broken = api.post(path, crd("Gadget", rules=[{"rule": "self.size >"}]))
    assert broken.status == 422
    assert "x-kubernetes-validations[0].rule" in broken.message
    assert "compilation failed" in broken.message
    misnamed = api.post(path, {**crd("Gadget"), "metadata": {"name": "x"}})
    assert ("metadata.name", "FieldValueInvalid") in misnamed.causes
    assert api.get(f"/apis/{GROUP}/v1/gadgets").status == 404


def test_a_new_definition_is_served_at_once_and_says_so(api: Api) -> None:
    created = api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd("Gadget", namespaced=True))
    assert created.status == 201
    conditions = {str(each["type"]): each["status"] for each in objects(dig(created.body, "status", "conditions"))}
    assert conditions == {"NamesAccepted": "True", "Established": "True"}
    assert api.get(f"/apis/{GROUP}/v1/namespaces/default/gadgets").names == []


KEYS = st.sampled_from(["size", "color", "parts", "id", "extra", "zz"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(KEYS, below, max_size=3),
    max_leaves=10,
)


@given(VALUES)
def test_pruning_and_defaulting_are_idempotent_and_leave_their_input_alone(value: Json) -> None:
    structure = compile_structure(WIDGET_SPEC)
    before = encode(value)
    pruned = prune(value, structure)
    assert prune(pruned, structure) is pruned
    filled = apply_defaults(pruned, structure)
    assert apply_defaults(filled, structure) == filled
    assert encode(value) == before
    list(duplicates(filled, structure))


@given(VALUES)
def test_any_spec_is_stored_or_refused(value: Json) -> None:
    api = make_api()
    answer = api.post(WIDGETS, {**widget(), "spec": value})
    assert answer.status in (201, 422), answer.body
