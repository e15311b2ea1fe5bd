"""One client for two back ends; it writes down what was answered, so that the answers can be compared.

What differs by nature is made equal: identifiers, versions and times become symbols in the order of their appearance,
causes and resources are sorted where the real server has no order, and `managedFields` and `storageVersionHash` go
(server-side apply and storage migration are not part of the embedded server).
"""

from __future__ import annotations

import http.client
import re
import ssl
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol
from urllib.parse import quote, urlencode

from quorate.local.api_server import ApiServer
from quorate.local.jsonvalue import Json, JsonObject, as_list, as_object, as_text, decode, dig, encode, objects
from quorate.local.ports import SeededIds
from quorate.local.rest import Reply, Request
from quorate.local.watch import Watch
from quorate.machinery.virtual_loop import run_virtual
from tests.local.builders import Answer, FixedClock

MERGE = "application/merge-patch+json"
JSON_PATCH = "application/json-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
TIME = re.compile(r"^20(2[3-9]|[3-9]\d)-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$")
UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
VERSION_TEXT = re.compile(r"(in record \()\d+(\))")


@dataclass(frozen=True)
class Answered:
    """What came back over the wire."""

    status: int
    headers: dict[str, str]
    body: bytes


class Backend(Protocol):
    """A server to talk to."""

    def send(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes) -> Answered:
        """One exchange."""
        ...

    def watch(self, path: str, query: dict[str, str], count: int) -> list[bytes]:
        """The first events of a watch, as lines."""
        ...


class Embedded:
    """The embedded server, in process."""

    def __init__(self, crds: tuple[JsonObject, ...]) -> None:
        self.server = ApiServer(crds, None, FixedClock(), SeededIds(7))

    def send(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes) -> Answered:
        reply = self.server.handle(Request(method, path, query, headers, body))
        assert isinstance(reply, Reply), "a watch is not an answer"
        self.server.run_background()
        return Answered(reply.status, _joined(reply.headers), reply.body)

    def watch(self, path: str, query: dict[str, str], count: int) -> list[bytes]:
        async def read() -> list[bytes]:
            reply = self.server.handle(Request("GET", path, {"watch": "true", **query}, {}))
            if isinstance(reply, Reply):
                return [reply.body]
            assert isinstance(reply, Watch)
            lines: list[bytes] = []
            async for chunk in reply.lines():
                lines += chunk.splitlines()
                if len(lines) >= count:
                    break
            return lines[:count]

        return run_virtual(read)


class Real:
    """A kube-apiserver; what a case made is deleted when it ends."""

    def __init__(self, port: int, authority: Path, certificate: Path, key: Path) -> None:
        context = ssl.create_default_context(cafile=str(authority))
        context.load_cert_chain(certificate, key)
        self._connection = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=120)
        self._watching = http.client.HTTPSConnection("127.0.0.1", port, context=context, timeout=120)
        self._made: list[str] = []

    def send(self, method: str, path: str, query: dict[str, str], headers: dict[str, str], body: bytes) -> Answered:
        self._connection.request(method, _target(path, query), body or None, {k: v for k, v in headers.items() if v})
        response = self._connection.getresponse()
        answered = Answered(response.status, _joined(response.getheaders()), response.read())
        if method in ("POST", "PUT") and answered.status == 201 and "dryRun" not in query:
            name = as_text(dig(as_object(decode(answered.body)), "metadata", "name"))
            self._made.append(path if method == "PUT" else f"{path}/{name}")
        return answered

    def watch(self, path: str, query: dict[str, str], count: int) -> list[bytes]:
        self._watching.request("GET", _target(path, {"watch": "true", "timeoutSeconds": "20", **query}))
        response = self._watching.getresponse()
        lines: list[bytes] = []
        while len(lines) < count:
            line = response.readline()
            if not line:
                break
            lines.append(line.strip())
        self._watching.close()
        return lines

    def clear(self) -> None:
        """Delete what was made."""
        for path in reversed(self._made):
            gone = b'{"metadata":{"finalizers":null}}'
            self.send("DELETE", path, {}, {}, b'{"gracePeriodSeconds":0,"propagationPolicy":"Background"}')
            self.send("PATCH", path, {}, {"content-type": MERGE}, gone)
        self._made.clear()

    def close(self) -> None:
        """Close the connections."""
        self._connection.close()
        self._watching.close()


def _joined(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Headers by name; those that stand several times in one line, in a fixed order."""
    found: dict[str, list[str]] = {}
    for name, value in headers:
        found.setdefault(name.lower(), []).append(value)
    return {name: ", ".join(sorted(values)) for name, values in found.items()}


def _decoded(body: bytes) -> JsonObject:
    """The answer; what is no JSON (a plain 404) as a text."""
    try:
        return as_object(decode(body)) if body else {}
    except ValueError:
        return {"text": body.decode(errors="replace")}


def _target(path: str, query: dict[str, str]) -> str:
    return quote(path, safe="/%") + (f"?{urlencode(query)}" if query else "")


@dataclass
class Symbols:
    """Names for what differs from run to run."""

    known: dict[tuple[str, str], str] = field(default_factory=dict[tuple[str, str], str])

    def of(self, what: str, value: str) -> str:
        """The same value gets the same symbol."""
        count = sum(1 for kind, _ in self.known if kind == what)
        return self.known.setdefault((what, value), f"<{what} {count + 1}>")

    def normal(self, value: Json, key: str = "") -> Json:
        """A value without what differs by nature."""
        match value:
            case dict():
                return self._object(value)
            case list():
                return [self.normal(item, key) for item in value]
            case str():
                return self._text(value, key)
            case _:
                return value

    def _object(self, value: JsonObject) -> JsonObject:
        kept = {key: each for key, each in value.items() if key not in ("managedFields", "storageVersionHash")}
        base = as_text(kept.get("generateName"))
        name = as_text(kept.get("name"))
        made = {key: self.normal(each, key) for key, each in sorted(kept.items())}
        if base and name.startswith(base[:58]) and len(name) == len(base[:58]) + 5:
            made["name"] = f"{base[:58]}<five random characters>"
        for key in ("resources", "verbs"):
            if isinstance(made.get(key), list):
                made[key] = sorted(as_list(made[key]), key=encode)
        return _in_one_order(made)

    def _text(self, value: str, key: str) -> str:
        if key == "continue" and value:
            return "<continue>"
        if key == "resourceVersion" and value.isdigit():
            return self.of("version", value)
        if TIME.match(value):
            return "<time>"
        value = UID.sub(lambda found: self.of("uid", found.group()), value)
        return VERSION_TEXT.sub(r"\1<version>\2", value)


def _in_one_order(status: JsonObject) -> JsonObject:
    """A refusal whose causes are sorted and told once: the real server finds them in random order, some twice."""
    causes = objects(dig(status, "details", "causes"))
    if not causes:
        return status
    unique = sorted({encode(cause): cause for cause in causes}.items())
    details: JsonObject = {**as_object(status["details"]), "causes": [cause for _, cause in unique]}
    message = as_text(status.get("message"))
    listed = {f"{cause.get('field')}: {cause.get('message')}" for cause in causes}
    head = message.partition("is invalid: ")[0]
    if len(listed) > 1 and all(text in message for text in listed):
        message = f"{head}is invalid: [{', '.join(sorted(listed))}]"
    return {**status, "details": details, "message": message}


@dataclass
class Session:
    """What a case talks to."""

    backend: Backend
    transcript: list[Json] = field(default_factory=list[Json])
    symbols: Symbols = field(default_factory=Symbols)

    def send(
        self, method: str, path: str, body: Json = None, *, content_type: str = "", accept: str = "", **query: str
    ) -> Answer:
        """One request, written down."""
        data = encode(body) if body is not None else b""
        headers = {"content-type": content_type or "application/json", "accept": accept or "application/json"}
        answered = self.backend.send(method, path, query, headers, data)
        decoded = _decoded(answered.body)
        entry: JsonObject = {
            "asked": f"{method} {path}",
            "status": answered.status,
            "body": self.symbols.normal(decoded),
        }
        if "warning" in answered.headers:
            entry["warning"] = answered.headers["warning"]
        self.transcript.append(entry)
        return Answer(answered.status, decoded, answered.headers)

    def get(self, path: str, **query: str) -> Answer:
        return self.send("GET", path, **query)

    def post(self, path: str, body: Json, **query: str) -> Answer:
        return self.send("POST", path, body, **query)

    def put(self, path: str, body: Json, **query: str) -> Answer:
        return self.send("PUT", path, body, **query)

    def merge(self, path: str, patch: Json, **query: str) -> Answer:
        return self.send("PATCH", path, patch, content_type=MERGE, **query)

    def json_patch(self, path: str, patch: Json, **query: str) -> Answer:
        return self.send("PATCH", path, patch, content_type=JSON_PATCH, **query)

    def strategic(self, path: str, patch: Json, **query: str) -> Answer:
        return self.send("PATCH", path, patch, content_type=STRATEGIC, **query)

    def delete(self, path: str, options: Json = None, **query: str) -> Answer:
        return self.send("DELETE", path, options, **query)

    def table(self, path: str, **query: str) -> Answer:
        return self.send("GET", path, accept="application/json;as=Table;v=v1;g=meta.k8s.io", **query)

    def forget(self) -> None:
        """What came before is preparation and not compared."""
        self.transcript.clear()
        self.symbols = Symbols()

    def watch(self, path: str, count: int, **query: str) -> None:
        """The first events of a watch, written down."""
        lines = self.backend.watch(path, query, count)
        events: list[Json] = [self.symbols.normal(decode(line)) for line in lines]
        self.transcript.append({"asked": f"WATCH {path}", "events": events})


Case = Callable[[Session], None]
