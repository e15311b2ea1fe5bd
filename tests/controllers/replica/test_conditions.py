"""Every status/reason row of seed 001's condition tables, named after the row."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api.common import DiskState
from quorate.api.drbd_resource import ConfiguredCondition as DrbdrConfigured
from quorate.api.drbd_resource import DRBDResource, DrbdRole
from quorate.api.labels import FINALIZER_REPLICA, FINALIZER_VOLUME
from quorate.api.lvm_logical_volume import LVMLogicalVolume, Phase
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import EligibleNodeLVMVolumeGroup
from quorate.api.replicated_volume import MemberType, ReplicatedVolume
from quorate.api.replicated_volume_replica import (
    AttachedCondition,
    BackingVolumeReadyCondition,
    BackingVolumeUpToDateCondition,
    ConfiguredCondition,
    DRBDConfiguredCondition,
    FullyConnectedCondition,
    ReadyCondition,
    ReplicatedVolumeReplica,
    ReplicaType,
    SatisfyEligibleNodesCondition,
)
from quorate.api.value import replace
from tests.controllers.replica.builders import (
    DELETED,
    GIB,
    LOWER,
    VOLUME,
    World,
    agent_pod,
    condition,
    decide_at_once,
    deleting,
    drbd_status,
    drbdr_for,
    eligible,
    find,
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

Row = tuple[str, Callable[[], World], tuple[str, str] | None]


def new(**changes: object) -> World:
    """A placed diskful replica of a volume at revision 1, before anything was made."""
    return World(replica(), volume(), pool=pool(), pod=agent_pod(), node=node()).but(**changes)


def with_disk(**changes: object) -> World:
    """The same with its backing volume ready."""
    return new(volumes=(logical_volume(replica()),)).but(**changes)


def preconfigured(**changes: object) -> World:
    """The same with DRBD configured outside of the datamesh."""
    world = with_disk()
    return world.but(drbdr=drbd_status(drbdr_for(world), disk_state=DiskState.INCONSISTENT)).but(**changes)


def unplaced() -> World:
    """A replica without a node that the scheduling controller has looked at."""
    return new(
        replica=with_status(replica(placed=False), conditions=(condition("Scheduled", "False", "SchedulingFailed"),))
    )


def node_only() -> World:
    """A diskful replica with a node but without storage."""
    rvr = replica()
    return new(replica=replace(rvr, spec=replace(rvr.spec, lvm_volume_group_name="")))


def gone(world: World) -> World:
    """The replica is being deleted and only our finalizer is left."""
    assert world.replica is not None
    return world.but(replica=deleting(world.replica, FINALIZER_REPLICA))


def leaving(world: World) -> World:
    """The replica is being deleted while the volume still holds it."""
    assert world.replica is not None
    return world.but(replica=deleting(world.replica, FINALIZER_VOLUME, FINALIZER_REPLICA))


def agent_away(world: World) -> World:
    """The agent of the replica's node does not work."""
    return world.but(pod=agent_pod(ready=False))


def configured_as(reason: str, status: str = "False") -> World:
    """A preconfigured replica whose agent reports this."""
    world = preconfigured()
    assert world.drbdr is not None
    report = condition(DrbdrConfigured.TYPE, status, reason, "because", world.drbdr.metadata.generation)
    return world.but(drbdr=drbd_status(world.drbdr, conditions=(report,)))


def pending(world: World) -> World:
    """The agent has not reported on the current generation yet."""
    assert world.drbdr is not None
    return world.but(drbdr=replace(world.drbdr, status=replace(world.drbdr.status, conditions=())))


def drbd(world: World, **changes: object) -> World:
    """Another DRBD status."""
    assert world.drbdr is not None
    return world.but(drbdr=replace(world.drbdr, status=replace(world.drbdr.status, **changes)))


def attached(**changes: object) -> World:
    """A member that shall be attached and is."""
    world = joined()
    mesh = volume(member(0, attached=True), member(1), revision=3)
    world = published(world.but(volume=mesh))
    assert world.drbdr is not None
    primary = drbd_status(world.drbdr, peer(1), role=DrbdRole.PRIMARY)
    return drbd(world.but(drbdr=primary), **changes)


def grown() -> World:
    """The volume asks for two GiB, the backing volume has one."""
    world = joined()
    assert world.volume is not None
    return world.but(volume=replace(world.volume, spec=replace(world.volume.spec, size=Quantity.of(2 * GIB))))


def relocated(**changes: object) -> World:
    """The datamesh names another volume group; the old volume is still in use."""
    world = joined()
    rvr = replica(spec=replace(replica().spec, lvm_volume_group_name="vg-2"))
    assert world.replica is not None
    mesh = volume(member(0, lvm_volume_group_name="vg-2"), member(1), revision=3)
    return world.but(
        replica=with_status(rvr, datamesh_revision=world.replica.status.datamesh_revision), volume=mesh
    ).but(**changes)


BACKING_VOLUME_READY: list[Row] = [
    ("True Ready", with_disk, ("True", "Ready")),
    (
        "False NotApplicable diskless",
        lambda: new(replica=replica(0, "Access"), volumes=(logical_volume(replica()),)),
        ("False", "NotApplicable"),
    ),
    ("False NotApplicable deleting", lambda: gone(with_disk()), ("False", "NotApplicable")),
    ("absent diskless without volume", lambda: new(replica=replica(0, "TieBreaker")), None),
    (
        "False NotReady",
        lambda: joined().but(volumes=(logical_volume(replica(), phase=Phase.PENDING),)),
        ("False", "NotReady"),
    ),
    ("False PendingScheduling node", unplaced, ("False", "PendingScheduling")),
    ("False PendingScheduling storage", node_only, ("False", "PendingScheduling")),
    ("False PendingScheduling not eligible", lambda: new(pool=pool(eligible(1))), ("False", "PendingScheduling")),
    ("False Provisioning create", new, ("False", "Provisioning")),
    (
        "False Provisioning waits for the volume to be made",
        lambda: new(volumes=(logical_volume(replica(), phase="", size=None),)),
        ("False", "Provisioning"),
    ),
    (
        "False Provisioning waits for the old volume",
        lambda: new(volumes=(_deleted_volume(),)),
        ("False", "Provisioning"),
    ),
    (
        "False ProvisioningFailed by the LVM operator",
        lambda: new(volumes=(logical_volume(replica(), phase=Phase.FAILED, size=None),)),
        ("False", "ProvisioningFailed"),
    ),
    ("False Reprovisioning create", relocated, ("False", "Reprovisioning")),
    (
        "False Reprovisioning wait",
        lambda: relocated(
            volumes=(logical_volume(replica()), logical_volume(replica(), group="vg-2", phase="", size=None))
        ),
        ("False", "Reprovisioning"),
    ),
    ("False Resizing", grown, ("False", "Resizing")),
    (
        "False ResizeFailed by the LVM operator",
        lambda: grown().but(volumes=(logical_volume(replica(), phase=Phase.FAILED, spec_size=2 * LOWER),)),
        ("False", "ResizeFailed"),
    ),
    ("Unknown WaitingForReplicatedVolume missing", lambda: new(volume=None), ("Unknown", "WaitingForReplicatedVolume")),
    (
        "Unknown WaitingForReplicatedVolume no datamesh",
        lambda: new(volume=volume(revision=0)),
        ("Unknown", "WaitingForReplicatedVolume"),
    ),
    ("Unknown WaitingForReplicatedVolume no pool", lambda: new(pool=None), ("Unknown", "WaitingForReplicatedVolume")),
]

DRBD_CONFIGURED: list[Row] = [
    ("True Configured", joined, ("True", "Configured")),
    ("True Configured deleting non-member", lambda: _left_and_deleting(), ("True", "Configured")),
    ("False AgentNotReady", lambda: agent_away(preconfigured()), ("False", "AgentNotReady")),
    ("False AgentNotReady before the volume is made", lambda: agent_away(new()), ("False", "AgentNotReady")),
    ("False ConfigurationFailed", lambda: configured_as("AttachFailed"), ("False", "ConfigurationFailed")),
    ("False NotApplicable", lambda: gone(preconfigured()), ("False", "NotApplicable")),
    ("False PendingDatameshJoin", preconfigured, ("False", "PendingDatameshJoin")),
    ("False PendingScheduling", unplaced, ("False", "PendingScheduling")),
    ("False WaitingForBackingVolume creating", new, ("False", "WaitingForBackingVolume")),
    ("False WaitingForBackingVolume resizing", grown, ("False", "WaitingForBackingVolume")),
    ("False WaitingForBackingVolume replacing", relocated, ("False", "WaitingForBackingVolume")),
    ("False WaitingForBackingVolume type", lambda: _lost_disk(), ("False", "WaitingForBackingVolume")),
    (
        "False WaitingForDRBDResize",
        lambda: drbd(joined(), size=Quantity.of(GIB // 2)),
        ("False", "WaitingForDRBDResize"),
    ),
    ("False InMaintenance", lambda: configured_as("InMaintenance"), ("False", "InMaintenance")),
    ("False QuorumNotEnforced", lambda: configured_as("QuorumNotEnforced"), ("False", "QuorumNotEnforced")),
    ("Unknown ApplyingConfiguration created", with_disk, ("Unknown", "ApplyingConfiguration")),
    (
        "Unknown ApplyingConfiguration not reported",
        lambda: pending(preconfigured()),
        ("Unknown", "ApplyingConfiguration"),
    ),
    (
        "Unknown ApplyingConfiguration no addresses",
        lambda: drbd(preconfigured(), addresses=()),
        ("Unknown", "ApplyingConfiguration"),
    ),
    (
        "Unknown ApplyingConfiguration patched",
        lambda: preconfigured(volume=volume(member(0), revision=2)),
        ("Unknown", "ApplyingConfiguration"),
    ),
    (
        "Unknown WaitingForReplicatedVolume missing",
        lambda: preconfigured(volume=None),
        ("Unknown", "WaitingForReplicatedVolume"),
    ),
    (
        "Unknown WaitingForReplicatedVolume no networks",
        lambda: preconfigured(volume=_without_networks()),
        ("Unknown", "WaitingForReplicatedVolume"),
    ),
    (
        "Unknown WaitingForReplicatedVolume stale",
        lambda: joined().but(volume=volume(revision=1)),
        ("Unknown", "WaitingForReplicatedVolume"),
    ),
]

ATTACHED: list[Row] = [
    ("True Attached", attached, ("True", "Attached")),
    (
        "True DetachmentFailed",
        lambda: published(joined()).but(drbdr=drbd_status(_drbdr(joined()), peer(1), role=DrbdRole.PRIMARY)),
        ("True", "DetachmentFailed"),
    ),
    (
        "False AttachmentFailed",
        lambda: attached().but(drbdr=drbd_status(_drbdr(attached()), peer(1))),
        ("False", "AttachmentFailed"),
    ),
    ("False IOSuspended", lambda: attached(device_io_suspended=True), ("False", "IOSuspended")),
    ("Unknown AgentNotReady", lambda: agent_away(attached()), ("Unknown", "AgentNotReady")),
    ("Unknown ApplyingConfiguration", lambda: pending(attached()), ("Unknown", "ApplyingConfiguration")),
    ("absent without DRBDResource", with_disk, None),
    ("absent neither intended nor actual", joined, None),
]

UP_TO_DATE: list[Row] = [
    ("True UpToDate", joined, ("True", "UpToDate")),
    ("False Absent Diskless", lambda: drbd(joined(), disk_state=DiskState.DISKLESS), ("False", "Absent")),
    ("False Absent Attaching", lambda: drbd(joined(), disk_state=DiskState.ATTACHING), ("False", "Absent")),
    ("False Absent Detaching", lambda: drbd(joined(), disk_state=DiskState.DETACHING), ("False", "Absent")),
    ("False Failed", lambda: drbd(joined(), disk_state=DiskState.FAILED), ("False", "Failed")),
    ("False Unknown Negotiating", lambda: drbd(joined(), disk_state=DiskState.NEGOTIATING), ("False", "Unknown")),
    ("False Unknown Consistent", lambda: drbd(joined(), disk_state=DiskState.CONSISTENT), ("False", "Unknown")),
    ("False Unknown other", lambda: drbd(joined(), disk_state="Whatever"), ("False", "Unknown")),
    (
        "False RequiresSynchronization Outdated",
        lambda: drbd(joined(), disk_state=DiskState.OUTDATED),
        ("False", "RequiresSynchronization"),
    ),
    (
        "False RequiresSynchronization no up-to-date peer",
        lambda: drbd(joined(), disk_state=DiskState.INCONSISTENT, peers=(peer(1, disk_state="Inconsistent"),)),
        ("False", "RequiresSynchronization"),
    ),
    (
        "False RequiresSynchronization fallback",
        lambda: drbd(joined(), disk_state=DiskState.INCONSISTENT, peers=(peer(1, replication_state="Off"),)),
        ("False", "RequiresSynchronization"),
    ),
    (
        "False Synchronizing from a peer",
        lambda: drbd(joined(), disk_state=DiskState.INCONSISTENT, peers=(peer(1, replication_state="SyncTarget"),)),
        ("False", "Synchronizing"),
    ),
    (
        "False Synchronizing via an intermediate peer",
        lambda: drbd(joined(), disk_state=DiskState.INCONSISTENT, peers=(peer(1),)),
        ("False", "Synchronizing"),
    ),
    ("Unknown AgentNotReady", lambda: agent_away(joined()), ("Unknown", "AgentNotReady")),
    ("Unknown ApplyingConfiguration", lambda: pending(joined()), ("Unknown", "ApplyingConfiguration")),
    ("absent diskless replica", lambda: joined(type=MemberType.ACCESS, id=2, members=2), None),
    ("absent without DRBDResource", new, None),
]

TWO_NETWORKS = ("Internal", "Fast")


def _two_networks() -> World:
    world = joined()
    addresses = tuple(replace(a, system_network_name=n) for n in TWO_NETWORKS for a in _drbdr(world).status.addresses)
    return drbd(world, addresses=addresses)


FULLY_CONNECTED: list[Row] = [
    ("True FullyConnected", joined, ("True", "FullyConnected")),
    ("True ConnectedToAllPeers", _two_networks, ("True", "ConnectedToAllPeers")),
    ("True SoleMember", lambda: joined(members=1), ("True", "SoleMember")),
    ("False NoPeers", lambda: drbd(joined(), peers=()), ("False", "NoPeers")),
    (
        "False NotConnected",
        lambda: drbd(joined(), peers=(peer(1, connection_state="Connecting"),)),
        ("False", "NotConnected"),
    ),
    (
        "False PartiallyConnected",
        lambda: drbd(joined(members=3), peers=(peer(1), peer(2, connection_state="Connecting"))),
        ("False", "PartiallyConnected"),
    ),
    (
        "False PartiallyConnected missing peer",
        lambda: drbd(joined(members=3), peers=(peer(1),)),
        ("False", "PartiallyConnected"),
    ),
    (
        "False PartiallyConnected non-member",
        lambda: drbd(preconfigured(), peers=(peer(1),)),
        ("False", "PartiallyConnected"),
    ),
    ("Unknown AgentNotReady", lambda: agent_away(joined()), ("Unknown", "AgentNotReady")),
    ("absent without DRBDResource", new, None),
    ("absent non-member without peers", preconfigured, None),
    ("absent without addresses", lambda: drbd(joined(), addresses=()), None),
]

READY: list[Row] = [
    ("True Ready", joined, ("True", "Ready")),
    ("True QuorumViaPeers", lambda: joined(type=MemberType.ACCESS, id=2, members=2), ("True", "QuorumViaPeers")),
    (
        "False QuorumViaPeers",
        lambda: drbd(joined(type=MemberType.TIE_BREAKER, id=2, members=2), quorum=False),
        ("False", "QuorumViaPeers"),
    ),
    ("False Deleting", lambda: leaving(joined()), ("False", "Deleting")),
    ("False PendingDatameshJoin", preconfigured, ("False", "PendingDatameshJoin")),
    ("False PendingScheduling", unplaced, ("False", "PendingScheduling")),
    ("False QuorumLost", lambda: drbd(joined(), quorum=False), ("False", "QuorumLost")),
    ("Unknown AgentNotReady", lambda: agent_away(joined()), ("Unknown", "AgentNotReady")),
    ("Unknown ApplyingConfiguration", lambda: pending(joined()), ("Unknown", "ApplyingConfiguration")),
    ("Unknown WaitingForReplicatedVolume", lambda: new(volume=None), ("Unknown", "WaitingForReplicatedVolume")),
    (
        "Unknown WaitingForReplicatedVolume networks",
        lambda: new(volume=_without_networks()),
        ("Unknown", "WaitingForReplicatedVolume"),
    ),
]

SATISFY: list[Row] = [
    ("True Satisfied", new, ("True", "Satisfied")),
    ("True Satisfied diskless", lambda: new(replica=replica(0, "TieBreaker")), ("True", "Satisfied")),
    ("False NodeMismatch", lambda: new(pool=pool(eligible(1))), ("False", "NodeMismatch")),
    (
        "False LVMVolumeGroupMismatch",
        lambda: new(pool=pool(eligible(0, EligibleNodeLVMVolumeGroup(name="other", ready=True)))),
        ("False", "LVMVolumeGroupMismatch"),
    ),
    (
        "False ThinPoolMismatch",
        lambda: new(
            pool=pool(
                eligible(0, EligibleNodeLVMVolumeGroup(name="vg", thin_pool_name="other", ready=True)), type="LVMThin"
            ),
            replica=_thin_replica(),
        ),
        ("False", "ThinPoolMismatch"),
    ),
    ("False ThinPoolMismatch by pool type", lambda: new(replica=_thin_replica()), ("False", "ThinPoolMismatch")),
    ("Unknown WaitingForReplicatedVolume volume", lambda: new(volume=None), ("Unknown", "WaitingForReplicatedVolume")),
    (
        "Unknown WaitingForReplicatedVolume configuration",
        lambda: new(volume=volume(configuration=None)),
        ("Unknown", "WaitingForReplicatedVolume"),
    ),
    ("Unknown WaitingForReplicatedVolume pool", lambda: new(pool=None), ("Unknown", "WaitingForReplicatedVolume")),
    ("absent node not assigned", unplaced, None),
]

CONFIGURED: list[Row] = [
    ("True Configured", joined, ("True", "Configured")),
    ("True Configured diskless", lambda: joined(type=MemberType.TIE_BREAKER, id=2, members=2), ("True", "Configured")),
    ("False NodeNotEligible", lambda: new(pool=pool(eligible(1))), ("False", "NodeNotEligible")),
    ("False PendingBackingVolumeChange", lambda: _asks_for("vg-2"), ("False", "PendingBackingVolumeChange")),
    ("False PendingJoin", preconfigured, ("False", "PendingJoin")),
    ("False PendingLeave", lambda: leaving(joined()), ("False", "PendingLeave")),
    ("False PendingRoleChange to diskless", lambda: _retyped("Access"), ("False", "PendingRoleChange")),
    (
        "False PendingRoleChange between diskless types",
        lambda: _tie_breaker_to_access(),
        ("False", "PendingRoleChange"),
    ),
    ("False PendingScheduling node", unplaced, ("False", "PendingScheduling")),
    ("False PendingScheduling storage", node_only, ("False", "PendingScheduling")),
    (
        "False StorageNotEligible",
        lambda: new(pool=pool(eligible(0, EligibleNodeLVMVolumeGroup(name="other", ready=True)))),
        ("False", "StorageNotEligible"),
    ),
    ("Unknown WaitingForReplicatedVolume volume", lambda: new(volume=None), ("Unknown", "WaitingForReplicatedVolume")),
    (
        "Unknown WaitingForReplicatedVolume datamesh",
        lambda: new(volume=volume(revision=0)),
        ("Unknown", "WaitingForReplicatedVolume"),
    ),
    (
        "Unknown WaitingForReplicatedVolume configuration",
        lambda: new(volume=volume(configuration=None)),
        ("Unknown", "WaitingForReplicatedVolume"),
    ),
    ("Unknown WaitingForReplicatedVolume pool", lambda: new(pool=None), ("Unknown", "WaitingForReplicatedVolume")),
    ("absent deleting non-member", lambda: leaving(preconfigured()), None),
]


def _drbdr(world: World) -> DRBDResource:
    assert world.drbdr is not None
    return world.drbdr


def _deleted_volume() -> LVMLogicalVolume:
    old = logical_volume(replica())
    return replace(old, metadata=replace(old.metadata, deletion_timestamp=DELETED))


def _without_networks() -> ReplicatedVolume:
    rv = volume()
    return replace(rv, status=replace(rv.status, datamesh=replace(rv.status.datamesh, system_network_names=())))


def _thin_replica() -> ReplicatedVolumeReplica:
    rvr = replica()
    return replace(rvr, spec=replace(rvr.spec, lvm_volume_group_thin_pool_name="thin"))


def _lost_disk() -> World:
    """A member whose volume vanished: DRBD runs on without a disk."""
    world = published(joined().but(volumes=()))
    without = drbd_status(_drbdr(world), peer(1))
    return world.but(volumes=(logical_volume(replica(), phase="", size=None),), drbdr=without)


def _left_and_deleting() -> World:
    world = leaving(joined())
    return _reported(published(world.but(volume=volume(member(1), revision=3))))


def _reported(world: World) -> World:
    return world.but(drbdr=drbd_status(_drbdr(world)))


def _asks_for(group: str) -> World:
    world = joined()
    assert world.replica is not None
    groups = (EligibleNodeLVMVolumeGroup(name="vg", ready=True), EligibleNodeLVMVolumeGroup(name=group, ready=True))
    moved = replace(world.replica, spec=replace(world.replica.spec, lvm_volume_group_name=group))
    return world.but(replica=moved, pool=pool(eligible(0, *groups)))


def _retyped(type: ReplicaType) -> World:
    world = joined()
    assert world.replica is not None
    return world.but(
        replica=replace(world.replica, spec=replace(world.replica.spec, type=type, lvm_volume_group_name=""))
    )


def _tie_breaker_to_access() -> World:
    world = joined(type=MemberType.TIE_BREAKER, id=2, members=2)
    assert world.replica is not None
    return world.but(replica=replace(world.replica, spec=replace(world.replica.spec, type="Access")))


TABLES: list[tuple[str, list[Row]]] = [
    (BackingVolumeReadyCondition.TYPE, BACKING_VOLUME_READY),
    (DRBDConfiguredCondition.TYPE, DRBD_CONFIGURED),
    (AttachedCondition.TYPE, ATTACHED),
    (BackingVolumeUpToDateCondition.TYPE, UP_TO_DATE),
    (FullyConnectedCondition.TYPE, FULLY_CONNECTED),
    (ReadyCondition.TYPE, READY),
    (SatisfyEligibleNodesCondition.TYPE, SATISFY),
    (ConfiguredCondition.TYPE, CONFIGURED),
]


@pytest.mark.parametrize(
    ("type", "make", "expected"),
    [
        pytest.param(type, make, expected, id=f"{type}: {name}")
        for type, rows in TABLES
        for name, make, expected in rows
    ],
)
def test_condition_row(type: str, make: Callable[[], World], expected: tuple[str, str] | None) -> None:
    world = make()
    status = status_after(decide_at_once(world), world)
    assert find(status, type) == expected


def test_every_condition_is_stamped_with_the_generation_it_was_computed_from() -> None:
    rvr = replica()
    world = new(replica=replace(rvr, metadata=replace(rvr.metadata, generation=7)))
    status = status_after(decide_at_once(world), world)
    assert {found.observed_generation for found in status.conditions} == {7}


def test_satisfied_names_what_is_not_in_order() -> None:
    entry = eligible(
        0, EligibleNodeLVMVolumeGroup(name="vg", ready=False, unschedulable=True), node_ready=False, unschedulable=True
    )
    world = new(pool=pool(entry))
    status = status_after(decide_at_once(world), world)
    found = next(item for item in status.conditions if item.type == SatisfyEligibleNodesCondition.TYPE)
    assert found.message.endswith(
        "however node is unschedulable, node is not ready, LVMVolumeGroup is unschedulable, and LVMVolumeGroup is not ready"
    )


def test_synchronizing_names_the_peer_and_the_progress() -> None:
    world = drbd(
        joined(),
        disk_state=DiskState.INCONSISTENT,
        peers=(peer(1, replication_state="SyncTarget", sync_progress="42.17"),),
    )
    status = status_after(decide_at_once(world), world)
    found = next(item for item in status.conditions if item.type == BackingVolumeUpToDateCondition.TYPE)
    assert f"{VOLUME}-1 (42.17%)" in found.message


def test_ready_message_of_a_diskful_replica_counts_itself() -> None:
    world = joined()
    status = status_after(decide_at_once(world), world)
    found = next(item for item in status.conditions if item.type == ReadyCondition.TYPE)
    assert found.message == "Ready for I/O: diskful 2/2 + tie-breakers 0, data quorum 2/1"


def test_missing_node_object_counts_as_not_ready() -> None:
    world = agent_away(joined()).but(node=None)
    status = status_after(decide_at_once(world), world)
    found = next(item for item in status.conditions if item.type == DRBDConfiguredCondition.TYPE)
    assert found.message == "Agent is not ready on node node-0 (node is NotReady)"
