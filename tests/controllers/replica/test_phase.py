"""Phase and message (facts/controllers 5.6), row by row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api.common import DiskState
from quorate.api.drbd_resource import ConfiguredCondition, DrbdRole
from quorate.api.labels import FINALIZER_REPLICA, FINALIZER_VOLUME
from quorate.api.lvm_logical_volume import Phase as VolumePhase
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplicaStatus
from quorate.api.value import replace
from tests.controllers.replica.builders import (
    GIB,
    LOWER,
    World,
    agent_pod,
    condition,
    decide_at_once,
    deleting,
    drbd_status,
    drbdr_for,
    eligible,
    joined,
    logical_volume,
    member,
    node,
    peer,
    pool,
    published,
    replica,
    status_after,
    volume,
    with_status,
)


def status_of(world: World) -> ReplicatedVolumeReplicaStatus:
    return status_after(decide_at_once(world), world)


def new(**changes: object) -> World:
    return World(replica(), volume(), pool=pool(), pod=agent_pod(), node=node()).but(**changes)


def drbd(world: World, **changes: object) -> World:
    assert world.drbdr is not None
    return world.but(drbdr=replace(world.drbdr, status=replace(world.drbdr.status, **changes)))


def preconfigured() -> World:
    world = new(volumes=(logical_volume(replica()),))
    return world.but(drbdr=drbd_status(drbdr_for(world), disk_state=DiskState.INCONSISTENT))


def configured_as(reason: str) -> World:
    world = joined()
    assert world.drbdr is not None
    report = condition(ConfiguredCondition.TYPE, "False", reason, "because", world.drbdr.metadata.generation)
    return drbd(world, conditions=(report,))


def going(world: World, *finalizers: str) -> World:
    assert world.replica is not None
    return world.but(replica=deleting(world.replica, *finalizers))


def never_had_quorum() -> World:
    world = joined()
    assert world.replica is not None
    fresh = with_status(world.replica, initial_quorum_reached_at="", phase="WaitingForDatamesh")
    return drbd(world.but(replica=fresh), quorum=False)


def suspended() -> World:
    world = published(joined().but(volume=volume(member(0, attached=True), member(1), revision=3)))
    assert world.drbdr is not None
    return world.but(drbdr=drbd_status(world.drbdr, peer(1), role=DrbdRole.PRIMARY, device_io_suspended=True))


def not_attached() -> World:
    world = published(joined().but(volume=volume(member(0, attached=True), member(1), revision=3)))
    assert world.drbdr is not None
    return world.but(drbdr=drbd_status(world.drbdr, peer(1)))


def grown(**changes: object) -> World:
    world = joined()
    assert world.volume is not None
    return world.but(volume=replace(world.volume, spec=replace(world.volume.spec, size=Quantity.of(2 * GIB)))).but(
        **changes
    )


ROWS: list[tuple[str, Callable[[], World], str]] = [
    ("only our finalizer", lambda: going(joined(), FINALIZER_REPLICA), "Terminating"),
    ("agent away", lambda: joined().but(pod=None), "AgentNotReady"),
    (
        "agent away wins over deletion of a non-member",
        lambda: going(preconfigured().but(pod=None), FINALIZER_VOLUME, FINALIZER_REPLICA),
        "AgentNotReady",
    ),
    ("deleting non-member", lambda: going(preconfigured(), FINALIZER_VOLUME, FINALIZER_REPLICA), "Terminating"),
    (
        "no node",
        lambda: new(replica=with_status(replica(placed=False), conditions=(condition("Scheduled", "False"),))),
        "Pending",
    ),
    ("no storage", lambda: new(replica=replica(spec=replace(replica().spec, lvm_volume_group_name=""))), "Pending"),
    ("volume being made", new, "Provisioning"),
    (
        "volume failed",
        lambda: new(volumes=(logical_volume(replica(), phase=VolumePhase.FAILED, size=None),)),
        "Provisioning",
    ),
    ("DRBD being configured", lambda: new(volumes=(logical_volume(replica()),)), "Configuring"),
    ("preconfigured", preconfigured, "WaitingForDatamesh"),
    ("quorum lost", lambda: drbd(joined(), quorum=False), "Critical"),
    ("quorum not reached yet", never_had_quorum, "Progressing"),
    ("I/O suspended", suspended, "Critical"),
    (
        "synchronizing",
        lambda: drbd(joined(), disk_state="Inconsistent", peers=(peer(1, replication_state="SyncTarget"),)),
        "Synchronizing",
    ),
    ("disk failed", lambda: drbd(joined(), disk_state=DiskState.FAILED), "Degraded"),
    ("not connected", lambda: drbd(joined(), peers=(peer(1, connection_state="Connecting"),)), "Degraded"),
    ("attachment failed", not_attached, "Degraded"),
    ("configuration failed", lambda: configured_as("ConnectFailed"), "Degraded"),
    (
        "resize failed",
        lambda: grown(volumes=(logical_volume(replica(), phase=VolumePhase.FAILED, spec_size=2 * LOWER),)),
        "Degraded",
    ),
    (
        "partially connected",
        lambda: drbd(joined(members=3), peers=(peer(1), peer(2, connection_state="Connecting"))),
        "PartiallyDegraded",
    ),
    ("outdated", lambda: drbd(joined(), disk_state=DiskState.OUTDATED), "PartiallyDegraded"),
    ("state unknown", lambda: drbd(joined(), disk_state=DiskState.CONSISTENT), "PartiallyDegraded"),
    ("disk absent", lambda: drbd(joined(), disk_state=DiskState.DISKLESS), "PartiallyDegraded"),
    ("resizing", grown, "Progressing"),
    ("applying", lambda: drbd(joined(), conditions=()), "Progressing"),
    ("quorum not enforced", lambda: configured_as("QuorumNotEnforced"), "Progressing"),
    ("node not eligible is a text only", lambda: joined().but(pool=pool(eligible(1))), "Healthy"),
    ("everything fine", joined, "Healthy"),
    ("leaving but operational", lambda: going(joined(), FINALIZER_VOLUME, FINALIZER_REPLICA), "Healthy"),
]


@pytest.mark.parametrize(("make", "expected"), [pytest.param(make, expected, id=name) for name, make, expected in ROWS])
def test_phase(make: Callable[[], World], expected: str) -> None:
    assert status_of(make()).phase == expected


def test_message_names_the_driver_and_every_problem() -> None:
    world = drbd(joined(), disk_state=DiskState.OUTDATED).but(pool=pool(eligible(1)))
    message = status_of(world).message
    assert message.startswith("Backing volume is outdated")
    assert "Node node-0 is not in the eligible nodes" in message


def test_message_of_a_leaving_member_tells_about_the_leave() -> None:
    assert "Waiting to leave the datamesh" in status_of(going(joined(), FINALIZER_VOLUME, FINALIZER_REPLICA)).message


def test_message_fits_its_limit() -> None:
    world = drbd(joined(), peers=tuple(peer(id, name=f"stranger-{id}-{'x' * 60}") for id in range(20)))
    assert len(status_of(world).message) <= 512
