"""Delete, lists, selectors, pages, watches, tables, discovery."""

from __future__ import annotations

from quorate.local.jsonvalue import Json, JsonObject
from tests.conformance.session import Case, Session
from tests.local.builders import WIDGETS, config_map, node, widget, with_spec

A = f"{WIDGETS}/a"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def delete_at_once(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.delete(A)
    api.get(A)
    api.delete(A)


def finalizers(api: Session) -> None:
    api.post(WIDGETS, widget(finalizers=["a.b/c", "a.b/d"]))
    api.delete(A)
    api.delete(A)
    api.merge(A, {"spec": {"size": 3}})
    api.merge(A, {"metadata": {"deletionTimestamp": None}})
    api.merge(A, {"metadata": {"finalizers": ["a.b/c", "a.b/e"]}})
    api.merge(A, {"metadata": {"finalizers": ["a.b/c"]}})
    api.merge(A, {"metadata": {"finalizers": None}})
    api.get(A)


def finalizer_through_status(api: Session) -> None:
    api.post(WIDGETS, widget(finalizers=["a.b/c"]))
    api.merge(f"{A}/status", {"metadata": {"finalizers": None}, "status": {"phase": "x"}})


def preconditions(api: Session) -> None:
    created = api.post(WIDGETS, widget())
    exact: JsonObject = {"uid": created.metadata["uid"], "resourceVersion": created.version}
    api.delete(A, {"preconditions": {**exact, "resourceVersion": "1"}})
    api.delete(A, {"preconditions": exact})


BAD_OPTIONS: dict[str, JsonObject] = {
    "policy": {"propagationPolicy": "Sideways"},
    "grace": {"gracePeriodSeconds": -1},
    "both": {"propagationPolicy": "Orphan", "orphanDependents": True},
}


def bad_options(options: JsonObject) -> Case:
    def case(api: Session) -> None:
        api.post(WIDGETS, widget())
        api.delete(A, options)
        api.get(A)

    return case


def policies(api: Session) -> None:
    """No garbage collector here: the finalizers it would remove stay."""
    api.post(WIDGETS, widget())
    api.delete(A, {"propagationPolicy": "Background"})
    api.get(A)


def collection(api: Session) -> None:
    for name, color in (("a", "red"), ("b", "blue"), ("c", "red")):
        api.post(WIDGETS, widget(name, labels={"color": color}))
    api.delete(WIDGETS, labelSelector="color=red")
    api.get(WIDGETS)


def recreate(api: Session) -> None:
    api.post(CONFIG_MAPS, config_map("c", a="1"))
    api.delete(f"{CONFIG_MAPS}/c")
    api.post(CONFIG_MAPS, config_map("c", a="1"))


LABELS: dict[str, dict[str, Json]] = {
    "a": {"app": "db", "tier": "1"},
    "b": {"app": "web", "tier": "2"},
    "c": {"app": "db"},
    "d": {},
}
SELECTORS = (
    "", "app", "!app", "app=db", "app==db", "app!=db", "app in (db,web)", "app in (web)", "app notin (db)", "app=db,tier",
    "app=db,!tier", "tier>1", "tier<2", "app=", "x/y.z",
)  # fmt: skip
NO_SELECTORS = ("=", "a b", "a in", "a in (b", "a,", ",a", "a=b=c", "(a)")


def label_selectors(api: Session) -> None:
    for name, labels in LABELS.items():
        api.post(WIDGETS, widget(name, labels=labels))
    for selector in SELECTORS:
        api.get(WIDGETS, labelSelector=selector)


def no_label_selectors(api: Session) -> None:
    for selector in NO_SELECTORS:
        api.get(WIDGETS, labelSelector=selector)


def field_selectors(api: Session) -> None:
    api.post(WIDGETS, with_spec("a", node="n1"))
    api.post(WIDGETS, with_spec("b", node="n2"))
    api.post(WIDGETS, with_spec("c"))
    for selector in ("metadata.name=b", "spec.node=n1", "spec.node!=n1", "spec.node=n1,metadata.name!=a", "spec.node="):
        api.get(WIDGETS, fieldSelector=selector)
    api.get(WIDGETS, fieldSelector="spec.size=1")
    api.get(WIDGETS, fieldSelector="nonsense")


def pages(api: Session) -> None:
    for name in "abcde":
        api.post(WIDGETS, widget(name))
    first = api.get(WIDGETS, limit="2")
    api.post(WIDGETS, widget("bb"))
    second = api.get(WIDGETS, limit="2", **{"continue": str(first.metadata["continue"])})
    api.get(WIDGETS, limit="2", **{"continue": str(second.metadata["continue"])})
    api.get(WIDGETS, limit="2", labelSelector="!x")
    api.get(WIDGETS, **{"continue": "%%%"})
    api.get(WIDGETS, limit="x")


def reads_of_the_past(api: Session) -> None:
    api.post(WIDGETS, widget("a"))
    then = api.get(WIDGETS)
    api.merge(A, {"spec": {"size": 9}})
    api.get(WIDGETS, resourceVersion=then.version, resourceVersionMatch="Exact")
    api.get(WIDGETS, resourceVersion=then.version, resourceVersionMatch="NotOlderThan")
    api.get(WIDGETS, resourceVersion="x")
    api.get(WIDGETS, resourceVersionMatch="Exact")
    api.get(WIDGETS, resourceVersion=then.version, resourceVersionMatch="Nearly")


def watch_history(api: Session) -> None:
    api.post(WIDGETS, widget("a"))
    version = api.get(WIDGETS).version
    api.post(WIDGETS, widget("b"))
    api.merge(A, {"spec": {"size": 2}})
    api.delete(f"{WIDGETS}/b")
    api.watch(WIDGETS, 3, resourceVersion=version)
    api.watch(WIDGETS, 1, resourceVersion=version, fieldSelector="metadata.name=a")


def watch_selection(api: Session) -> None:
    version = api.get(WIDGETS).version
    api.post(WIDGETS, widget("a", labels={"on": "no"}))
    for value in ("yes", "yes ", "no", "yes"):
        api.merge(A, {"metadata": {"labels": {"on": value.strip()}}, "spec": {"size": 3 if value == "yes " else 1}})
    api.delete(A)
    api.watch(WIDGETS, 5, resourceVersion=version, labelSelector="on=yes")


def watch_from_the_start(api: Session) -> None:
    api.post(WIDGETS, widget("a"))
    api.post(WIDGETS, widget("b"))
    api.watch(WIDGETS, 2)
    api.watch(WIDGETS, 3, sendInitialEvents="true", resourceVersionMatch="NotOlderThan", allowWatchBookmarks="true")
    api.watch(WIDGETS, 1, sendInitialEvents="true")


def watch_expired(api: Session) -> None:
    api.post(WIDGETS, widget("a"))
    api.watch(WIDGETS, 1, resourceVersion="x")


def tables(api: Session) -> None:
    api.post(WIDGETS, with_spec("a", size=3))
    conditions: list[Json] = [{"type": "Other", "status": "False"}, {"type": "Ready", "status": "True"}]
    api.merge(f"{A}/status", {"status": {"conditions": conditions}})
    api.table(WIDGETS)
    api.table(A)
    api.table(WIDGETS, limit="1")


def metadata_alone(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.send("GET", WIDGETS, accept="application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io")
    api.send("GET", A, accept="application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io")


def unacceptable(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.send("GET", A, accept="text/html")


def discovery(api: Session) -> None:
    api.get("/apis/storage.deckhouse.io/v1alpha1")
    api.get("/apis/storage.deckhouse.io")


def methods(api: Session) -> None:
    api.post(WIDGETS, widget())
    api.post(A, widget())
    api.put(WIDGETS, widget())
    api.delete(f"{A}/status")
    api.get(f"{A}/scale")


def node_selectors(api: Session) -> None:
    api.post("/api/v1/nodes", node("n1", unschedulable=True))
    api.get("/api/v1/nodes", fieldSelector="metadata.name=n1")
    api.get("/api/v1/nodes", fieldSelector="metadata.name=n2")
    api.get("/api/v1/nodes", fieldSelector="spec.podCIDR=1")


CASES: dict[str, Case] = {
    "delete at once": delete_at_once,
    "finalizers": finalizers,
    "finalizer through status": finalizer_through_status,
    "preconditions": preconditions,
    **{f"bad delete options: {name}": bad_options(options) for name, options in BAD_OPTIONS.items()},
    "delete policies": policies,
    "delete collection": collection,
    "recreate": recreate,
    "label selectors": label_selectors,
    "no label selectors": no_label_selectors,
    "field selectors": field_selectors,
    "pages": pages,
    "reads of the past": reads_of_the_past,
    "watch history": watch_history,
    "watch selection": watch_selection,
    "watch from the start": watch_from_the_start,
    "watch expired": watch_expired,
    "tables": tables,
    "metadata alone": metadata_alone,
    "unacceptable": unacceptable,
    "discovery": discovery,
    "methods": methods,
    "node selectors": node_selectors,
}
