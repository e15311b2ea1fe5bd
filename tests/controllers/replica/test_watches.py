"""Watches, predicates and handlers: whatever changes a decision wakes the replica, and handlers stay targeted."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from quorate.api.common import DiskState
from quorate.api.drbd_resource import DRBDResource
from quorate.api.labels import FINALIZER_REPLICA, FINALIZER_VOLUME
from quorate.api.meta import Object
from quorate.api.replicated_volume import DatameshReplicaRequest, MembershipRequest, MemberType, ReplicatedVolume
from quorate.api.value import replace
from quorate.controllers.replica import controller
from quorate.controllers.replica.snapshot import gather
from quorate.machinery.clock import LoopClock
from quorate.machinery.effects import Decision
from quorate.machinery.reader import FixedReader, Reader
from tests.controllers.mutations import mutations
from tests.controllers.replica.builders import (
    CREATED,
    NAMESPACE,
    VOLUME,
    World,
    agent_pod,
    condition,
    decide_answered,
    deleting,
    drbd_status,
    drbdr_for,
    eligible,
    joined,
    logical_volume,
    member,
    node,
    pool,
    published,
    replica,
    volume,
    with_status,
)

SPEC = controller.spec(LoopClock(), agent_namespace=NAMESPACE)


def preconfigured() -> World:
    world = World(replica(), volume(), volumes=(logical_volume(replica()),), pool=pool(), pod=agent_pod(), node=node())
    return world.but(drbdr=drbd_status(drbdr_for(world), disk_state=DiskState.INCONSISTENT))


def requesting() -> World:
    world = preconfigured()
    assert world.volume is not None
    entry = DatameshReplicaRequest(
        name=f"{VOLUME}-0",
        request=MembershipRequest(operation="Join", type="Diskful"),
        first_observed_at=CREATED,
        message="wait",
    )
    return world.but(
        volume=replace(world.volume, status=replace(world.volume.status, datamesh_replica_requests=(entry,)))
    )


def leaving(world: World) -> World:
    assert world.replica is not None
    return world.but(replica=deleting(world.replica, FINALIZER_VOLUME, FINALIZER_REPLICA))


RESTING: dict[str, Callable[[], World]] = {
    "diskful member": joined,
    "one of three": lambda: joined(members=3),
    "tie-breaker": lambda: joined(type=MemberType.TIE_BREAKER, id=2, members=2),
    "access": lambda: joined(type=MemberType.ACCESS, id=2, members=2),
    "preconfigured": lambda: published(preconfigured()),
    "preconfigured, with a message of the volume": lambda: published(requesting()),
    "agent away": lambda: published(joined().but(pod=agent_pod(ready=False))),
    "no agent, no node": lambda: published(joined().but(pod=None, node=None)),
    "waiting for the volume to be made": lambda: published(
        World(
            replica(),
            volume(),
            pool=pool(),
            pod=agent_pod(),
            node=node(),
            volumes=(logical_volume(replica(), phase="", size=None),),
        )
    ),
    "not placed": lambda: published(
        World(
            with_status(
                replica(placed=False), conditions=(condition("Scheduled", "False", "SchedulingFailed", "no room"),)
            ),
            volume(),
            pool=pool(),
        )
    ),
    "not eligible": lambda: published(World(replica(), volume(), pool=pool(eligible(1)), pod=agent_pod(), node=node())),
    "no volume": lambda: published(World(replica(), pool=pool(), pod=agent_pod(), node=node())),
    "leaving member": lambda: published(leaving(joined())),
}


def decision_of(reader: Reader, key: str) -> Decision:
    """The decision with every held-back report due."""
    return decide_answered(gather(reader, key, agent_namespace=NAMESPACE), since=0.0)


def woken(old: Object | None, new: Object | None, reader: Reader) -> list[str]:
    """Which replicas a change wakes."""
    found: list[str] = []
    for watch in SPEC.watches:
        if isinstance(new or old, watch.kind) and watch.predicate(old, new):
            found.extend(watch.keys(old, new, reader))
    return found


@pytest.mark.parametrize("name", RESTING)
def test_whatever_changes_a_decision_wakes_the_replica(name: str) -> None:
    world = RESTING[name]()
    objects = world.objects()
    assert decision_of(FixedReader(objects), world.key).effects == (), "the world is not at rest"
    missed: list[str] = []
    for obj in objects:
        others = tuple(item for item in objects if item is not obj)
        for path, changed in mutations(obj):
            reader = FixedReader((*others, changed))
            decision = decision_of(reader, world.key)
            if (decision.effects or decision.error) and world.key not in woken(obj, changed, reader):
                missed.append(f"{type(obj).__name__} {path}")
    assert missed == []


@pytest.mark.parametrize("name", RESTING)
def test_appearing_and_going_objects_wake_the_replica(name: str) -> None:
    world = RESTING[name]()
    objects = world.objects()
    missed: list[str] = []
    for obj in objects:
        others = tuple(item for item in objects if item is not obj)
        reader, full = FixedReader(others), FixedReader(objects)
        if decision_of(reader, world.key).effects and world.key not in woken(obj, None, reader):
            missed.append(f"{type(obj).__name__} deleted")
        if decision_of(reader, world.key).effects and world.key not in woken(None, obj, full):
            missed.append(f"{type(obj).__name__} created")
    assert missed == []


def test_own_report_is_settled_by_the_next_pass() -> None:
    for make in RESTING.values():
        world = make()
        assert decision_of(FixedReader(world.objects()), world.key) == Decision()


class TestVolumeHandler:
    def keys(self, old: ReplicatedVolume | None, new: ReplicatedVolume | None) -> Iterable[str]:
        return sorted(woken(old, new, FixedReader(replica(id) for id in range(5))))

    def names(self, *ids: int) -> list[str]:
        return [f"{VOLUME}-{id}" for id in ids]

    def test_class_change_wakes_all(self) -> None:
        old = volume(member(0), revision=2)
        new = replace(old, spec=replace(old.spec, replicated_storage_class_name="slow"))
        assert self.keys(old, new) == self.names(0, 1, 2, 3, 4)

    def test_first_revision_wakes_all(self) -> None:
        assert self.keys(volume(revision=0), volume(revision=1)) == self.names(0, 1, 2, 3, 4)

    def test_size_change_wakes_all(self) -> None:
        old = volume(member(0), revision=2)
        new = replace(old, spec=replace(old.spec, size=old.status.datamesh.size))
        bigger = replace(old, spec=replace(old.spec, size=type(old.spec.size).of(2 * old.spec.size.value)))
        assert self.keys(old, new) == []
        assert self.keys(old, bigger) == self.names(0, 1, 2, 3, 4)

    def test_later_revision_wakes_members_of_old_and_new_only(self) -> None:
        old, new = volume(member(0), member(1), revision=2), volume(member(1), member(3), revision=3)
        assert self.keys(old, new) == self.names(0, 1, 3)

    def test_message_change_wakes_the_affected_replica_only(self) -> None:
        def with_messages(*texts: str) -> ReplicatedVolume:
            rv = volume(member(0), revision=2)
            entries = tuple(
                DatameshReplicaRequest(
                    name=f"{VOLUME}-{id}",
                    request=MembershipRequest(operation="Leave"),
                    first_observed_at=CREATED,
                    message=text,
                )
                for id, text in enumerate(texts)
            )
            return replace(rv, status=replace(rv.status, datamesh_replica_requests=entries))

        assert self.keys(with_messages("a", "b"), with_messages("a", "c")) == self.names(1)
        assert self.keys(with_messages("a"), with_messages("a", "c")) == self.names(1)

    def test_unrelated_change_wakes_nobody(self) -> None:
        old = volume(member(0), revision=2)
        new = replace(old, status=replace(old.status, membership_layout="1D"))
        assert self.keys(old, new) == []


class TestPoolHandler:
    def keys(self, old: Object | None, new: Object | None) -> Iterable[str]:
        return sorted(woken(old, new, FixedReader((volume(), *(replica(id) for id in range(3))))))

    def test_changed_nodes_only(self) -> None:
        old = pool(eligible(0), eligible(1), eligible(2))
        new = pool(eligible(0), eligible(1, node_ready=False))
        new = replace(new, status=replace(new.status, eligible_nodes_revision=2))
        assert self.keys(old, new) == [f"{VOLUME}-1", f"{VOLUME}-2"]

    def test_creation_wakes_all(self) -> None:
        assert self.keys(None, pool(eligible(0))) == [f"{VOLUME}-{id}" for id in range(3)]

    def test_other_pools_wake_nobody(self) -> None:
        other = replace(pool(), metadata=replace(pool().metadata, name="other"))
        assert self.keys(None, other) == []


class TestAgentPod:
    def keys(self, old: Object | None, new: Object | None) -> Iterable[str]:
        return sorted(woken(old, new, FixedReader((replica(0), replica(1)))))

    def test_readiness_wakes_the_replicas_of_its_node(self) -> None:
        assert self.keys(agent_pod(0), agent_pod(0, ready=False)) == [f"{VOLUME}-0"]
        assert self.keys(None, agent_pod(1)) == [f"{VOLUME}-1"]
        assert self.keys(agent_pod(1), None) == [f"{VOLUME}-1"]

    def test_other_pods_and_other_changes_wake_nobody(self) -> None:
        pod = agent_pod(0)
        other = replace(pod, metadata=replace(pod.metadata, namespace="elsewhere"))
        assert self.keys(None, other) == []
        assert self.keys(pod, replace(pod, status=replace(pod.status, pod_ip="10.0.0.9"))) == []


def test_volume_without_owner_wakes_the_replica_whose_resource_names_it() -> None:
    world = joined()
    assert world.drbdr is not None
    legacy = logical_volume(replica(), name="legacy")
    legacy = replace(legacy, metadata=replace(legacy.metadata, owner_references=()))
    named = replace(world.drbdr, spec=replace(world.drbdr.spec, lvm_logical_volume_name="legacy"))
    reader = FixedReader((named, replica()))
    assert woken(None, legacy, reader) == [f"{VOLUME}-0"]


def test_drbd_resource_wakes_the_replica_of_its_name() -> None:
    drbdr = joined().drbdr
    assert isinstance(drbdr, DRBDResource)
    assert woken(None, drbdr, FixedReader()) == [f"{VOLUME}-0"]
