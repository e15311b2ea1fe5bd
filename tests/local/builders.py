"""A small custom kind, and a synchronous client that talks to the server core without a loop."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.local.api_server import ApiServer
from quorate.local.journal import Journal
from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, decode, dig, encode, objects
from quorate.local.ports import SeededIds
from quorate.local.rest import Reply, Request

GROUP = "test.quorate.dev"
WIDGETS = f"/apis/{GROUP}/v1/widgets"
START = 1_700_000_000.0
STARTED = "2023-11-14T22:13:20Z"


@dataclass
class FixedClock:
    """A clock that tests move."""

    time: float = START

    def now(self) -> float:
        return self.time


WIDGET_SPEC: JsonObject = {
    "type": "object",
    "required": ["size"],
    "properties": {
        "size": {"type": "integer", "minimum": 1, "maximum": 100},
        "color": {"type": "string", "enum": ["red", "green"], "default": "red"},
        "name": {"type": "string", "minLength": 1, "maxLength": 5, "pattern": "^[a-z]*$"},
        "volume": {"x-kubernetes-int-or-string": True},
        "zones": {"type": "array", "maxItems": 3, "x-kubernetes-list-type": "set", "items": {"type": "string"}},
        "parts": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
            "maxItems": 5,
            "items": {
                "type": "object",
                "required": ["id"],
                "properties": {
                    "id": {"type": "integer"},
                    "weight": {"type": "integer", "default": 1, "maximum": 10},
                    "fixed": {
                        "type": "string",
                        "maxLength": 20,
                        "x-kubernetes-validations": [{"rule": "self == oldSelf", "message": "fixed is immutable"}],
                    },
                },
            },
        },
        "extra": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "since": {"type": "string", "format": "date-time"},
        "node": {"type": "string"},
    },
}
WIDGET_STATUS: JsonObject = {
    "type": "object",
    "properties": {
        "phase": {"type": "string"},
        "count": {"type": "integer", "default": 0},
        "conditions": {
            "type": "array",
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["type"],
            "items": {
                "type": "object",
                "required": ["type", "status"],
                "properties": {
                    "type": {"type": "string"},
                    "status": {"type": "string"},
                    "reason": {"type": "string"},
                    "message": {"type": "string"},
                    "lastTransitionTime": {"type": "string", "format": "date-time"},
                },
            },
        },
    },
}


def crd(
    kind: str = "Widget",
    *,
    spec: JsonObject | None = None,
    rules: list[Json] | None = None,
    namespaced: bool = False,
    status: bool = True,
    group: str = GROUP,
) -> JsonObject:
    """A CustomResourceDefinition; `rules` stand on its spec."""
    plural = f"{kind.lower()}s"
    spec_schema: JsonObject = {**(spec or WIDGET_SPEC), "x-kubernetes-validations": rules or []}
    schema: JsonObject = {
        "type": "object",
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": {"type": "object"},
            "spec": spec_schema,
            "status": WIDGET_STATUS,
        },
    }
    columns: list[Json] = [
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
        {"name": "Color", "type": "string", "jsonPath": ".spec.color", "priority": 1},
    ]
    version: JsonObject = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}} if status else {},
        "additionalPrinterColumns": columns,
        "selectableFields": [{"jsonPath": ".spec.node"}],
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {
            "group": group,
            "names": {"kind": kind, "plural": plural, "shortNames": [kind.lower()[:2]], "categories": ["toys"]},
            "scope": "Namespaced" if namespaced else "Cluster",
            "versions": [version],
        },
    }


@dataclass
class Answer:
    """What the server said."""

    status: int
    body: JsonObject
    headers: dict[str, str]

    @property
    def reason(self) -> str:
        return as_text(self.body.get("reason"))

    @property
    def message(self) -> str:
        return as_text(self.body.get("message"))

    @property
    def metadata(self) -> JsonObject:
        return as_object(self.body.get("metadata"))

    @property
    def version(self) -> str:
        return as_text(self.metadata.get("resourceVersion"))

    @property
    def items(self) -> list[JsonObject]:
        return objects(self.body.get("items"))

    @property
    def names(self) -> list[str]:
        return [as_text(dig(item, "metadata", "name")) for item in self.items]

    @property
    def causes(self) -> list[tuple[str, str]]:
        """(field, reason) of every cause."""
        return [
            (as_text(cause.get("field")), as_text(cause.get("reason")))
            for cause in objects(dig(self.body, "details", "causes"))
        ]


@dataclass
class Api:
    """A synchronous client."""

    server: ApiServer
    clock: FixedClock = field(default_factory=FixedClock)

    def send(
        self,
        method: str,
        path: str,
        body: Json = None,
        *,
        content_type: str = "application/json",
        accept: str = "",
        **query: str,
    ) -> Answer:
        data = encode(body) if body is not None else b""
        headers = {"content-type": content_type, "accept": accept}
        reply = self.server.handle(Request(method, path, query, headers, data))
        assert isinstance(reply, Reply), "a watch is not an answer"
        return Answer(reply.status, as_object(decode(reply.body)), dict(reply.headers))

    def get(self, path: str, **query: str) -> Answer:
        return self.send("GET", path, **query)

    def post(self, path: str, body: Json, **query: str) -> Answer:
        return self.send("POST", path, body, **query)

    def put(self, path: str, body: Json, **query: str) -> Answer:
        return self.send("PUT", path, body, **query)

    def merge(self, path: str, patch: Json, **query: str) -> Answer:
        return self.send("PATCH", path, patch, content_type="application/merge-patch+json", **query)

    def json_patch(self, path: str, patch: Json, **query: str) -> Answer:
        return self.send("PATCH", path, patch, content_type="application/json-patch+json", **query)

    def strategic(self, path: str, patch: Json, **query: str) -> Answer:
        return self.send("PATCH", path, patch, content_type="application/strategic-merge-patch+json", **query)

    def delete(self, path: str, options: Json = None, **query: str) -> Answer:
        return self.send("DELETE", path, options, **query)

    def settle(self) -> None:
        """Let background work happen."""
        self.server.run_background()


def make_api(*crds: JsonObject, journal: Journal | None = None, history: int = 4096) -> Api:
    """A server with the given definitions, by default the widget's."""
    clock = FixedClock()
    server = ApiServer(crds or (crd(),), journal, clock, SeededIds(7), history=history)
    return Api(server, clock)


def widget(name: str = "a", size: int = 1, **metadata: Json) -> JsonObject:
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "Widget",
        "metadata": {"name": name, **metadata},
        "spec": {"size": size},
    }


def with_spec(name: str = "a", **spec: Json) -> JsonObject:
    return {**widget(name), "spec": {"size": 1, **spec}}


def owner_of(answer: Answer, **more: Json) -> JsonObject:
    """An owner reference to the object of an answer."""
    return {
        "apiVersion": answer.body["apiVersion"],
        "kind": answer.body["kind"],
        "name": answer.metadata["name"],
        "uid": answer.metadata["uid"],
        **more,
    }


def node(name: str, **spec: Json) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec}


def config_map(name: str, **data: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": dict[str, Json](data)}
