"""Recorded decisions are replayed to the same decision, without a secret in them."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.value import SharedSecret, replace
from quorate.machinery import recording
from quorate.machinery.effects import Answers, Decision, Entropy, Half, Patch
from quorate.machinery.recording import Recording
from tests.machinery import toy
from tests.machinery.world import World, running, virtually


def record_toy() -> list[bytes]:
    async def main(world: World) -> list[bytes]:
        lines: list[bytes] = []

        def sink(controller: str, key: str, snapshot: object, answers: Answers, now: float, decision: Decision) -> None:
            lines.append(recording.encode(recording.record(controller, key, snapshot, answers, now, decision)))

        async with running(world.manager(toy.toy(), record=sink)):
            await world.client.create(toy.new_volume("v1"))
            await world.clock.sleep(10)
            await world.client.delete(await world.client.get(ReplicatedVolume, "v1"))
            await world.clock.sleep(10)
        return lines

    return virtually(main)


def test_a_recorded_run_replays_to_the_same_decisions() -> None:
    lines = record_toy()
    assert len(lines) >= 4
    for line in lines:
        recorded, again = recording.replay(recording.decode(line), toy.Snapshot, toy.decide)
        assert again == recorded
    assert any(b'"effect":"Delete"' in line for line in lines)


def test_a_changed_decision_is_seen() -> None:
    def lazy(snapshot: toy.Snapshot, answers: Answers, now: float) -> Decision:
        return Decision()

    results = [recording.replay(recording.decode(line), toy.Snapshot, lazy) for line in record_toy()]
    assert any(recorded != again for recorded, again in results)


@dataclass(frozen=True)
class Snapshot:
    """A volume with a secret."""

    volume: ReplicatedVolume


@dataclass(frozen=True)
class Ask:
    """A request with an answer of its own type."""

    node: str


@dataclass(frozen=True)
class Score:
    """The answer."""

    points: int


WANTED = Entropy("secret", 4)


def decide(snapshot: Snapshot, answers: Answers, now: float) -> Decision:
    drawn, score = answers[WANTED], answers[Ask("n1")]
    assert isinstance(drawn, bytes)
    assert isinstance(score, Score)
    volume = snapshot.volume
    datamesh = replace(volume.status.datamesh, shared_secret=SharedSecret(drawn.hex()), quorum=score.points)
    return Decision(
        effects=(Patch(volume, replace(volume, status=replace(volume.status, datamesh=datamesh)), Half.STATUS, "new"),)
    )


def test_secrets_and_entropy_are_redacted_and_the_replay_still_agrees() -> None:
    old = toy.new_volume("v")
    secret = replace(old.status.datamesh, shared_secret=SharedSecret("old-secret"))
    snapshot = Snapshot(replace(old, status=replace(old.status, datamesh=secret)))
    answers: Answers = {WANTED: b"\xca\xfe\xba\xbe", Ask("n1"): Score(3)}
    made: Recording = recording.record("c", "v", snapshot, answers, 5.0, decide(snapshot, answers, 5.0))
    text = recording.encode(made)
    assert b"old-secret" not in text
    assert b"cafebabe" not in text
    recorded, again = recording.replay(recording.decode(text), Snapshot, decide, {Ask: Score})
    assert again == recorded
