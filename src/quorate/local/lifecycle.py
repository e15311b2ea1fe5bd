"""What the control plane of a cluster does behind the API: namespaces and CRDs empty themselves, pods end after their
grace period, events after an hour.

`Lifecycle.step` does what is due now and says when to be called again.
"""

from __future__ import annotations

from collections import deque

from quorate.local import definitions
from quorate.local.deletion import DeleteOptions, Deletions
from quorate.local.journal import Key
from quorate.local.jsonvalue import Json, JsonObject, as_object, as_text, dig, texts, with_key, with_metadata
from quorate.local.ports import parse_timestamp
from quorate.local.registry import Registry, Target

_NAMESPACES = "namespaces"
_PODS = "pods"
_EVENTS = "events"
EVENT_SECONDS = 3600.0
"""How long events are kept, as in Kubernetes."""


class Lifecycle:
    """See the module docstring."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry
        self._store = registry.store
        self._deletions = Deletions(registry)
        self._ending: dict[tuple[str, Key], None] = {}
        """Deleted objects of the kinds above that are still there."""
        self._events: deque[tuple[float, Key, str]] = deque()
        """(end, key, version) of events, oldest first."""
        self.due = False
        for key, stored in self._store.table(_EVENTS).objects.items():
            self._on_event(key, stored.obj)
        for table in (_NAMESPACES, _PODS, definitions.TABLE):
            for key, stored in self._store.table(table).objects.items():
                self._on_change(table, key, None, stored.obj)
        self._store.observe(self._on_change)

    def _on_change(self, table: str, key: Key, before: JsonObject | None, after: JsonObject | None) -> None:
        del before
        if table == _EVENTS and after is not None:
            self._on_event(key, after)
            return
        if self._ending and after is None:
            # Something went: a namespace or a definition may be empty now.
            self.due = True
        if table in (_NAMESPACES, _PODS, definitions.TABLE):
            if after is not None and dig(after, "metadata", "deletionTimestamp") is not None:
                self._ending[table, key] = None
                self.due = True
            else:
                self._ending.pop((table, key), None)

    def _on_event(self, key: Key, event: JsonObject) -> None:
        """Events go an hour after they were written last; looked at when newer ones arrive, so idleness costs nothing."""
        now = self._registry.clock.now()
        self._events.append((now + EVENT_SECONDS, key, as_text(dig(event, "metadata", "resourceVersion"))))
        self.due = self.due or self._events[0][0] <= now

    def _end_events(self) -> None:
        now = self._registry.clock.now()
        while self._events and self._events[0][0] <= now:
            _, key, version = self._events.popleft()
            stored = self._store.get(_EVENTS, key)
            if stored is not None and str(stored.version) == version:
                self._store.remove(_EVENTS, key)

    def step(self) -> float | None:
        """Do what is due; returns the seconds until something else will be."""
        self._end_events()
        wait: float | None = None
        while self.due:
            self.due = False
            wait = None
            for table, key in list(self._ending):
                stored = self._store.get(table, key)
                if stored is None:
                    continue
                if table == _PODS:
                    left = self._end_pod(key, stored.obj)
                    wait = left if wait is None or (left is not None and left < wait) else wait
                elif table == _NAMESPACES:
                    self._end_namespace(key, stored.obj)
                else:
                    self._end_definition(key, stored.obj)
        return wait

    def _end_pod(self, key: Key, pod: JsonObject) -> float | None:
        metadata = as_object(pod.get("metadata"))
        if metadata.get("finalizers"):
            return None
        end = parse_timestamp(as_text(metadata.get("deletionTimestamp"))) or 0.0
        left = end - self._registry.clock.now()
        if left > 0:
            return left
        self._store.remove(_PODS, key)
        return None

    def _end_namespace(self, key: Key, namespace: JsonObject) -> None:
        name = key[1]
        left = False
        for kind in self._registry.catalog.all():
            if not kind.namespaced or kind.conversion is not None:
                continue
            for below, stored in self._store.all(kind.storage):
                if below[0] == name and dig(stored.obj, "metadata", "deletionTimestamp") is None:
                    self._deletions.delete(Target(kind, name, below[1]), DeleteOptions(propagation="Background"))
            left = left or any(below[0] == name for below in self._store.table(kind.storage).objects)
        if not left and not texts(dig(namespace, "metadata", "finalizers")):
            self._store.remove(_NAMESPACES, key)
        elif not left and dig(namespace, "spec", "finalizers"):
            self._store.put(_NAMESPACES, key, with_key(namespace, "spec", {}))

    def _end_definition(self, key: Key, crd: JsonObject) -> None:
        finalizers = texts(dig(crd, "metadata", "finalizers"))
        if definitions.CLEANUP not in finalizers:
            return
        kinds = definitions.kinds_of(crd)
        if kinds:
            kind = kinds[0]
            for below, stored in self._store.all(kind.storage):
                if dig(stored.obj, "metadata", "deletionTimestamp") is None:
                    self._deletions.delete(Target(kind, below[0], below[1]), DeleteOptions(propagation="Background"))
            if self._store.table(kind.storage).objects:
                return
        kept = [finalizer for finalizer in finalizers if finalizer != definitions.CLEANUP]
        changed = with_metadata(crd, finalizers=list[Json](kept) or None)
        if kept:
            self._store.put(definitions.TABLE, key, changed)
        else:
            self._store.remove(definitions.TABLE, key)
