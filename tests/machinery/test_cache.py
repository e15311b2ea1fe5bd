"""Caches against the embedded server: resume, relist, disconnections, own writes, quarantine."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from random import Random

import msgspec

from quorate.api.meta import Object
from quorate.api.node import Node
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.resources import ref_of
from quorate.api.value import FrozenMap
from quorate.machinery.cache import Caches, Scope
from quorate.machinery.client import Client
from quorate.machinery.faults import CALM, FaultPlan, FaultTransport
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from quorate.machinery.store import Change
from tests.machinery.toy import new_volume
from tests.machinery.world import World, virtually

DOWN = FaultPlan(fail_before=1.0, drop_watch=1.0)


class Cached:
    """Caches of volumes over a transport whose faults the test controls."""

    def __init__(self, world: World, scope: Scope | None = None) -> None:
        self.transport: FaultTransport = world.transport()
        self.metrics = MachineryMetrics(Registry())
        client = Client(self.transport, world.clock, self.metrics)
        scopes: dict[type[Object], Scope] = {ReplicatedVolume: scope} if scope else {}
        self.caches = Caches(client, world.clock, self.metrics, world.log, Random(1), scopes=scopes)
        self.store = self.caches.follow(ReplicatedVolume)
        self.changes: list[Change[ReplicatedVolume]] = []
        self.store.subscribe(self.changes.append)

    def names(self) -> list[str]:
        return [volume.metadata.name for volume in self.caches.list(ReplicatedVolume)]


@asynccontextmanager
async def following(cached: Cached) -> AsyncGenerator[Cached]:
    task = asyncio.create_task(cached.caches.run(), name="caches")
    try:
        await cached.caches.wait_synced()
        yield cached
    finally:
        task.cancel()
        await asyncio.wait((task,))


def test_list_then_watch() -> None:
    async def main(world: World) -> None:
        await world.client.create(new_volume("before"))
        async with following(Cached(world)) as cached:
            assert cached.names() == ["before"]
            after = await world.client.create(new_volume("after"))
            await world.clock.sleep(1)
            assert cached.names() == ["after", "before"]
            await world.client.delete(after)
            await world.clock.sleep(1)
            assert cached.names() == ["before"]
            assert cached.metrics.cache_lists.total() == 1

    virtually(main)


def test_a_broken_watch_resumes_from_the_last_version_and_misses_nothing() -> None:
    async def main(world: World) -> None:
        async with following(Cached(world)) as cached:
            first = await world.client.create(new_volume("first"))
            await world.clock.sleep(1)
            cached.transport.plan = DOWN
            await world.client.delete(first)
            await world.client.create(new_volume("second"))
            await world.clock.sleep(20)
            assert cached.names() == ["first"]
            cached.transport.plan = CALM
            await world.clock.sleep(60)
            assert cached.names() == ["second"]
            assert cached.metrics.cache_lists.total() == 1
            assert len([change for change in cached.changes if change.new is None]) == 1

    virtually(main)


def test_a_version_that_is_too_old_leads_to_a_new_list_which_notices_deletions() -> None:
    async def main(world: World) -> None:
        kept = await world.client.create(new_volume("kept"))
        gone = await world.client.create(new_volume("gone"))
        async with following(Cached(world)) as cached:
            cached.transport.plan = DOWN
            await world.client.delete(gone)
            for number in range(40):
                kept = await world.client.patch(kept, {"metadata": {"labels": {"n": str(number)}}})
            await world.clock.sleep(5)
            cached.transport.plan = CALM
            await world.clock.sleep(60)
            assert cached.names() == ["kept"]
            assert cached.metrics.cache_lists.total() == 2
            assert cached.caches.get(ReplicatedVolume, "kept") == kept

    virtually(main, history=16)


def test_a_quiet_watch_lives_on_bookmarks_while_others_write() -> None:
    """The versions of one kind grow old while other kinds are written; bookmarks keep the resume point fresh."""

    async def main(world: World) -> None:
        async with following(Cached(world)) as cached:
            node = await world.client.create(Node(metadata=new_volume("node").metadata))
            for number in range(60):
                await world.clock.sleep(30)
                node = await world.client.patch(node, {"metadata": {"labels": {"n": str(number)}}})
            await world.client.create(new_volume("late"))
            await world.clock.sleep(5)
            assert cached.names() == ["late"]
            assert cached.metrics.cache_lists.total() == 1
            watches = [exchange for exchange in world.history if exchange.method == "WATCH"]
            assert len(watches) > 2  # watches end and are resumed
            assert int(watches[-1].body) > int(watches[0].body)

    virtually(main)


def test_own_writes_are_visible_at_once_and_their_events_are_no_news() -> None:
    async def main(world: World) -> None:
        cached = Cached(world)
        cached.transport.plan = FaultPlan(watch_lag=(5.0, 5.0))
        async with following(cached):
            volume = await world.client.create(new_volume("v"))
            cached.caches.written(volume)
            assert cached.caches.get(ReplicatedVolume, "v") == volume
            await world.clock.sleep(10)
            assert len(cached.changes) == 1
            assert cached.metrics.cache_events.value("ReplicatedVolume", "known") == 1
            await world.client.delete(volume)
            cached.caches.gone(ref_of(volume))
            assert cached.names() == []
            await world.clock.sleep(10)
            assert len(cached.changes) == 2

    virtually(main)


def test_an_undecodable_object_is_quarantined_and_counted_and_comes_back_when_repaired() -> None:
    async def main(world: World) -> None:
        async with following(Cached(world)) as cached:
            await world.client.create(new_volume("good"))
            await world.clock.sleep(1)
            kind = world.server.catalog.find("storage.deckhouse.io", "v1alpha1", "replicatedvolumes")
            assert kind is not None
            stored = world.server.store.get(kind.storage, ("", "good"))
            assert stored is not None
            # Past all validation, as a server of another version might hand it out.
            world.server.store.put(kind.storage, ("", "good"), {**stored.obj, "spec": "broken"})
            world.server.store.put(
                kind.storage, ("", "alien"), {**stored.obj, "spec": "broken", "metadata": {"name": "alien"}}
            )
            await world.clock.sleep(1)
            assert cached.metrics.quarantined.value("ReplicatedVolume") == 2
            assert cached.names() == ["good"]
            world.server.store.put(kind.storage, ("", "good"), stored.obj)
            await world.clock.sleep(1)
            assert cached.metrics.quarantined.value("ReplicatedVolume") == 1

    virtually(main)


def test_a_scope_limits_what_is_cached() -> None:
    async def main(world: World) -> None:
        mine = msgspec.structs.replace(new_volume("mine").metadata, labels=FrozenMap({"node": "a"}))
        async with following(Cached(world, Scope(label_selector="node=a"))) as cached:
            created = await world.client.create(msgspec.structs.replace(new_volume("mine"), metadata=mine))
            await world.client.create(new_volume("other"))
            await world.clock.sleep(1)
            assert cached.names() == ["mine"]
            left = await world.client.patch(created, {"metadata": {"labels": {"node": "b"}}})
            await world.clock.sleep(1)
            assert cached.names() == []
            await world.client.patch(left, {"metadata": {"labels": {"node": "a"}}})
            await world.clock.sleep(1)
            assert cached.names() == ["mine"]

    virtually(main)


def test_a_watch_that_goes_silent_is_given_up() -> None:
    async def main(world: World) -> None:
        async with following(Cached(world)) as cached:
            # From now on nothing arrives and nothing ends, as on a half-open connection.
            cached.transport.plan = FaultPlan(watch_lag=(1e9, 1e9))
            await world.clock.sleep(700)
            await world.client.create(new_volume("v"))
            await world.clock.sleep(10)
            cached.transport.plan = CALM
            await world.clock.sleep(800)
            assert cached.names() == ["v"]
            assert any(entry.message == "watch went silent, will be resumed" for entry in world.entries)

    virtually(main)
