"""One controller: failures, timeouts, questions, concurrency, wake-ups."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import pytest

from quorate.api.event import Event
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.value import replace as replace_value
from quorate.machinery.controller import (
    ControllerSpec,
    all_of,
    any_of,
    anything,
    appeared_or_went,
    changed,
    for_,
    generation_changed,
    labels_changed,
    not_,
    watches,
)
from quorate.machinery.effects import Answer, Answers, Create, Decision, Entropy, Request
from quorate.machinery.faults import CALM, FaultPlan
from quorate.machinery.reader import Reader
from quorate.machinery.worker import MAX_ROUNDS
from tests.machinery.toy import new_volume
from tests.machinery.world import World, running, virtually


@dataclass(frozen=True)
class Question:
    """Something to ask."""

    number: int


def gather(reader: Reader, key: str) -> str:
    return key if reader.get(ReplicatedVolume, key) is not None else ""


def spec(decide: Callable[[str, Answers, float], Decision]) -> ControllerSpec[str]:
    return ControllerSpec("test-controller", (for_(ReplicatedVolume),), gather, decide)


def test_a_reconcile_that_raises_backs_off_is_visible_and_never_kills_its_controller() -> None:
    calls: list[tuple[str, float]] = []

    async def main(world: World) -> None:
        def decide(key: str, answers: Answers, now: float) -> Decision:
            calls.append((key, now))
            if key == "bad":
                raise RuntimeError("broken on purpose")
            return Decision()

        async with running(world.manager(spec(decide))) as manager:
            await world.client.create(new_volume("bad"))
            await world.clock.sleep(300)
            await world.client.create(new_volume("good"))
            await world.clock.sleep(1)
            tries = [now for key, now in calls if key == "bad"]
            gaps = [later - earlier for earlier, later in pairwise(tries)]
            assert gaps[0] < 0.1
            assert max(gaps) == pytest.approx(60, abs=1)
            assert len(tries) < 25
            assert any(key == "good" for key, _ in calls)
            assert manager.metrics.reconcile_errors.value("test-controller") == len(tries)
            await world.clock.sleep(5)
            events = (await world.client.list(Event)).items
            assert [(event.type, event.reason) for event in events] == [("Warning", "ReconcileError")]
            assert events[0].message == "RuntimeError: broken on purpose"
            assert events[0].count > 1

    virtually(main)


def test_an_error_in_a_decision_is_visible_and_its_effects_are_performed_first() -> None:
    async def main(world: World) -> None:
        def decide(key: str, answers: Answers, now: float) -> Decision:
            return Decision(effects=(Create(new_volume("child"), "first"),) if key == "v" else (), error="but then")

        async with running(world.manager(spec(decide))) as manager:
            await world.client.create(new_volume("v"))
            await world.clock.sleep(2)
            assert manager.metrics.reconcile_errors.total() > 0
            assert (await world.client.get(ReplicatedVolume, "child")).metadata.name == "child"

    virtually(main)


def test_a_predicate_that_raises_does_not_stop_the_watch() -> None:
    seen: list[str] = []

    def explode(old: ReplicatedVolume | None, new: ReplicatedVolume | None) -> bool:
        if new is not None and new.metadata.name == "bad":
            raise RuntimeError("predicate")
        return True

    def decide(key: str, answers: Answers, now: float) -> Decision:
        seen.append(key)
        return Decision()

    async def main(world: World) -> None:
        made = replace(spec(decide), watches=(for_(ReplicatedVolume, explode),))
        async with running(world.manager(made)):
            await world.client.create(new_volume("bad"))
            await world.client.create(new_volume("good"))
            await world.clock.sleep(2)
            assert seen == ["good"]

    virtually(main)


def test_a_reconcile_that_takes_too_long_is_ended_and_retried() -> None:
    attempts = 0

    async def main(world: World) -> None:
        def decide(key: str, answers: Answers, now: float) -> Decision:
            return Decision(ask=(Question(1),)) if not answers else Decision()

        async def answer(request: Request) -> Answer:
            nonlocal attempts
            attempts += 1
            if attempts == 1:
                await world.clock.sleep(1e6)
            return "answer"

        made = replace(spec(decide), answer=answer, timeout=10.0)
        async with running(world.manager(made)) as manager:
            await world.client.create(new_volume("v"))
            await world.clock.sleep(30)
            assert attempts == 2
            assert manager.metrics.reconciles.value("test-controller", "error") == 1
            assert manager.metrics.reconciles.value("test-controller", "success") == 1

    virtually(main)


def test_a_key_with_an_open_write_is_read_live_before_it_is_decided_again() -> None:
    async def main(world: World) -> None:
        decided: list[float] = []

        def decide(key: str, answers: Answers, now: float) -> Decision:
            if key != "v":
                return Decision()
            decided.append(now)
            return Decision(effects=(Create(new_volume("child"), "wanted"),) if len(decided) == 1 else ())

        transport = world.transport()
        async with running(world.manager(spec(decide), transport=transport)):
            await world.clock.sleep(1)
            # The create takes effect, but no answer comes back; nor can anything be read.
            transport.plan = FaultPlan(fail_after=1.0)
            await world.client.create(new_volume("v"))
            await world.until(lambda: len(decided) == 1)
            await world.clock.sleep(20)
            assert len(decided) == 1  # no decision while the outcome cannot be found out
            transport.plan = CALM
            await world.until(lambda: len(decided) > 1, within=60)
            reads = [exchange for exchange in world.history if exchange.method == "GET" and "/child" in exchange.path]
            assert reads[-1].time <= decided[1]

    virtually(main)


def test_questions_are_answered_in_rounds_with_nothing_written_in_between() -> None:
    async def main(world: World) -> None:
        writes_when_asked: list[int] = []

        def decide(key: str, answers: Answers, now: float) -> Decision:
            if Question(1) not in answers:
                return Decision(ask=(Question(1),), effects=(Create(new_volume("too-early"), "must not happen"),))
            if Question(2) not in answers:
                return Decision(ask=(Question(1), Question(2)))
            assert answers[Question(2)] == 20
            return Decision(effects=(Create(new_volume("done"), "answered"),) if key == "v" else ())

        async def answer(request: Request) -> Answer:
            assert isinstance(request, Question)
            writes_when_asked.append(len(world.writes()))
            return request.number * 10

        async with running(world.manager(replace(spec(decide), answer=answer))):
            await world.client.create(new_volume("v"))
            await world.clock.sleep(5)
        names = [volume.metadata.name for volume in (await world.client.list(ReplicatedVolume)).items]
        assert names == ["done", "v"]
        assert writes_when_asked[:2] == [1, 1]

    virtually(main)


@pytest.mark.parametrize("endless", [True, False])
def test_questions_are_bounded(endless: bool) -> None:
    rounds: list[int] = []

    async def main(world: World) -> None:
        def decide(key: str, answers: Answers, now: float) -> Decision:
            rounds.append(len(answers))
            return Decision(ask=(Question(len(answers) if endless else 1),))

        async def answer(request: Request) -> Answer:
            return 1

        made = replace(spec(decide), answer=answer)
        async with running(world.manager(made)) as manager:
            await world.client.create(new_volume("v"))
            await world.clock.sleep(0.001)
            assert manager.metrics.reconcile_errors.total() == 1
        assert len(rounds) == (MAX_ROUNDS if endless else 2)

    virtually(main)


def test_entropy_comes_from_the_injected_source_and_is_recorded_with_the_decision() -> None:
    async def main(world: World) -> bytes:
        recorded: list[tuple[str, str, object, Answers, float, Decision]] = []
        wanted = Entropy("secret", 16)

        def decide(key: str, answers: Answers, now: float) -> Decision:
            return Decision() if wanted in answers else Decision(ask=(wanted,))

        def record(*entry: object) -> None:
            recorded.append(entry)  # pyright: ignore[reportArgumentType]

        async with running(world.manager(spec(decide), record=record)):
            await world.client.create(new_volume("v"))
            await world.clock.sleep(1)
        controller, key, snapshot, answers, _, decision = recorded[0]
        assert (controller, key, snapshot, decision) == ("test-controller", "v", "v", Decision())
        drawn = answers[wanted]
        assert isinstance(drawn, bytes)
        assert len(drawn) == 16
        return drawn

    assert virtually(main, seed=1) == virtually(main, seed=1)
    assert virtually(main, seed=1) != virtually(main, seed=2)


def test_never_two_workers_on_one_key_and_never_more_than_allowed() -> None:
    active: list[str] = []
    most = 0

    async def main(world: World) -> None:
        def decide(key: str, answers: Answers, now: float) -> Decision:
            return Decision() if answers else Decision(ask=(Question(hash(key)), key))

        async def answer(request: Request) -> Answer:
            nonlocal most
            if isinstance(request, str):
                assert request not in active
                active.append(request)
                most = max(most, len(active))
                await world.clock.sleep(1)
                active.remove(request)
            return 1

        async with running(world.manager(replace(spec(decide), answer=answer, concurrency=3))) as manager:
            volumes = [await world.client.create(new_volume(f"v{number}")) for number in range(8)]
            for number in range(5):
                for volume in volumes:
                    await world.client.patch(volume, {"metadata": {"labels": {"n": str(number)}}})
                await world.clock.sleep(0.3)
            await world.clock.sleep(60)
            assert most == 3
            assert manager.workers[0].queue.idle

    virtually(main)


def test_a_wake_up_comes_without_an_event() -> None:
    times: list[float] = []

    async def main(world: World) -> None:
        def decide(key: str, answers: Answers, now: float) -> Decision:
            times.append(now)
            return Decision(wake_after=10.0)

        async with running(world.manager(spec(decide))):
            await world.client.create(new_volume("v"))
            await world.clock.sleep(35)
        assert [round(later - times[0]) for later in times] == [0, 10, 20, 30]

    virtually(main)


def test_requeue_is_rate_limited_and_a_clean_result_resets_it() -> None:
    times: list[float] = []

    async def main(world: World) -> None:
        def decide(key: str, answers: Answers, now: float) -> Decision:
            times.append(now)
            return Decision(requeue=len(times) < 6)

        async with running(world.manager(spec(decide))) as manager:
            volume = await world.client.create(new_volume("v"))
            await world.clock.sleep(35)
            assert len(times) == 6
            assert times[-1] - times[0] == pytest.approx(0.005 * 31, abs=0.01)
            assert manager.workers[0].queue.failures("v") == 0
            await world.client.patch(volume, {"metadata": {"labels": {"a": "b"}}})
            await world.clock.sleep(1)
            assert len(times) == 7

    virtually(main)


def test_mapping_gives_keys_of_other_objects() -> None:
    seen: list[str] = []

    def decide(key: str, answers: Answers, now: float) -> Decision:
        seen.append(key)
        return Decision()

    def both(old: ReplicatedVolume | None, new: ReplicatedVolume | None, reader: Reader) -> tuple[str, ...]:
        return tuple(volume.metadata.name for volume in reader.list(ReplicatedVolume))

    async def main(world: World) -> None:
        made = replace(spec(decide), watches=(watches(ReplicatedVolume, both, appeared_or_went),))
        async with running(world.manager(made)):
            await world.client.create(new_volume("a"))
            await world.clock.sleep(1)
            await world.client.create(new_volume("b"))
            await world.clock.sleep(1)
        assert seen == ["a", "a", "b"]

    virtually(main)


def test_predicates_compose() -> None:
    old = new_volume("v")
    meta = replace_meta(old, generation=2)
    labelled = replace_meta(old, labels=old.metadata.labels.with_(a="b"))
    assert anything(old, old)
    assert generation_changed(old, meta)
    assert not generation_changed(old, labelled)
    assert labels_changed(old, labelled)
    assert appeared_or_went(None, old)
    assert not appeared_or_went(old, old)
    assert any_of(generation_changed, labels_changed)(old, labelled)
    assert not all_of(generation_changed, labels_changed)(old, labelled)
    assert not_(generation_changed)(old, labelled)
    spec_changed = changed(spec_of)
    assert not spec_changed(old, labelled)
    assert spec_changed(None, old)


def spec_of(volume: ReplicatedVolume) -> object:
    return volume.spec


def replace_meta(volume: ReplicatedVolume, **changes: object) -> ReplicatedVolume:
    return replace_value(volume, metadata=replace_value(volume.metadata, **changes))
