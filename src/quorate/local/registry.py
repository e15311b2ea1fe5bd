"""Writing objects: create, replace and patch, with Kubernetes' rules for names, locks, halves and finalizers.

The registry is synchronous. An `Outcome` names the version that must be durable before the caller may see it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.local import admission
from quorate.local.admission import Admitted, Stamp
from quorate.local.journal import Key
from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, dig, texts, with_metadata
from quorate.local.kinds import Catalog, Kind
from quorate.local.patches import PatchFailed, json_patch, merge_patch, patch_invalid
from quorate.local.ports import Ids, WallClock, parse_timestamp, timestamp
from quorate.local.status import (
    Cause,
    StatusError,
    already_exists,
    bad_request,
    forbidden,
    not_found,
    unsupported_media_type,
)
from quorate.local.store import Store, Stored
from quorate.local.strategic import strategic_merge

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

_NAME_ATTEMPTS = 8
_MAX_GENERATED_BASE = 58


@dataclass(frozen=True)
class WriteOptions:
    dry_run: bool = False
    field_validation: str = admission.WARN


@dataclass(frozen=True)
class Outcome:
    """What a write led to, in the served version."""

    obj: JsonObject
    version: int
    created: bool = False
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """The object a request speaks of."""

    kind: Kind
    namespace: str
    name: str

    @property
    def key(self) -> Key:
        return (self.namespace if self.kind.namespaced else "", self.name)


class Registry:
    """See the module docstring."""

    def __init__(self, store: Store, catalog: Catalog, clock: WallClock, ids: Ids) -> None:
        self.store = store
        self.catalog = catalog
        self.clock = clock
        self.ids = ids

    # Reading one object

    def stored(self, target: Target) -> Stored:
        found = self.store.get(target.kind.storage, target.key)
        if found is None:
            raise not_found(target.kind.group, target.kind.plural, target.name)
        return found

    def get(self, target: Target) -> Outcome:
        found = self.stored(target)
        return Outcome(served(target.kind, found.obj), found.version)

    # Create

    def create(self, kind: Kind, namespace: str, body: Json, options: WriteOptions) -> Outcome:
        obj = admission.decoded(kind, body)
        metadata = as_object(obj.get("metadata"))
        if as_text(metadata.get("resourceVersion")) not in ("", "0"):
            raise StatusError(500, "", "resourceVersion should not be set on objects to be created")
        admission.check_namespace(obj, namespace if kind.namespaced else "")
        if kind.namespaced:
            self._check_namespace(kind, namespace, as_text(metadata.get("name")))
            obj = with_metadata(obj, namespace=namespace)
        else:
            obj = with_metadata(obj, namespace=None)
        attempts = 1 if metadata.get("name") or not metadata.get("generateName") else _NAME_ATTEMPTS
        for attempt in range(attempts):
            try:
                return self._create_named(kind, namespace, obj, options)
            except StatusError as error:
                if error.reason != "AlreadyExists" or attempt == attempts - 1:
                    raise
        raise AssertionError("unreachable")

    def _create_named(self, kind: Kind, namespace: str, obj: JsonObject, options: WriteOptions) -> Outcome:
        metadata = as_object(obj.get("metadata"))
        base = as_text(metadata.get("generateName"))
        if not metadata.get("name") and base:
            obj = with_metadata(obj, name=base[:_MAX_GENERATED_BASE] + self.ids.suffix())
        now = self.clock.now()
        stamp = Stamp(self.ids.uid(), now, timestamp(now))
        admitted = admission.admit_create(kind, obj, stamp, options.field_validation)
        name = as_text(dig(admitted.obj, "metadata", "name"))
        key = (namespace if kind.namespaced else "", name)
        if self.store.get(kind.storage, key) is not None:
            raise already_exists(kind.group, kind.plural, name)
        if options.dry_run:
            return Outcome(admitted.obj, 0, created=True, warnings=admitted.warnings)
        stored = self.store.put(kind.storage, key, to_storage(kind, admitted.obj))
        return Outcome(served(kind, stored.obj), stored.version, created=True, warnings=admitted.warnings)

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        found = self.store.get("namespaces", ("", namespace))
        if found is None:
            raise not_found("", "namespaces", namespace)
        if dig(found.obj, "metadata", "deletionTimestamp") is not None:
            text = f"unable to create new content in namespace {namespace} because it is being terminated"
            cause = Cause("NamespaceTerminating", f"namespace {namespace} is being terminated", "metadata.namespace")
            raise forbidden(kind.group, kind.plural, name, text, (cause,))

    # Update

    def replace(self, target: Target, body: Json, options: WriteOptions, *, status: bool = False) -> Outcome:
        obj = admission.decoded(target.kind, body)
        admission.check_identity(obj, target.key[0], target.name)
        unversioned = as_text(dig(obj, "metadata", "resourceVersion")) in ("", "0")
        missing = self.store.get(target.kind.storage, target.key) is None
        if target.kind.strategy.create_on_update and unversioned and missing:
            obj = with_metadata(obj, name=target.name, resourceVersion=None)
            return self.create(target.kind, target.namespace, obj, options)
        return self._update(target, lambda old: obj, options, status=status, replace=True)

    def patch(self, target: Target, media_type: str, patch: Json, options: WriteOptions, *, status: bool) -> Outcome:
        kind = target.kind

        def apply(old: JsonObject) -> JsonObject:
            match media_type:
                case "application/merge-patch+json":
                    if not isinstance(patch, dict):
                        raise bad_request(
                            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}"
                        )
                    result = merge_patch(old, patch)
                case "application/json-patch+json":
                    try:
                        result = json_patch(old, patch)
                    except PatchFailed:
                        raise patch_invalid() from None
                case "application/strategic-merge-patch+json" if not kind.custom:
                    result = strategic_merge(old, patch, kind.structure)
                case _:
                    raise _unsupported_patch(kind, media_type)
            obj = admission.decoded(kind, result)
            admission.check_identity(obj, target.key[0], target.name)
            return obj

        return self._update(target, apply, options, status=status, replace=False)

    def _update(
        self,
        target: Target,
        change: Callable[[JsonObject], JsonObject],
        options: WriteOptions,
        *,
        status: bool,
        replace: bool,
    ) -> Outcome:
        kind = target.kind
        stored = self.stored(target)
        old = served(kind, stored.obj)
        new = change(old)
        admission.check_locks(kind, new, old, target.name, replace=replace)
        admitted = admission.admit_update(
            kind, new, old, status_only=status, now=self.clock.now(), field_validation=options.field_validation
        )
        if admitted.obj is old:
            return Outcome(old, stored.version, warnings=admitted.warnings)
        if options.dry_run:
            return Outcome(admitted.obj, 0, warnings=admitted.warnings)
        return self._store_update(target, admitted)

    def _store_update(self, target: Target, admitted: Admitted) -> Outcome:
        kind = target.kind
        obj = to_storage(kind, admitted.obj)
        if self.is_finished(kind, obj):
            removed = self.store.remove(kind.storage, target.key)
            # The answer shows the object as written; watchers see its last stored state, as in Kubernetes.
            answer = with_metadata(admitted.obj, resourceVersion=str(removed.version))
            return Outcome(answer, removed.version, warnings=admitted.warnings)
        stored = self.store.put(kind.storage, target.key, obj)
        return Outcome(served(kind, stored.obj), stored.version, warnings=admitted.warnings)

    def is_finished(self, kind: Kind, obj: JsonObject) -> bool:
        """Whether nothing holds a deleted object any longer."""
        metadata = as_object(obj.get("metadata"))
        deletion = as_text(metadata.get("deletionTimestamp"))
        if not deletion or texts(metadata.get("finalizers")) or kind.strategy.held(obj):
            return False
        grace = metadata.get("deletionGracePeriodSeconds")
        return grace in (None, 0) or (parse_timestamp(deletion) or 0.0) <= self.clock.now()


def served(kind: Kind, obj: JsonObject) -> JsonObject:
    """A stored object in the version of `kind`."""
    if kind.conversion is not None:
        return kind.conversion.from_storage(obj)
    if obj.get("apiVersion") != kind.api_version:
        return {**obj, "apiVersion": kind.api_version}
    return obj


def to_storage(kind: Kind, obj: JsonObject) -> JsonObject:
    return kind.conversion.to_storage(obj) if kind.conversion is not None else obj


def _unsupported_patch(kind: Kind, media_type: str) -> StatusError:
    accepted = [JSON_PATCH, MERGE_PATCH, *([] if kind.custom else [STRATEGIC_PATCH])]
    if media_type == APPLY_PATCH:
        text = "server-side apply is not supported by this server; use client-side apply or one of"
        return unsupported_media_type(f"{text}: {', '.join(accepted)}")
    text = "the body of the request was in an unknown format - accepted media types include"
    return unsupported_media_type(f"{text}: {', '.join(accepted)}")
