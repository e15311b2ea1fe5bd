"""The status fields of seed 001 (with the design's ruling), metadata, deletion and the membership request."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api.drbd_resource import DrbdRole, PeerPathStatus, VoterFacts
from quorate.api.labels import (
    FINALIZER_REPLICA,
    FINALIZER_VOLUME,
    LABEL_LVM_VOLUME_GROUP,
    LABEL_STORAGE_CLASS,
    LABEL_VOLUME,
)
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.meta import ObjectRef
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import DatameshReplicaRequest, MembershipRequest, MemberType
from quorate.api.replicated_volume_replica import (
    BackingVolume,
    QuorumSummary,
    ReplicaAttachment,
    ReplicatedVolumeReplica,
    ReplicatedVolumeReplicaStatus,
)
from quorate.api.resources import ref_of
from quorate.api.value import EMPTY_MAP, FrozenMap, replace
from quorate.controllers.replica.status_fields import compute_peer_name
from quorate.machinery.effects import Half, Observe, Patch
from tests.controllers.replica.builders import (
    CREATED,
    DELETED,
    GIB,
    LOWER,
    VOLUME,
    World,
    address,
    agent_pod,
    condition,
    decide_at_once,
    deleted,
    deleting,
    drbd_status,
    drbdr_for,
    find,
    joined,
    logical_volume,
    member,
    node,
    patches,
    peer,
    pool,
    replica,
    status_after,
    volume,
    with_status,
    writes,
)


def status_of(world: World) -> ReplicatedVolumeReplicaStatus:
    return status_after(decide_at_once(world), world)


def drbd(world: World, **changes: object) -> World:
    assert world.drbdr is not None
    return world.but(drbdr=replace(world.drbdr, status=replace(world.drbdr.status, **changes)))


def primary(world: World, **changes: object) -> World:
    assert world.drbdr is not None
    return world.but(drbdr=drbd_status(world.drbdr, peer(1), role=DrbdRole.PRIMARY, **changes))


def test_addresses_type_and_size_mirror_the_drbd_resource() -> None:
    status = status_of(joined())
    assert (status.addresses, status.type, status.size) == ((address(0),), "Diskful", Quantity.of(GIB))


def test_everything_is_cleared_without_a_drbd_resource() -> None:
    world = joined().but(drbdr=None, volume=None)
    status = status_of(world)
    assert (status.addresses, status.type, status.size, status.peers) == ((), "", None, ())
    assert (status.quorum, status.quorum_summary, status.backing_volume, status.attachment) == (None, None, None, None)


class TestAttachment:
    def test_set_while_primary(self) -> None:
        status = status_of(primary(joined(), device_open=True))
        assert status.attachment == ReplicaAttachment(
            device_path=f"/dev/sdsrv/{VOLUME}-0", io_suspended=False, in_use=True
        )

    def test_suspension_is_shown(self) -> None:
        status = status_of(primary(joined(), device_io_suspended=True))
        assert status.attachment is not None
        assert status.attachment.io_suspended

    def test_cleared_when_secondary(self) -> None:
        world = joined()
        assert world.replica is not None
        known = ReplicaAttachment(device_path="/dev/x", io_suspended=False, in_use=False)
        assert status_of(world.but(replica=with_status(world.replica, attachment=known))).attachment is None

    @pytest.mark.parametrize("unknown", ["agent away", "pending"])
    def test_kept_while_the_state_is_not_known(self, unknown: str) -> None:
        world = joined()
        assert world.replica is not None
        known = ReplicaAttachment(device_path="/dev/x", io_suspended=False, in_use=True)
        world = world.but(replica=with_status(world.replica, attachment=known))
        world = world.but(pod=None) if unknown == "agent away" else drbd(world, conditions=())
        assert status_of(world).attachment == known


class TestPeers:
    def test_mirrored_with_paths_role_and_states(self) -> None:
        world = drbd(
            joined(),
            peers=(
                peer(
                    1,
                    role=DrbdRole.PRIMARY,
                    paths=(
                        PeerPathStatus(system_network_name="Internal", established=True),
                        PeerPathStatus(system_network_name="Fast", established=False),
                    ),
                    replication_state="SyncSource",
                    disk_state="Inconsistent",
                    out_of_sync=4096,
                ),
            ),
        )
        found = status_of(world).peers[0]
        assert (found.name, found.type, found.attached) == (f"{VOLUME}-1", "Diskful", True)
        assert found.connection_established_on == ("Internal",)
        assert (found.connection_state, found.backing_volume_state, found.replication_state, found.out_of_sync) == (
            "Connected",
            "Inconsistent",
            "SyncSource",
            4096,
        )

    @pytest.mark.parametrize(
        ("datamesh_type", "reported", "expected"),
        [
            (MemberType.DISKFUL, peer(1), "Diskful"),
            (MemberType.LIMINAL_DISKFUL, peer(1, type="Diskless"), "Diskful"),
            (MemberType.TIE_BREAKER, peer(1, type="Diskless", bitmap=False), "TieBreaker"),
            (MemberType.ACCESS, peer(1, type="Diskless", bitmap=False), "Access"),
            ("", peer(1), "Diskful"),
            ("", peer(1, type="Diskless", bitmap=False, allow_remote_read=True), "TieBreaker"),
            ("", peer(1, type="Diskless", bitmap=False, allow_remote_read=False), "Access"),
        ],
    )
    def test_type_by_the_datamesh_first_then_by_drbd(self, datamesh_type: str, reported: object, expected: str) -> None:
        others = (member(1, datamesh_type),) if datamesh_type else ()
        world = drbd(joined(), peers=(reported,)).but(volume=volume(member(0), *others, revision=2))
        assert status_of(world).peers[0].type == expected

    @pytest.mark.parametrize(
        ("name", "expected"),
        [
            (f"{VOLUME}-1", f"{VOLUME}-1"),
            (f"{VOLUME}-31", f"{VOLUME}-31"),
            ("peer-7", f"{VOLUME}-7"),
            (f"{VOLUME}-32", ""),
            (f"{VOLUME}-05", ""),
            ("other-1", ""),
            (f"{VOLUME}-", ""),
            ("peer-", ""),
        ],
    )
    def test_names(self, name: str, expected: str) -> None:
        assert compute_peer_name(name, VOLUME) == expected

    def test_foreign_peer_is_reported_and_the_rest_is_mirrored(self) -> None:
        world = drbd(joined(), peers=(peer(1), peer(9, name="stranger")))
        decision = decide_at_once(world)
        status = status_after(decision, world)
        assert [item.name for item in status.peers] == [f"{VOLUME}-1"]
        assert status.message.endswith("Foreign DRBD peers: stranger")
        samples = [effect for effect in decision.effects if isinstance(effect, Observe)]
        assert [(item.metric, item.value) for item in samples] == [("sds_rvr_foreign_peers_total", 1.0)]

    def test_foreign_peer_is_counted_once(self) -> None:
        world = drbd(joined(), peers=(peer(1), peer(9, name="stranger")))
        written = world.but(replica=with_status(_replica(world), message=status_of(world).message))
        assert not [effect for effect in decide_at_once(written).effects if isinstance(effect, Observe)]


def _replica(world: World) -> ReplicatedVolumeReplica:
    assert world.replica is not None
    return world.replica


class TestBackingVolume:
    def test_from_drbd_and_the_logical_volume(self) -> None:
        assert status_of(joined()).backing_volume == BackingVolume(
            size=Quantity.of(LOWER), state="UpToDate", lvm_volume_group_name="vg"
        )

    def test_absent_without_active_configuration(self) -> None:
        assert status_of(drbd(joined(), active_configuration=None)).backing_volume is None

    def test_from_drbd_only_when_no_volume_is_named(self) -> None:
        world = joined()
        assert world.drbdr is not None
        active = world.drbdr.status.active_configuration
        assert active is not None
        unnamed = drbd(world, active_configuration=replace(active, lvm_logical_volume_name=""))
        assert status_of(unnamed).backing_volume == BackingVolume(state="UpToDate")

    def test_volume_that_is_not_found_is_an_error_but_no_change_of_place(self) -> None:
        world = joined()
        hidden = world.but(volumes=())
        decision = decide_at_once(hidden)
        assert "not found" in decision.error
        found = status_after(decision, hidden).backing_volume
        assert found is not None
        assert found.lvm_volume_group_name == "vg"


class TestQuorum:
    def test_flag_summary_and_enforcement(self) -> None:
        world = drbd(
            joined(members=3),
            peers=(peer(1), peer(2, disk_state="Inconsistent")),
            quorum=True,
            voter_facts=VoterFacts(expected_quorum=False),
        )
        status = status_of(world)
        assert (status.quorum, status.quorum_enforced) == (True, False)
        assert status.quorum_summary == QuorumSummary(
            connected_diskful_peers=2,
            connected_tie_breaker_peers=0,
            connected_up_to_date_peers=1,
            quorum=2,
            quorum_minimum_redundancy=1,
        )

    def test_disconnected_peers_do_not_count(self) -> None:
        summary = status_of(drbd(joined(), peers=(peer(1, connection_state="Connecting"),))).quorum_summary
        assert summary is not None
        assert (summary.connected_diskful_peers, summary.connected_up_to_date_peers) == (0, 0)

    def test_first_quorum_is_latched_and_cleared_on_leaving(self) -> None:
        world = joined()
        reached = status_of(world).initial_quorum_reached_at
        assert reached
        assert status_of(drbd(world, quorum=False)).initial_quorum_reached_at == reached
        left = world.but(
            replica=with_status(_replica(world), datamesh_revision=0), volume=volume(member(1), revision=3)
        )
        assert status_of(left).initial_quorum_reached_at == ""


REQUESTS: list[tuple[str, Callable[[], World], MembershipRequest | None]] = [
    (
        "join as Diskful",
        lambda: _placed("Diskful"),
        MembershipRequest(operation="Join", type="Diskful", lvm_volume_group_name="vg"),
    ),
    ("join as TieBreaker", lambda: _placed("TieBreaker"), MembershipRequest(operation="Join", type="TieBreaker")),
    ("join as Access", lambda: _placed("Access"), MembershipRequest(operation="Join", type="Access")),
    (
        "leave",
        lambda: joined().but(replica=deleting(_replica(joined()), FINALIZER_VOLUME)),
        MembershipRequest(operation="Leave"),
    ),
    (
        "leave while listed but never confirmed",
        lambda: World(
            deleting(replica(), FINALIZER_VOLUME), volume(member(0)), pool=pool(), pod=agent_pod(), node=node()
        ),
        MembershipRequest(operation="Leave"),
    ),
    (
        "change to diskless",
        lambda: _changed(type="Access", lvm_volume_group_name=""),
        MembershipRequest(operation="ChangeRole", type="Access"),
    ),
    (
        "change to Diskful",
        lambda: _to_diskful(),
        MembershipRequest(operation="ChangeRole", type="Diskful", lvm_volume_group_name="vg"),
    ),
    (
        "liminal member on its way",
        lambda: _liminal(),
        MembershipRequest(operation="ChangeRole", type="Diskful", lvm_volume_group_name="vg"),
    ),
    ("configured", joined, None),
    ("not placed", lambda: World(replica(placed=False), volume(), pool=pool()), None),
    ("deleting non-member", lambda: _placed("Diskful").but(replica=deleting(replica(), FINALIZER_VOLUME)), None),
]


def _placed(type: str) -> World:
    rvr = replica(0, type)  # pyright: ignore[reportArgumentType]
    disks = (logical_volume(rvr),) if type == "Diskful" else ()
    return World(rvr, volume(), volumes=disks, pool=pool(), pod=agent_pod(), node=node())


def _changed(**changes: object) -> World:
    world = joined()
    return world.but(replica=replace(_replica(world), spec=replace(_replica(world).spec, **changes)))


def _to_diskful() -> World:
    world = joined(type=MemberType.ACCESS, id=2, members=2)
    return world.but(
        replica=replace(_replica(world), spec=replace(_replica(world).spec, type="Diskful", lvm_volume_group_name="vg"))
    )


def _liminal() -> World:
    world = joined().but(volume=volume(member(0, MemberType.LIMINAL_DISKFUL), member(1), revision=3))
    bare = world.but(drbdr=None)
    return world.but(drbdr=drbd_status(drbdr_for(bare), peer(1)))


@pytest.mark.parametrize(
    ("make", "expected"), [pytest.param(make, expected, id=name) for name, make, expected in REQUESTS]
)
def test_membership_request(make: Callable[[], World], expected: MembershipRequest | None) -> None:
    assert status_of(make()).datamesh_request == expected


def test_message_of_the_volume_is_appended_to_configured() -> None:
    world = _placed("Access")
    assert world.volume is not None
    entry = DatameshReplicaRequest(
        name=f"{VOLUME}-0",
        request=MembershipRequest(operation="Join", type="Access"),
        first_observed_at=CREATED,
        message="Joining datamesh: 1/3",
    )
    rv = replace(world.volume, status=replace(world.volume.status, datamesh_replica_requests=(entry,)))
    found = [item for item in status_of(world.but(volume=rv)).conditions if item.type == "Configured"]
    assert found[0].message == "Waiting to join the datamesh as Access; Joining datamesh: 1/3"


def test_message_of_the_volume_is_not_appended_without_a_request() -> None:
    world = joined()
    assert world.volume is not None
    entry = DatameshReplicaRequest(
        name=f"{VOLUME}-0",
        request=MembershipRequest(operation="Join", type="Diskful"),
        first_observed_at=CREATED,
        message="old",
    )
    rv = replace(world.volume, status=replace(world.volume.status, datamesh_replica_requests=(entry,)))
    found = [item for item in status_of(world.but(volume=rv)).conditions if item.type == "Configured"]
    assert "old" not in found[0].message


class TestMetadata:
    def labels(self, world: World) -> FrozenMap:
        found = patches(decide_at_once(world), ReplicatedVolumeReplica, Half.MAIN)
        return found[0].after.metadata.labels if found else _replica(world).metadata.labels

    def bare(self, **changes: object) -> ReplicatedVolumeReplica:
        rvr = replica()
        return replace(rvr, metadata=replace(rvr.metadata, labels=EMPTY_MAP, **changes))

    def world(self, rvr: ReplicatedVolumeReplica) -> World:
        return World(rvr, volume(), pool=pool(), pod=agent_pod(), node=node())

    def test_replica_created_and_placed_by_the_other_controllers_costs_no_metadata_write(self) -> None:
        assert patches(decide_at_once(self.world(replica())), ReplicatedVolumeReplica, Half.MAIN) == []

    def test_finalizer_and_all_labels_are_one_patch(self) -> None:
        found = patches(decide_at_once(self.world(self.bare(finalizers=()))), ReplicatedVolumeReplica, Half.MAIN)
        assert len(found) == 1
        assert found[0].after.metadata.finalizers == (FINALIZER_REPLICA,)
        assert found[0].after.metadata.labels == FrozenMap(
            {LABEL_VOLUME: VOLUME, LABEL_STORAGE_CLASS: "fast", LABEL_LVM_VOLUME_GROUP: "vg"}
        )

    def test_finalizer_comes_before_the_first_child(self) -> None:
        effects = writes(decide_at_once(self.world(self.bare(finalizers=()))))
        assert isinstance(effects[0], Patch)

    def test_finalizer_is_never_added_to_a_deleting_replica(self) -> None:
        going = deleting(self.bare(), FINALIZER_VOLUME)
        found = patches(decide_at_once(self.world(going)), ReplicatedVolumeReplica, Half.MAIN)
        assert all(FINALIZER_REPLICA not in patch.after.metadata.finalizers for patch in found)

    def test_volume_group_label_follows_the_volume_in_use_and_stays(self) -> None:
        world = joined()
        assert self.labels(world.but(volumes=(logical_volume(replica()),)))[LABEL_LVM_VOLUME_GROUP] == "vg"
        diskless = World(replica(0, "Access", metadata=replica().metadata), volume(), pool=pool())
        assert self.labels(diskless)[LABEL_LVM_VOLUME_GROUP] == "vg"

    def test_class_label_goes_when_the_volume_has_no_class(self) -> None:
        rv = volume()
        manual = replace(rv, spec=replace(rv.spec, replicated_storage_class_name=""))
        assert LABEL_STORAGE_CLASS not in self.labels(self.world(replica()).but(volume=manual))

    def test_class_label_is_kept_while_the_volume_is_missing(self) -> None:
        assert self.labels(self.world(replica()).but(volume=None))[LABEL_STORAGE_CLASS] == "fast"

    def test_long_names_become_short_label_values(self) -> None:
        rv = volume()
        long = replace(rv, spec=replace(rv.spec, replicated_storage_class_name="c" * 80))
        assert len(self.labels(self.world(replica()).but(volume=long))[LABEL_STORAGE_CLASS]) <= 63


class TestDeletion:
    def test_children_first_then_the_finalizer(self) -> None:
        going = deleting(replica(), FINALIZER_REPLICA)
        world = joined().but(replica=going)
        assert set(deleted(decide_at_once(world))) == {f"{VOLUME}-0", world.volumes[0].metadata.name}
        for rest in (world.but(drbdr=None), world.but(volumes=())):
            assert patches(decide_at_once(rest), ReplicatedVolumeReplica, Half.MAIN) == []
        last = decide_at_once(world.but(drbdr=None, volumes=()))
        released = patches(last, ReplicatedVolumeReplica, Half.MAIN)
        assert [patch.after.metadata.finalizers for patch in released] == [()]
        assert released[0].decided_from == (ref_of(going),)
        assert len(writes(last)) == 1
        assert [effect.metric for effect in last.effects if isinstance(effect, Observe)] == [
            "sds_rvr_deletion_duration_seconds"
        ]

    def test_nothing_is_deleted_while_others_hold_the_replica(self) -> None:
        world = joined().but(replica=deleting(_replica(joined()), FINALIZER_VOLUME, FINALIZER_REPLICA))
        assert deleted(decide_at_once(world)) == []

    def test_children_of_a_missing_replica_are_left_to_owner_references(self) -> None:
        world = joined()
        assert decide_at_once(world.but(replica=None)).effects == ()

    def test_deleted_children_of_a_missing_replica_are_released(self) -> None:
        volume_ = logical_volume(replica())
        marked = replace(volume_, metadata=replace(volume_.metadata, deletion_timestamp=DELETED))
        found = patches(decide_at_once(joined().but(replica=None, volumes=(marked,))), LVMLogicalVolume, Half.MAIN)
        assert [patch.after.metadata.finalizers for patch in found] == [()]
        # The replica must really be absent: a cache that is behind releases nothing.
        assert found[0].decided_from[0] == ObjectRef(kind="ReplicatedVolumeReplica", name=f"{VOLUME}-0")

    def test_deletion_does_not_wait_for_the_volume(self) -> None:
        world = joined().but(
            replica=deleting(replica(), FINALIZER_REPLICA), volume=None, pool=None, pod=None, node=None
        )
        assert len(deleted(decide_at_once(world))) == 2


def test_agent_that_reports_done_without_state_is_an_error() -> None:
    assert "active configuration" in decide_at_once(drbd(joined(), active_configuration=None)).error


def test_unplaced_replica_is_left_alone_until_the_scheduler_had_its_say() -> None:
    rvr = replica(placed=False)
    fresh = replace(rvr, metadata=replace(rvr.metadata, creation_timestamp="2027-01-15T08:00:00Z"))
    world = World(fresh, volume(), pool=pool())
    quiet = decide_at_once(world)
    assert quiet.effects == ()
    assert quiet.wake_after == pytest.approx(3.0)
    assert find(status_after(decide_at_once(world, now=1_800_000_003.0), world), "Configured") == (
        "False",
        "PendingScheduling",
    )
    told = with_status(fresh, conditions=(condition("Scheduled", "False", "SchedulingFailed", "no room"),))
    status = status_of(world.but(replica=told))
    assert (status.phase, status.message) == ("Pending", "no room")
