"""The life of the backing volume (seed 001): wait, create, grow, replace, clean up; and what never deletes data."""

from __future__ import annotations

import pytest

from quorate.api.labels import FINALIZER_REPLICA, FINALIZER_VOLUME, LABEL_STORAGE_CLASS, LABEL_VOLUME
from quorate.api.lvm_logical_volume import LVMLogicalVolume, Phase
from quorate.api.names import llv_name
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import EligibleNodeLVMVolumeGroup
from quorate.api.replicated_volume import MemberType
from quorate.api.resources import controller_reference, ref_of
from quorate.api.sizes import lower_size
from quorate.api.value import FrozenMap, replace
from quorate.machinery.effects import Decision, Delete, Half, Patch
from tests.controllers.replica.builders import (
    DELETED,
    GIB,
    LOWER,
    VOLUME,
    World,
    agent_pod,
    created,
    decide_at_once,
    deleted,
    deleting,
    drbd_status,
    eligible,
    joined,
    logical_volume,
    member,
    node,
    patches,
    peer,
    performed,
    pool,
    published,
    replica,
    status_after,
    volume,
)

THIN = EligibleNodeLVMVolumeGroup(name="vg", thin_pool_name="thin", ready=True)


def world(**changes: object) -> World:
    return World(replica(), volume(), pool=pool(), pod=agent_pod(), node=node()).but(**changes)


def made_volumes(decision: Decision) -> list[LVMLogicalVolume]:
    return [obj for obj in created(decision) if isinstance(obj, LVMLogicalVolume)]


def test_created_volume_carries_owner_finalizer_labels_name_and_drbd_overhead() -> None:
    made = made_volumes(decide_at_once(world()))
    assert len(made) == 1
    assert made[0].metadata.name == llv_name(f"{VOLUME}-0", "vg")
    assert made[0].metadata.finalizers == (FINALIZER_REPLICA,)
    assert made[0].metadata.labels == FrozenMap({LABEL_VOLUME: VOLUME, LABEL_STORAGE_CLASS: "fast"})
    assert made[0].metadata.owner_references == (controller_reference(replica()),)
    assert made[0].spec.actual_lv_name_on_the_node == made[0].metadata.name
    assert made[0].spec.type == "Thick"
    assert str(made[0].spec.size) == "1048840Ki"


def test_thin_volume_names_its_pool() -> None:
    rvr = replica(spec=replace(replica().spec, lvm_volume_group_thin_pool_name="thin"))
    made = made_volumes(decide_at_once(world(replica=rvr, pool=pool(eligible(0, THIN), type="LVMThin"))))
    assert made[0].spec.type == "Thin"
    assert made[0].spec.thin is not None
    assert made[0].spec.thin.pool_name == "thin"


@pytest.mark.parametrize(
    ("asked", "published_size", "expected"),
    [(2 * GIB, GIB, 2 * GIB), (GIB, 2 * GIB, 2 * GIB), (GIB + 1, GIB, GIB + 4096)],
)
def test_size_is_the_larger_of_asked_and_published_aligned(asked: int, published_size: int, expected: int) -> None:
    rv = volume()
    rv = replace(rv, spec=replace(rv.spec, size=Quantity.of(asked)))
    rv = replace(rv, status=replace(rv.status, datamesh=replace(rv.status.datamesh, size=Quantity.of(published_size))))
    assert made_volumes(decide_at_once(world(volume=rv)))[0].spec.size.value == lower_size(expected)


def test_old_volume_of_the_same_name_is_released_and_waited_for() -> None:
    old = logical_volume(replica())
    old = replace(old, metadata=replace(old.metadata, deletion_timestamp=DELETED))
    decision = decide_at_once(world(volumes=(old,)))
    released = patches(decision, LVMLogicalVolume, Half.MAIN)
    assert [patch.after.metadata.finalizers for patch in released] == [()]
    assert made_volumes(decision) == []


def test_volume_of_an_earlier_replica_is_deleted_before_its_name_is_used_again() -> None:
    earlier = replace(replica(), metadata=replace(replica().metadata, uid="uid-earlier"))
    old = logical_volume(earlier)
    assert deleted(decide_at_once(world(volumes=(old,)))) == [old.metadata.name]


def test_member_takes_over_the_volume_of_an_earlier_replica_object() -> None:
    healthy = joined()
    earlier = replace(replica(), metadata=replace(replica().metadata, uid="uid-earlier"))
    decision = decide_at_once(healthy.but(volumes=(logical_volume(earlier),)))
    assert deleted(decision) == []
    adopted = patches(decision, LVMLogicalVolume, Half.MAIN)[0].after
    assert adopted.metadata.owner_references == (controller_reference(replica()),)


def test_growth_patches_the_size_once() -> None:
    rv = volume(member(0), member(1), revision=2)
    healthy = joined().but(volume=replace(rv, spec=replace(rv.spec, size=Quantity.of(2 * GIB))))
    patch = patches(decide_at_once(healthy), LVMLogicalVolume, Half.MAIN)
    assert [item.after.spec.size.value for item in patch if isinstance(item.after, LVMLogicalVolume)] == [
        lower_size(2 * GIB)
    ]
    growing = logical_volume(replica(), phase=Phase.RESIZING, spec_size=lower_size(2 * GIB))
    assert patches(decide_at_once(healthy.but(volumes=(growing,))), LVMLogicalVolume, Half.MAIN) == []


def test_volume_in_use_stays_the_disk_while_it_is_resized() -> None:
    healthy = joined().but(volumes=(logical_volume(replica(), phase=Phase.RESIZING, spec_size=2 * LOWER),))
    decision = decide_at_once(healthy)
    assert [patch for patch in decision.effects if isinstance(patch, Patch) and patch.half is Half.MAIN] == []


def relocated() -> World:
    healthy = joined()
    assert healthy.replica is not None
    moved = replace(healthy.replica, spec=replace(healthy.replica.spec, lvm_volume_group_name="vg-2"))
    return healthy.but(replica=moved, volume=volume(member(0, lvm_volume_group_name="vg-2"), member(1), revision=3))


def test_replacement_is_made_first_then_used_then_the_old_volume_goes() -> None:
    moving = relocated()
    old = moving.volumes[0].metadata.name
    first = decide_at_once(moving)
    assert [obj.spec.lvm_volume_group_name for obj in made_volumes(first)] == ["vg-2"]
    assert deleted(first) == []

    moving = performed(moving, first)
    ready = logical_volume(replica(), group="vg-2")
    moving = moving.but(volumes=(moving.volumes[0], ready))
    second = decide_at_once(moving)
    assert deleted(second) == []  # DRBD still has the old one
    moving = performed(moving, second)
    assert moving.drbdr is not None
    assert moving.drbdr.spec.lvm_logical_volume_name == ready.metadata.name

    third = decide_at_once(moving.but(drbdr=drbd_status(moving.drbdr, peer(1))))
    assert deleted(third) == [old]


def test_volume_named_by_the_drbd_resource_keeps_its_name_on_the_same_place() -> None:
    healthy = joined()
    assert healthy.drbdr is not None
    migrated = logical_volume(replica(), name="legacy")
    migrated = replace(migrated, metadata=replace(migrated.metadata, owner_references=()))
    spec = replace(healthy.drbdr.spec, lvm_logical_volume_name="legacy")
    active = healthy.drbdr.status.active_configuration
    assert active is not None
    status = replace(healthy.drbdr.status, active_configuration=replace(active, lvm_logical_volume_name="legacy"))
    decision = decide_at_once(healthy.but(volumes=(migrated,), drbdr=replace(healthy.drbdr, spec=spec, status=status)))
    assert made_volumes(decision) == []
    assert patches(decision, LVMLogicalVolume, Half.MAIN)[0].after.metadata.owner_references == (
        controller_reference(replica()),
    )


KEPT = {
    "pool is missing": lambda: world(pool=None),
    "pool lost the node": lambda: world(pool=pool(eligible(1))),
    "pool lost the volume group": lambda: world(
        pool=pool(eligible(0, EligibleNodeLVMVolumeGroup(name="other", ready=True)))
    ),
    "volume is missing": lambda: world(volume=None),
    "datamesh is not published": lambda: world(volume=volume(revision=0)),
    "agent is not ready": lambda: world(pod=None),
    "node is missing": lambda: world(pod=None, node=None),
    "member, pool is missing": lambda: joined().but(pool=None),
    "member, pool lost the node": lambda: joined().but(pool=pool(eligible(1))),
    "member, seen in a stale volume that does not list it": lambda: joined().but(volume=volume(revision=1)),
    "member whose storage is not recorded": lambda: joined().but(
        volume=volume(member(0, lvm_volume_group_name=""), member(1), revision=3)
    ),
    "member, volume is missing": lambda: joined().but(volume=None),
    "member on its way to diskless, not committed": lambda: _retyped_member(),
    "liminal member": lambda: joined().but(volume=volume(member(0, MemberType.LIMINAL_DISKFUL), member(1), revision=3)),
}


def _retyped_member() -> World:
    healthy = joined()
    assert healthy.replica is not None
    spec = replace(healthy.replica.spec, type="Access", lvm_volume_group_name="")
    return healthy.but(replica=replace(healthy.replica, spec=spec))


@pytest.mark.parametrize("cause", KEPT)
def test_what_is_merely_unknown_never_deletes_data(cause: str) -> None:
    found = KEPT[cause]()
    if not found.volumes:
        found = found.but(volumes=(logical_volume(replica()),))
    decision = decide_at_once(found)
    assert [effect for effect in decision.effects if isinstance(effect, Delete)] == []
    for patch in patches(decision, LVMLogicalVolume, Half.MAIN):
        assert FINALIZER_REPLICA in patch.after.metadata.finalizers


def test_committed_diskless_type_removes_the_volume_but_holds_it_until_drbd_lets_go() -> None:
    healthy = joined()
    assert healthy.replica is not None
    spec = replace(healthy.replica.spec, type="Access", lvm_volume_group_name="")
    changed = healthy.but(
        replica=replace(healthy.replica, spec=spec), volume=volume(member(0, MemberType.ACCESS), member(1), revision=3)
    )
    name = changed.volumes[0].metadata.name
    first = decide_at_once(changed)
    assert deleted(first) == [name]
    changed = performed(changed, first)
    assert patches(decide_at_once(changed), LVMLogicalVolume, Half.MAIN) == []
    assert changed.drbdr is not None
    detached = changed.but(drbdr=drbd_status(changed.drbdr, peer(1)))
    released = patches(decide_at_once(detached), LVMLogicalVolume, Half.MAIN)
    assert [patch.after.metadata.finalizers for patch in released] == [()]
    done = published(detached.but(volumes=()))
    status = status_after(decide_at_once(done), done)
    assert status.backing_volume is None


def test_destruction_names_what_it_was_decided_from() -> None:
    going = world(replica=deleting(replica(), FINALIZER_REPLICA), volumes=(logical_volume(replica()),))
    effect = next(effect for effect in decide_at_once(going).effects if isinstance(effect, Delete))
    assert going.replica is not None
    assert going.volume is not None
    assert effect.decided_from == (ref_of(going.replica), ref_of(going.volume))
    assert dict(effect.audit) == {
        "volume": VOLUME,
        "replica": f"{VOLUME}-0",
        "revision": "1",
        "recordedRevision": "0",
        "member": "none",
        "deleting": "true",
    }


def test_diskful_spec_of_a_diskless_member_gets_its_volume_before_the_role_change() -> None:
    access = joined(type=MemberType.ACCESS, id=2, members=2)
    assert access.replica is not None
    spec = replace(access.replica.spec, type="Diskful", lvm_volume_group_name="vg")
    decision = decide_at_once(access.but(replica=replace(access.replica, spec=spec)))
    assert [obj.spec.lvm_volume_group_name for obj in made_volumes(decision)] == ["vg"]


def test_deleting_member_keeps_its_volume_until_it_left() -> None:
    healthy = joined()
    assert healthy.replica is not None
    going = healthy.but(replica=deleting(healthy.replica, FINALIZER_VOLUME, FINALIZER_REPLICA))
    assert deleted(decide_at_once(going)) == []
    left = going.but(volume=volume(member(1), revision=3))
    assert deleted(decide_at_once(left)) == [going.volumes[0].metadata.name]


def test_name_that_no_drbd_resource_can_hold_is_refused_before_anything_is_made() -> None:
    long = "v" * 100
    rvr = replica()
    rvr = replace(
        rvr,
        metadata=replace(rvr.metadata, name=f"{long}-0", owner_references=()),
        spec=replace(rvr.spec, replicated_volume_name=long),
    )
    rv = volume()
    named = world(replica=rvr, volume=replace(rv, metadata=replace(rv.metadata, name=long)), key=f"{long}-0")
    decision = decide_at_once(named)
    assert created(decision) == []
    found = next(item for item in status_after(decision, named).conditions if item.type == "BackingVolumeReady")
    assert (found.status, found.reason) == ("False", "ProvisioningFailed")
    assert "needs a shorter name" in found.message
