"""Lists: selection, consistent pages, reads of the past.

A continue token carries the version of the first page and the last key given out; later pages are read from the
history at that version, so all pages together are one snapshot. When the history no longer reaches back, the answer
is 410 with a token that continues inconsistently, as in Kubernetes.
"""

from __future__ import annotations

import base64
import binascii
from dataclasses import dataclass

import msgspec

from quorate.local.journal import Key
from quorate.local.jsonvalue import JsonObject
from quorate.local.kinds import Kind
from quorate.local.registry import served
from quorate.local.selectors import Selection
from quorate.local.status import (
    StatusError,
    bad_request,
    expired,
    forbidden_field,
    invalid,
    invalid_value,
    not_supported,
    version_too_large,
)  # fmt: skip
from quorate.local.store import Compacted, Store, Stored

_EXPIRED_CONTINUE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without the "
    "continue parameter, or use the continue token in this response to retrieve the remainder of the results. Continuing "
    "with the provided token results in an inconsistent list - objects that were created, modified, or deleted between the "
    "time the first chunk was returned and now may show up in the list."
)
_INCONSISTENT = -1


class _Token(msgspec.Struct):
    rv: int
    namespace: str
    name: str


@dataclass(frozen=True)
class ListQuery:
    """The parameters of a list request."""

    selection: Selection
    limit: int = 0
    continue_token: str = ""
    version: str = ""
    match: str = ""


@dataclass(frozen=True)
class Page:
    """One page of a list; `version` is that of the whole snapshot."""

    items: list[Stored]
    version: int
    continue_token: str = ""
    remaining: int | None = None


def list_page(store: Store, kind: Kind, query: ListQuery) -> Page:
    """The objects a list request asks for; raises the refusal."""
    if query.limit < 0:
        raise bad_request("limit must not be negative")
    after: Key | None = None
    if query.continue_token:
        if query.version not in ("", "0"):
            raise bad_request("specifying resource version is not allowed when using continue")
        token = _decode(query.continue_token)
        after = (token.namespace, token.name)
        version = store.version if token.rv == _INCONSISTENT else token.rv
        entries = _at(store, kind, version, query.continue_token)
    else:
        version = _requested_version(store, query)
        entries = _at(store, kind, version, "")
    return _page(kind, query, entries, version, after)


def _requested_version(store: Store, query: ListQuery) -> int:
    if query.version == "":
        if query.match:
            text = "resourceVersionMatch is forbidden unless resourceVersion is provided"
            raise invalid("meta.k8s.io", "ListOptions", "", [forbidden_field("resourceVersionMatch", text)])
        return store.version
    if not query.version.isdecimal():
        text = f'strconv.ParseUint: parsing "{query.version}": invalid syntax'
        raise bad_request(f"invalid resource version: {invalid_value('resourceVersion', query.version, text)}")
    asked = int(query.version)
    if asked > store.version:
        raise version_too_large(asked, store.version)
    if query.match == "Exact" or (query.match == "" and query.limit and asked):
        if not asked:
            raise bad_request('resourceVersionMatch "Exact" is forbidden for resourceVersion "0"')
        return asked
    if query.match not in ("", "NotOlderThan"):
        unknown = not_supported("resourceVersionMatch", query.match, ["Exact", "NotOlderThan", ""])
        raise invalid("meta.k8s.io", "ListOptions", "", [unknown])
    return store.version


def _at(store: Store, kind: Kind, version: int, token: str) -> list[tuple[Key, Stored]]:
    try:
        return store.at(kind.storage, version)
    except Compacted:
        if not token:
            raise too_old(version, store.table(kind.storage).compacted) from None
        decoded = _decode(token)
        raise expired(_EXPIRED_CONTINUE, _encode(_Token(_INCONSISTENT, decoded.namespace, decoded.name))) from None


def too_old(version: int, oldest: int) -> StatusError:
    return expired(f"too old resource version: {version} ({oldest})")


def _page(kind: Kind, query: ListQuery, entries: list[tuple[Key, Stored]], version: int, after: Key | None) -> Page:
    chosen: list[tuple[Key, Stored]] = []
    selection = query.selection
    limit = query.limit
    matching = 0
    for key, stored in entries:
        if after is not None and key <= after:
            continue
        if not selection.everything and not selection.matches(as_served(kind, stored)):
            continue
        matching += 1
        if not limit or len(chosen) < limit:
            chosen.append((key, stored))
    items = [stored for _, stored in chosen]
    if not limit or matching <= limit:
        return Page(items, version)
    last = chosen[-1][0]
    # As in Kubernetes, the number of remaining items is told only when no selector had to look at every object.
    remaining = matching - limit if not (selection.labels or selection.fields) else None
    return Page(items, version, _encode(_Token(version, last[0], last[1])), remaining)


def as_served(kind: Kind, stored: Stored) -> JsonObject:
    return served(kind, stored.obj)


def _encode(token: _Token) -> str:
    return base64.urlsafe_b64encode(msgspec.json.encode(token)).decode().rstrip("=")


def _decode(text: str) -> _Token:
    try:
        padded = text + "=" * (-len(text) % 4)
        return msgspec.json.decode(base64.urlsafe_b64decode(padded), type=_Token)
    except (ValueError, binascii.Error, msgspec.DecodeError):
        raise bad_request(f"invalid continue token: continue key is not valid: {_flaw(text)}") from None


def _flaw(token: str) -> str:
    """Why a text is no token."""
    odd = next(
        (at for at, sign in enumerate(token) if not (sign.isalnum() and sign.isascii()) and sign not in "-_"), None
    )
    return f"illegal base64 data at input byte {odd}" if odd is not None else "not a token of this server"
