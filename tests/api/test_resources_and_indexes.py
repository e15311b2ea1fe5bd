from __future__ import annotations

import pytest

from quorate.api import indexes
from quorate.api.lvm_logical_volume import LVMLogicalVolume, LVMLogicalVolumeSpec
from quorate.api.messages import cut
from quorate.api.meta import Object, ObjectMeta, ObjectRef
from quorate.api.node import Node
from quorate.api.pod import Pod, PodSpec
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import (
    EligibleNode,
    LVMVolumeGroupRef,
    ReplicatedStoragePool,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
    UsedBy,
)
from quorate.api.replicated_volume import (
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
    VolumeConfiguration,
)
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec
from quorate.api.resources import ALL, by_kind, controller_of, controller_reference, ref_of, resource_of
from quorate.api.value import replace

REPLICA = ReplicatedVolumeReplica(
    metadata=ObjectMeta(name="pvc-1-0", uid="u1", resource_version="7"),
    spec=ReplicatedVolumeReplicaSpec(replicated_volume_name="pvc-1", type="Diskful", node_name="n1"),
)
LLV = LVMLogicalVolume(
    metadata=ObjectMeta(name="llv", owner_references=(controller_reference(REPLICA),)),
    spec=LVMLogicalVolumeSpec(
        actual_lv_name_on_the_node="llv", type="Thick", size=Quantity.of(4096), lvm_volume_group_name="vg"
    ),
)


@pytest.mark.parametrize(
    ("kind", "collection", "status"),
    [
        (
            "ReplicatedVolume",
            "/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes",
            "/apis/storage.deckhouse.io/v1alpha1/replicatedvolumes/x/status",
        ),
        ("Node", "/api/v1/nodes", "/api/v1/nodes/x/status"),
        ("Pod", "/api/v1/namespaces/ns/pods", "/api/v1/namespaces/ns/pods/x/status"),
        ("StorageClass", "/apis/storage.k8s.io/v1/storageclasses", "/apis/storage.k8s.io/v1/storageclasses/x/status"),
    ],
)
def test_request_paths(kind: str, collection: str, status: str) -> None:
    assert by_kind(kind).path(namespace="ns") == collection
    assert by_kind(kind).path("x", "ns", "status") == status


def test_all_namespaces_are_read_without_a_namespace() -> None:
    assert by_kind("Pod").path() == "/api/v1/pods"


def test_the_table_is_consistent() -> None:
    for resource in ALL:
        assert resource.kind == resource.type.__name__
        assert resource_of(resource.type) is by_kind(resource.kind) is resource
    assert len({(resource.group, resource.plural) for resource in ALL}) == len(ALL)
    short_names = [name for resource in ALL for name in resource.short_names]
    assert len(set(short_names)) == len(short_names)


def test_references() -> None:
    assert ref_of(REPLICA) == ObjectRef(kind="ReplicatedVolumeReplica", name="pvc-1-0", uid="u1", resource_version="7")
    owner = controller_of(LLV)
    assert owner is not None
    assert (owner.api_version, owner.kind, owner.name, owner.uid, owner.controller) == (
        "storage.deckhouse.io/v1alpha1",
        "ReplicatedVolumeReplica",
        "pvc-1-0",
        "u1",
        True,
    )
    assert controller_of(REPLICA) is None


VOLUME = ReplicatedVolume(
    metadata=ObjectMeta(name="pvc-1"),
    spec=ReplicatedVolumeSpec(size=Quantity.of(4096), replicated_storage_class_name="fast"),
    status=ReplicatedVolumeStatus(
        configuration=VolumeConfiguration(
            replicated_storage_pool_name="pool",
            topology="Ignored",
            failures_to_tolerate=0,
            guaranteed_minimum_data_redundancy=0,
            volume_access="Any",
        )
    ),
)
POOL = ReplicatedStoragePool(
    metadata=ObjectMeta(name="pool"),
    spec=ReplicatedStoragePoolSpec(
        type="LVMThin",
        lvm_volume_groups=(
            LVMVolumeGroupRef(name="vg", thin_pool_name="a"),
            LVMVolumeGroupRef(name="vg", thin_pool_name="b"),
        ),
    ),
    status=ReplicatedStoragePoolStatus(
        eligible_nodes=(EligibleNode(node_name="n1"), EligibleNode(node_name="n2")),
        used_by=UsedBy(replicated_storage_class_names=("fast",)),
    ),
)
POD = Pod(metadata=ObjectMeta(name="p", namespace="ns"), spec=PodSpec(node_name="n1"))

KEYS: list[tuple[object, Object, tuple[str, ...]]] = [
    (indexes.RV_BY_CLASS, VOLUME, ("fast",)),
    (indexes.RV_BY_CLASS, replace(VOLUME, spec=replace(VOLUME.spec, replicated_storage_class_name="")), ()),
    (indexes.RV_BY_POOL, VOLUME, ("pool",)),
    (indexes.RV_BY_POOL, replace(VOLUME, status=ReplicatedVolumeStatus()), ()),
    (indexes.RV_BY_FORMATION, VOLUME, (indexes.WAITING,)),
    (indexes.RV_BY_FORMATION, replace(VOLUME, status=ReplicatedVolumeStatus()), ()),
    (indexes.RVR_BY_VOLUME, REPLICA, ("pvc-1",)),
    (indexes.RVR_BY_NODE, REPLICA, ("n1",)),
    (indexes.RVR_BY_NODE, replace(REPLICA, spec=replace(REPLICA.spec, node_name="")), ()),
    (indexes.RVR_BY_VOLUME_AND_NODE, REPLICA, (indexes.volume_and_node("pvc-1", "n1"),)),
    (indexes.RVR_BY_VOLUME_AND_NODE, replace(REPLICA, spec=replace(REPLICA.spec, node_name="")), ()),
    (indexes.LLV_BY_OWNER_RVR, LLV, ("pvc-1-0",)),
    (indexes.LLV_BY_OWNER_RVR, replace(LLV, metadata=ObjectMeta(name="llv")), ()),
    (indexes.LLV_BY_LVG, LLV, ("vg",)),
    (indexes.RSP_BY_LVG, POOL, ("vg",)),
    (indexes.RSP_BY_ELIGIBLE_NODE, POOL, ("n1", "n2")),
    (indexes.RSP_BY_USED_BY, POOL, ("fast",)),
    (indexes.POD_BY_NODE, POD, ("n1",)),
]


@pytest.mark.parametrize(("index", "obj", "keys"), KEYS, ids=range(len(KEYS)))
def test_index_keys(index: indexes.Index[Object], obj: Object, keys: tuple[str, ...]) -> None:
    assert index.keys(obj) == keys


def test_indexes_are_found_by_kind() -> None:
    found = [index.name for index in indexes.indexes_of(ReplicatedVolume)]
    assert found == ["rv-by-class", "rv-by-pool", "rv-by-formation"]
    assert indexes.indexes_of(Node) == ()
    assert len({index.name for index in indexes.INDEXES}) == len(indexes.INDEXES)


@pytest.mark.parametrize(
    ("text", "limit", "result"), [("abc", 3, "abc"), ("abcd", 3, "ab…"), ("", 3, ""), ("abcd", 1, "…"), ("ab", 0, "")]
)
def test_texts_are_cut_to_their_limit(text: str, limit: int, result: str) -> None:
    assert cut(text, limit) == result
