"""Discovery, OpenAPI, tables and the small languages they use."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.crd import all_crds
from quorate.local.durations import age, human
from quorate.local.jsonpath import compile_path, find
from quorate.local.jsonvalue import Json, JsonObject, as_list, as_object, dig, objects
from quorate.local.kinds import Kind
from quorate.local.protobuf import decode_protobuf
from quorate.local.status import StatusError
from tests.local.builders import GROUP, WIDGETS, Api, crd, make_api, node, widget, with_spec

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"


@pytest.fixture
def api() -> Api:
    return make_api(*all_crds())


def served_paths(kind: Kind) -> list[str]:
    base = f"/apis/{kind.group}/{kind.version}" if kind.group else f"/api/{kind.version}"
    scope = "/namespaces/{namespace}" if kind.namespaced else ""
    one = f"{base}{scope}/{kind.plural}/{{name}}"
    return [f"{base}{scope}/{kind.plural}", one, *([f"{one}/status"] if kind.has_status else [])]


def test_both_forms_of_discovery_tell_the_same(api: Api) -> None:
    aggregated: set[tuple[str, str, str]] = set()
    for root in ("/api", "/apis"):
        listed = api.send("GET", root, accept="application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
        assert listed.body["kind"] == "APIGroupDiscoveryList"
        for group in listed.items:
            name = str(dig(group, "metadata", "name") or "")
            for version in objects(group["versions"]):
                for resource in objects(version["resources"]):
                    aggregated.add((name, str(version["version"]), str(resource["resource"])))
    plain: set[tuple[str, str, str]] = set()
    groups = [("", "/api/v1")]
    groups += [
        (str(each["name"]), f"/apis/{dig(each, 'preferredVersion', 'groupVersion')}")
        for each in objects(api.get("/apis").body["groups"])
    ]
    for name, path in groups:
        for resource in objects(api.get(path).body["resources"]):
            if "/" not in str(resource["name"]):
                plain.add((name, path.rpartition("/")[2], str(resource["name"])))
    assert aggregated == plain
    assert ("storage.deckhouse.io", "v1alpha1", "replicatedvolumes") in plain


def test_openapi_describes_every_served_path_and_resolves_its_references(api: Api) -> None:
    for kind in api.server.catalog.all():
        name = f"apis/{kind.group}/{kind.version}" if kind.group else f"api/{kind.version}"
        document = api.get(f"/openapi/v3/{name}").body
        paths = as_object(document["paths"])
        assert all(path in paths for path in served_paths(kind))
        schemas = as_object(dig(document, "components", "schemas"))
        assert set(references(document)) <= {f"#/components/schemas/{schema}" for schema in schemas}
    second = api.get("/openapi/v2").body
    assert set(references(second)) <= {f"#/definitions/{name}" for name in as_object(second["definitions"])}


def references(value: Json) -> list[str]:
    if isinstance(value, dict):
        own = [str(value["$ref"])] if "$ref" in value else []
        return own + [found for each in value.values() for found in references(each)]
    return [found for each in as_list(value) for found in references(each)]


def test_documents_follow_the_served_kinds(api: Api) -> None:
    before = dig(api.get("/openapi/v3").body, "paths")
    assert f"apis/{GROUP}/v1" not in as_object(before)
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd())
    assert f"apis/{GROUP}/v1" in as_object(dig(api.get("/openapi/v3").body, "paths"))


def test_a_table_has_the_columns_of_the_definition() -> None:
    api = make_api()
    api.post(WIDGETS, with_spec("a", size=3))
    conditions: list[Json] = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    api.merge(f"{WIDGETS}/a/status", {"status": {"conditions": conditions}})
    api.clock.time += 90
    shown = api.send("GET", WIDGETS, accept=TABLE).body
    assert [each["name"] for each in objects(shown["columnDefinitions"])] == ["Name", "Size", "Ready", "Age", "Color"]
    assert [each["priority"] for each in objects(shown["columnDefinitions"])] == [0, 0, 0, 0, 1]
    (row,) = objects(shown["rows"])
    assert row["cells"] == ["a", 3, "True", "90s", "red"]
    assert dig(row, "object", "kind") == "PartialObjectMetadata"
    whole = api.send("GET", f"{WIDGETS}/a", accept=TABLE, includeObject="Object").body
    assert len(objects(whole["rows"])) == 1


def test_every_kind_has_a_table(api: Api) -> None:
    for kind in api.server.catalog.all():
        path = next(iter(served_paths(kind))).replace("{namespace}", "default")
        shown = api.send("GET", path, accept=TABLE).body
        assert shown["kind"] == "Table", kind.kind


def test_cells_fit_their_columns() -> None:
    api = make_api()
    api.post("/api/v1/nodes", node("n"))
    body: JsonObject = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"containers": [{"name": "c"}]},
    }
    api.post("/api/v1/namespaces/default/pods", body)
    for path in ("/api/v1/nodes", "/api/v1/pods", "/api/v1/namespaces"):
        shown = api.send("GET", path, accept=TABLE).body
        for row in objects(shown["rows"]):
            assert len(as_list(row["cells"])) == len(as_list(shown["columnDefinitions"]))


def test_metadata_alone() -> None:
    api = make_api()
    api.post(WIDGETS, widget())
    form = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
    (item,) = api.send("GET", WIDGETS, accept=form).items
    assert sorted(item) == ["apiVersion", "kind", "metadata"]


PATHS: list[tuple[str, list[Json]]] = [
    (".a", [1]),
    ("{.a}", [1]),
    (".b.c", ["x"]),
    (".missing.deep", []),
    (".list[0]", ["p"]),
    (".list[-1]", ["q"]),
    (".list[9]", []),
    (".list[*]", ["p", "q"]),
    (".items[?(@.type=='B')].v", [2]),
    ('.items[?(@.type=="A")].v', [1]),
    (".items[?(@.type!='A')].v", [2]),
    (".items[*].v", [1, 2]),
    ("['b']['c']", ["x"]),
    (r".b.d\.e", ["y"]),
]
DOCUMENT: JsonObject = {
    "a": 1,
    "b": {"c": "x", "d.e": "y"},
    "list": ["p", "q"],
    "items": [{"type": "A", "v": 1}, {"type": "B", "v": 2}],
}


@pytest.mark.parametrize(("path", "expected"), PATHS)
def test_json_paths(path: str, expected: list[Json]) -> None:
    assert find(path, DOCUMENT) == expected


def test_a_path_outside_the_subset_is_refused() -> None:
    with pytest.raises(ValueError, match="unsupported JSONPath"):
        compile_path(".a[1:2]")


AGES = [
    (0, "0s"), (119, "119s"), (120, "2m"), (125, "2m5s"), (599, "9m59s"), (600, "10m"), (10_799, "179m"), (10_800, "3h"),
    (11_000, "3h3m"), (28_800, "8h"), (172_799, "47h"), (172_800, "2d"), (180_000, "2d2h"), (691_200, "8d"), (63_072_000, "2y"),
    (-5, "<invalid>"),
]  # fmt: skip


@pytest.mark.parametrize(("seconds", "expected"), AGES)
def test_ages(seconds: int, expected: str) -> None:
    assert human(seconds) == expected


def test_the_age_of_nonsense_is_unknown() -> None:
    assert age("yesterday", 0.0) == "<unknown>"


@given(st.binary(max_size=60))
def test_any_protobuf_is_decoded_or_refused(body: bytes) -> None:
    try:
        decode_protobuf(b"k8s\x00" + body)
    except StatusError as refusal:
        code = refusal.code
    else:
        return
    assert code in (400, 415)


def test_the_caller_may_do_everything() -> None:
    api = make_api()
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    body: JsonObject = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview", "spec": {}}
    assert dig(api.post(path, body).body, "status", "allowed") is True
    assert api.get(path).status == 405
    assert api.post(path, {**body, "kind": "Other"}).status == 400
