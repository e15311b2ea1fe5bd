"""Hundreds of volumes at once: some form, oldest first, the others wait and say so."""

from __future__ import annotations

import pytest

from quorate.api import times
from quorate.api.meta import ObjectMeta
from quorate.api.replicated_volume import Formation, ReplicatedVolume, ReplicatedVolumeStatus
from quorate.api.value import replace
from quorate.controllers.volume import controller
from quorate.controllers.volume.formation import progress, transition, turn
from tests.controllers.volume import builders
from tests.controllers.volume.builders import NOW, World, writes


def forming(number: int, *, progressed: float = NOW, restarts: int = 0) -> ReplicatedVolume:
    record = Formation(id=str(number), restarts=restarts, progressed_at=times.format(progressed))
    status = ReplicatedVolumeStatus(
        configuration=builders.configuration(1, 1), datamesh_transitions=(transition.created(NOW),), formation=record
    )
    return ReplicatedVolume(
        metadata=ObjectMeta(name=f"other-{number:03}", uid=f"uid-{number}"), spec=builders.volume().spec, status=status
    )


def world(*others: ReplicatedVolume) -> World:
    return World(builders.volume(), builders.storage_class(builders.configuration(1, 1)), builders.POOL, *others)


def test_a_volume_waits_while_enough_others_form_and_says_so() -> None:
    found = world(*(forming(number) for number in range(turn.AT_ONCE)))
    decision = found.step()
    assert not any(write.startswith("create") for write in writes(decision))
    assert found.condition("Scheduled").message == turn.MESSAGE
    assert found.volume.status.configuration is not None
    assert decision.wake_after is not None
    assert not found.step().effects, "waiting costs no further write"


@pytest.mark.parametrize(
    "last",
    [
        forming(0, progressed=NOW - progress.STEP_TIMEOUT),
        forming(0, restarts=1),
        replace(forming(0), status=ReplicatedVolumeStatus()),
    ],
    ids=["it stands still", "it started again", "it does not form"],
)
def test_what_does_not_move_keeps_nobody_waiting(last: ReplicatedVolume) -> None:
    found = world(last, *(forming(number) for number in range(1, turn.AT_ONCE)))
    assert any(write.startswith("create") for write in writes(found.step()))


def test_a_volume_that_has_begun_goes_on() -> None:
    found = world()
    found.step()
    found.put(*(forming(number) for number in range(turn.AT_ONCE)))
    found.preconfigure_all()
    found.step()
    assert found.volume.status.datamesh.members


def test_the_end_of_a_formation_wakes_the_oldest_that_waits() -> None:
    others = tuple(forming(number) for number in range(turn.AT_ONCE))
    waiting = tuple(
        replace(
            forming(number),
            metadata=ObjectMeta(name=name, creation_timestamp=times.format(NOW + number)),
            status=ReplicatedVolumeStatus(configuration=builders.configuration(1, 1)),
        )
        for number, name in ((2, "a-later"), (1, "b-earlier"), (3, "c-last"))
    )
    reader = world(*others, *waiting).reader()
    done = replace(others[0], status=replace(others[0].status, datamesh_transitions=(), datamesh_revision=2))
    assert controller.turn_ended(others[0], done)
    assert controller.turn_ended(others[0], None)
    assert not controller.turn_ended(others[0], others[0])
    assert not controller.turn_ended(done, done)
    assert controller.next_in_line(others[0], done, reader) == ("b-earlier",)
