"""Create, replace and patch: versions, locks, halves, names."""

from __future__ import annotations

import pytest

from quorate.local.jsonvalue import Json, JsonObject, as_object, dig
from tests.local.builders import STARTED, WIDGETS, Api, config_map, crd, make_api, node, widget, with_spec


@pytest.fixture
def api() -> Api:
    return make_api()


def test_create_fills_in_what_the_server_owns(api: Api) -> None:
    answer = api.post(
        WIDGETS,
        {**widget(uid="mine", generation=7, creationTimestamp="2001-01-01T00:00:00Z"), "status": {"phase": "x"}},
    )
    assert answer.status == 201
    metadata = answer.metadata
    assert metadata["uid"] != "mine"
    assert metadata["generation"] == 1
    assert metadata["creationTimestamp"] == STARTED
    assert "status" not in answer.body, "a status subresource is not written by create"
    assert dig(answer.body, "spec", "color") == "red"


def test_versions_rise_over_all_kinds_and_uids_differ(api: Api) -> None:
    first = api.post(WIDGETS, widget("a"))
    second = api.post("/api/v1/nodes", node("n"))
    third = api.post(WIDGETS, widget("b"))
    assert int(first.version) < int(second.version) < int(third.version)
    assert len({str(answer.metadata["uid"]) for answer in (first, second, third)}) == 3


def test_create_of_an_existing_name_is_already_exists(api: Api) -> None:
    api.post(WIDGETS, widget())
    answer = api.post(WIDGETS, widget())
    assert (answer.status, answer.reason) == (409, "AlreadyExists")
    assert answer.message == 'widgets.test.quorate.dev "a" already exists'
    assert dig(answer.body, "details", "kind") == "widgets"


def test_create_refuses_a_resource_version(api: Api) -> None:
    answer = api.post(WIDGETS, widget(resourceVersion="5"))
    assert (answer.status, answer.message) == (500, "resourceVersion should not be set on objects to be created")


@pytest.mark.parametrize("method", ["put", "merge"])
def test_a_stale_version_is_a_conflict_and_changes_nothing(api: Api, method: str) -> None:
    created = api.post(WIDGETS, widget())
    current = api.merge(f"{WIDGETS}/a", {"spec": {"size": 2}})
    stale = as_object(created.body)
    body: Json = (
        {**stale, "spec": {"size": 3}}
        if method == "put"
        else {"metadata": {"resourceVersion": created.version}, "spec": {"size": 3}}
    )
    answer = api.put(f"{WIDGETS}/a", body) if method == "put" else api.merge(f"{WIDGETS}/a", body)
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert answer.message == (
        'Operation cannot be fulfilled on widgets.test.quorate.dev "a": the object has been modified; please apply your '
        "changes to the latest version and try again"
    )
    assert api.get(f"{WIDGETS}/a").body == current.body


def test_replace_of_a_custom_object_needs_a_version_and_a_node_does_not(api: Api) -> None:
    api.post(WIDGETS, widget())
    answer = api.put(f"{WIDGETS}/a", widget(size=2))
    assert (answer.status, answer.reason) == (422, "Invalid")
    assert "metadata.resourceVersion: Invalid value: 0: must be specified for an update" in answer.message
    api.post("/api/v1/nodes", node("n"))
    assert api.put("/api/v1/nodes/n", node("n", unschedulable=True)).status == 200


def test_another_incarnation_is_a_conflict(api: Api) -> None:
    created = api.post(WIDGETS, widget())
    patched = api.merge(f"{WIDGETS}/a", {"metadata": {"uid": "other"}, "spec": {"size": 2}})
    assert (patched.status, patched.causes) == (422, [("metadata.uid", "FieldValueInvalid")])
    answer = api.put(f"{WIDGETS}/a", {**created.body, "metadata": {**created.metadata, "uid": "other"}})
    assert (answer.status, answer.reason) == (409, "Conflict")
    assert f"UID in precondition: other, UID in object meta: {created.metadata['uid']}" in answer.message


CHANGES: list[tuple[str, str, JsonObject, int]] = [
    ("spec", "", {"spec": {"size": 2}}, 2),
    ("label", "", {"metadata": {"labels": {"a": "b"}}}, 1),
    ("finalizer", "", {"metadata": {"finalizers": ["a/b"]}}, 1),
    ("status through the main half", "", {"status": {"phase": "x"}}, 1),
    ("status", "/status", {"status": {"phase": "x"}}, 1),
    ("spec through the status half", "/status", {"spec": {"size": 2}}, 1),
    ("nothing", "", {"spec": {"size": 1}}, 1),
]


@pytest.mark.parametrize(("name", "half", "patch", "generation"), CHANGES, ids=[case[0] for case in CHANGES])
def test_generation_counts_changes_of_the_spec_only(
    api: Api, name: str, half: str, patch: JsonObject, generation: int
) -> None:
    api.post(WIDGETS, widget())
    assert api.merge(f"{WIDGETS}/a{half}", patch).metadata["generation"] == generation


def test_generation_of_a_kind_without_status_subresource_counts_its_status() -> None:
    api = make_api(crd(status=False))
    created = api.post(WIDGETS, {**widget(), "status": {"phase": "x"}})
    assert dig(created.body, "status", "phase") == "x"
    assert api.merge(f"{WIDGETS}/a", {"status": {"phase": "y"}}).metadata["generation"] == 2
    assert api.merge(f"{WIDGETS}/a/status", {"status": {"phase": "y"}}).status == 404


def test_the_halves_are_isolated_both_ways(api: Api) -> None:
    api.post(WIDGETS, widget())
    api.merge(
        f"{WIDGETS}/a/status", {"status": {"phase": "x"}, "spec": {"size": 9}, "metadata": {"labels": {"l": "1"}}}
    )
    main = api.merge(f"{WIDGETS}/a", {"status": {"phase": "y"}, "spec": {"size": 5}})
    assert dig(main.body, "status", "phase") == "x"
    assert dig(main.body, "spec", "size") == 5
    assert "labels" not in main.metadata
    replaced = api.put(f"{WIDGETS}/a/status", {**main.body, "spec": {"size": 50}, "status": {"phase": "z"}})
    assert (dig(replaced.body, "spec", "size"), dig(replaced.body, "status", "phase")) == (5, "z")


def test_the_status_of_a_node_may_carry_metadata(api: Api) -> None:
    created = api.post("/api/v1/nodes", {**node("n"), "status": {"phase": "Running"}})
    assert dig(created.body, "status", "phase") == "Running", "nodes register with their status"
    answer = api.merge(
        "/api/v1/nodes/n/status", {"metadata": {"annotations": {"a": "b"}}, "spec": {"unschedulable": True}}
    )
    assert answer.metadata["annotations"] == {"a": "b"}
    assert dig(answer.body, "spec", "unschedulable") is None


def test_an_update_that_changes_nothing_writes_nothing(api: Api) -> None:
    created = api.post(WIDGETS, widget())
    before = api.server.store.version
    assert api.merge(f"{WIDGETS}/a", {"spec": {"size": 1}}).version == created.version
    assert api.put(f"{WIDGETS}/a", created.body).version == created.version
    assert api.server.store.version == before


def test_true_is_not_one(api: Api) -> None:
    """JSON distinguishes what Python's equality does not."""
    api.post(WIDGETS, with_spec(extra={"x": 1}))
    assert dig(api.merge(f"{WIDGETS}/a", {"spec": {"extra": {"x": True}}}).body, "spec", "extra", "x") is True


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", WIDGETS, widget("b")),
        ("PATCH", f"{WIDGETS}/a", {"spec": {"size": 2}}),
        ("DELETE", f"{WIDGETS}/a", None),
    ],
)
def test_dry_run_answers_and_writes_nothing(api: Api, method: str, path: str, body: Json) -> None:
    api.post(WIDGETS, widget())
    before = api.get(WIDGETS).body
    media = "application/merge-patch+json" if method == "PATCH" else "application/json"
    answer = api.send(method, path, body, content_type=media, dryRun="All")
    assert answer.status in (200, 201)
    assert api.get(WIDGETS).body == before
    assert api.send(method, path, body, content_type=media, dryRun="Some").status == 422


def test_dry_run_validates(api: Api) -> None:
    assert api.post(WIDGETS, widget(size=0), dryRun="All").status == 422


def test_generate_name_completes_and_avoids_taken_names(api: Api) -> None:
    body = widget()
    body["metadata"] = {"generateName": "a-"}
    names = {str(api.post(WIDGETS, body).metadata["name"]) for _ in range(50)}
    assert len(names) == 50
    assert all(name.startswith("a-") and len(name) == 7 for name in names)


def test_generate_name_cuts_a_long_base(api: Api) -> None:
    body = widget()
    body["metadata"] = {"generateName": "x" * 100}
    assert len(str(api.post(WIDGETS, body).metadata["name"])) == 63


BAD_METADATA: list[tuple[JsonObject, str, str]] = [
    ({"name": "A_b"}, "metadata.name", "FieldValueInvalid"),
    ({"name": "x" * 254}, "metadata.name", "FieldValueInvalid"),
    ({"name": ""}, "metadata.name", "FieldValueRequired"),
    ({"name": "a", "labels": {"bad key": "v"}}, "metadata.labels", "FieldValueInvalid"),
    ({"name": "a", "labels": {"k": "x" * 64}}, "metadata.labels", "FieldValueInvalid"),
    ({"name": "a", "finalizers": ["not qualified/"]}, "metadata.finalizers", "FieldValueInvalid"),
    ({"name": "a", "annotations": {"k": "x" * 262_145}}, "metadata.annotations", "FieldValueTooLong"),
    ({"name": "a", "ownerReferences": [{"kind": "K"}]}, "metadata.ownerReferences.apiVersion", "FieldValueInvalid"),
]


@pytest.mark.parametrize(
    ("metadata", "path", "reason"), BAD_METADATA, ids=[f"{case[1]} {case[2]}" for case in BAD_METADATA]
)
def test_metadata_is_validated(api: Api, metadata: JsonObject, path: str, reason: str) -> None:
    answer = api.post(WIDGETS, {**widget(), "metadata": metadata})
    assert answer.status == 422
    assert (path, reason) in answer.causes


@pytest.mark.parametrize("field", ["uid", "deletionTimestamp"])
def test_what_the_server_owns_cannot_be_changed(api: Api, field: str) -> None:
    created = api.post(WIDGETS, widget())
    answer = api.merge(f"{WIDGETS}/a", {"metadata": {field: "2001-01-01T00:00:00Z"}})
    assert answer.status in (409, 422)
    assert api.get(f"{WIDGETS}/a").body == created.body


@pytest.mark.parametrize(
    ("path", "body", "text"),
    [
        (f"{WIDGETS}/b", widget("a"), "the name of the object (a) does not match the name on the URL (b)"),
        (f"{WIDGETS}/a", {**widget(), "kind": "Gadget"}, "Gadget in version"),
        (f"{WIDGETS}/a", {**widget(), "apiVersion": "x/v1"}, "does not match the expected API version"),
        (f"{WIDGETS}/a", {"metadata": {}}, "Object 'Kind' is missing"),
        (f"{WIDGETS}/a", [], "unrecognized"),
        (f"{WIDGETS}/a", {**widget(), "metadata": {"name": 5}}, "metadata.name"),
    ],
)
def test_a_body_about_something_else_is_a_bad_request(api: Api, path: str, body: Json, text: str) -> None:
    api.post(WIDGETS, widget())
    answer = api.put(path, body)
    assert (answer.status, answer.reason) == (400, "BadRequest")
    assert text in answer.message


def test_a_namespaced_object_needs_its_namespace(api: Api) -> None:
    missing = api.post("/api/v1/namespaces/nowhere/configmaps", config_map("c"))
    assert (missing.status, missing.message) == (404, 'namespaces "nowhere" not found')
    wrong = api.post(
        "/api/v1/namespaces/default/configmaps",
        {**config_map("c"), "metadata": {"name": "c", "namespace": "kube-system"}},
    )
    assert wrong.status == 400
    assert api.post("/api/v1/namespaces/default/configmaps", config_map("c")).metadata["namespace"] == "default"
    assert api.get("/api/v1/configmaps").names == ["c"]


def test_unknown_fields_are_pruned_warned_about_or_refused(api: Api) -> None:
    body = with_spec(bogus=1)
    warned = api.post(WIDGETS, body)
    assert warned.headers["Warning"] == '299 - "unknown field \\"spec.bogus\\""'
    assert "bogus" not in as_object(warned.body["spec"])
    assert "Warning" not in api.post(WIDGETS, with_spec("b", bogus=1), fieldValidation="Ignore").headers
    strict = api.post(WIDGETS, with_spec("c", bogus=1), fieldValidation="Strict")
    assert strict.status == 400
    assert (
        strict.message
        == 'Widget in version "v1" cannot be handled as a Widget: strict decoding error: unknown field "spec.bogus"'
    )


def test_server_side_apply_is_refused_clearly(api: Api) -> None:
    api.post(WIDGETS, widget())
    answer = api.send("PATCH", f"{WIDGETS}/a", widget(), content_type="application/apply-patch+yaml", fieldManager="me")
    assert (answer.status, answer.reason) == (415, "UnsupportedMediaType")
    assert "server-side apply is not supported" in answer.message


def test_put_of_a_lease_creates_it(api: Api) -> None:
    lease: JsonObject = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me"},
    }
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases/l"
    assert api.put(path, lease).status == 201
    assert dig(api.get(path).body, "spec", "holderIdentity") == "me"


def test_events_are_one_storage_with_two_versions(api: Api) -> None:
    event: JsonObject = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Widget", "name": "a"},
        "reason": "Happened",
        "message": "it did",
        "count": 2,
    }
    assert api.post("/api/v1/namespaces/default/events", event).status == 201
    newer = api.get("/apis/events.k8s.io/v1/namespaces/default/events/e").body
    assert newer["apiVersion"] == "events.k8s.io/v1"
    assert (newer["note"], newer["deprecatedCount"], dig(newer, "regarding", "name")) == ("it did", 2, "a")
    api.merge("/apis/events.k8s.io/v1/namespaces/default/events/e", {"note": "again"})
    assert api.get("/api/v1/namespaces/default/events/e").body["message"] == "again"
    assert api.get("/api/v1/events", fieldSelector="involvedObject.name=a,involvedObject.kind=Widget").names == ["e"]
    assert api.get("/apis/events.k8s.io/v1/events", fieldSelector="regarding.name=b").names == []


def test_secrets_merge_plain_strings(api: Api) -> None:
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    answer = api.post("/api/v1/namespaces/default/secrets", secret)
    assert (answer.body["data"], answer.body["type"]) == ({"a": "Yg=="}, "Opaque")
    assert "stringData" not in answer.body


def test_fixed_fields_of_built_in_kinds_stay(api: Api) -> None:
    classes = "/apis/storage.k8s.io/v1/storageclasses"
    api.post(
        classes,
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"}, "provisioner": "p"},
    )
    answer = api.merge(f"{classes}/c", {"provisioner": "q"})
    assert (answer.status, answer.causes) == (422, [("provisioner", "FieldValueInvalid")])
