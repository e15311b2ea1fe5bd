"""Few writes: what is written at once, what waits, and that nothing that waits is lost."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api.common import DiskState
from quorate.api.drbd_resource import DrbdRole
from quorate.api.replicated_volume import (
    DatameshTransition,
    DatameshTransitionStep,
    MemberType,
    ReplicatedVolume,
    TransitionGroup,
)
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.controllers.replica.controller import HoldMemory, answer_with
from quorate.controllers.replica.publish import HeldSince
from quorate.machinery.effects import Decision, Half
from tests.controllers.replica.builders import (
    NOW,
    VOLUME,
    World,
    agent_pod,
    created,
    decide_at_once,
    decide_held,
    drbd_status,
    joined,
    logical_volume,
    member,
    node,
    patches,
    peer,
    performed,
    pool,
    published,
    replica,
    status_after,
    volume,
    writes,
)


def held(world: World, age: float = 0.0) -> Decision:
    """The decision when differences have been held back for `age` seconds."""
    return decide_held(world, since=NOW - age)


def status_writes(decision: Decision) -> int:
    return len(patches(decision, ReplicatedVolumeReplica, Half.STATUS))


def drbd(world: World, **changes: object) -> World:
    assert world.drbdr is not None
    return world.but(drbdr=replace(world.drbdr, status=replace(world.drbdr.status, **changes)))


def with_step(rv: ReplicatedVolume, revision: int, **changes: object) -> ReplicatedVolume:
    transition = DatameshTransition(
        type="ChangeQuorum",
        group=TransitionGroup.QUORUM,
        plan_id="raise/v1",
        steps=(DatameshTransitionStep(name="q↑", status="Active", datamesh_revision=revision),),
    )
    return replace(rv, status=replace(rv.status, datamesh_transitions=(replace(transition, **changes),)))


def forming(rv: ReplicatedVolume) -> ReplicatedVolume:
    return with_step(rv, 2, type="Formation", group=TransitionGroup.FORMATION, plan_id="create/v1")


def test_a_replica_from_birth_to_health_costs_three_status_writes_besides_scheduling() -> None:
    """Preconfigured; configured and connected; up to date: the causal floor of facts/controllers 9.5.10."""
    count = 0
    world = World(replica(), volume(), pool=pool(), pod=agent_pod(), node=node())

    def step(next: World) -> World:
        nonlocal count
        for _ in range(5):
            decision = held(next)
            if not writes(decision):
                return next
            count += status_writes(decision)
            next = performed(next, decision)
        raise AssertionError("does not settle")

    world = step(world)
    assert count == 0  # the volume is being made
    world = step(world.but(volumes=(logical_volume(replica()),)))
    assert count == 0  # DRBD is being configured
    assert world.drbdr is not None
    world = step(world.but(drbdr=drbd_status(world.drbdr, disk_state=DiskState.INCONSISTENT, quorum=False)))
    assert count == 1  # preconfigured
    world = step(world.but(volume=forming(volume(member(0), member(1), member(2), revision=2))))
    assert count == 1  # the members' configuration is being applied
    assert world.drbdr is not None
    connecting = tuple(
        peer(id, connection_state="Connecting", disk_state="DUnknown", replication_state="Off", paths=())
        for id in (1, 2)
    )
    world = step(
        world.but(drbdr=drbd_status(world.drbdr, *connecting, disk_state=DiskState.INCONSISTENT, quorum=False))
    )
    assert count == 1  # configured at revision 2, about to connect
    one = peer(1, disk_state="Inconsistent")
    world = step(drbd(world, peers=(one, connecting[1])))
    assert count == 1  # one of two peers
    world = step(drbd(world, peers=(one, peer(2, disk_state="Inconsistent")), quorum=True))
    assert count == 2  # connected
    world = step(drbd(world, peers=(peer(1), peer(2)), disk_state=DiskState.UP_TO_DATE))
    assert count == 3  # up to date
    assert world.replica is not None
    assert world.replica.status.phase == "Healthy"


def test_nothing_is_written_at_rest() -> None:
    for world in (joined(), joined(members=1), joined(type=MemberType.TIE_BREAKER, id=2, members=2)):
        decision = decide_at_once(world)
        assert (decision.effects, decision.wake_after, decision.ask) == ((), None, ())


AWAITED: list[tuple[str, Callable[[], World]]] = [
    ("connection lost", lambda: drbd(joined(), peers=(peer(1, connection_state="Connecting"),))),
    ("peer's data lost", lambda: drbd(joined(), peers=(peer(1, disk_state="Failed"),))),
    ("quorum lost", lambda: drbd(joined(), quorum=False)),
    ("disk failed", lambda: drbd(joined(), disk_state=DiskState.FAILED)),
    ("peer promoted", lambda: drbd(joined(), peers=(peer(1, role=DrbdRole.PRIMARY),))),
    ("agent away", lambda: joined().but(pod=None)),
    ("addresses changed", lambda: drbd(joined(), addresses=())),
    ("attached by somebody", lambda: joined().but(drbdr=drbd_status(_drbdr(), peer(1), role=DrbdRole.PRIMARY))),
    ("revision that a step waits for", lambda: _at(with_step(_next_revision(), 3))),
    ("one of two links came back while a membership step may wait for it", lambda: _link_back_during_a_step()),
    (
        "the last link came back",
        lambda: _last_link_back(),
    ),
    (
        "attachment of this replica",
        lambda: _at(
            with_step(_next_revision(), 3, type="Attach", group=TransitionGroup.ATTACHMENT, replica_name=f"{VOLUME}-0")
        ),
    ),
]
HELD: list[tuple[str, Callable[[], World], float]] = [
    ("revision that nobody waits for", lambda: _at(_next_revision()), 3.0),
    (
        "revision of another replica's attachment",
        lambda: _at(
            with_step(_next_revision(), 3, type="Attach", group=TransitionGroup.ATTACHMENT, replica_name=f"{VOLUME}-1")
        ),
        3.0,
    ),
    ("configuration being applied", lambda: drbd(joined(), conditions=()), 3.0),
    ("one of two links came back", lambda: _one_link_back(), 2.0),
    ("configured during formation, about to connect", lambda: _about_to_connect(), 2.0),
    ("synchronisation progress", lambda: _synced("20.00", "40.00"), 10.0),
]


def _drbdr():
    found = joined().drbdr
    assert found is not None
    return found


def _next_revision() -> ReplicatedVolume:
    return volume(member(0), member(1), revision=3)


def _at(rv: ReplicatedVolume) -> World:
    return joined().but(volume=rv)


def _one_link_back() -> World:
    away = tuple(peer(id, connection_state="Connecting") for id in (1, 2))
    cut = published(drbd(joined(members=3), peers=away))
    return drbd(cut, peers=(peer(1), away[1]))


def _last_link_back() -> World:
    cut = published(drbd(joined(), peers=(peer(1, connection_state="Connecting"),)))
    return drbd(cut, peers=(peer(1),))


def _link_back_during_a_step() -> World:
    world = _one_link_back()
    assert world.volume is not None
    return world.but(volume=with_step(world.volume, 2, group=TransitionGroup.VOTING_MEMBERSHIP))


def _about_to_connect() -> World:
    world = joined(members=3)
    assert world.replica is not None
    assert world.volume is not None
    fresh = replace(world.replica, status=replace(world.replica.status, datamesh_revision=0, quorum=None))
    away = tuple(peer(id, connection_state="Connecting") for id in (1, 2))
    return drbd(world.but(replica=fresh, volume=forming(world.volume)), peers=away)


def _synced(before: str, after: str) -> World:
    def world(progress: str, base: World) -> World:
        target = peer(1, replication_state="SyncTarget", sync_progress=progress, out_of_sync=int(float(progress)))
        return drbd(base, disk_state=DiskState.INCONSISTENT, peers=(target,))

    return world(after, published(world(before, joined())))


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in AWAITED])
def test_awaited_differences_are_written_at_once(make: Callable[[], World]) -> None:
    assert status_writes(held(make())) == 1


@pytest.mark.parametrize(("make", "patience"), [pytest.param(make, wait, id=name) for name, make, wait in HELD])
def test_progress_waits_and_is_written_when_its_time_is_up(make: Callable[[], World], patience: float) -> None:
    world = make()
    early = held(world)
    assert status_writes(early) == 0
    assert early.wake_after == pytest.approx(patience)
    assert held(world, patience / 2).wake_after == pytest.approx(patience / 2)
    late = held(world, patience)
    assert status_writes(late) == 1
    assert late.wake_after is None


def test_children_are_made_while_the_report_waits() -> None:
    world = World(replica(), volume(), pool=pool(), pod=agent_pod(), node=node())
    decision = held(world)
    assert len(created(decision)) == 1
    assert status_writes(decision) == 0


def test_every_held_difference_is_in_the_next_write() -> None:
    applying = drbd(joined(), conditions=())
    assert status_writes(held(applying)) == 0
    lost = drbd(applying, quorum=False)
    decision = held(lost)
    assert status_writes(decision) == 1
    assert status_after(decision, lost) == status_after(decide_at_once(lost), lost)


class FakeClock:
    """A clock that stands where it is put."""

    def __init__(self) -> None:
        self.time = 100.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


async def test_memory_answers_since_when_a_version_is_held_back() -> None:
    clock = FakeClock()
    answer = answer_with(HoldMemory(clock), None)
    first = await answer(HeldSince("a", "1"))
    clock.time = 105.0
    assert await answer(HeldSince("a", "1")) == first == 100.0
    assert await answer(HeldSince("b", "1")) == 105.0
    assert await answer(HeldSince("a", "2")) == 105.0


async def test_the_controller_asks_for_nothing_else() -> None:
    with pytest.raises(TypeError):
        await answer_with(HoldMemory(FakeClock()), None)("something else")
