"""The watch tables are the minimum: whatever changes the decision passes a predicate (ruling of the design)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api import conditions, labels
from quorate.api.drbd_resource_operation import DRBDResourceOperation
from quorate.api.meta import Object
from quorate.api.node import Node, Taint
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicaAttachment, ReplicatedVolumeReplica
from quorate.api.value import FrozenMap, replace
from quorate.controllers.volume import controller
from tests.controllers import builders as common
from tests.controllers.volume import builders
from tests.controllers.volume.builders import World

Edit = Callable[[Object], Object]
WITH_STATUS = (
    ReplicatedVolume,
    ReplicatedStorageClass,
    ReplicatedStoragePool,
    ReplicatedVolumeReplica,
    ReplicatedVolumeAttachment,
)


def edited(value: Object, **status: object) -> Object:
    assert isinstance(value, WITH_STATUS)
    return replace(value, status=replace(value.status, **status))


def peers_away(value: Object) -> Object:
    return edited(value, peers=())


def with_meta(**changes: object) -> Edit:
    return lambda value: replace(value, metadata=replace(value.metadata, **changes))


def with_spec(**changes: object) -> Edit:
    def edit(value: Object) -> Object:
        assert isinstance(value, ReplicatedVolume | Node)
        return replace(value, spec=replace(value.spec, **changes))

    return edit


def with_status(**changes: object) -> Edit:
    return lambda value: edited(value, **changes)


def ready_false(value: Object) -> Object:
    assert isinstance(value, ReplicatedVolumeReplica)
    return builders.current(value, "Ready", conditions.FALSE, "QuorumLost")


DELETING = "2027-01-15T08:00:00Z"
MUTATIONS: list[tuple[str, type[Object], str, Edit]] = [
    ("volume size", ReplicatedVolume, "vol", with_spec(size=Quantity.parse("2Gi"))),
    ("volume maxAttachments", ReplicatedVolume, "vol", with_spec(max_attachments=2)),
    ("volume deleting", ReplicatedVolume, "vol", with_meta(deletion_timestamp=DELETING)),
    ("volume finalizers", ReplicatedVolume, "vol", with_meta(finalizers=())),
    ("volume labels", ReplicatedVolume, "vol", with_meta(labels=FrozenMap())),
    ("volume status", ReplicatedVolume, "vol", with_status(membership_layout="")),
    ("class configuration", ReplicatedStorageClass, "fast", with_status(configuration=builders.configuration(1, 0))),
    ("class configuration generation", ReplicatedStorageClass, "fast", with_status(configuration_generation=0)),
    ("pool eligible nodes", ReplicatedStoragePool, "pool", with_status(eligible_nodes=())),
    ("attachment deleting", ReplicatedVolumeAttachment, "rva-node-a", with_meta(deletion_timestamp=DELETING)),
    ("attachment finalizers", ReplicatedVolumeAttachment, "rva-node-a", with_meta(finalizers=())),
    ("attachment status", ReplicatedVolumeAttachment, "rva-node-a", with_status(conditions=())),
    ("replica peers", ReplicatedVolumeReplica, "vol-1", peers_away),
    ("replica quorum", ReplicatedVolumeReplica, "vol-1", with_status(quorum=False)),
    ("replica conditions", ReplicatedVolumeReplica, "vol-0", ready_false),
    ("replica revision", ReplicatedVolumeReplica, "vol-1", with_status(datamesh_revision=1)),
    ("replica addresses", ReplicatedVolumeReplica, "vol-1", with_status(addresses=())),
    ("replica backing volume", ReplicatedVolumeReplica, "vol-1", with_status(backing_volume=None)),
    ("replica size", ReplicatedVolumeReplica, "vol-1", with_status(size=Quantity.parse("1Mi"))),
    ("replica deleting", ReplicatedVolumeReplica, "vol-1", with_meta(deletion_timestamp=DELETING)),
    ("replica finalizers", ReplicatedVolumeReplica, "vol-1", with_meta(finalizers=())),
    (
        "replica device in use",
        ReplicatedVolumeReplica,
        "vol-0",
        with_status(attachment=ReplicaAttachment(device_path="/dev/x", in_use=True)),
    ),
    ("node fenced by taint", Node, "node-b", with_spec(taints=(Taint(key="node.kubernetes.io/out-of-service"),))),
    ("node fenced by annotation", Node, "node-b", with_meta(annotations=FrozenMap({labels.ANNOTATION_FENCED: ""}))),
    (
        "node voter mode",
        Node,
        "node-b",
        with_meta(annotations=FrozenMap({labels.ANNOTATION_VOTER_MODE: "static"})),
    ),
]


def attached_world() -> World:
    world = World(builders.volume(), builders.storage_class(builders.configuration(1, 1)), builders.POOL)
    world.put(*(common.node(name) for name in builders.NODES))
    world.form()
    world.put(builders.attachment("node-a"))
    world.step()
    world.join_all("UpToDate")
    world.step()
    return world


@pytest.mark.parametrize(("name", "kind", "object_name", "edit"), MUTATIONS)
def test_every_change_that_matters_passes_a_predicate(
    name: str, kind: type[Object], object_name: str, edit: Edit
) -> None:
    world = attached_world()
    old = world.reader().get(kind, object_name)
    assert old is not None
    new = edit(old)
    passes = any(
        watch.predicate(old, new) and "vol" in tuple(watch.keys(old, new, world.reader()))
        for watch in controller.spec().watches
        if watch.kind is kind
    )
    assert passes, f"no event about {name} would wake the volume"


def test_operation_outcome_passes() -> None:
    world = World(builders.volume(), builders.storage_class(builders.configuration(1, 1)), builders.POOL)
    world.step()
    world.preconfigure_all()
    world.step()
    world.join_all("Inconsistent")
    world.step()
    old = world.operation
    assert old is not None
    new = replace(old, status=replace(old.status, phase="Succeeded"))
    (watch,) = (watch for watch in controller.spec().watches if watch.kind is DRBDResourceOperation)
    assert watch.predicate(old, new)
    assert tuple(watch.keys(old, new, world.reader())) == ("vol",)


def test_heartbeats_do_not_wake_a_volume() -> None:
    node = common.node("node-a")
    beat = replace(node, metadata=replace(node.metadata, resource_version="99"))
    (watch,) = (watch for watch in controller.spec().watches if watch.kind is Node)
    assert not watch.predicate(node, beat)
