"""The REST face of the API: one synchronous function from a request to a reply.

No sockets and no waiting here: the in-process transport and the HTTP server both call `Rest.handle` and hold the
reply back until the version it rests on is durable. Every failure is a `Status` object; nothing is changed by a
refused request.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from quorate.local import admission
from quorate.local.deletion import Deletions, parse_options
from quorate.local.documents import Documents
from quorate.local.jsonvalue import Json, JsonObject, encode
from quorate.local.kinds import Catalog, Kind
from quorate.local.negotiation import OBJECT, PARTIAL, PARTIAL_LIST, TABLE, Form, negotiate, parse_body
from quorate.local.paths import ResourcePath, parse_resource_path
from quorate.local.reading import ListQuery, Page, list_page
from quorate.local.registry import Outcome, Registry, Target, WriteOptions, served
from quorate.local.reviews import REVIEWS, review
from quorate.local.selectors import Selection, selection
from quorate.local.status import (
    StatusError,
    bad_request,
    invalid,
    method_not_allowed,
    no_such_path,
    not_supported,
    too_large,
)
from quorate.local.store import Stored
from quorate.local.tables import partial, table
from quorate.local.watch import Render, Watch, WatchQuery

BODY_LIMIT = 3 * 1024 * 1024
_FORMS = (TABLE, PARTIAL, PARTIAL_LIST)
_TRUE = ("true", "1", "True")


@dataclass(frozen=True)
class Request:
    """One request; `path` is escaped, header names are lower case."""

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes = b""


@dataclass(frozen=True)
class Reply:
    """A complete answer that may be sent once `version` is durable."""

    status: int
    body: bytes
    version: int = 0
    headers: tuple[tuple[str, str], ...] = ()
    content_type: str = "application/json"


def refusal(error: StatusError) -> Reply:
    """The answer to a request that failed."""
    headers = tuple(error.headers.items())
    if error.retry_after:
        headers = (*headers, ("Retry-After", str(error.retry_after)))
    return Reply(error.code, encode(error.body), headers=headers)


class Rest:
    """See the module docstring."""

    def __init__(self, registry: Registry, documents: Documents) -> None:
        self._registry = registry
        self._deletions = Deletions(registry)
        self._catalog: Catalog = registry.catalog
        self._documents = documents

    def handle(self, request: Request) -> Reply | Watch:
        """Answer one request; never raises for anything a client can send."""
        try:
            return self._dispatch(request)
        except StatusError as error:
            return refusal(error)

    def _dispatch(self, request: Request) -> Reply | Watch:
        if len(request.body) > BODY_LIMIT:
            raise too_large(BODY_LIMIT)
        path = parse_resource_path(request.path)
        if path is None or not path.plural:
            return self._document(request)
        if (path.group, path.plural) in REVIEWS:
            return self._review(request, path)
        kind = self._catalog.find(path.group, path.version, path.plural)
        if kind is None or (path.namespace and not kind.namespaced):
            raise no_such_path()
        if path.subresource and not (path.subresource == "status" and kind.has_status):
            raise no_such_path()
        if path.name:
            return self._on_object(request, Target(kind, path.namespace, path.name), status=bool(path.subresource))
        return self._on_collection(request, kind, path.namespace)

    def _document(self, request: Request) -> Reply:
        if request.method not in ("GET", "HEAD"):
            raise method_not_allowed("GET")
        found = self._documents.find(request.path.rstrip("/") or "/", request.headers.get("accept", ""))
        if found is None:
            raise no_such_path()
        return Reply(200, found.body, content_type=found.content_type)

    def _review(self, request: Request, path: ResourcePath) -> Reply:
        if request.method != "POST":
            raise method_not_allowed("POST")
        body = parse_body(request.headers.get("content-type", ""), request.body)
        return Reply(201, encode(review(path.group, path.version, path.plural, body)))

    # One object

    def _on_object(self, request: Request, target: Target, *, status: bool) -> Reply | Watch:
        kind = target.kind
        if kind.namespaced and not target.namespace:
            raise no_such_path()
        form = negotiate(request.headers.get("accept", ""), _FORMS)
        match request.method:
            case "GET" | "HEAD":
                if request.query.get("watch") in _TRUE:
                    only = selection(target.namespace, "", f"metadata.name={target.name}", {})
                    return self._watch(request, kind, only)
                return self._reply(kind, form, self._registry.get(target))
            case "PUT":
                outcome = self._registry.replace(target, self._body(request), _write_options(request), status=status)
            case "PATCH":
                media_type = request.headers.get("content-type", "").split(";")[0].strip()
                patch = parse_body(media_type, request.body)
                outcome = self._registry.patch(target, media_type, patch, _write_options(request), status=status)
            case "DELETE" if not status:
                options = parse_options(self._body(request) if request.body else None, dict(request.query))
                outcome = self._deletions.delete(target, options)
            case _:
                raise method_not_allowed("GET, PUT, PATCH" if status else "GET, PUT, PATCH, DELETE")
        return self._reply(kind, form, outcome)

    # Collections

    def _on_collection(self, request: Request, kind: Kind, namespace: str) -> Reply | Watch:
        form = negotiate(request.headers.get("accept", ""), _FORMS)
        match request.method:
            case "GET" | "HEAD":
                chosen = _selection(request, kind, namespace)
                if request.query.get("watch") in _TRUE:
                    return self._watch(request, kind, chosen)
                return self._list(request, kind, form, chosen)
            case "POST" if not (kind.namespaced and not namespace):
                outcome = self._registry.create(kind, namespace, self._body(request), _write_options(request))
                return self._reply(kind, form, outcome)
            case "DELETE" if not (kind.namespaced and not namespace):
                options = parse_options(self._body(request) if request.body else None, dict(request.query))
                removed = self._deletions.delete_collection(kind, _selection(request, kind, namespace), options)
                version = self._registry.store.version
                body = _list_body(kind, Page([Stored(obj, version) for obj in removed], version))
                return Reply(200, body, version)
            case _:
                raise method_not_allowed("GET, POST, DELETE")

    def _list(self, request: Request, kind: Kind, form: Form, chosen: Selection) -> Reply:
        query = ListQuery(
            chosen,
            _number(request, "limit"),
            request.query.get("continue", ""),
            request.query.get("resourceVersion", ""),
            request.query.get("resourceVersionMatch", ""),
        )
        page = list_page(self._registry.store, kind, query)
        if form.kind == OBJECT:
            return Reply(200, _list_body(kind, page), page.version)
        items = [served(kind, stored.obj) for stored in page.items]
        metadata = _list_metadata(page)
        if form.kind == TABLE:
            shown = table(kind, items, self._registry.clock.now(), form.version, _included(request), metadata)
        else:
            shown: JsonObject = {
                "kind": PARTIAL_LIST,
                "apiVersion": f"meta.k8s.io/{form.version}",
                "metadata": metadata,
                "items": [partial(item, form.version) for item in items],
            }
        return Reply(200, encode(shown), page.version)

    def _watch(self, request: Request, kind: Kind, chosen: Selection) -> Watch:
        form = negotiate(request.headers.get("accept", ""), _FORMS)
        query = WatchQuery(
            chosen,
            request.query.get("resourceVersion", ""),
            request.query.get("allowWatchBookmarks") in _TRUE,
            float(_number(request, "timeoutSeconds")),
            request.query.get("sendInitialEvents") in _TRUE,
            request.query.get("resourceVersionMatch", ""),
        )
        return Watch(self._registry.store, kind, query, self._renderer(request, kind, form))

    def _renderer(self, request: Request, kind: Kind, form: Form) -> Render | None:
        if form.kind == OBJECT:
            return None
        if form.kind == TABLE:
            included = _included(request)
            clock = self._registry.clock
            return lambda obj: table(kind, [obj], clock.now(), form.version, included, _object_metadata(obj))
        return lambda obj: partial(obj, form.version)

    # Bodies

    def _body(self, request: Request) -> Json:
        return parse_body(request.headers.get("content-type", ""), request.body)

    def _reply(self, kind: Kind, form: Form, outcome: Outcome) -> Reply:
        obj = outcome.obj
        if obj.get("kind") != "Status":
            if form.kind == TABLE:
                now = self._registry.clock.now()
                obj = table(kind, [obj], now, form.version, "Metadata", _object_metadata(obj))
            elif form.kind == PARTIAL:
                obj = partial(obj, form.version)
        headers = tuple(("Warning", f'299 - "{_escaped(text)}"') for text in outcome.warnings)
        return Reply(201 if outcome.created else 200, encode(obj), outcome.version, headers)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _object_metadata(obj: JsonObject) -> JsonObject:
    metadata = obj.get("metadata")
    version = metadata.get("resourceVersion") if isinstance(metadata, dict) else None
    return {"resourceVersion": version} if version is not None else {}


def _included(request: Request) -> str:
    return request.query.get("includeObject", "Metadata")


def _number(request: Request, name: str) -> int:
    text = request.query.get(name, "")
    if not text:
        return 0
    if not text.isdecimal():
        raise bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    return int(text)


def _selection(request: Request, kind: Kind, namespace: str) -> Selection:
    labels, fields = request.query.get("labelSelector", ""), request.query.get("fieldSelector", "")
    return selection(namespace, labels, fields, kind.field_labels)


def _write_options(request: Request) -> WriteOptions:
    dry_run = request.query.get("dryRun", "")
    if dry_run not in ("", "All"):
        raise invalid("meta.k8s.io", "CreateOptions", "", [not_supported("dryRun", [dry_run], ["All"])])
    validation = request.query.get("fieldValidation", "") or admission.WARN
    if validation not in (admission.STRICT, admission.WARN, admission.IGNORE):
        supported: list[Json] = ["", admission.IGNORE, admission.STRICT, admission.WARN]
        raise invalid("meta.k8s.io", "CreateOptions", "", [not_supported("fieldValidation", validation, supported)])
    return WriteOptions(dry_run == "All", validation)


def _list_metadata(page: Page, *, custom: bool = False) -> JsonObject:
    metadata: JsonObject = {"resourceVersion": str(page.version)}
    # Lists of custom kinds name an empty token, too.
    if page.continue_token or custom:
        metadata["continue"] = page.continue_token
    if page.remaining is not None:
        metadata["remainingItemCount"] = page.remaining
    return metadata


def _list_body(kind: Kind, page: Page) -> bytes:
    """A list made of the texts its items already have."""
    parts: list[bytes] = []
    for stored in page.items:
        obj = served(kind, stored.obj)
        parts.append(stored.encoded if obj is stored.obj else encode(obj))
    metadata = _list_metadata(page, custom=kind.custom)
    head: JsonObject = {"apiVersion": kind.api_version, "kind": kind.list_kind, "metadata": metadata}
    return encode(head)[:-1] + b',"items":[' + b",".join(parts) + b"]}"
