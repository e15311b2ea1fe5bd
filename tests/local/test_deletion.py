"""Delete: finalizers, preconditions, grace periods, collections, namespaces, definitions."""

from __future__ import annotations

import pytest

from quorate.local.jsonvalue import JsonObject, as_text, dig
from tests.local.builders import GROUP, STARTED, WIDGETS, Api, config_map, crd, make_api, node, widget

PODS = "/api/v1/namespaces/default/pods"


@pytest.fixture
def api() -> Api:
    return make_api()


def test_an_object_without_finalizers_goes_at_once(api: Api) -> None:
    created = api.post(WIDGETS, widget())
    answer = api.delete(f"{WIDGETS}/a")
    assert (answer.status, answer.body["status"]) == (200, "Success")
    assert answer.body["details"] == {"name": "a", "group": GROUP, "kind": "widgets", "uid": created.metadata["uid"]}
    missing = api.get(f"{WIDGETS}/a")
    assert (missing.status, missing.reason, missing.message) == (
        404,
        "NotFound",
        'widgets.test.quorate.dev "a" not found',
    )


def test_a_finalizer_holds_the_object_until_it_is_removed(api: Api) -> None:
    api.post(WIDGETS, widget(finalizers=["a/b"]))
    answer = api.delete(f"{WIDGETS}/a")
    assert answer.status == 200
    assert answer.metadata["deletionTimestamp"] == STARTED
    assert answer.metadata["deletionGracePeriodSeconds"] == 0
    assert answer.metadata["generation"] == 2, "the beginning of a deletion counts as a generation"
    again = api.delete(f"{WIDGETS}/a")
    assert again.version == answer.version, "a second delete changes nothing"
    gone = api.merge(f"{WIDGETS}/a", {"metadata": {"finalizers": None}})
    assert gone.status == 200
    assert api.get(f"{WIDGETS}/a").status == 404


def test_a_deleted_object_can_still_be_written_but_not_revived(api: Api) -> None:
    api.post(WIDGETS, widget(finalizers=["a/b"]))
    api.delete(f"{WIDGETS}/a")
    assert api.merge(f"{WIDGETS}/a", {"spec": {"size": 3}}).status == 200
    answer = api.merge(f"{WIDGETS}/a", {"metadata": {"deletionTimestamp": None}})
    assert (answer.status, "deletionTimestamp" in answer.metadata) == (200, True)


def test_a_deleted_object_gets_no_new_finalizers(api: Api) -> None:
    api.post(WIDGETS, widget(finalizers=["a/b", "a/c"]))
    api.delete(f"{WIDGETS}/a")
    answer = api.merge(f"{WIDGETS}/a", {"metadata": {"finalizers": ["a/b", "a/d"]}})
    assert answer.status == 422
    text = "no new finalizers can be added if the object is being deleted, found new finalizers"
    assert f'metadata.finalizers: Forbidden: {text} []string{{"a/d"}}' in answer.message
    assert api.merge(f"{WIDGETS}/a", {"metadata": {"finalizers": ["a/b"]}}).status == 200


def test_preconditions_guard_against_another_object_or_version(api: Api) -> None:
    created = api.post(WIDGETS, widget())
    wrong_uid = api.delete(f"{WIDGETS}/a", {"preconditions": {"uid": "other"}})
    assert (wrong_uid.status, wrong_uid.reason) == (409, "Conflict")
    assert "the UID in the precondition (other) does not match the UID in record" in wrong_uid.message
    wrong_version = api.delete(f"{WIDGETS}/a", {"preconditions": {"resourceVersion": "1"}})
    assert wrong_version.status == 409
    assert (
        "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record"
        in wrong_version.message
    )
    exact: JsonObject = {"preconditions": {"uid": created.metadata["uid"], "resourceVersion": created.version}}
    assert api.delete(f"{WIDGETS}/a", exact).status == 200


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"propagationPolicy": "Sideways"}, "propagationPolicy"),
        ({"propagationPolicy": "Orphan", "orphanDependents": True}, "propagationPolicy"),
    ],
)
def test_bad_options_are_refused_and_delete_nothing(api: Api, options: JsonObject, field: str) -> None:
    api.post(WIDGETS, widget())
    answer = api.delete(f"{WIDGETS}/a", options)
    assert (answer.status, [cause[0] for cause in answer.causes]) == (422, [field])
    assert api.get(f"{WIDGETS}/a").status == 200


def test_a_collection_is_deleted_by_selector(api: Api) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        api.post(WIDGETS, widget(name, labels={"color": color}))
    answer = api.delete(WIDGETS, labelSelector="color=red")
    assert sorted(answer.names) == ["a", "c"]
    assert api.get(WIDGETS).names == ["b"]


def pod(name: str, **spec: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name},
        "spec": {"containers": [{"name": "c"}], **spec},
    }


def test_a_running_pod_has_its_grace_period(api: Api) -> None:
    api.post(PODS, pod("p", nodeName="n"))
    answer = api.delete(f"{PODS}/p")
    assert answer.metadata["deletionGracePeriodSeconds"] == 30
    assert answer.metadata["deletionTimestamp"] == "2023-11-14T22:13:50Z"
    api.settle()
    assert api.get(f"{PODS}/p").status == 200
    api.clock.time += 31
    api.settle()
    assert api.get(f"{PODS}/p").status == 404


def test_a_grace_period_can_be_shortened_to_nothing(api: Api) -> None:
    api.post(PODS, pod("p", nodeName="n"))
    api.delete(f"{PODS}/p")
    assert api.delete(f"{PODS}/p", {"gracePeriodSeconds": 0}).body["status"] == "Success"


def test_a_pod_that_runs_nowhere_goes_at_once(api: Api) -> None:
    api.post(PODS, pod("p"))
    assert api.delete(f"{PODS}/p").body["status"] == "Success"


def test_a_namespace_takes_its_content_with_it(api: Api) -> None:
    api.post("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}})
    below = "/api/v1/namespaces/x/configmaps"
    api.post(below, {**config_map("free"), "metadata": {"name": "free"}})
    api.post(below, {**config_map("held"), "metadata": {"name": "held", "finalizers": ["a/b"]}})
    answer = api.delete("/api/v1/namespaces/x")
    assert dig(answer.body, "status", "phase") == "Terminating"
    refused = api.post(below, config_map("late"))
    assert (refused.status, refused.reason) == (403, "Forbidden")
    assert "because it is being terminated" in refused.message
    api.settle()
    assert api.get(below).names == ["held"]
    assert api.get("/api/v1/namespaces/x").status == 200
    api.merge(f"{below}/held", {"metadata": {"finalizers": None}})
    api.settle()
    assert api.get("/api/v1/namespaces/x").status == 404


def test_a_definition_takes_its_objects_with_it(api: Api) -> None:
    api.post(WIDGETS, widget(finalizers=["a/b"]))
    definition = f"/apis/apiextensions.k8s.io/v1/customresourcedefinitions/widgets.{GROUP}"
    api.delete(definition)
    api.settle()
    assert as_text(api.get(f"{WIDGETS}/a").metadata.get("deletionTimestamp")) == STARTED
    api.merge(f"{WIDGETS}/a", {"metadata": {"finalizers": None}})
    api.settle()
    assert api.get(definition).status == 404
    assert api.get(WIDGETS).status == 404
    api.post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", crd())
    assert api.get(WIDGETS).names == []


def test_recreated_name_is_another_object(api: Api) -> None:
    first = api.post("/api/v1/nodes", node("n"))
    api.delete("/api/v1/nodes/n")
    second = api.post("/api/v1/nodes", node("n"))
    assert first.metadata["uid"] != second.metadata["uid"]
    assert int(second.version) > int(first.version)


def test_events_go_an_hour_after_they_were_written_last(api: Api) -> None:
    events = "/api/v1/namespaces/default/events"

    def event(name: str) -> JsonObject:
        return {"apiVersion": "v1", "kind": "Event", "metadata": {"name": name}, "involvedObject": {}, "count": 1}

    api.post(events, event("old"))
    api.post(events, event("repeated"))
    api.clock.time += 1800
    api.merge(f"{events}/repeated", {"count": 2})
    api.clock.time += 1801
    api.post(events, event("new"))
    api.settle()
    assert api.get(events).names == ["new", "repeated"]
