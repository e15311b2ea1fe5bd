"""Garbage collection: dependents follow their owners, foreground and orphan deletions are worked off.

Owner references are compared by uid. An object all of whose owners are gone is deleted; one that still has an owner
only loses the dangling references. Work is remembered in a queue that is filled by the store's changes and drained by
`collect`; after a restart the queue is rebuilt from the objects themselves, so nothing depends on its survival.
"""

from __future__ import annotations

from quorate.local.deletion import FOREGROUND, ORPHAN, DeleteOptions, Deletions
from quorate.local.journal import Key
from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, dig, objects, texts, with_metadata
from quorate.local.kinds import Kind
from quorate.local.registry import Registry, Target
from quorate.local.status import StatusError

Place = tuple[str, Key]
"""(table, key) of an object."""


class GarbageCollector:
    """See the module docstring."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._deletions = Deletions(registry)
        self._by_uid: dict[str, Place] = {}
        self._dependents: dict[str, dict[Place, None]] = {}
        """Owner uid -> its dependents (dicts keep an order, sets of strings do not)."""
        self._queue: dict[Place, None] = {}
        for table in self._store.tables():
            for key, stored in table.objects.items():
                self._on_change(table.name, key, None, stored.obj)
                self._queue[table.name, key] = None
        self._store.observe(self._on_change)

    @property
    def pending(self) -> bool:
        return bool(self._queue)

    def _on_change(self, table: str, key: Key, before: JsonObject | None, after: JsonObject | None) -> None:
        place = (table, key)
        if before is not None:
            for owner in _owner_uids(before):
                self._dependents.get(owner, {}).pop(place, None)
        if after is None:
            uid = _uid(before or {})
            self._by_uid.pop(uid, None)
            self._wake_dependents(uid)
            self._wake_owners(before or {})
            return
        self._by_uid[_uid(after)] = place
        owners = _owner_uids(after)
        for owner in owners:
            self._dependents.setdefault(owner, {})[place] = None
        if any(owner not in self._by_uid for owner in owners):
            self._queue[place] = None
        if _waits_for(after, FOREGROUND) or _waits_for(after, ORPHAN):
            self._queue[place] = None
        if before is not None and _owner_uids(before) != owners:
            self._wake_owners(before)

    def _wake_dependents(self, uid: str) -> None:
        dependents = self._dependents.get(uid, {})
        if not dependents:
            self._dependents.pop(uid, None)
        for place in dependents:
            self._queue[place] = None

    def _wake_owners(self, obj: JsonObject) -> None:
        """An owner in foreground deletion may go when a dependent went."""
        for owner in _owner_uids(obj):
            place = self._by_uid.get(owner)
            if place is not None:
                self._queue[place] = None

    def collect(self) -> None:
        """Work until nothing is left to do; every object in the queue is looked at once per change."""
        while self._queue:
            place = next(iter(self._queue))
            del self._queue[place]
            self._process(place)

    def _process(self, place: Place) -> None:
        table, key = place
        stored = self._store.get(table, key)
        kind = self._registry.catalog.by_storage(table)
        if stored is None or kind is None:
            return
        obj = stored.obj
        if _waits_for(obj, ORPHAN):
            self._orphan(kind, key, obj)
        elif _waits_for(obj, FOREGROUND):
            self._foreground(kind, key, obj)
        elif dig(obj, "metadata", "deletionTimestamp") is None:
            self._check_owners(kind, key, obj)

    def _orphan(self, kind: Kind, key: Key, obj: JsonObject) -> None:
        uid = _uid(obj)
        for place in list(self._dependents.get(uid, {})):
            dependent = self._store.get(*place)
            if dependent is not None:
                self._store.put(*place, _without_owners(dependent.obj, [uid]))
        self._remove_finalizer(kind, key, obj, ORPHAN)

    def _foreground(self, kind: Kind, key: Key, obj: JsonObject) -> None:
        uid = _uid(obj)
        blocking = False
        for place in list(self._dependents.get(uid, {})):
            dependent = self._store.get(*place)
            if dependent is None:
                continue
            reference = next(each for each in _owners(dependent.obj) if each.get("uid") == uid)
            blocking = blocking or reference.get("blockOwnerDeletion") is True
            if dig(dependent.obj, "metadata", "deletionTimestamp") is None:
                self._queue[place] = None
        if not blocking:
            self._remove_finalizer(kind, key, obj, FOREGROUND)

    def _remove_finalizer(self, kind: Kind, key: Key, obj: JsonObject, finalizer: str) -> None:
        kept = [each for each in texts(dig(obj, "metadata", "finalizers")) if each != finalizer]
        changed = with_metadata(obj, finalizers=list[Json](kept) or None)
        if self._registry.is_finished(kind, changed):
            self._store.remove(kind.storage, key)
        else:
            self._store.put(kind.storage, key, changed)

    def _check_owners(self, kind: Kind, key: Key, obj: JsonObject) -> None:
        owners = _owners(obj)
        if not owners:
            return
        gone: list[str] = []
        waiting: list[str] = []
        solid = False
        for owner in owners:
            uid = as_text(owner.get("uid"))
            state = self._owner_state(owner, key[0])
            if state == "gone":
                gone.append(uid)
            elif state == "waiting":
                waiting.append(uid)
            else:
                solid = True
        if solid:
            if gone or waiting:
                self._store.put(kind.storage, key, _without_owners(obj, [*gone, *waiting]))
            return
        policy = "Foreground" if waiting and self._dependents.get(_uid(obj)) else ""
        try:
            self._deletions.delete(Target(kind, key[0], key[1]), DeleteOptions(uid=_uid(obj), propagation=policy))
        except StatusError:
            return

    def _owner_state(self, owner: JsonObject, namespace: str) -> str:
        """`solid`, `waiting` (in foreground deletion) or `gone`; owners of unknown kinds count as solid."""
        kind = self._registry.catalog.by_kind(as_text(owner.get("apiVersion")), as_text(owner.get("kind")))
        if kind is None or (kind.namespaced and not namespace):
            return "solid"
        key = (namespace if kind.namespaced else "", as_text(owner.get("name")))
        stored = self._store.get(kind.storage, key)
        if stored is None or _uid(stored.obj) != owner.get("uid"):
            return "gone"
        return "waiting" if _waits_for(stored.obj, FOREGROUND) else "solid"


def _uid(obj: JsonObject) -> str:
    return as_text(dig(obj, "metadata", "uid"))


def _owners(obj: JsonObject) -> list[JsonObject]:
    return objects(dig(obj, "metadata", "ownerReferences"))


def _owner_uids(obj: JsonObject) -> list[str]:
    metadata = as_object(obj.get("metadata"))
    if "ownerReferences" not in metadata:
        return []
    return [as_text(owner.get("uid")) for owner in objects(metadata["ownerReferences"])]


def _waits_for(obj: JsonObject, finalizer: str) -> bool:
    metadata = as_object(obj.get("metadata"))
    return "deletionTimestamp" in metadata and finalizer in texts(metadata.get("finalizers"))


def _without_owners(obj: JsonObject, uids: list[str]) -> JsonObject:
    kept: list[Json] = [owner for owner in _owners(obj) if owner.get("uid") not in uids]
    return with_metadata(obj, ownerReferences=kept or None)
