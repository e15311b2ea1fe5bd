"""Lists: selectors, pages of one snapshot, reads of the past."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.local.jsonvalue import Json, JsonObject, dig
from quorate.local.selectors import parse_labels
from quorate.local.status import StatusError
from tests.local.builders import WIDGETS, Api, config_map, crd, make_api, node, widget, with_spec


@pytest.fixture
def api() -> Api:
    return make_api()


LABELS: dict[str, dict[str, Json]] = {
    "a": {"app": "db", "tier": "1"},
    "b": {"app": "web", "tier": "2"},
    "c": {"app": "db"},
    "d": {},
}
SELECTORS = [
    ("", "abcd"),
    ("app", "abc"),
    ("!app", "d"),
    ("app=db", "ac"),
    ("app==db", "ac"),
    ("app!=db", "bd"),
    ("app in (db,web)", "abc"),
    ("app in (web)", "b"),
    ("app notin (db)", "bd"),
    ("app=db,tier", "a"),
    ("app=db,!tier", "c"),
    ("tier>1", "b"),
    ("tier<2", "a"),
    ("app=", ""),
    ("x/y.z", ""),
]


@pytest.mark.parametrize(("selector", "expected"), SELECTORS)
def test_label_selectors(api: Api, selector: str, expected: str) -> None:
    for name, labels in LABELS.items():
        api.post(WIDGETS, widget(name, labels=labels))
    assert api.get(WIDGETS, labelSelector=selector).names == list(expected)


@pytest.mark.parametrize("selector", ["=", "a b", "a in", "a in (b", "a,", ",a", "a=b=c", "(a)"])
def test_a_bad_label_selector_is_a_bad_request(selector: str) -> None:
    with pytest.raises(StatusError, match="unable to parse requirement"):
        parse_labels(selector)


@given(st.text(alphabet="ab=!,() <>in/.-", max_size=20))
def test_any_text_is_a_selector_or_a_bad_request(selector: str) -> None:
    try:
        parse_labels(selector)
    except StatusError as refusal:
        error = refusal
    else:
        return
    assert error.code == 400


def test_field_selectors(api: Api) -> None:
    api.post(WIDGETS, with_spec("a", node="n1"))
    api.post(WIDGETS, with_spec("b", node="n2"))
    api.post(WIDGETS, with_spec("c"))
    assert api.get(WIDGETS, fieldSelector="metadata.name=b").names == ["b"]
    assert api.get(WIDGETS, fieldSelector="spec.node=n1").names == ["a"]
    assert api.get(WIDGETS, fieldSelector="spec.node!=n1").names == ["b", "c"]
    assert api.get(WIDGETS, fieldSelector="spec.node=n1,metadata.name!=a").names == []
    refused = api.get(WIDGETS, fieldSelector="spec.size=1")
    assert refused.status == 400
    assert refused.message.endswith("field label not supported: spec.size")
    api.post("/api/v1/nodes", node("n1", unschedulable=True))
    api.post("/api/v1/nodes", node("n2"))
    assert api.get("/api/v1/nodes", fieldSelector="spec.unschedulable=false").names == ["n2"]


def test_a_namespace_bounds_a_list(api: Api) -> None:
    for namespace in ("default", "kube-system"):
        api.post(f"/api/v1/namespaces/{namespace}/configmaps", config_map("c"))
    assert len(api.get("/api/v1/configmaps").items) == 2
    one = api.get("/api/v1/namespaces/default/configmaps")
    assert [dig(item, "metadata", "namespace") for item in one.items] == ["default"]
    assert one.body["kind"] == "ConfigMapList"


def pages(api: Api, limit: int, between: list[JsonObject]) -> tuple[list[str], set[str]]:
    """All pages of a list, with one write between any two; the names and the versions the pages state."""
    names: list[str] = []
    versions: set[str] = set()
    token = ""
    while True:
        answer = api.get(WIDGETS, limit=str(limit), **({"continue": token} if token else {}))
        assert answer.status == 200
        assert len(answer.items) <= limit
        names += answer.names
        versions.add(answer.version)
        token = str(answer.metadata.get("continue", ""))
        if not token:
            return names, versions
        if between:
            api.post(WIDGETS, between.pop())


@given(
    st.sets(st.integers(0, 30), max_size=20), st.integers(1, 7), st.lists(st.integers(31, 60), max_size=5, unique=True)
)
def test_pages_together_are_one_snapshot(present: set[int], limit: int, late: list[int]) -> None:
    api = make_api()
    for number in sorted(present):
        api.post(WIDGETS, widget(f"w{number:02}"))
    whole = api.get(WIDGETS)
    names, versions = pages(api, limit, [widget(f"w{number:02}") for number in late])
    assert names == whole.names
    assert versions == {whole.version}


def test_the_first_page_counts_the_rest(api: Api) -> None:
    for name in "abcde":
        api.post(WIDGETS, widget(name))
    assert api.get(WIDGETS, limit="2").metadata["remainingItemCount"] == 3
    assert "remainingItemCount" not in api.get(WIDGETS, limit="2", labelSelector="!x").metadata


def test_an_expired_token_offers_an_inconsistent_continuation(api: Api) -> None:
    for name in "abc":
        api.post(WIDGETS, widget(name))
    token = str(api.get(WIDGETS, limit="1").metadata["continue"])
    api.post(WIDGETS, widget("d"))
    api.server.store.compact(api.server.store.version)
    expired = api.get(WIDGETS, limit="1", **{"continue": token})
    assert (expired.status, expired.reason) == (410, "Expired")
    rest = api.get(WIDGETS, **{"continue": str(expired.metadata["continue"])})
    assert rest.names == ["b", "c", "d"]


def test_a_nonsense_token_is_a_bad_request(api: Api) -> None:
    assert api.get(WIDGETS, **{"continue": "%%%"}).status == 400


def test_reads_of_the_past(api: Api) -> None:
    api.post(WIDGETS, widget("a"))
    then = api.get(WIDGETS)
    api.merge(f"{WIDGETS}/a", {"spec": {"size": 9}})
    api.post(WIDGETS, widget("b"))
    exact = api.get(WIDGETS, resourceVersion=then.version, resourceVersionMatch="Exact")
    assert exact.body == then.body
    assert api.get(WIDGETS, resourceVersion=then.version, resourceVersionMatch="NotOlderThan").names == ["a", "b"]
    assert api.get(WIDGETS, resourceVersion="0").names == ["a", "b"]
    future = api.get(WIDGETS, resourceVersion="9999")
    assert (future.status, future.reason, future.causes) == (504, "Timeout", [("", "ResourceVersionTooLarge")])
    api.server.store.compact(api.server.store.version)
    assert api.get(WIDGETS, resourceVersion=then.version, resourceVersionMatch="Exact").status == 410


def test_history_is_bounded_and_says_so() -> None:
    api = make_api(crd(), history=8)
    api.post(WIDGETS, widget("a"))
    then = api.get(WIDGETS).version
    for size in range(2, 40):
        api.merge(f"{WIDGETS}/a", {"spec": {"size": size}})
    assert api.get(WIDGETS, resourceVersion=then, resourceVersionMatch="Exact").status == 410
    assert len(api.server.store.table("test.quorate.dev/widgets").changes) <= 10


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"limit": "x"}, 400),
        ({"limit": "-1"}, 400),
        ({"resourceVersion": "x"}, 400),
        ({"resourceVersionMatch": "Exact"}, 422),
    ],
)
def test_nonsense_parameters_are_refused(api: Api, query: dict[str, str], code: int) -> None:
    assert api.get(WIDGETS, **query).status == code
