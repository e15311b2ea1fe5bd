"""Access replicas, attachment conditions and fields, finalizers (seed 000 guard tables)."""

from __future__ import annotations

import pytest

from quorate.api import conditions, labels
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import DatameshMember, ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicaAttachment, ReplicatedVolumeReplica
from quorate.api.resources import AnyObject
from quorate.api.value import replace
from quorate.controllers.volume import access_replicas, finalizers
from quorate.controllers.volume.attachments import compute_ready
from quorate.controllers.volume.replicas import new_replica
from quorate.controllers.volume.snapshot import gather
from tests.controllers import builders as common
from tests.controllers.volume import builders
from tests.controllers.volume.builders import World, writes


def formed(*, access: str = "PreferablyLocal") -> World:
    config = builders.configuration(1, 1, access=access)
    world = World(builders.volume(), builders.storage_class(config), builders.POOL)
    world.form()
    return world


def created(world: World) -> list[str]:
    return [write for write in writes(world.step()) if write.startswith("create")]


# reconcileCreateAccessReplicas


def test_active_attachment_on_a_node_without_replica_gets_an_access_replica() -> None:
    world = formed()
    world.put(builders.attachment("node-e"))
    assert created(world) == ["create ReplicatedVolumeReplica vol-3"]
    replica = world.replicas[3]
    assert (replica.spec.type, replica.spec.node_name) == ("Access", "node-e")
    assert set(replica.metadata.finalizers) == {labels.FINALIZER_VOLUME, labels.FINALIZER_REPLICA}


def unready_pool(**flags: bool) -> ReplicatedStoragePool:
    nodes = tuple(
        replace(node, **flags) if node.node_name == "node-e" else node for node in builders.POOL.status.eligible_nodes
    )
    return replace(builders.POOL, status=replace(builders.POOL.status, eligible_nodes=nodes))


def without_node() -> ReplicatedStoragePool:
    nodes = tuple(node for node in builders.POOL.status.eligible_nodes if node.node_name != "node-e")
    return replace(builders.POOL, status=replace(builders.POOL.status, eligible_nodes=nodes))


ON_NODE_E = builders.stored(new_replica(builders.volume(), 9, "TieBreaker", "node-e"))

CREATION_GUARDS: list[tuple[str, tuple[AnyObject, ...]]] = [
    (
        "guard 4: a replica of any type on the node",
        (builders.stored(new_replica(builders.volume(), 9, "TieBreaker", "node-e")),),
    ),
    ("guard 5: node not eligible", (without_node(),)),
    ("guard 5: node not ready", (unready_pool(node_ready=False),)),
    ("guard 5: agent not ready", (unready_pool(agent_ready=False),)),
]


@pytest.mark.parametrize(("name", "objects"), CREATION_GUARDS)
def test_creation_guards(name: str, objects: tuple[AnyObject, ...]) -> None:
    world = formed()
    world.put(builders.attachment("node-e"), *objects)
    assert created(world) == [], name


def test_creation_guard_1_volume_deleting() -> None:
    world = formed()
    volume = world.volume
    held = replace(
        volume.metadata, deletion_timestamp="2027-01-15T08:00:00Z", finalizers=("other", labels.FINALIZER_VOLUME)
    )
    world.put(replace(volume, metadata=held), builders.attachment("node-e"))
    assert created(world) == []


def test_creation_guard_2_volume_access_local() -> None:
    world = formed(access="Local")
    world.put(builders.attachment("node-e"))
    assert created(world) == []
    reason, message = attached(world, "node-e")
    assert reason == "VolumeAccessLocalityNotSatisfied"
    assert message == "No Diskful replica on this node (volumeAccess is Local for storage class fast)"


def test_creation_guard_3_pool_missing() -> None:
    world = formed()
    del world.objects[(ReplicatedStoragePool, "pool")]
    world.put(builders.attachment("node-e"))
    assert created(world) == []


def test_creation_guard_6_replica_limit() -> None:
    world = formed()
    volume = world.volume
    world.put(*(builders.stored(new_replica(volume, n, "Access", f"client-{n}")) for n in range(3, 32)))
    world.put(builders.attachment("node-e"))
    snapshot = gather(world.reader(), "vol")
    assert access_replicas.creations(snapshot, volume.status) == ()


def test_creation_guard_7_one_replica_for_several_attachments() -> None:
    world = formed()
    world.put(builders.attachment("node-e"), builders.attachment("node-e", name="another"))
    assert len(created(world)) == 1


def test_deleting_attachment_creates_nothing() -> None:
    world = formed()
    world.put(builders.attachment("node-e", deleting=True))
    assert created(world) == []


# reconcileDeleteAccessReplicas


def with_access(world: World, *, member: bool, is_attached: bool = False) -> ReplicatedVolumeReplica:
    """An Access replica on node-e, as member or not."""
    replica = builders.preconfigured(builders.stored(new_replica(world.volume, 3, "Access", "node-e")))
    world.put(replica)
    if member:
        volume = world.volume
        entry = DatameshMember(
            name="vol-3",
            type="Access",
            node_name="node-e",
            addresses=replica.status.addresses,
            attached=is_attached,
        )
        mesh = replace(volume.status.datamesh, members=(*volume.status.datamesh.members, entry))
        world.put(replace(volume, status=replace(volume.status, datamesh=mesh)))
        world.join_all("UpToDate")
    return replica


def deletions(world: World) -> list[str]:
    return [write for write in writes(world.step()) if write.startswith("delete")]


def test_unused_access_replica_is_deleted() -> None:
    world = formed()
    with_access(world, member=True)
    assert deletions(world) == ["delete ReplicatedVolumeReplica vol-3"]


def test_access_replica_with_active_attachment_stays() -> None:
    world = formed()
    with_access(world, member=True)
    world.put(builders.attachment("node-e"))
    assert deletions(world) == []


def test_deletion_guard_3_attached_access_replica_is_never_deleted() -> None:
    world = formed()
    with_access(world, member=True, is_attached=True)
    snapshot = gather(world.reader(), "vol")
    assert access_replicas.deletions(snapshot, world.volume.status) == ()


def test_deletion_guards_1_and_2_other_types_and_deleting_replicas() -> None:
    world = formed()
    replica = with_access(world, member=False)
    world.put(
        replace(replica, metadata=replace(replica.metadata, deletion_timestamp="2027-01-15T08:00:00Z")),
    )
    snapshot = gather(world.reader(), "vol")
    assert access_replicas.deletions(snapshot, world.volume.status) == ()


def test_deletion_guard_4_transition_under_way() -> None:
    world = formed()
    with_access(world, member=False)
    world.put(builders.attachment("node-e"))
    world.step()
    assert any(t.replica_name == "vol-3" for t in world.volume.status.datamesh_transitions)
    del world.objects[(ReplicatedVolumeAttachment, "rva-node-e")]
    snapshot = gather(world.reader(), "vol")
    assert access_replicas.deletions(snapshot, world.volume.status) == ()


def test_deletion_guard_5_redundant_although_an_attachment_exists() -> None:
    world = formed()
    replica = builders.stored(new_replica(world.volume, 3, "Access", "node-a"))
    world.put(replica, builders.attachment("node-a"))
    assert "delete ReplicatedVolumeReplica vol-3" in deletions(world)


# Conditions and fields of attachments


def attached(world: World, node: str) -> tuple[str, str]:
    found = conditions.get(world.attachment(node).status.conditions, "Attached")
    assert found is not None
    return found.reason, found.message


def test_attach_detach_cycle_writes_conditions_and_fields() -> None:
    world = formed()
    world.put(builders.attachment("node-a"))
    world.step()
    assert attached(world, "node-a") == ("Attaching", "Attaching, 0/1 replicas confirmed revision 3. Waiting: [#0]")
    assert world.attachment("node-a").status.phase == "Attaching"
    assert world.volume.status.datamesh.data_present
    world.join_all("UpToDate")
    first = world.replicas[0]
    device = ReplicaAttachment(device_path="/dev/sdsrv/vol-0", io_suspended=False, in_use=True)
    world.put(replace(first, status=replace(first.status, attachment=device)))
    world.step()
    status = world.attachment("node-a").status
    assert attached(world, "node-a") == ("Attached", "Volume is attached and ready to serve I/O on the node")
    assert (status.phase, status.device_path, status.in_use, status.io_suspended) == (
        "Attached",
        "/dev/sdsrv/vol-0",
        True,
        False,
    )
    assert not world.step().effects
    world.put(builders.attachment("node-a", deleting=True))
    world.step()
    assert attached(world, "node-a") == ("Detaching", "Device in use, detach blocked")
    assert labels.FINALIZER_VOLUME in world.attachment("node-a").metadata.finalizers


READY_ROWS = [
    ("deleting", True, "True", "True", ("False", "Deleting")),
    ("not attached", False, "False", "True", ("False", "NotAttached")),
    ("replica not ready", False, "True", "False", ("False", "ReplicaNotReady")),
    ("replica unknown", False, "True", "Unknown", ("Unknown", "ReplicaNotReady")),
    ("not attached before replica not ready", False, "False", "False", ("False", "NotAttached")),
    ("ready", False, "True", "True", ("True", "Ready")),
]


@pytest.mark.parametrize(("name", "deleting", "is_attached", "replica", "expected"), READY_ROWS)
def test_ready_rows(name: str, deleting: bool, is_attached: str, replica: str, expected: tuple[str, str]) -> None:
    found = (common.condition("Attached", is_attached), common.condition("ReplicaReady", replica))
    assert compute_ready(builders.attachment("node-a", deleting=deleting), found)[:2] == expected, name


def test_replica_ready_is_unknown_without_replica_and_mirrors_it_otherwise() -> None:
    world = formed(access="Local")
    world.put(builders.attachment("node-e"))
    world.step()
    found = conditions.get(world.attachment("node-e").status.conditions, "ReplicaReady")
    assert found is not None
    assert (found.status, found.reason) == ("Unknown", "WaitingForReplica")
    first = builders.current(world.replicas[0], "Ready", "False", "QuorumLost", "no quorum here")
    world.put(first, builders.attachment("node-a"))
    world.step()
    found = conditions.get(world.attachment("node-a").status.conditions, "ReplicaReady")
    assert found is not None
    assert (found.status, found.reason, found.message) == ("False", "QuorumLost", "no quorum here")


# Finalizers


def test_finalizer_is_added_before_the_attach_is_published() -> None:
    world = formed()
    world.put(builders.attachment("node-a"))
    order = writes(world.step())
    assert order.index("patch main ReplicatedVolumeAttachment rva-node-a") < order.index(
        "patch status ReplicatedVolume vol"
    )


def test_finalizer_goes_when_the_node_is_neither_attached_nor_detaching() -> None:
    world = formed()
    world.put(builders.attachment("node-d", deleting=True))
    world.step()
    assert (ReplicatedVolumeAttachment, "rva-node-d") not in world.objects


def test_duplicate_attachment_lets_the_deleting_one_go() -> None:
    world = formed()
    world.put(builders.attachment("node-a"))
    world.step()
    gone = builders.attachment("node-a", name="second", deleting=True)
    assert finalizers.may_release((world.attachment("node-a"), gone), gone, world.volume.status)
    assert not finalizers.may_release((gone,), gone, world.volume.status)


def test_replica_is_held_while_it_is_a_member() -> None:
    world = formed()
    replica = world.replicas[0]
    deleting = replace(replica, metadata=replace(replica.metadata, deletion_timestamp="2027-01-15T08:00:00Z"))
    world.put(deleting)
    world.step()
    assert labels.FINALIZER_VOLUME in world.replicas[0].metadata.finalizers


# Deletion


def test_deletion_of_a_detached_volume_takes_everything_with_it() -> None:
    world = formed()
    volume = world.volume
    world.put(replace(volume, metadata=replace(volume.metadata, deletion_timestamp="2027-01-15T08:00:00Z")))
    world.put(builders.attachment("node-d"))
    order = writes(world.step())
    assert "delete ReplicatedVolumeReplica vol-0" in order
    found = conditions.get(world.attachment("node-d").status.conditions, "Attached")
    assert found is not None
    assert (found.reason, found.message) == ("WaitingForReplicatedVolume", "ReplicatedVolume is being deleted")
    assert world.volume.status.datamesh.members == ()
    for replica in world.replicas:
        del world.objects[(ReplicatedVolumeReplica, replica.metadata.name)]
    world.step()
    assert (ReplicatedVolume, "vol") not in world.objects


def test_deletion_waits_for_foreign_finalizers_and_attached_members() -> None:
    world = formed()
    world.put(builders.attachment("node-a"))
    world.step()
    world.join_all("UpToDate")
    world.step()
    volume = world.volume
    dying = replace(volume.metadata, deletion_timestamp="2027-01-15T08:00:00Z")
    world.put(replace(volume, metadata=dying))
    assert not any(write.startswith("delete") for write in writes(world.step()))
    assert (
        "pending deletion" in attached(world, "node-a")[1].lower() or "deleted" in attached(world, "node-a")[1].lower()
    )


def test_deletion_while_forming_does_not_wait() -> None:
    world = World(builders.volume(), builders.storage_class(builders.configuration(1, 1)), builders.POOL)
    world.step()
    volume = world.volume
    world.put(replace(volume, metadata=replace(volume.metadata, deletion_timestamp="2027-01-15T08:00:00Z")))
    assert [w for w in writes(world.step()) if w.startswith("delete")] == [
        f"delete ReplicatedVolumeReplica vol-{n}" for n in range(3)
    ]


def test_orphaned_attachments_wait_or_go() -> None:
    world = World(builders.attachment("node-a"), builders.attachment("node-b", deleting=True))
    world.step()
    found = conditions.get(world.attachment("node-a").status.conditions, "Attached")
    assert found is not None
    assert found.message == "ReplicatedVolume vol does not exist"
    assert (ReplicatedVolumeAttachment, "rva-node-b") not in world.objects
