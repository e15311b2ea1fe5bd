from __future__ import annotations

from typing import cast

import msgspec
import pytest
from hypothesis import given, settings

from quorate.api import wire
from quorate.api.drbd_resource import DRBDResource, DRBDResourceSpec, Peer
from quorate.api.meta import Condition, Object, ObjectMeta
from quorate.api.node import Node
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import (
    Datamesh,
    DatameshMember,
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
)
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec
from quorate.api.resources import ALL, resource_of
from quorate.api.schema import Json
from quorate.api.value import FrozenMap, SharedSecret, replace
from tests.api.strategies import apply_merge_patch, objects

KINDS = [resource.type for resource in ALL]


def volume(status: ReplicatedVolumeStatus | None = None) -> ReplicatedVolume:
    spec = ReplicatedVolumeSpec(size=Quantity.parse("10Gi"), replicated_storage_class_name="fast")
    meta = ObjectMeta(name="pvc-1", labels=FrozenMap({"a": "1", "b": "2"}), finalizers=("f1",))
    return (
        ReplicatedVolume(metadata=meta, spec=spec, status=status)
        if status
        else ReplicatedVolume(metadata=meta, spec=spec)
    )


def replica(node: str = "") -> ReplicatedVolumeReplica:
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(name="pvc-1-0"),
        spec=ReplicatedVolumeReplicaSpec(replicated_volume_name="pvc-1", type="Diskful", node_name=node),
    )


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: cast("type[Object]", kind).__name__)
def test_every_kind_survives_a_round_trip(kind: type[Object]) -> None:
    @settings(max_examples=25, deadline=None)
    @given(objects(kind))
    def check(obj: Object) -> None:
        decoded = wire.decode(kind, wire.encode(obj))
        assert decoded == obj
        assert hash(decoded) == hash(obj)
        plain = wire.to_builtins(obj)
        assert (plain["apiVersion"], plain["kind"]) == (resource_of(kind).api_version, kind.__name__)
        assert msgspec.json.decode(wire.encode(obj)) == plain
        assert wire.from_builtins(kind, plain) == obj
        assert wire.merge_patch(obj, decoded) == {}

    check()


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: cast("type[Object]", kind).__name__)
def test_applying_the_patch_leads_from_before_to_after(kind: type[Object]) -> None:
    @settings(max_examples=50, deadline=None)
    @given(objects(kind), objects(kind))
    def check(before: Object, after: Object) -> None:
        patched = apply_merge_patch(wire.to_builtins(before), cast("Json", wire.merge_patch(before, after)))
        assert wire.from_builtins(kind, patched) == after

    check()


@settings(max_examples=50, deadline=None)
@given(objects(ReplicatedVolume), objects(ReplicatedVolume))
def test_unknown_fields_of_the_server_survive_our_writes(before: Object, after: Object) -> None:
    def with_unknown(value: Json) -> Json:
        if isinstance(value, dict):
            unknown: dict[str, Json] = {"fromTheFuture": {"x": [1]}}
            return {key: with_unknown(item) for key, item in value.items()} | unknown
        return value

    def unknown_paths(value: Json, path: str = "") -> list[str]:
        if not isinstance(value, dict):
            return []
        found = [path] if "fromTheFuture" in value else []
        return found + [
            p for key, item in value.items() if key != "fromTheFuture" for p in unknown_paths(item, f"{path}.{key}")
        ]

    stored = with_unknown(wire.to_builtins(before))
    decoded = wire.from_builtins(ReplicatedVolume, _without_unknown_labels(stored))
    assert isinstance(stored, dict)
    patched = apply_merge_patch(stored, cast("Json", wire.merge_patch(decoded, cast("ReplicatedVolume", after))))
    # Only a struct that is removed as a whole may take its unknown fields with it.
    removed = {path for path in unknown_paths(stored) if path not in unknown_paths(patched)}
    assert all(_is_removed(patched, path) for path in removed)


def _without_unknown_labels(value: Json) -> Json:
    """Text maps cannot hold the unknown struct: it stands only where structs are."""
    if not isinstance(value, dict):
        return value
    result = dict(value)
    for key in ("labels", "annotations"):
        entries = result.get(key)
        if isinstance(entries, dict):
            result[key] = {k: v for k, v in entries.items() if k != "fromTheFuture"}
    return {key: _without_unknown_labels(item) for key, item in result.items()}


def _is_removed(value: Json, path: str) -> bool:
    for part in path.split(".")[1:]:
        if not isinstance(value, dict) or part not in value:
            return True
        value = value[part]
    return False


def test_the_first_status_write_contains_what_the_schema_requires() -> None:
    before = volume()
    after = replace(before, status=replace(before.status, conditions=(Condition(type="X", status="True"),)))

    patch = wire.merge_patch(before, after)

    assert set(patch) == {"status"}
    status = cast("dict[str, Json]", patch["status"])
    assert status["datameshRevision"] == 0
    assert status["baselineGuaranteedMinimumDataRedundancy"] == 0
    assert status["datamesh"] == {
        "systemNetworkNames": [],
        "size": "0",
        "members": [],
        "quorum": 0,
        "quorumMinimumRedundancy": 0,
    }


def test_later_status_writes_contain_only_the_difference() -> None:
    status = ReplicatedVolumeStatus(datamesh_revision=4, membership_layout="3D", datamesh=Datamesh(quorum=2))
    before = volume(status)
    after = replace(before, status=replace(status, datamesh_revision=0, membership_layout=""))

    assert wire.merge_patch(before, after) == {"status": {"datameshRevision": 0, "membershipLayout": None}}


def test_required_values_are_emitted_even_when_they_equal_the_default() -> None:
    peer = Peer(name="pvc-1-1", node_id=1, allow_remote_read=False, type="Diskful")
    drbdr = DRBDResource(
        metadata=ObjectMeta(name="pvc-1-0"),
        spec=DRBDResourceSpec(node_name="n", node_id=0, system_networks=("Internal",), peers=(peer,)),
    )
    spec = cast("dict[str, Json]", wire.to_builtins(drbdr)["spec"])
    assert spec["type"] == "Diskful"
    assert spec["nodeID"] == 0
    sent = cast("list[dict[str, Json]]", spec["peers"])[0]
    assert sent["allowRemoteRead"] is False
    assert sent["tieBreaker"] is True
    assert sent["nodeID"] == 1
    member = DatameshMember(name="pvc-1-0", type="Diskful", node_name="n")
    assert wire.to_builtins(member)["attached"] is False


def test_empty_optional_text_is_never_sent_but_removed() -> None:
    assert "nodeName" not in cast("dict[str, Json]", wire.to_builtins(replica())["spec"])
    before = replica("node-1")
    after = replace(before, spec=replace(before.spec, node_name=""))
    assert wire.merge_patch(before, after) == {"spec": {"nodeName": None}}


def test_labels_are_compared_key_by_key_and_never_removed_as_a_whole() -> None:
    before = volume()
    after = replace(before, metadata=replace(before.metadata, labels=FrozenMap({"b": "3", "c": "4"})))
    assert wire.merge_patch(before, after) == {"metadata": {"labels": {"b": "3", "c": "4", "a": None}}}
    bare = replace(before, metadata=replace(before.metadata, labels=FrozenMap()))
    assert wire.merge_patch(before, bare) == {"metadata": {"labels": {"a": None, "b": None}}}


def test_lists_are_replaced_as_a_whole() -> None:
    members = tuple(DatameshMember(name=f"pvc-1-{i}", type="Diskful", node_name=f"n{i}") for i in range(2))
    before = volume(ReplicatedVolumeStatus(datamesh=Datamesh(members=members)))
    after = replace(
        before,
        status=replace(
            before.status,
            datamesh=replace(before.status.datamesh, members=(members[0], replace(members[1], attached=True))),
        ),
    )
    patch = cast("dict[str, dict[str, dict[str, Json]]]", wire.merge_patch(before, after))
    assert list(patch["status"]["datamesh"]) == ["members"]
    sent = cast("list[dict[str, Json]]", patch["status"]["datamesh"]["members"])
    assert [member["name"] for member in sent] == ["pvc-1-0", "pvc-1-1"]
    assert [member["attached"] for member in sent] == [False, True]


def test_shared_subtrees_are_not_even_compared() -> None:
    class Loud(FrozenMap):
        def __eq__(self, other: object) -> bool:
            raise AssertionError("compared")

        __hash__ = FrozenMap.__hash__

    meta = ObjectMeta(name="pvc-1", labels=Loud({"a": "b"}))
    before = ReplicatedVolume(metadata=meta, spec=ReplicatedVolumeSpec(size=Quantity.parse("1Gi")))
    after = replace(before, spec=replace(before.spec, size=Quantity.parse("2Gi")))
    assert wire.merge_patch(before, after) == {"spec": {"size": "2Gi"}}


def test_metadata_of_the_server_is_never_sent() -> None:
    before = volume()
    meta = replace(
        before.metadata, uid="u", resource_version="7", generation=3, deletion_timestamp="2026-01-01T00:00:00Z"
    )
    assert wire.merge_patch(before, replace(before, metadata=meta)) == {}


def test_a_resource_written_differently_but_equal_is_no_change() -> None:
    before = volume()
    after = replace(before, spec=replace(before.spec, size=Quantity.parse(str(10 * 2**30))))
    assert wire.merge_patch(before, after) == {}


def test_null_means_absent() -> None:
    data = b'{"metadata":{"name":"n","labels":null,"finalizers":null},"spec":{"taints":null},"status":null}'
    node = wire.decode(Node, data)
    assert node == Node(metadata=ObjectMeta(name="n"))


def test_managed_fields_and_unknown_fields_are_dropped() -> None:
    data = b'{"apiVersion":"v1","kind":"Node","metadata":{"name":"n","managedFields":[{"x":1}]},"future":{"y":[null]}}'
    assert wire.decode(Node, data) == Node(metadata=ObjectMeta(name="n"))


def test_one_undecodable_item_is_quarantined_and_the_rest_is_used() -> None:
    good = wire.encode(volume()).decode()
    bad_enum = good.replace('"Auto"', '"Sometimes"').replace("pvc-1", "pvc-2")
    bad_size = good.replace('"10Gi"', '"ten"').replace("pvc-1", "pvc-3")
    items = ",".join((bad_enum, good, bad_size, "3"))
    data = f'{{"kind":"List","metadata":{{"resourceVersion":"9","continue":"c"}},"items":[{items}]}}'

    result = wire.decode_list(ReplicatedVolume, data.encode())

    assert result.items == (volume(),)
    assert (result.resource_version, result.continue_) == ("9", "c")
    assert [item.name for item in result.quarantined] == ["pvc-2", "pvc-3", ""]
    assert "Sometimes" in result.quarantined[0].error
    assert "ten" in result.quarantined[1].error


def test_an_empty_list_may_have_null_items() -> None:
    result = wire.decode_list(ReplicatedVolume, b'{"metadata":{"resourceVersion":"1"},"items":null}')
    assert result.items == ()
    assert result.resource_version == "1"


def test_status_vocabularies_are_open() -> None:
    data = (
        b'{"metadata":{"name":"v"},"spec":{"size":"1Gi"},"status":{"datameshRevision":1,"datamesh":{"size":"1Gi","members":'
        b'[{"name":"v-0","type":"HolographicDiskful","nodeName":"n"}]},"datameshTransitions":[{"type":"Teleport","group":"New",'
        b'"planID":"teleport/v9","steps":[{"name":"s","status":"Levitating"}]}]}}'
    )
    decoded = wire.decode(ReplicatedVolume, data)
    assert decoded.status.datamesh.members[0].type == "HolographicDiskful"
    assert decoded.status.datamesh_transitions[0].plan_id == "teleport/v9"


@pytest.mark.parametrize("text", ["5", '"5"', "5.0"])
def test_quantities_come_as_numbers_or_text(text: str) -> None:
    decoded = wire.decode(ReplicatedVolume, f'{{"metadata":{{"name":"v"}},"spec":{{"size":{text}}}}}'.encode())
    assert decoded.spec.size.value == 5


def test_malformed_documents_are_errors() -> None:
    for data in (b"{", b"[]", b'{"metadata":{"name":"v"}}', b'{"metadata":{"labels":{"a":1}},"spec":{"size":1}}'):
        with pytest.raises(msgspec.MsgspecError):
            wire.decode(ReplicatedVolume, data)


def test_the_shared_secret_reaches_the_wire_and_nothing_else() -> None:
    secret = "c2VjcmV0LXZhbHVl"
    status = ReplicatedVolumeStatus(datamesh=Datamesh(shared_secret=SharedSecret(secret)))
    obj = volume(status)
    assert secret.encode() in wire.encode(obj)
    assert wire.decode(ReplicatedVolume, wire.encode(obj)).status.datamesh.shared_secret == SharedSecret(secret)
    for text in (
        repr(obj),
        str(obj),
        f"{obj}",
        f"{status.datamesh.shared_secret}",
        f"{status.datamesh.shared_secret!r:>20}",
    ):
        assert secret not in text
