"""Events about volumes: what is told, when, and that looking again tells nothing new."""

from __future__ import annotations

import pytest

from quorate.api import conditions, times
from quorate.api.replicated_volume import (
    DatameshMember,
    DatameshReplicaRequest,
    DatameshTransition,
    DatameshTransitionStep,
    EffectiveLayout,
    MembershipRequest,
    ObservedProtection,
    QuorumCondition,
    ReplicatedVolume,
    ReplicatedVolumeStatus,
)
from quorate.api.value import replace
from quorate.controllers.volume import events
from quorate.controllers.volume.events import LONG
from quorate.machinery.effects import Effect, Emit
from tests.controllers.builders import condition
from tests.controllers.volume.builders import NOW, World, configuration, storage_class, volume
from tests.controllers.volume.builders import POOL as TEST_POOL


def told(effects: tuple[Effect, ...]) -> list[tuple[str, str]]:
    return [(effect.type, effect.reason) for effect in effects if isinstance(effect, Emit)]


def member(number: int, type_: str = "Diskful") -> DatameshMember:
    return DatameshMember(name=f"vol-{number}", type=type_, node_name=f"node-{number}")


def moving(type_: str, number: int, *, age: float = 0.0, reason: str = "", held: str = "") -> DatameshTransition:
    step = DatameshTransitionStep(
        name="Go", status="Active", started_at=times.format(NOW - age), message="1/3 replicas confirmed revision 7"
    )
    membership = type_ in ("AddReplica", "RemoveReplica", "ForceRemoveReplica")
    return DatameshTransition(
        type=type_,
        group="VotingMembership",
        plan_id="diskful/v1",
        replica_name=f"vol-{number}",
        replica_type="Diskful" if membership else "",
        node_name=f"node-{number}",
        steps=(step,),
        reason=reason,
        message=held,
    )


def formed(*members: int, running: tuple[DatameshTransition, ...] = ()) -> ReplicatedVolume:
    base = volume()
    status = replace(
        base.status,
        configuration=configuration(1, 1),
        datamesh_revision=7,
        datamesh=replace(base.status.datamesh, members=tuple(member(number) for number in members)),
        datamesh_transitions=running,
        membership_layout=f"{len(members)}D",
        effective_layout=EffectiveLayout(failures_to_tolerate=1, guaranteed_minimum_data_redundancy=1),
    )
    return replace(base, status=status)


def test_a_volume_is_told_to_be_formed_once() -> None:
    world = World(volume(), storage_class(configuration(1, 1)), TEST_POOL)
    world.form()
    reasons = [reason for decision in world.decisions for _, reason in told(decision.effects)]
    assert reasons == ["Formed"]
    (event,) = (e for d in world.decisions for e in d.effects if isinstance(e, Emit))
    assert event.message == "The volume is formed as 3D"


def test_a_volume_at_rest_tells_nothing_and_asks_for_no_wake_up() -> None:
    world = World(volume(), storage_class(configuration(1, 1)), TEST_POOL)
    world.form()
    world.now += 10 * LONG
    world.step()
    decision = world.step()
    assert decision.effects == ()
    assert decision.wake_after is None


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("True", "False", [("Warning", "QuorumLost")]),
        ("False", "True", [("Normal", "QuorumRegained")]),
        ("Unknown", "False", [("Warning", "QuorumLost")]),
        ("Unknown", "True", []),
        ("True", "Unknown", []),
        ("False", "False", []),
    ],
)
def test_quorum_lost_and_back(old: str, new: str, expected: list[tuple[str, str]]) -> None:
    before = formed(0, 1, 2)
    before = replace(
        before, status=replace(before.status, conditions=(condition(QuorumCondition.TYPE, old, reason="R"),))
    )
    after = replace(before.status, conditions=(condition(QuorumCondition.TYPE, new, reason="R"),))
    assert told(events.changes(before, after)) == expected


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (1, 0, [("Warning", "Degraded")]),
        (0, 1, [("Normal", "ProtectionRestored")]),
        (0, -1, []),
        (1, 1, []),
        (None, 0, [("Warning", "Degraded")]),
        (0, None, [("Normal", "ProtectionRestored")]),
    ],
)
def test_degraded_and_restored(old: int | None, new: int | None, expected: list[tuple[str, str]]) -> None:
    before = formed(0, 1, 2)
    before = replace(before, status=_observing(before.status, old))
    assert told(events.changes(before, _observing(before.status, new))) == expected


def _observing(status: ReplicatedVolumeStatus, ftt: int | None) -> ReplicatedVolumeStatus:
    return replace(status, observed_protection=ObservedProtection(failures_to_tolerate=ftt))


@pytest.mark.parametrize(
    ("type_", "before", "after", "expected"),
    [
        ("AddReplica", (0, 1, 2, 3), (0, 1, 2, 3), [("Normal", "ReplicaJoined")]),
        ("AddReplica", (0, 1, 2), (0, 1, 2), []),  # taken back: the replica is no member
        ("RemoveReplica", (0, 1, 2, 3), (0, 1, 2), [("Normal", "ReplicaReplaced")]),
        ("RemoveReplica", (0, 1, 3), (0, 1), [("Normal", "ReplicaRemoved")]),
        ("ForceRemoveReplica", (0, 1, 3), (0, 1), [("Warning", "ReplicaLost")]),
        ("ForceRemoveReplica", (0, 1, 2, 3), (0, 1, 2), [("Normal", "ReplicaReplaced")]),
        ("RemoveReplica", (0, 1, 2, 3), (0, 1, 2, 3), []),  # taken back: still a member
        ("Attach", (0, 1, 2, 3), (0, 1, 2, 3), []),
    ],
)
def test_replicas_that_join_leave_and_are_replaced(
    type_: str, before: tuple[int, ...], after: tuple[int, ...], expected: list[tuple[str, str]]
) -> None:
    stored = formed(*before, running=(moving(type_, 3),))
    assert told(events.changes(stored, formed(*after).status)) == expected
    going_on = formed(*after, running=stored.status.datamesh_transitions)
    assert told(events.changes(stored, going_on.status)) == []


@pytest.mark.parametrize(
    ("age", "reason", "expected"),
    [
        (LONG - 1, "WaitingForFencing", []),
        (LONG, "WaitingForFencing", [("Warning", "TransitionBlocked")]),
        (LONG, "", [("Normal", "TransitionWaiting")]),
    ],
)
def test_a_step_that_waits_for_long_is_told(age: float, reason: str, expected: list[tuple[str, str]]) -> None:
    found = formed(0, 1, 2, running=(moving("ForceRemoveReplica", 3, age=age, reason=reason),))
    effects = events.waiting(found, found.status, NOW)
    assert told(effects) == expected
    wake = events.wake_after(found.status, NOW)
    assert wake == (1.0 if not expected else None)


def test_a_request_that_no_plan_takes_up_is_told_as_blocked() -> None:
    request = DatameshReplicaRequest(
        name="vol-3",
        request=MembershipRequest(operation="Join", type="TieBreaker"),
        first_observed_at=times.format(NOW - LONG),
        message="waits for a voter",
    )
    found = formed(0, 1, 2)
    found = replace(found, status=replace(found.status, datamesh_replica_requests=(request,)))
    (event,) = (e for e in events.waiting(found, found.status, NOW) if isinstance(e, Emit))
    assert (event.type, event.reason) == ("Warning", "TransitionBlocked")
    assert event.message == f"Join of vol-3 has waited since {times.format(NOW - LONG)}: waits for a voter"
    assert events.wake_after(found.status, NOW) is None


def test_the_identity_of_a_long_wait_is_its_step_whatever_its_text_says() -> None:
    first, second = moving("AddReplica", 3, age=LONG), moving("AddReplica", 3, age=LONG)
    later = replace(second, steps=(replace(second.steps[0], message="2/3 replicas confirmed revision 7"),))
    identities = {
        effect.once
        for running in (first, later)
        for effect in events.waiting(formed(0, running=(running,)), formed(0, running=(running,)).status, NOW)
        if isinstance(effect, Emit)
    }
    assert len(identities) == 1
    assert "" not in identities


def test_nothing_is_told_about_conditions_while_the_volume_forms() -> None:
    before = volume()
    after = replace(before.status, conditions=(condition(QuorumCondition.TYPE, conditions.FALSE),))
    assert events.changes(before, after) == ()
