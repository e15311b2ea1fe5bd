from __future__ import annotations

import copy
import gc
import pickle

import pytest

from quorate.api import wire
from quorate.api.meta import Condition, LabelSelector, LabelSelectorRequirement, ObjectMeta, OwnerReference
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import (
    Address,
    Datamesh,
    DatameshMember,
    Endpoint,
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
    VolumeConfiguration,
)
from quorate.api.secret import Secret, SecretData
from quorate.api.value import EMPTY_MAP, FrozenMap, SharedSecret, replace


def volume(number: int) -> ReplicatedVolume:
    members = tuple(
        DatameshMember(
            name=f"pvc-{number}-{i}",
            type="Diskful",
            node_name=f"node-{i}",
            addresses=(Address(system_network_name="Internal", address=Endpoint(ipv4=f"10.0.0.{i}", port=7000)),),
            lvm_volume_group_name=f"lvg-{i}",
        )
        for i in range(3)
    )
    return ReplicatedVolume(
        metadata=ObjectMeta(
            name=f"pvc-{number}",
            labels=FrozenMap({"class": "fast"}),
            finalizers=("a", "b"),
            owner_references=(OwnerReference(api_version="v1", kind="Pod", name="p", uid="u"),),
        ),
        spec=ReplicatedVolumeSpec(size=Quantity.parse("10Gi"), replicated_storage_class_name="fast"),
        status=ReplicatedVolumeStatus(
            conditions=tuple(Condition(type=f"T{i}", status="True", reason="R", message="m") for i in range(5)),
            configuration=VolumeConfiguration(
                replicated_storage_pool_name="pool",
                topology="Ignored",
                failures_to_tolerate=1,
                guaranteed_minimum_data_redundancy=1,
                volume_access="Any",
            ),
            datamesh_revision=5,
            datamesh=Datamesh(
                members=members,
                size=Quantity.parse("10Gi"),
                quorum=2,
                quorum_minimum_redundancy=2,
                shared_secret=SharedSecret("s"),
            ),
        ),
    )


def test_a_change_builds_a_new_value_that_shares_the_rest() -> None:
    before = volume(1)
    after = replace(before, status=replace(before.status, datamesh_revision=6))
    assert before.status.datamesh_revision == 5
    assert after.status.datamesh_revision == 6
    assert after.spec is before.spec
    assert after.metadata is before.metadata
    assert after.status.datamesh is before.status.datamesh


def test_values_cannot_be_changed_in_place() -> None:
    with pytest.raises(AttributeError):
        volume(1).spec.size = Quantity.parse("1Gi")  # pyright: ignore[reportAttributeAccessIssue]
    with pytest.raises(TypeError):
        volume(1).metadata.labels["x"] = "y"  # pyright: ignore[reportIndexIssue]


def test_equal_values_have_equal_hashes() -> None:
    assert volume(1) == volume(1)
    assert len({volume(1), volume(1), volume(2)}) == 2


def test_loading_many_volumes_leaves_almost_nothing_to_the_garbage_collector() -> None:
    texts = [wire.encode(volume(number)) for number in range(300)]
    wire.decode(ReplicatedVolume, texts[0])  # builds the decoder
    gc.collect()
    before = len(gc.get_objects())
    loaded = [wire.decode(ReplicatedVolume, text) for text in texts]
    gc.collect()
    tracked = len(gc.get_objects()) - before
    # Per object one label map and one secret; structs, tuples and quantities are invisible.
    assert tracked <= 2 * len(loaded) + 10


def test_frozen_map_is_a_hashable_mapping() -> None:
    labels = FrozenMap({"a": "1", "b": "2"})
    assert labels == {"b": "2", "a": "1"} == labels
    assert hash(labels) == hash(FrozenMap({"b": "2", "a": "1"}))
    assert (labels["a"], labels.get("c"), "b" in labels, len(labels), list(labels)) == ("1", None, True, 2, ["a", "b"])
    assert not EMPTY_MAP
    assert repr(labels) == "FrozenMap({'a': '1', 'b': '2'})"


def test_frozen_map_changes_return_itself_when_nothing_changes() -> None:
    labels = FrozenMap({"a": "1"})
    assert labels.with_entry("a", "1") is labels
    assert labels.with_entry("x/y", "2") == {"a": "1", "x/y": "2"}
    assert labels.with_(b="2").without("a") == {"b": "2"}
    assert labels.without("zzz") is labels
    assert labels == {"a": "1"}


def test_a_map_handed_in_can_change_later_without_effect() -> None:
    source = {"a": "1"}
    labels = FrozenMap(source)
    source["a"] = "2"
    assert labels["a"] == "1"


def test_values_can_be_copied_and_pickled() -> None:
    original = volume(1)
    assert copy.deepcopy(original) == original
    assert pickle.loads(pickle.dumps(original)) == original
    assert copy.copy(original.metadata.labels) is original.metadata.labels


def test_secrets_are_redacted_in_every_text_form() -> None:
    secret = SharedSecret("hunter2")
    for text in (
        repr(secret),
        str(secret),
        f"{secret}",
        f"{secret:>10}",
        f"{secret!r}",
        repr((secret,)),
    ):
        assert "hunter2" not in text
        assert "***" in text
    assert secret.reveal() == "hunter2"
    assert secret == SharedSecret("hunter2") != SharedSecret("x")
    assert secret != "hunter2"
    assert len({secret, SharedSecret("hunter2")}) == 1
    assert not SharedSecret("")
    kubernetes = Secret(metadata=ObjectMeta(name="s"), data=SecretData({"token": "hunter2"}))
    assert "hunter2" not in repr(kubernetes)
    assert "token" in repr(kubernetes)
    assert b"hunter2" in wire.encode(kubernetes)


@pytest.mark.parametrize(
    ("operator", "values", "labels", "matches"),
    [
        ("In", ("a", "b"), {"k": "a"}, True),
        ("In", ("a",), {"k": "c"}, False),
        ("In", ("a",), {}, False),
        ("NotIn", ("a",), {"k": "c"}, True),
        ("NotIn", ("a",), {"k": "a"}, False),
        ("NotIn", ("a",), {}, True),
        ("Exists", (), {"k": ""}, True),
        ("Exists", (), {}, False),
        ("DoesNotExist", (), {}, True),
        ("DoesNotExist", (), {"k": "x"}, False),
        ("Fancy", (), {"k": "x"}, False),
    ],
)
def test_label_selectors(operator: str, values: tuple[str, ...], labels: dict[str, str], matches: bool) -> None:
    requirement = LabelSelectorRequirement(key="k", operator=operator, values=values)
    assert LabelSelector(match_expressions=(requirement,)).matches(labels) is matches


def test_all_parts_of_a_selector_must_match() -> None:
    exists = LabelSelectorRequirement(key="zone", operator="Exists")
    selector = LabelSelector(match_labels=FrozenMap({"disk": "ssd"}), match_expressions=(exists,))
    assert selector.matches({"disk": "ssd", "zone": "a"})
    assert not selector.matches({"disk": "ssd"})
    assert not selector.matches({"disk": "hdd", "zone": "a"})
    assert LabelSelector().matches({})
