"""The executor under the rules of the design, one by one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from quorate.api import conditions
from quorate.api.event import Event
from quorate.api.meta import ObjectRef
from quorate.api.node import Node
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.resources import ref_of
from quorate.api.value import FrozenMap, SharedSecret, replace
from quorate.machinery import errors, patches
from quorate.machinery.effects import Create, Delete, Effect, Emit, Half, Mode, Observe, Patch
from quorate.machinery.executor import Job, Outcome, Result
from quorate.machinery.faults import CALM, FaultPlan
from quorate.machinery.manager import Manager
from tests.machinery.toy import FINALIZER, new_replica, new_volume, toy, with_condition, with_finalizer
from tests.machinery.world import World, virtually

LOST_ANSWER = FaultPlan(fail_after=1.0)
REFUSED = FaultPlan(fail_before=1.0)


class Bench:
    """A manager whose controllers do not work: only its caches and its executor."""

    def __init__(self, world: World, *, lag: float = 0.0) -> None:
        self.world = world
        self.calm = FaultPlan(watch_lag=(lag, lag))
        self.transport = world.transport(self.calm)
        self.manager: Manager = world.manager(toy(), transport=self.transport)
        self.caches = self.manager.caches
        self.caches.follow(Node)
        self.job = Job("toy-controller", "v", world.log)

    async def perform(self, *effects: Effect) -> Outcome:
        return await self.manager.executor.perform(self.job, effects)

    def cached(self, name: str = "v") -> ReplicatedVolume:
        volume = self.caches.get(ReplicatedVolume, name)
        assert volume is not None
        return volume


@asynccontextmanager
async def bench(world: World, *, lag: float = 0.0) -> AsyncGenerator[Bench]:
    made = Bench(world, lag=lag)
    tasks = [
        asyncio.create_task(made.caches.run(), name="caches"),
        asyncio.create_task(made.manager.events.run(), name="events"),
    ]
    try:
        await made.caches.wait_synced()
        yield made
    finally:
        for task in tasks:
            task.cancel()
            await asyncio.wait((task,))


def formed(volume: ReplicatedVolume, now: float, type_: str = "Formed", mode: Mode = Mode.DECISION) -> Patch:
    return Patch(volume, with_condition(volume, type_, True, now), Half.STATUS, "test", mode)


def test_effects_are_performed_in_order_and_their_answers_are_visible_at_once() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=100) as on:
            volume = await world.client.create(new_volume("v"))
            on.caches.written(volume)
            outcome = await on.perform(
                Patch(volume, with_finalizer(volume), Half.MAIN, "first"),
                Create(new_replica(volume, "v-0"), "second"),
                formed(volume, world.clock.now()),
            )
            assert outcome == Outcome(Result.DONE, 3)
            paths = [(exchange.method, exchange.path.rpartition("v1alpha1/")[2]) for exchange in world.writes()[1:]]
            assert paths == [
                ("PATCH", "replicatedvolumes/v"),
                ("POST", "replicatedvolumereplicas"),
                ("PATCH", "replicatedvolumes/v/status"),
            ]
            assert on.cached().metadata.finalizers == (FINALIZER,)
            assert conditions.is_true(on.cached().status.conditions, "Formed")
            assert on.caches.get(ReplicatedVolumeReplica, "v-0") is not None

    virtually(main)


def test_no_difference_no_request() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            volume = await world.client.create(new_volume("v"))
            before = len(world.history)
            for mode in Mode:
                await on.perform(Patch(volume, volume, Half.STATUS, "nothing", mode))
            assert len(world.history) == before

    virtually(main)


def test_a_decision_is_locked_and_stops_at_the_first_conflict() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=100) as on:
            stale = await world.client.create(new_volume("v"))
            on.caches.written(stale)
            newer = await world.client.patch(stale, {"metadata": {"labels": {"a": "b"}}})
            outcome = await on.perform(
                Patch(stale, with_finalizer(stale), Half.MAIN, "stale"), Create(new_replica(stale, "v-0"), "never")
            )
            assert (outcome.result, outcome.performed) == (Result.CONFLICT, 0)
            # One live read, so that the next decision sees what this one missed (rule 2).
            assert on.cached() == newer
            assert (await world.client.list(ReplicatedVolumeReplica)).items == ()
            assert on.manager.metrics.conflicts.total() == 1

    virtually(main)


def test_a_foreign_write_between_two_own_writes_is_still_a_conflict() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=100) as on:
            volume = await world.client.create(new_volume("v"))

            async def meddle() -> None:
                live = await world.client.get(ReplicatedVolume, "v")
                await world.client.patch(live, {"metadata": {"labels": {"a": "b"}}})

            first = await on.perform(Patch(volume, with_finalizer(volume), Half.MAIN, "first"))
            assert first.result is Result.DONE
            await meddle()
            second = await on.perform(formed(volume, world.clock.now()))
            assert second.result is Result.CONFLICT

    virtually(main)


def test_create_of_an_existing_object_is_a_quiet_conflict_with_a_live_read() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=100) as on:
            existing = await world.client.create(new_volume("v"))
            outcome = await on.perform(Create(new_volume("v"), "wanted"))
            assert outcome.result is Result.CONFLICT
            assert on.cached() == existing

    virtually(main)


def test_a_lost_answer_is_followed_by_a_live_read() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=1000) as on:
            on.transport.plan = LOST_ANSWER
            outcome = await on.perform(Create(new_volume("v"), "wanted"))
            # The create took effect, its answer and the answer to the live read were lost.
            assert outcome.result is Result.FAILED
            assert on.caches.get(ReplicatedVolume, "v") is None
            on.transport.plan = on.calm
            await on.manager.executor.settle(on.job)
            assert on.cached() == await world.client.get(ReplicatedVolume, "v")
            reads = [exchange for exchange in world.history if exchange.sender == "quorate/one"][-1]
            assert reads.method == "GET"

    virtually(main)


def test_an_unknown_outcome_blocks_its_key_until_a_live_read_succeeds() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            on.transport.plan = REFUSED
            await on.perform(Create(new_volume("v"), "wanted"))
            with pytest.raises(errors.Unavailable):
                await on.manager.executor.settle(on.job)
            await on.manager.executor.settle(Job("toy-controller", "another", world.log))
            on.transport.plan = CALM
            await on.manager.executor.settle(on.job)
            before = len(world.history)
            await on.manager.executor.settle(on.job)
            assert len(world.history) == before

    virtually(main)


def test_a_cancelled_write_is_open_too() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=1000) as on:
            on.transport.plan = FaultPlan(latency=(10, 10))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(15):  # the request arrived, the answer is under way
                    await on.perform(Create(new_volume("v"), "wanted"))
            on.transport.plan = CALM
            assert on.caches.get(ReplicatedVolume, "v") is None
            await on.manager.executor.settle(on.job)
            assert on.cached().metadata.name == "v"

    virtually(main)


def test_delete_carries_uid_and_version_and_leaves_a_tombstone() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=5) as on:
            volume = await world.client.create(new_volume("v"))
            on.caches.written(volume)
            newer = await world.client.patch(volume, {"metadata": {"labels": {"a": "b"}}})
            assert (await on.perform(Delete(volume, "stale"))).result is Result.CONFLICT
            assert on.cached() == newer
            assert (await on.perform(Delete(newer, "fresh"))).result is Result.DONE
            assert on.caches.get(ReplicatedVolume, "v") is None
            await world.clock.sleep(60)  # the late events of the dead change nothing
            assert on.caches.get(ReplicatedVolume, "v") is None
            again = await world.client.create(new_volume("v"))
            outcome = await on.perform(Delete(newer, "an old decision"))
            assert outcome.result is Result.CONFLICT
            assert (await world.client.get(ReplicatedVolume, "v")) == again

    virtually(main)


def test_delete_of_what_is_gone_is_done_and_of_what_is_going_sends_nothing() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            volume = await world.client.create(new_volume("v"))
            await world.client.delete(volume)
            assert (await on.perform(Delete(volume, "gone"))).result is Result.DONE
            going = replace(volume, metadata=replace(volume.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
            before = len(world.history)
            assert (await on.perform(Delete(going, "going"))).result is Result.DONE
            assert len([e for e in world.history[before:] if e.method == "DELETE"]) == 0

    virtually(main)


def test_destruction_rereads_what_it_was_decided_from() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=1000) as on:
            volume = await world.client.create(new_volume("v"))
            replica = await world.client.create(new_replica(volume, "v-0"))
            changed = await world.client.patch(volume, {"metadata": {"labels": {"a": "b"}}})
            refused = await on.perform(Delete(replica, "decided from a stale volume", (ref_of(volume),)))
            assert (refused.result, refused.error) == (Result.CONFLICT, "ReplicatedVolume v changed")
            assert on.cached() == changed
            assert (await world.client.get(ReplicatedVolumeReplica, "v-0")) == replica
            uid_only = replace(ref_of(volume), resource_version="")
            assert (await on.perform(Delete(replica, "same incarnation", (uid_only,)))).result is Result.DONE

    virtually(main)


def test_destruction_may_demand_that_something_does_not_exist() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            volume = await world.client.create(new_volume("v"))
            replica = await world.client.create(new_replica(volume, "v-0"))
            absent = ObjectRef(kind="ReplicatedVolume", name="v")
            refused = await on.perform(Delete(replica, "the volume is gone", (absent,)))
            assert refused.result is Result.CONFLICT
            gone = ObjectRef(kind="ReplicatedVolume", name="other")
            assert (await on.perform(Delete(replica, "that one is gone", (gone,)))).result is Result.DONE

    virtually(main)


def test_sources_written_by_the_same_decision_count_as_unchanged() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            volume = await world.client.create(new_volume("v"))
            replica = await world.client.create(new_replica(volume, "v-0"))
            outcome = await on.perform(
                formed(volume, world.clock.now()), Delete(replica, "intent is written", (ref_of(volume),))
            )
            assert outcome.result is Result.DONE

    virtually(main)


def test_a_finalizer_goes_with_uid_and_version_a_log_line_and_an_event() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            volume = await world.client.create(with_finalizer(new_volume("v")))
            await world.client.delete(volume)
            held = await world.client.get(ReplicatedVolume, "v")
            freed = replace(held, metadata=replace(held.metadata, finalizers=()))
            audit = (("plan", "diskful/v1"), ("revision", "7"))
            outcome = await on.perform(Patch(held, freed, Half.MAIN, "nothing is left", audit=audit))
            assert outcome.result is Result.DONE
            assert on.caches.get(ReplicatedVolume, "v") is None
            sent = world.writes()[-1].body
            assert held.metadata.uid.encode() in sent
            assert held.metadata.resource_version.encode() in sent
            lines = [entry for entry in world.entries if entry.message == "destructive effect"]
            assert [line.fields["plan"] for line in lines] == ["diskful/v1"]
            await world.clock.sleep(5)
            events = (await world.client.list(Event)).items
            assert [(event.reason, event.message) for event in events] == [
                ("FinalizerRemoved", "nothing is left, plan=diskful/v1, revision=7")
            ]

    virtually(main)


def test_two_reporters_on_one_object_do_not_fight() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            volume = await world.client.create(new_volume("v"))
            on.caches.written(volume)
            now = world.clock.now()
            results = await asyncio.gather(
                *(on.perform(formed(volume, now, type_, mode=Mode.REPORT)) for type_ in ("A", "B", "C", "D"))
            )
            assert [outcome.result for outcome in results] == [Result.DONE] * 4
            live = await world.client.get(ReplicatedVolume, "v")
            assert [condition.type for condition in live.status.conditions] == ["A", "B", "C", "D"]
            assert on.manager.metrics.conflicts.total() == 0

    virtually(main)


def test_a_report_of_another_process_meanwhile_is_a_conflict_then_both_stand() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=1000) as on:
            volume = await world.client.create(new_volume("v"))
            on.caches.written(volume)
            theirs = with_condition(volume, "Theirs", True, world.clock.now())
            await world.client.patch(volume, patches.half_patch(volume, theirs, Half.STATUS), subresource="status")
            report = formed(volume, world.clock.now(), "Mine", mode=Mode.REPORT)
            assert (await on.perform(report)).result is Result.CONFLICT
            assert (await on.perform(report)).result is Result.DONE
            live = await world.client.get(ReplicatedVolume, "v")
            assert [condition.type for condition in live.status.conditions] == ["Theirs", "Mine"]

    virtually(main)


def test_a_decision_after_a_rebased_report_does_not_inherit_foreign_changes() -> None:
    async def main(world: World) -> None:
        async with bench(world, lag=1000) as on:
            volume = await world.client.create(new_volume("v"))
            newer = await world.client.patch(volume, {"metadata": {"labels": {"a": "b"}}})
            on.caches.written(newer)
            outcome = await on.perform(
                formed(volume, world.clock.now(), mode=Mode.REPORT),
                Patch(volume, with_finalizer(volume), Half.MAIN, "decided without the label"),
            )
            assert (outcome.result, outcome.performed) == (Result.CONFLICT, 1)

    virtually(main)


def test_an_unlocked_patch_writes_one_key_of_a_foreign_object() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            stale = await world.client.create(Node(metadata=new_volume("n").metadata))
            await world.client.patch(stale, {"metadata": {"labels": {"theirs": "1"}}})
            labelled = replace(stale, metadata=replace(stale.metadata, labels=FrozenMap({"mine": "1"})))
            outcome = await on.perform(Patch(stale, labelled, Half.MAIN, "label", Mode.UNLOCKED))
            assert outcome.result is Result.DONE
            live = await world.client.get(Node, "n")
            assert dict(live.metadata.labels) == {"theirs": "1", "mine": "1"}
            listed = replace(stale, metadata=replace(stale.metadata, finalizers=("a/b",)))
            with pytest.raises(ValueError, match="overwrite a list"):
                await on.perform(Patch(stale, listed, Half.MAIN, "list", Mode.UNLOCKED))

    virtually(main)


def test_nothing_is_written_without_a_lock_by_mistake() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            await world.client.create(new_volume("v"))
            unread = new_volume("v")
            before = len(world.history)
            with pytest.raises(ValueError, match="decided from"):
                await on.perform(Patch(unread, with_finalizer(unread), Half.MAIN, "no version"))
            with pytest.raises(ValueError, match="decided from"):
                await on.perform(Delete(unread, "no uid"))
            assert len(world.history) == before

    virtually(main)


def test_an_object_can_be_created_and_continued_in_one_decision() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            fresh = new_volume("v")
            outcome = await on.perform(
                Create(fresh, "first"),
                Patch(fresh, with_condition(fresh, "Formed", True, world.clock.now()), Half.STATUS, "then its status"),
                Delete(fresh, "and away"),
            )
            assert outcome == Outcome(Result.DONE, 3)
            assert on.caches.get(ReplicatedVolume, "v") is None

    virtually(main)


def test_refusals_fail_visibly_without_a_live_read() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            before = len(world.history)
            bad = replace(new_volume("v"), spec=replace(new_volume("v").spec, replicated_storage_class_name=""))
            outcome = await on.perform(Create(bad, "invalid"))
            assert outcome.result is Result.FAILED
            assert "Invalid" in outcome.error
            assert [exchange.method for exchange in world.history[before:]] == ["POST"]

    virtually(main)


def test_observations_are_recorded_once_the_effects_before_them_succeeded() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            metric = on.manager.registry.find("sds_rv_deletion_duration_seconds")
            assert metric is not None
            seen = Observe("sds_rv_deletion_duration_seconds", 3.0, {"storage_class": "fast"})
            await world.client.create(new_volume("v"))
            await on.perform(Create(new_volume("v"), "conflict"), seen)
            assert metric.count("fast") == 0
            await on.perform(Create(new_volume("w"), "fine"), seen)
            assert metric.count("fast") == 1
            await on.perform(Observe("surprises_total", 2.0, {"node": "n1"}), Observe("surprises_total", 1.0))
            surprises = on.manager.registry.find("surprises_total")
            assert surprises is not None
            assert (surprises.value("n1"), surprises.value("unknown")) == (2.0, 1.0)

    virtually(main)


def test_secrets_never_reach_logs_or_events() -> None:
    async def main(world: World) -> None:
        async with bench(world) as on:
            volume = await world.client.create(new_volume("v"))
            secret = SharedSecret("very-secret-text")
            datamesh = replace(volume.status.datamesh, shared_secret=secret, shared_secret_alg="SHA256")
            after = replace(volume, status=replace(volume.status, datamesh=datamesh))
            outcome = await on.perform(
                Patch(volume, after, Half.STATUS, f"new secret {secret}", decided_from=(ref_of(volume),)),
                Emit(volume, "Normal", "Secret", f"it is {secret!r} {secret}"),
            )
            assert outcome.result is Result.DONE, outcome.error
            await world.clock.sleep(5)
            events = (await world.client.list(Event)).items
            assert len(events) == 2
            assert "very-secret" not in str(events) + str(world.entries) + repr(after)
            live = await world.client.get(ReplicatedVolume, "v")
            assert live.status.datamesh.shared_secret == secret

    virtually(main)
