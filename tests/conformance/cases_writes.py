"""Create, replace, patch: versions, locks, halves, names, validation of metadata and of bodies."""

from __future__ import annotations

from quorate.local.jsonvalue import Json, JsonObject
from tests.conformance.session import Case, Session
from tests.local.builders import GROUP, WIDGETS, config_map, node, widget, with_spec

A = f"{WIDGETS}/a"
GADGETS = f"/apis/{GROUP}/v1/gadgets"
"""A kind without status subresource."""
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def create(api: Session) -> None:
    api.post(
        WIDGETS,
        {**widget(uid="mine", generation=7, creationTimestamp="2001-01-01T00:00:00Z"), "status": {"phase": "x"}},
    )
    api.get(A)
    api.get(f"{A}/status")
    api.get(f"{WIDGETS}/b")
    api.post(WIDGETS, widget())
    api.post(WIDGETS, widget("b", resourceVersion="5"))


def stale_versions(api: Session) -> None:
    created = api.post(WIDGETS, widget())
    api.merge(A, {"spec": {"size": 2}})
    api.put(A, {**created.body, "spec": {"size": 3}})
    api.merge(A, {"metadata": {"resourceVersion": created.version}, "spec": {"size": 3}})
    api.put(f"{A}/status", {**created.body, "status": {"phase": "x"}})
    api.get(A)


def replace_without_version(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.put(A, widget(size=2))
    api.post(CONFIG_MAPS, config_map("c", a="1"))
    api.put(f"{CONFIG_MAPS}/c", config_map("c", a="2"))


def another_incarnation(api: Session) -> None:
    api.post(WIDGETS, widget())
    other = "00000000-0000-4000-8000-000000000000"
    api.merge(A, {"metadata": {"uid": other}, "spec": {"size": 2}})
    api.delete(A, {"preconditions": {"uid": other}})
    api.delete(A, {"preconditions": {"resourceVersion": "1"}})


def generations(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.merge(A, {"spec": {"size": 2}})
    api.merge(A, {"metadata": {"labels": {"a": "b"}}})
    api.merge(A, {"metadata": {"finalizers": ["a.b/c"]}})
    api.merge(A, {"status": {"phase": "x"}})
    api.merge(f"{A}/status", {"status": {"phase": "x"}})
    api.merge(f"{A}/status", {"spec": {"size": 3}})
    api.merge(A, {"spec": {"size": 2}})


def halves(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.merge(f"{A}/status", {"status": {"phase": "x"}, "spec": {"size": 9}, "metadata": {"labels": {"l": "1"}}})
    main = api.merge(A, {"status": {"phase": "y"}, "spec": {"size": 5}})
    api.put(f"{A}/status", {**main.body, "spec": {"size": 50}, "status": {"phase": "z"}})


def without_status_subresource(api: Session) -> None:
    gadget: JsonObject = {**widget(), "kind": "Gadget", "status": {"phase": "x"}}
    api.post(GADGETS, gadget)
    api.merge(f"{GADGETS}/a", {"status": {"phase": "y"}})
    api.merge(f"{GADGETS}/a/status", {"status": {"phase": "y"}})


def no_change_no_write(api: Session) -> None:
    created = api.post(WIDGETS, widget())
    api.merge(A, {"spec": {"size": 1}})
    api.put(A, created.body)
    api.merge(f"{A}/status", {})


def true_is_not_one(api: Session) -> None:
    api.post(WIDGETS, with_spec(extra={"x": 1}))
    api.merge(A, {"spec": {"extra": {"x": True}}})
    api.merge(A, {"spec": {"extra": {"x": 1.5}}})


def dry_run(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.post(WIDGETS, widget("b"), dryRun="All")
    api.merge(A, {"spec": {"size": 2}}, dryRun="All")
    api.merge(f"{A}/status", {"status": {"phase": "x"}}, dryRun="All")
    api.delete(A, dryRun="All")
    api.post(WIDGETS, widget("c", size=0), dryRun="All")
    api.post(WIDGETS, widget("d"), dryRun="Some")
    api.get(WIDGETS)


def generate_name(api: Session) -> None:
    api.post(WIDGETS, {**widget(), "metadata": {"generateName": "a-"}})
    api.post(WIDGETS, {**widget(), "metadata": {"generateName": "x" * 100}})
    api.post(WIDGETS, {**widget(), "metadata": {}})


def owned_by_the_server(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.merge(A, {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}})
    api.merge(A, {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}})
    api.merge(A, {"metadata": {"generation": 9}})
    api.get(A)


def bodies_about_something_else(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.put(f"{WIDGETS}/b", widget("a"))
    api.put(A, {**widget(), "apiVersion": "x/v1"})
    api.merge(A, {"metadata": {"name": "b"}})


def bodies_of_another_kind(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.put(A, {**widget(), "kind": "Gadget"})
    api.merge(A, {"kind": "Other"})
    api.merge(A, {"apiVersion": "other/v1"})


def bodies_of_no_kind(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.put(A, {"metadata": {}})
    api.put(A, {**widget(), "metadata": {"name": 5}})


def unknown_paths(api: Session) -> None:
    api.get("/apis/test.quorate.dev/v1/nothings")
    api.get("/apis/nowhere.dev/v1/widgets")


def namespaces(api: Session) -> None:
    api.post("/api/v1/namespaces/nowhere/configmaps", config_map("c", a="1"))
    elsewhere: JsonObject = {**config_map("c", a="1"), "metadata": {"name": "c", "namespace": "kube-system"}}
    api.post(CONFIG_MAPS, elsewhere)
    api.post(CONFIG_MAPS, config_map("c", a="1"))
    api.get(f"{CONFIG_MAPS}/c")
    api.get("/api/v1/namespaces/kube-system/configmaps/c")


def unknown_fields(api: Session) -> None:
    api.post(WIDGETS, with_spec(bogus=1))
    api.post(WIDGETS, with_spec("b", bogus=1), fieldValidation="Ignore")
    api.post(WIDGETS, with_spec("c", bogus=1, parts=[{"id": 1, "odd": 2}]), fieldValidation="Strict")
    api.post(WIDGETS, {**with_spec("d"), "rubbish": 1}, fieldValidation="Strict")
    api.post(WIDGETS, with_spec("e"), fieldValidation="Sometimes")


def leases(api: Session) -> None:
    lease: JsonObject = {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "l"},
        "spec": {"holderIdentity": "me", "leaseDurationSeconds": 15},
    }
    path = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
    api.put(f"{path}/l", lease)
    taken = api.get(f"{path}/l")
    api.merge(f"{path}/l", {"metadata": {"resourceVersion": taken.version}, "spec": {"holderIdentity": "you"}})
    api.merge(f"{path}/l", {"metadata": {"resourceVersion": taken.version}, "spec": {"holderIdentity": "he"}})


def events(api: Session) -> None:
    event: JsonObject = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e", "namespace": "default"},
        "involvedObject": {"kind": "Widget", "name": "a"},
        "reason": "Happened",
        "message": "it did",
        "type": "Normal",
        "count": 2,
        "firstTimestamp": "2001-01-01T00:00:00Z",
        "lastTimestamp": "2001-01-01T00:00:00Z",
        "source": {"component": "test"},
        "reportingComponent": "test",
        "reportingInstance": "test",
    }
    path = "/api/v1/namespaces/default/events"
    api.post(path, event)
    api.merge(f"{path}/e", {"count": 3})
    api.get(path, fieldSelector="involvedObject.name=a,involvedObject.kind=Widget")
    api.get("/apis/events.k8s.io/v1/namespaces/default/events/e")


def secrets(api: Session) -> None:
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"a": "b"}}
    api.post("/api/v1/namespaces/default/secrets", secret)


def storage_classes(api: Session) -> None:
    path = "/apis/storage.k8s.io/v1/storageclasses"
    api.post(
        path, {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": "c"}, "provisioner": "p"}
    )
    api.merge(f"{path}/c", {"provisioner": "q"})
    api.merge(f"{path}/c", {"metadata": {"labels": {"a": "b"}}})


def node_halves(api: Session) -> None:
    api.post("/api/v1/nodes", {**node("n"), "status": {"phase": "Running"}})
    api.merge("/api/v1/nodes/n/status", {"metadata": {"annotations": {"a": "b"}}, "spec": {"unschedulable": True}})
    api.strategic("/api/v1/nodes/n", {"metadata": {"labels": {"a": "b"}}})
    api.merge("/api/v1/nodes/n", {"metadata": {"labels": {"a": None, "c": "d"}}})


BAD_METADATA: dict[str, JsonObject] = {
    "name with capitals": {"name": "A_b"},
    "name too long": {"name": "x" * 254},
    "label key": {"name": "a", "labels": {"bad key": "v"}},
    "label value": {"name": "a", "labels": {"k": "x" * 64}},
    "label value sign": {"name": "a", "labels": {"k": "a b"}},
    "annotation key": {"name": "a", "annotations": {"bad key": "v"}},
    "annotations too long": {"name": "a", "annotations": {"k": "x" * 262_145}},
    "finalizer": {"name": "a", "finalizers": ["not qualified/"]},
    "owner": {"name": "a", "ownerReferences": [{"kind": "K"}]},
    "two controllers": {
        "name": "a",
        "ownerReferences": [
            {"apiVersion": "v1", "kind": "K", "name": n, "uid": n, "controller": True} for n in ("one", "two")
        ],
    },
}


def bad_metadata(metadata: JsonObject) -> Case:
    def case(api: Session) -> None:
        api.post(WIDGETS, {**widget(), "metadata": metadata})

    return case


PATCHES: dict[str, tuple[str, Json]] = {
    "json patch": ("json_patch", [{"op": "replace", "path": "/spec/size", "value": 4}]),
    "json patch test": ("json_patch", [{"op": "test", "path": "/spec/size", "value": 4}]),
    "json patch missing": ("json_patch", [{"op": "remove", "path": "/spec/missing"}]),
    "json patch nonsense": ("json_patch", {}),
    "json patch operation": ("json_patch", [{"op": "jump", "path": "/a"}]),
    "strategic": ("strategic", {"spec": {"size": 2}}),
    "null removes": ("merge", {"spec": {"color": None, "extra": {"a": None, "b": 1}}}),
    "list": ("merge", {"spec": {"zones": ["a", "b"]}}),
    "not an object": ("merge", [1]),
}


def patch(kind: str, body: Json) -> Case:
    def case(api: Session) -> None:
        api.post(WIDGETS, with_spec(color="green", extra={"a": 1}))
        match kind:
            case "json_patch":
                api.json_patch(A, body)
            case "strategic":
                api.strategic(A, body)
            case _:
                api.merge(A, body)

    return case


CASES: dict[str, Case] = {
    "create": create,
    "stale versions": stale_versions,
    "replace without version": replace_without_version,
    "another incarnation": another_incarnation,
    "generations": generations,
    "halves": halves,
    "without status subresource": without_status_subresource,
    "no change no write": no_change_no_write,
    "true is not one": true_is_not_one,
    "dry run": dry_run,
    "generate name": generate_name,
    "owned by the server": owned_by_the_server,
    "bodies about something else": bodies_about_something_else,
    "bodies of another kind": bodies_of_another_kind,
    "bodies of no kind": bodies_of_no_kind,
    "unknown paths": unknown_paths,
    "namespaces": namespaces,
    "unknown fields": unknown_fields,
    "leases": leases,
    "events": events,
    "secrets": secrets,
    "storage classes": storage_classes,
    "node halves": node_halves,
    **{f"bad metadata: {name}": bad_metadata(metadata) for name, metadata in BAD_METADATA.items()},
    **{f"patch: {name}": patch(*case) for name, case in PATCHES.items()},
}
