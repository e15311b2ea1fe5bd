"""The caches of a process: every kind is listed once, then followed by a watch.

Guarantees: a watch resumes from the last version seen (events and bookmarks), so a broken connection misses nothing;
a version that is too old (410) leads to a new complete list, which also notices deletions that happened meanwhile;
kinds are followed independently and are not ordered against each other (rule 8); answers to our own writes are
visible at once when newer (`written`). All changes happen between awaits, so a reader sees one consistent state while
it does not await.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from random import Random
from typing import Generic, TypeVar, assert_never

import msgspec

from quorate.api.indexes import INDEXES, Index
from quorate.api.meta import Object, ObjectRef
from quorate.api.resources import by_kind
from quorate.machinery import errors
from quorate.machinery.client import Bookmark, Changed, Client, UndecodableChange, WatchEvent
from quorate.machinery.clock import Clock
from quorate.machinery.logs import Logger
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.queue import BackOff
from quorate.machinery.reader import index_name, indexes_by_kind, key_of
from quorate.machinery.store import KindStore, Origin
from quorate.machinery.tasks import OrderedTaskGroup

K = TypeVar("K", bound=Object)

WATCH_TIMEOUT = 300.0
"""Watches are asked to end after one to two times this, at random, so that not all end together."""
SILENCE = 60.0
"""A watch that outlives its own end by this is a dead connection."""


@dataclass(frozen=True)
class Scope:
    """Which objects of a kind are cached."""

    namespace: str = ""
    label_selector: str = ""
    field_selector: str = ""


EVERYTHING = Scope()


class Follower(Generic[K]):
    """Keeps one store up to date: list, watch, resume, relist."""

    def __init__(self, store: KindStore[K], scope: Scope, caches: Caches) -> None:
        self.store = store
        self.synced = asyncio.Event()
        self._scope = scope
        self._client = caches.client
        self._clock = caches.clock
        self._random = caches.random
        self._metrics = caches.metrics
        self._kind_name = store.kind.__name__
        self._log = caches.log.bind(kind=self._kind_name)
        self._version = ""
        self._back_off = BackOff(base=0.1, maximum=30.0)

    async def run(self) -> None:
        """Follow until cancelled; every failure is retried with growing delays."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except errors.Expired as error:
                self._log.info("version is too old, reading the complete list", version=self._version, error=error)
                self._version = ""
                await self._clock.sleep(self._back_off.delay(""))
            except (errors.ApiError, msgspec.MsgspecError) as error:
                self._log.warning("watch failed, will be resumed", version=self._version, error=error)
                await self._clock.sleep(self._back_off.delay(""))

    async def _list(self) -> None:
        scope = self._scope
        listing = await self._client.list(
            self.store.kind,
            namespace=scope.namespace,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
        )
        self._metrics.cache_lists.inc(self._kind_name)
        self.store.replace(listing, Origin.LIVE if self.synced.is_set() else Origin.INITIAL)
        self._version = listing.resource_version
        for item in listing.undecodable:
            self._log.error("object cannot be decoded", object=item.name, error=item.error)
        self._gauges()
        self._log.debug("listed", objects=len(listing.items), version=listing.resource_version)
        self.synced.set()

    async def _watch(self) -> None:
        scope = self._scope
        timeout = WATCH_TIMEOUT * (1.0 + self._random.random())
        events = self._client.watch(
            self.store.kind,
            resource_version=self._version,
            namespace=scope.namespace,
            label_selector=scope.label_selector,
            field_selector=scope.field_selector,
            lasting=timeout,
        )
        received = False
        try:
            async with asyncio.timeout(timeout + SILENCE), aclosing(events):
                async for event in events:
                    self._handle(event)
                    if not received:
                        received = True
                        self._back_off.forget("")
        except TimeoutError:
            self._log.warning("watch went silent, will be resumed", version=self._version)
        if not received:
            await self._clock.sleep(self._back_off.delay(""))

    def _handle(self, event: WatchEvent[K]) -> None:
        match event:
            case Changed():
                if event.type == "DELETED":
                    news = self.store.remove(event.obj)
                else:
                    news = self.store.apply(event.obj)
                self._version = event.obj.metadata.resource_version
                self._metrics.cache_events.inc(self._kind_name, "applied" if news else "known")
            case Bookmark():
                self._version = event.resource_version
            case UndecodableChange():
                if event.type == "DELETED":
                    self.store.release(event.item, int(event.resource_version or "0"))
                else:
                    self.store.quarantine(event.item)
                    self._log.error("object cannot be decoded", object=event.item.name, error=event.item.error)
                self._version = event.resource_version or self._version
                self._metrics.cache_events.inc(self._kind_name, "undecodable")
            case _:
                assert_never(event)
        self._gauges()

    def _gauges(self) -> None:
        self._metrics.cache_objects.set(len(self.store), self._kind_name)
        self._metrics.quarantined.set(self.store.quarantined, self._kind_name)


class Caches:
    """All followed kinds; a `Reader`."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        metrics: MachineryMetrics,
        log: Logger,
        random: Random,
        *,
        scopes: Mapping[type[Object], Scope] | None = None,
        indexes: Iterable[Index[Object]] = INDEXES,
    ) -> None:
        self.client = client
        self.clock = clock
        self.metrics = metrics
        self.log = log
        self.random = random
        self._scopes = scopes or {}
        self._indexes = indexes_by_kind(indexes)
        self._followers: dict[type[Object], Follower[Object]] = {}

    def follow(self, kind: type[K]) -> KindStore[K]:
        """The store of a kind; the kind is followed once `run` starts."""
        follower = self._followers.get(kind)
        if follower is None:
            store: KindStore[Object] = KindStore(kind, self._indexes.get(kind, {}))
            follower = Follower(store, self._scopes.get(kind, EVERYTHING), self)
            self._followers[kind] = follower
        return follower.store  # pyright: ignore[reportReturnType]

    async def run(self) -> None:
        """Follow all kinds until cancelled."""
        async with OrderedTaskGroup() as group:
            for kind, follower in self._followers.items():
                group.create_task(follower.run(), name=f"cache/{kind.__name__}")

    async def wait_synced(self) -> None:
        """Return once every kind was listed completely."""
        for follower in tuple(self._followers.values()):
            await follower.synced.wait()

    def unsynced(self) -> tuple[str, ...]:
        """The kinds that were not listed completely yet."""
        return tuple(kind.__name__ for kind, follower in self._followers.items() if not follower.synced.is_set())

    def resync(self) -> None:
        """Tell every listener about every object once more."""
        for follower in self._followers.values():
            follower.store.resync()

    def get(self, kind: type[K], name: str, namespace: str = "") -> K | None:
        return self._store(kind).get(name, namespace)

    def list(self, kind: type[K]) -> tuple[K, ...]:
        return self._store(kind).list()

    def by_index(self, kind: type[K], index: Index[K] | str, key: str) -> tuple[K, ...]:
        return self._store(kind).by_index(index_name(index), key)

    def written(self, obj: Object) -> None:
        """An answer about `obj`: visible at once when newer. A deleted object without finalizers is gone."""
        follower = self._followers.get(type(obj))
        if follower is None:
            return
        if obj.metadata.deleting and not obj.metadata.finalizers:
            follower.store.gone(key_of(obj), obj.metadata.uid)
        else:
            follower.store.apply(obj)

    def gone(self, ref: ObjectRef) -> None:
        """The incarnation `ref.uid` is known not to exist any more."""
        follower = self._followers.get(by_kind(ref.kind).type)
        if follower is not None:
            follower.store.gone((ref.namespace, ref.name), ref.uid)

    def newest(self, obj: K) -> K | None:
        """The cached object of the same name, None when its kind is not followed or it is not cached."""
        follower = self._followers.get(type(obj))
        return follower.store.peek(key_of(obj)) if follower is not None else None  # pyright: ignore[reportReturnType]

    def find(self, ref: ObjectRef) -> Object | None:
        """The cached object of this name, whatever its incarnation."""
        follower = self._followers.get(by_kind(ref.kind).type)
        return follower.store.peek((ref.namespace, ref.name)) if follower is not None else None

    def _store(self, kind: type[K]) -> KindStore[K]:
        follower = self._followers.get(kind)
        if follower is None:
            raise KeyError(f"{kind.__name__} is not followed: add it to the watches or reads of the controller")
        return follower.store  # pyright: ignore[reportReturnType]
