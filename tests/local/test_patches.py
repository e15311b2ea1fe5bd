"""Merge patch, JSON patch and strategic merge patch."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.local.builtin import BUILTIN
from quorate.local.jsonvalue import Json, JsonObject, dig, encode
from quorate.local.patches import PatchFailed, json_patch, merge_patch
from quorate.local.status import StatusError
from quorate.local.strategic import strategic_merge
from tests.local.builders import WIDGETS, Api, make_api, node, widget

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text("ab", max_size=2),
    lambda below: st.lists(below, max_size=3) | st.dictionaries(st.text("abc", max_size=2), below, max_size=3),
    max_leaves=12,
)

# RFC 7386, appendix A
MERGE: list[tuple[Json, Json, Json]] = [
    ({"a": "b"}, {"a": "c"}, {"a": "c"}),
    ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
    ({"a": "b"}, {"a": None}, {}),
    ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
    ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
    ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
    ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
    ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
    (["a", "b"], ["c", "d"], ["c", "d"]),
    ({"a": "b"}, ["c"], ["c"]),
    ({"a": "foo"}, None, None),
    ({"a": "foo"}, "bar", "bar"),
    ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
    ([1, 2], {"a": "b", "c": None}, {"a": "b"}),
    ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), MERGE)
def test_merge_patch_examples_of_the_rfc(target: Json, patch: Json, expected: Json) -> None:
    assert merge_patch(target, patch) == expected


@given(JSON, JSON)
def test_merge_patch_is_idempotent_and_leaves_its_input_alone(target: Json, patch: Json) -> None:
    before = encode(target), encode(patch)
    once = merge_patch(target, patch)
    assert merge_patch(once, patch) == once
    assert (encode(target), encode(patch)) == before


# RFC 6902, appendix A
PATCHES: list[tuple[Json, list[Json], Json]] = [
    ({"foo": "bar"}, [{"op": "add", "path": "/baz", "value": "qux"}], {"baz": "qux", "foo": "bar"}),
    ({"foo": ["bar", "baz"]}, [{"op": "add", "path": "/foo/1", "value": "qux"}], {"foo": ["bar", "qux", "baz"]}),
    ({"foo": ["bar"]}, [{"op": "add", "path": "/foo/-", "value": ["abc"]}], {"foo": ["bar", ["abc"]]}),
    ({"baz": "qux", "foo": "bar"}, [{"op": "remove", "path": "/baz"}], {"foo": "bar"}),
    ({"foo": ["bar", "qux", "baz"]}, [{"op": "remove", "path": "/foo/1"}], {"foo": ["bar", "baz"]}),
    ({"baz": "qux"}, [{"op": "replace", "path": "/baz", "value": "boo"}], {"baz": "boo"}),
    (
        {"foo": {"bar": 1}, "q": {}},
        [{"op": "move", "from": "/foo/bar", "path": "/q/bar"}],
        {"foo": {}, "q": {"bar": 1}},
    ),
    (
        {"foo": ["all", "grass", "cows", "eat"]},
        [{"op": "move", "from": "/foo/1", "path": "/foo/3"}],
        {"foo": ["all", "cows", "eat", "grass"]},
    ),
    ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "qux"}], {"baz": "qux"}),
    ({"foo": None}, [{"op": "test", "path": "/foo", "value": None}], {"foo": None}),
    ({"/": 9, "~1": 10}, [{"op": "test", "path": "/~01", "value": 10}], {"/": 9, "~1": 10}),
    ({"a": 1}, [{"op": "copy", "from": "/a", "path": "/b"}], {"a": 1, "b": 1}),
    ({"a": [1, 2]}, [{"op": "replace", "path": "/a/1", "value": 3}], {"a": [1, 3]}),
    ({"a": 1}, [{"op": "replace", "path": "", "value": {"b": 2}}], {"b": 2}),
]


@pytest.mark.parametrize(("target", "patch", "expected"), PATCHES)
def test_json_patch_examples_of_the_rfc(target: Json, patch: list[Json], expected: Json) -> None:
    before = encode(target)
    assert json_patch(target, patch) == expected
    assert encode(target) == before


FAILING: list[tuple[Json, Json]] = [
    ({"baz": "qux"}, [{"op": "test", "path": "/baz", "value": "bar"}]),
    ({"foo": "bar"}, [{"op": "add", "path": "/baz/bat", "value": "qux"}]),
    ({"foo": "bar"}, [{"op": "remove", "path": "/x"}]),
    ({"foo": "bar"}, [{"op": "replace", "path": "/x", "value": 1}]),
    ({"foo": [1]}, [{"op": "add", "path": "/foo/5", "value": 1}]),
    ({"foo": [1]}, [{"op": "add", "path": "/foo/01", "value": 1}]),
    ({"a": True}, [{"op": "test", "path": "/a", "value": 1}]),
    ({"a": True}, [{"op": "jump", "path": "/a"}]),
]


@pytest.mark.parametrize(("target", "patch"), FAILING)
def test_a_json_patch_that_does_not_fit_fails(target: Json, patch: Json) -> None:
    with pytest.raises(PatchFailed):
        json_patch(target, patch)


@pytest.mark.parametrize(
    "patch",
    [{}, [1], [{"op": "add", "path": "a", "value": 1}], [{"op": "add", "path": "/a"}]],
)
def test_what_is_no_json_patch_is_a_bad_request(patch: Json) -> None:
    with pytest.raises(StatusError, match="400"):
        json_patch({"a": 1}, patch)


NODE = next(kind for kind in BUILTIN if kind.kind == "Node").structure
CONDITION_A: JsonObject = {"type": "A", "status": "True"}
CONDITION_B: JsonObject = {"type": "B", "status": "False"}

STRATEGIC: list[tuple[str, JsonObject, JsonObject, JsonObject]] = [
    (
        "taints are replaced",
        {"spec": {"taints": [{"key": "a"}]}},
        {"spec": {"taints": [{"key": "b"}]}},
        {"spec": {"taints": [{"key": "b"}]}},
    ),
    ("null removes", {"spec": {"unschedulable": True}}, {"spec": {"unschedulable": None}}, {"spec": {}}),
    (
        "conditions merge by type",
        {"status": {"conditions": [CONDITION_A, CONDITION_B]}},
        {"status": {"conditions": [{"type": "B", "status": "True"}]}},
        {"status": {"conditions": [CONDITION_A, {"type": "B", "status": "True"}]}},
    ),
    (
        "conditions are deleted by type",
        {"status": {"conditions": [CONDITION_A, CONDITION_B]}},
        {"status": {"conditions": [{"type": "A", "$patch": "delete"}]}},
        {"status": {"conditions": [CONDITION_B]}},
    ),
    (
        "conditions are replaced on demand",
        {"status": {"conditions": [CONDITION_A]}},
        {"status": {"conditions": [{"$patch": "replace"}, CONDITION_B]}},
        {"status": {"conditions": [CONDITION_B]}},
    ),
    (
        "the order is set",
        {"status": {"conditions": [CONDITION_A, CONDITION_B]}},
        {"status": {"$setElementOrder/conditions": [{"type": "B"}, {"type": "A"}]}},
        {"status": {"conditions": [CONDITION_B, CONDITION_A]}},
    ),
    (
        "finalizers are a set",
        {"metadata": {"finalizers": ["a/b"]}},
        {"metadata": {"finalizers": ["a/c", "a/b"]}},
        {"metadata": {"finalizers": ["a/b", "a/c"]}},
    ),
    (
        "finalizers are removed by value",
        {"metadata": {"finalizers": ["a/b", "a/c"]}},
        {"metadata": {"$deleteFromPrimitiveList/finalizers": ["a/b"]}},
        {"metadata": {"finalizers": ["a/c"]}},
    ),
    (
        "owners merge by uid",
        {"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}]}},
        {"metadata": {"ownerReferences": [{"uid": "2", "name": "b"}]}},
        {"metadata": {"ownerReferences": [{"uid": "1", "name": "a"}, {"uid": "2", "name": "b"}]}},
    ),
    ("an object is replaced", {"spec": {"a": 1, "b": 2}}, {"spec": {"$patch": "replace", "c": 3}}, {"spec": {"c": 3}}),
    ("an object is deleted", {"spec": {"a": 1}, "x": 1}, {"spec": {"$patch": "delete"}}, {"x": 1}),
    (
        "keys are retained",
        {"spec": {"a": 1, "b": 2}},
        {"spec": {"$retainKeys": ["b", "c"], "c": 3}},
        {"spec": {"b": 2, "c": 3}},
    ),
]


@pytest.mark.parametrize(("name", "target", "patch", "expected"), STRATEGIC, ids=[case[0] for case in STRATEGIC])
def test_strategic_merge(name: str, target: JsonObject, patch: JsonObject, expected: JsonObject) -> None:
    before = encode(target)
    assert strategic_merge(target, patch, NODE) == expected
    assert encode(target) == before


def test_a_list_item_without_its_merge_key_is_a_bad_request() -> None:
    with pytest.raises(StatusError, match="does not contain declared merge key: type"):
        strategic_merge({}, {"status": {"conditions": [{"status": "True"}]}}, NODE)


@pytest.fixture
def api() -> Api:
    made = make_api()
    made.post(WIDGETS, widget())
    made.post("/api/v1/nodes", node("n"))
    return made


def test_patches_over_the_api(api: Api) -> None:
    assert (
        dig(api.json_patch(f"{WIDGETS}/a", [{"op": "replace", "path": "/spec/size", "value": 4}]).body, "spec", "size")
        == 4
    )
    taint: JsonObject = {"key": "k", "effect": "NoSchedule"}
    assert dig(api.strategic("/api/v1/nodes/n", {"spec": {"taints": [taint]}}).body, "spec", "taints") == [taint]


def test_a_failing_json_patch_is_invalid(api: Api) -> None:
    answer = api.json_patch(f"{WIDGETS}/a", [{"op": "test", "path": "/spec/size", "value": 4}])
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert answer.message == "the server rejected our request due to an error in our request"


def test_custom_kinds_take_no_strategic_patch(api: Api) -> None:
    answer = api.strategic(f"{WIDGETS}/a", {"spec": {"size": 2}})
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")
    assert "application/merge-patch+json" in answer.message


def test_a_patch_cannot_change_the_identity(api: Api) -> None:
    assert api.merge(f"{WIDGETS}/a", {"metadata": {"name": "b"}}).status == 400
    assert api.merge(f"{WIDGETS}/a", {"kind": "Other"}).status == 400
    assert api.get(f"{WIDGETS}/a").metadata["name"] == "a"
