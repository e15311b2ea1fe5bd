"""Vectors of facts/api 7 and facts/controllers 2.3 and 5.7."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api import names, sizes
from quorate.api.fnv import fnv128a
from quorate.api.id_set import EMPTY, IDSet
from quorate.api.meta import LabelSelector, LabelSelectorRequirement
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import LVMVolumeGroupRef
from quorate.api.value import FrozenMap


def test_plain_hash() -> None:
    assert fnv128a(b"a") == "d228cb696f1a8caf78912b704e4a8964"
    assert fnv128a(b"") == "6c62272e07bb014262b821756295c58d"


@pytest.mark.parametrize(
    ("lvg", "pool", "digest"),
    [
        ("vg-1", "", "e0564180ca83d94f70816f70b9db4d2c"),
        ("vg-1", "tp-1", "5e6342801a067ac7242765f2c48114d2"),
        ("vg-1", "thin-1", "d1d9840f197a6cac2aa9a8fe0bf2a3fd"),
        ("", "", "d228cb69101a8caf78912b704e4a147f"),
    ],
)
def test_llv_name(lvg: str, pool: str, digest: str) -> None:
    assert names.llv_name("pvc-1-0", lvg, pool) == f"pvc-1-0-{digest}"


def test_the_separator_keeps_group_and_pool_apart() -> None:
    assert names.llv_name("r-0", "ab", "c") != names.llv_name("r-0", "a", "bc")


def test_auto_pool_name() -> None:
    thick = names.auto_pool_name("LVM", (LVMVolumeGroupRef(name="lvg-1"),), (), None, ("Internal",))
    assert thick == "auto-rsp-5acd790854334f4ad110e63206877732"
    thin = names.auto_pool_name(
        "LVMThin",
        (LVMVolumeGroupRef(name="lvg-b", thin_pool_name="tp"), LVMVolumeGroupRef(name="lvg-a", thin_pool_name="tp")),
        ("z2", "z1"),
        LabelSelector(match_labels=FrozenMap({"a": "b"})),
        ("Internal",),
    )
    assert thin == "auto-rsp-033448398122d630c2e61035822932b1"


def test_selector_is_hashed_in_gos_json_form() -> None:
    selector = LabelSelector(
        match_labels=FrozenMap({"b": "2", "a": "<&>"}),
        match_expressions=(
            LabelSelectorRequirement(key="k", operator="In", values=("v",)),
            LabelSelectorRequirement(key="k", operator="Exists"),
        ),
    )
    assert names._go_json(selector) == (
        '{"matchLabels":{"a":"\\u003c\\u0026\\u003e","b":"2"},"matchExpressions":'
        '[{"key":"k","operator":"In","values":["v"]},{"key":"k","operator":"Exists"}]}'
    )
    assert names._go_json(LabelSelector()) == "{}"


@given(st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True), st.integers(0, 31))
def test_replica_names_round_trip(volume: str, id_: int) -> None:
    assert names.split_replica_name(names.replica_name(volume, id_)) == (volume, id_)
    assert names.replica_id(names.replica_name(volume, id_)) == id_


@pytest.mark.parametrize("name", ["pvc", "pvc-", "pvc-32", "pvc-05", "pvc-00", "-1", "pvc-1a", "pvc-100"])
def test_what_is_no_replica_name_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="replica name"):
        names.replica_id(name)


@pytest.mark.parametrize("id_", [-1, 32])
def test_replica_ids_are_limited(id_: int) -> None:
    with pytest.raises(ValueError, match="out of range"):
        names.replica_name("pvc", id_)


def test_other_names() -> None:
    assert names.formation_operation_name("pvc-1") == "pvc-1-formation"
    assert names.drbd_name_on_node("pvc-1-0") == "sdsrv-pvc-1-0"
    assert names.drbd_name_on_node("pvc-1-0", "linstor-x") == "linstor-x"
    assert names.device_path("pvc-1-0") == "/dev/sdsrv/pvc-1-0"
    assert names.orphan_peer_name(4) == "peer-4"
    assert names.attachment_name("pvc-1", "node-1") == "csi-pvc-1-node-1"


def test_long_attachment_names_are_shortened_and_stay_different() -> None:
    volume = "v" * 118 + "-." + "x" * 20
    first, second = names.attachment_name(volume, "n" * 150), names.attachment_name(volume, "n" * 149 + "m")
    assert first != second
    for name in (first, second):
        assert len(name) <= 253
        assert name.startswith("csi-" + "v" * 118 + "-n")


@given(st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,250}[a-z0-9])?", fullmatch=True))
def test_label_values_fit_and_stay_different(text: str) -> None:
    value = names.label_value(text)
    assert len(value) <= 63
    assert value[0].isalnum()
    assert value[-1].isalnum()
    assert (value == text) == (len(text) <= 63)
    assert names.label_value(text + "x") != value or len(text) < 63


@pytest.mark.parametrize(
    ("usable", "lower", "text"),
    [
        (4096, 45056, "44Ki"),
        (2**20, 1089536, "1064Ki"),
        (100 * 2**20, 104919040, "102460Ki"),
        (2**30, 1074012160, "1048840Ki"),
        (10 * 2**30, 10739752960, "10488040Ki"),
        (100 * 2**30, 107397165056, "104880044Ki"),
        (2**40, 1099746598912, "1073971288Ki"),
    ],
)
def test_size_vectors(usable: int, lower: int, text: str) -> None:
    assert sizes.lower_size(usable) == lower
    assert sizes.usable_size(lower) == usable
    assert str(Quantity.of(lower)) == text


@given(st.integers(1, 2**50))
def test_the_lower_volume_always_holds_the_usable_size(usable: int) -> None:
    lower = sizes.lower_size(usable)
    assert lower % 4096 == 0
    assert sizes.usable_size(lower) >= usable
    aligned = sizes.align_4ki(usable)
    assert sizes.usable_size(sizes.lower_size(aligned)) == aligned
    assert sizes.usable_size(sizes.lower_size(aligned) - 4096) < aligned


def test_alignment() -> None:
    assert [sizes.align_4ki(size) for size in (0, 1, 4096, 4097)] == [0, 4096, 4096, 8192]
    assert sizes.usable_size(4096) == 0


def test_id_set_vectors() -> None:
    ids = IDSet.of(3, 0)
    assert str(ids) == "#0, #3"
    assert list(ids) == [0, 3]
    assert (ids.min(), ids.max(), ids.min_missing(), len(ids)) == (0, 3, 1, 2)
    assert str(EMPTY) == ""
    assert (EMPTY.min(), EMPTY.max(), EMPTY.min_missing()) == (None, None, 0)
    assert IDSet(range(32)).min_missing() is None
    with pytest.raises(ValueError, match="out of range"):
        IDSet.of(32)


_IDS = st.sets(st.integers(0, 31))


@given(_IDS, _IDS, st.integers(0, 31))
def test_id_sets_behave_like_sets(a: set[int], b: set[int], one: int) -> None:
    left, right = IDSet(a), IDSet(b)
    assert list(left | right) == sorted(a | b)
    assert list(left & right) == sorted(a & b)
    assert list(left - right) == sorted(a - b)
    assert (left <= right) == (a <= b)
    assert (left == right) == (a == b)
    assert list(left.add(one)) == sorted(a | {one})
    assert list(left.remove(one)) == sorted(a - {one})
    assert (one in left) == (one in a)
    assert bool(left) == bool(a)
    assert len({left, IDSet(a)}) == 1
