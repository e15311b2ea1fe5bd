"""The cached objects of one kind: a synchronous, indexed map that only ever moves forward.

Guarantees, whatever order lists, watch events, live reads and answers to our own writes arrive in:

* an object is replaced only by a newer resource version;
* an incarnation (uid) that was seen gone never comes back by an older message: every removal leaves a tombstone with
  the version it happened at, our own deletes one that outlives every version (rule 3);
* a complete list removes what it does not contain, unless that is newer than the list;
* an object that cannot be decoded any more keeps its last good value, is counted, and `get` of one that never could
  be decoded raises `QuarantinedError` instead of claiming that it does not exist;
* every visible change is told to the listeners exactly once as (old, new).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Generic, TypeAlias, TypeVar

from quorate.api.indexes import Index
from quorate.api.meta import Object
from quorate.api.wire import Quarantined
from quorate.machinery.client import Listing
from quorate.machinery.reader import ObjectKey, key_of

K = TypeVar("K", bound=Object)

MAX_TOMBSTONES = 16_384
"""Old tombstones are dropped; a message would have to be late by this many removals to do harm."""
FOREVER = 1 << 63
"""Tombstone version of an object that is known to be gone for good."""


class Origin(Enum):
    """Why a listener is told about an object."""

    INITIAL = "initial"
    """First complete list, or the listener is new."""
    LIVE = "live"
    """Something changed."""
    RESYNC = "resync"
    """Nothing changed; look again to be sure."""


@dataclass(frozen=True)
class Change(Generic[K]):
    """One visible change; None = absent."""

    old: K | None
    new: K | None
    origin: Origin


Listener: TypeAlias = Callable[[Change[K]], None]


class QuarantinedError(Exception):
    """The object exists, but no version of it could be decoded."""


def version_of(obj: Object) -> int:
    """Resource versions as numbers: etcd revisions, and the embedded server's, grow."""
    return int(obj.metadata.resource_version or "0")


class KindStore(Generic[K]):
    """See the module docstring."""

    def __init__(self, kind: type[K], indexes: Mapping[str, Index[Object]]) -> None:
        self.kind = kind
        self._objects: dict[ObjectKey, K] = {}
        self._indexes = {name: index.keys for name, index in indexes.items()}
        self._postings: dict[str, dict[str, dict[ObjectKey, K]]] = {name: {} for name in indexes}
        self._tombstones: dict[str, int] = {}
        self._quarantine: dict[ObjectKey, str] = {}
        self._listeners: list[Listener[K]] = []
        self._sorted: tuple[K, ...] | None = ()

    def __len__(self) -> int:
        return len(self._objects)

    @property
    def quarantined(self) -> int:
        """Objects whose newest version cannot be decoded."""
        return len(self._quarantine)

    def subscribe(self, listener: Listener[K]) -> None:
        """Tell `listener` about all objects now and every change from now on."""
        self._listeners.append(listener)
        for obj in self.list():
            listener(Change(None, obj, Origin.INITIAL))

    def get(self, name: str, namespace: str = "") -> K | None:
        """The object, None when there is none."""
        found = self._objects.get((namespace, name))
        if found is None and (namespace, name) in self._quarantine:
            raise QuarantinedError(f"{self.kind.__name__} {name}: {self._quarantine[namespace, name]}")
        return found

    def peek(self, key: ObjectKey) -> K | None:
        """The last good value, whether or not a newer one cannot be decoded."""
        return self._objects.get(key)

    def list(self) -> tuple[K, ...]:
        """All objects in the order of namespace and name."""
        if self._sorted is None:
            self._sorted = tuple(self._objects[key] for key in sorted(self._objects))
        return self._sorted

    def by_index(self, index: str, key: str) -> tuple[K, ...]:
        """The objects filed under `key`, in the order of namespace and name."""
        posting = self._postings[index].get(key)
        if posting is None:
            return ()
        return tuple(posting[place] for place in sorted(posting))

    def apply(self, obj: K, origin: Origin = Origin.LIVE) -> bool:
        """A version of an object was seen, in an event, a live read or an answer; False when it is not news."""
        key = key_of(obj)
        if version_of(obj) <= self._tombstones.get(obj.metadata.uid, -1):
            return False
        present = self._objects.get(key)
        if present is not None and version_of(obj) <= version_of(present):
            return False
        self._quarantine.pop(key, None)
        if present is not None and present.metadata.uid != obj.metadata.uid:
            self._bury(present.metadata.uid, FOREVER)
        self._put(key, present, obj, origin)
        return True

    def remove(self, obj: K) -> bool:
        """A deletion event: `obj` carries the version at which it went."""
        key = key_of(obj)
        self._bury(obj.metadata.uid, version_of(obj))
        present = self._objects.get(key)
        if present is None:
            self._quarantine.pop(key, None)
            return False
        if present.metadata.uid != obj.metadata.uid and version_of(present) > version_of(obj):
            return False  # already recreated under this name
        if present.metadata.uid == obj.metadata.uid and version_of(present) > version_of(obj):
            return False  # left a selector and came back, seen out of order
        self._quarantine.pop(key, None)
        self._put(key, present, None, Origin.LIVE)
        return True

    def gone(self, key: ObjectKey, uid: str) -> bool:
        """The incarnation `uid` is known not to exist any more: our delete succeeded, or a live read found another."""
        self._bury(uid, FOREVER)
        present = self._objects.get(key)
        if present is None or present.metadata.uid != uid:
            return False
        self._put(key, present, None, Origin.LIVE)
        return True

    def quarantine(self, item: Quarantined) -> None:
        """The newest version of an object cannot be decoded; the last good value stays."""
        self._quarantine[item.namespace, item.name] = item.error

    def release(self, item: Quarantined, version: int) -> None:
        """An object that cannot be decoded was deleted."""
        key = (item.namespace, item.name)
        self._quarantine.pop(key, None)
        present = self._objects.get(key)
        if present is not None and version_of(present) <= version:
            self._bury(present.metadata.uid, FOREVER)
            self._put(key, present, None, Origin.LIVE)

    def replace(self, listing: Listing[K], origin: Origin) -> None:
        """A complete list: adopt what is newer, remove what is not in it and not newer than it."""
        listed = {key_of(obj) for obj in listing.items}
        self._quarantine = {(item.namespace, item.name): item.error for item in listing.undecodable}
        version = int(listing.resource_version or "0")
        for key in sorted(self._objects):
            present = self._objects[key]
            if key not in listed and key not in self._quarantine and version_of(present) <= version:
                self._bury(present.metadata.uid, version)
                self._put(key, present, None, Origin.LIVE)
        for obj in listing.items:
            self.apply(obj, origin)

    def resync(self) -> None:
        """Tell the listeners about every object once more."""
        for obj in self.list():
            self._tell(Change(obj, obj, Origin.RESYNC))

    def _put(self, key: ObjectKey, old: K | None, new: K | None, origin: Origin) -> None:
        if new is None:
            del self._objects[key]
        else:
            self._objects[key] = new
        self._sorted = None
        for name, keys in self._indexes.items():
            postings = self._postings[name]
            before = keys(old) if old is not None else ()
            after = keys(new) if new is not None else ()
            if new is not None:
                for value in after:
                    postings.setdefault(value, {})[key] = new
            if before != after:
                _drop(postings, before, after, key)
        self._tell(Change(old, new, origin))

    def _tell(self, change: Change[K]) -> None:
        for listener in self._listeners:
            listener(change)

    def _bury(self, uid: str, version: int) -> None:
        if not uid:
            return
        self._tombstones[uid] = max(version, self._tombstones.pop(uid, -1))
        if len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]


def _drop(
    postings: dict[str, dict[ObjectKey, K]], before: Iterable[str], after: tuple[str, ...], key: ObjectKey
) -> None:
    for value in before:
        if value not in after:
            posting = postings.get(value)
            if posting is not None:
                posting.pop(key, None)
                if not posting:
                    del postings[value]
