"""The typed client: Kubernetes verbs over a `Transport`.

Guarantees: answers are typed values or typed errors (`machinery/errors.py`); a request without an answer within the
timeout is `errors.Timeout`; only differences are sent, never whole decoded objects; lists are read in pages; watches
are read in pieces and split into lines here; one undecodable object is handed over as such, never an exception that
would end a watch or a list.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Generic, Literal, TypeAlias, TypeVar
from urllib.parse import quote

import msgspec

from quorate.api import wire
from quorate.api.meta import Object, ObjectRef
from quorate.api.resources import Resource, by_kind, resource_of
from quorate.machinery import errors
from quorate.machinery.clock import Clock
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.transport import Transport

K = TypeVar("K", bound=Object)

MERGE_PATCH = "application/merge-patch+json"
JSON = "application/json"
Propagation: TypeAlias = Literal["Background", "Foreground", "Orphan"]
WatchType: TypeAlias = Literal["ADDED", "MODIFIED", "DELETED"]


@dataclass(frozen=True)
class Listing(Generic[K]):
    """A complete list at one resource version."""

    items: tuple[K, ...]
    resource_version: str
    undecodable: tuple[wire.Quarantined, ...] = ()


@dataclass(frozen=True)
class Changed(Generic[K]):
    """Watch event: an object appeared, changed or went."""

    type: WatchType
    obj: K


@dataclass(frozen=True)
class Bookmark:
    """Watch event: everything up to this version was delivered."""

    resource_version: str


@dataclass(frozen=True)
class UndecodableChange:
    """Watch event about an object the types cannot hold."""

    type: WatchType
    item: wire.Quarantined
    resource_version: str


WatchEvent: TypeAlias = Changed[K] | Bookmark | UndecodableChange


class _Line(msgspec.Struct):
    type: str
    object: msgspec.Raw


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""


class _Head(msgspec.Struct):
    kind: str = ""
    metadata: _Meta = msgspec.field(default_factory=_Meta)
    code: int = 500


_line_decoder = msgspec.json.Decoder(_Line)
_head_decoder = msgspec.json.Decoder(_Head)


class Client:
    """See the module docstring."""

    def __init__(
        self,
        transport: Transport,
        clock: Clock,
        metrics: MachineryMetrics,
        *,
        timeout: float = 30.0,
        user_agent: str = "quorate",
    ) -> None:
        self._transport = transport
        self._clock = clock
        self._metrics = metrics
        self._timeout = timeout
        self._headers = {"user-agent": user_agent, "accept": JSON}

    async def get(self, kind: type[K], name: str, namespace: str = "") -> K:
        """One live read; `NotFound` when there is none."""
        resource = resource_of(kind)
        return wire.decode(kind, await self._send("GET", resource, name, namespace))

    async def get_ref(self, ref: ObjectRef) -> Object | None:
        """The object that now has this name, None when there is none."""
        try:
            return await self.get(by_kind(ref.kind).type, ref.name, ref.namespace)
        except errors.NotFound:
            return None

    async def list(
        self,
        kind: type[K],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        page_size: int = 500,
    ) -> Listing[K]:
        """All objects at one version, read in pages; `Expired` when the pages took too long."""
        items: list[K] = []
        undecodable: list[wire.Quarantined] = []
        query = {"limit": str(page_size)} | _selectors(label_selector, field_selector)
        while True:
            body = await self._send("GET", resource_of(kind), "", namespace, query=query)
            page = wire.decode_list(kind, body)
            items.extend(page.items)
            undecodable.extend(page.quarantined)
            if not page.continue_:
                return Listing(tuple(items), page.resource_version, tuple(undecodable))
            query["continue"] = page.continue_

    async def create(self, obj: K, *, dry_run: bool = False) -> K:
        """Create an object; the answer has what the server filled in."""
        resource = resource_of(obj)
        body = wire.encode(obj)
        query = _dry_run(dry_run)
        answer = await self._send("POST", resource, "", obj.metadata.namespace, query=query, body=body)
        return wire.decode(type(obj), answer)

    async def patch(
        self, obj: K, patch: Mapping[str, object], *, subresource: Literal["", "status"] = "", dry_run: bool = False
    ) -> K:
        """Send a merge patch for the main or the status half of an object; a lock stands in its `metadata`."""
        answer = await self._send(
            "PATCH",
            resource_of(obj),
            obj.metadata.name,
            obj.metadata.namespace,
            subresource=subresource,
            query=_dry_run(dry_run),
            body=msgspec.json.encode(patch),
            content_type=MERGE_PATCH,
        )
        return wire.decode(type(obj), answer)

    async def delete(
        self,
        obj: K,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: Propagation = "Background",
        dry_run: bool = False,
    ) -> K | None:
        """Delete under preconditions; the object while finalizers hold it, None when it is gone."""
        preconditions = {key: value for key, value in (("uid", uid), ("resourceVersion", resource_version)) if value}
        options = {
            "kind": "DeleteOptions",
            "apiVersion": "v1",
            "propagationPolicy": propagation,
            **({"preconditions": preconditions} if preconditions else {}),
        }
        meta = obj.metadata
        answer = await self._send(
            "DELETE",
            resource_of(obj),
            meta.name,
            meta.namespace,
            query=_dry_run(dry_run),
            body=msgspec.json.encode(options),
        )
        if _head_decoder.decode(answer).kind == "Status":
            return None
        held = wire.decode(type(obj), answer)
        return held if held.metadata.finalizers else None

    async def watch(
        self,
        kind: type[K],
        *,
        resource_version: str,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        lasting: float = 300.0,
    ) -> AsyncGenerator[WatchEvent[K], None]:
        """Changes after `resource_version` until the server ends the watch; `Expired` when the version is too old.

        Use with `contextlib.aclosing`, so that leaving the loop early ends the request at once.
        """
        query = {
            "watch": "true",
            "resourceVersion": resource_version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(int(lasting)),
        } | _selectors(label_selector, field_selector)
        path = _path(resource_of(kind), "", namespace)
        self._metrics.client_requests.inc("WATCH", kind.__name__, "started")
        async with (
            self._transport.stream("GET", path, query=query, headers=self._headers) as chunks,
            aclosing(_lines(chunks)) as lines,
        ):
            async for line in lines:
                yield _event(kind, line)

    async def _send(
        self,
        method: str,
        resource: Resource[K],
        name: str,
        namespace: str,
        *,
        subresource: str = "",
        query: Mapping[str, str] | None = None,
        body: bytes = b"",
        content_type: str = JSON,
    ) -> bytes:
        headers = self._headers | ({"content-type": content_type} if body else {})
        path = _path(resource, name, namespace, subresource)
        started = self._clock.monotonic()
        code = "timeout"
        try:
            async with asyncio.timeout(self._timeout):
                answer = await self._transport.request(method, path, query=query or {}, headers=headers, body=body)
            code = str(answer.status)
        except TimeoutError:
            raise errors.timeout(f"{method} {path}: no answer within {self._timeout:g} s") from None
        except errors.ApiError as error:
            code = error.reason
            raise
        finally:
            self._metrics.client_requests.inc(method, resource.kind, code)
            self._metrics.client_time.observe(self._clock.monotonic() - started, method, resource.kind)
        if not 200 <= answer.status < 300:
            raise errors.from_status(answer.status, answer.body)
        return answer.body


def _path(resource: Resource[K], name: str, namespace: str, subresource: str = "") -> str:
    return resource.path(quote(name, safe=""), quote(namespace, safe=""), subresource)


def _dry_run(dry_run: bool) -> dict[str, str]:
    return {"dryRun": "All"} if dry_run else {}


def _selectors(label_selector: str, field_selector: str) -> dict[str, str]:
    pairs = (("labelSelector", label_selector), ("fieldSelector", field_selector))
    return {key: value for key, value in pairs if value}


async def _lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Split pieces with arbitrary borders into lines; an incomplete last line was cut off and is not an event."""
    rest: list[bytes] = []
    async for chunk in chunks:
        head, *tail = chunk.split(b"\n")
        rest.append(head)
        for piece in tail:
            line = b"".join(rest)
            rest = [piece]
            if line.strip():
                yield line


def _event(kind: type[K], data: bytes) -> WatchEvent[K]:
    line = _line_decoder.decode(data)
    raw = line.object
    match line.type:
        case "ADDED" | "MODIFIED" | "DELETED" as change:
            try:
                return Changed(change, wire.decode(kind, raw))
            except msgspec.MsgspecError as error:
                return UndecodableChange(change, wire.quarantine(raw, error), _version(raw))
        case "BOOKMARK":
            return Bookmark(_head_decoder.decode(raw).metadata.resource_version)
        case "ERROR":
            raise errors.from_status(_head_decoder.decode(raw).code, bytes(raw))
        case other:
            raise errors.unavailable(f"watch event of unknown type {other!r}")


def _version(raw: msgspec.Raw) -> str:
    """The resource version of an object that cannot be decoded, empty when not even that can be."""
    try:
        return _head_decoder.decode(raw).metadata.resource_version
    except msgspec.MsgspecError:
        return ""
