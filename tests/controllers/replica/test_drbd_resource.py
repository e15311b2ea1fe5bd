"""The DRBDResource of a replica (seed 001, facts/controllers 5.4): spec, cache, revision, life."""

from __future__ import annotations

import pytest

from quorate.api.drbd_resource import UNREACHABLE_QUORUM, ConfiguredCondition, DRBDResource
from quorate.api.labels import FINALIZER_REPLICA, FINALIZER_VOLUME
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import MemberType
from quorate.api.replicated_volume_replica import DRBDRReconciliationCache, ReplicatedVolumeReplicaStatus
from quorate.api.resources import controller_reference
from quorate.api.value import SharedSecret, replace
from quorate.controllers.replica.situation import REVISION_ANNOTATION
from quorate.datamesh.features import Features
from quorate.datamesh.projection import intended_drbd
from quorate.machinery.effects import Half
from tests.controllers.replica.builders import (
    DELETED,
    GIB,
    VOLUME,
    World,
    address,
    agent_pod,
    condition,
    created,
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
    performed,
    pool,
    published,
    replica,
    status_after,
    volume,
)

D, D0, TB, A = MemberType.DISKFUL, MemberType.LIMINAL_DISKFUL, MemberType.TIE_BREAKER, MemberType.ACCESS


def world(**changes: object) -> World:
    return World(
        replica(), volume(), volumes=(logical_volume(replica()),), pool=pool(), pod=agent_pod(), node=node()
    ).but(**changes)


def main_patch(decision_world: World) -> DRBDResource | None:
    found = patches(decide_at_once(decision_world), DRBDResource, Half.MAIN)
    assert len(found) <= 1
    return found[0].after if found and isinstance(found[0].after, DRBDResource) else None


class TestSpec:
    def test_non_member_is_secondary_without_peers_and_cannot_reach_quorum(self) -> None:
        spec = intended_drbd(volume(member(1), member(2)), replica(0), logical_volume="lv")
        assert (spec.role, spec.peers, spec.allow_two_primaries) == ("Secondary", (), False)
        assert (spec.quorum, spec.quorum_minimum_redundancy) == (UNREACHABLE_QUORUM, UNREACHABLE_QUORUM)
        assert (spec.type, spec.lvm_logical_volume_name, spec.size) == ("Diskful", "lv", Quantity.of(GIB))
        assert spec.system_networks == ("Internal",)
        assert spec.node_id == 0

    @pytest.mark.parametrize(
        ("type", "q", "qmr"), [(D, 2, 1), (D0, 2, 1), (TB, UNREACHABLE_QUORUM, 1), (A, UNREACHABLE_QUORUM, 1)]
    )
    def test_quorum_by_member_type(self, type: str, q: int, qmr: int) -> None:
        rv = volume(member(0, type), member(1), member(2))
        spec = intended_drbd(rv, replica(0), logical_volume="lv")
        assert (spec.quorum, spec.quorum_minimum_redundancy) == (q, qmr)

    @pytest.mark.parametrize(("type", "expected"), [(D, [1, 2, 3, 4]), (D0, [1, 2, 3, 4]), (TB, [1, 2]), (A, [1, 2])])
    def test_peers_by_mesh(self, type: str, expected: list[int]) -> None:
        rv = volume(member(0, type), member(1), member(2, D0), member(3, TB), member(4, A))
        spec = intended_drbd(rv, replica(0), logical_volume="lv")
        assert [item.node_id for item in spec.peers] == expected

    @pytest.mark.parametrize(
        ("type", "drbd_type", "remote_read"),
        [(D, "Diskful", True), (D0, "Diskful", True), (TB, "Diskless", True), (A, "Diskless", False)],
    )
    def test_peer_entry_by_its_type(self, type: str, drbd_type: str, remote_read: bool) -> None:
        found = intended_drbd(volume(member(0), member(1, type)), replica(0), logical_volume="lv").peers[0]
        assert (found.type, found.allow_remote_read, found.protocol) == (drbd_type, remote_read, "C")
        assert (found.shared_secret, found.shared_secret_alg) == (SharedSecret("secret"), "SHA256")
        assert [(path.system_network_name, path.address) for path in found.paths] == [("Internal", address(1).address)]

    def test_diskful_without_volume_runs_as_its_liminal_form_but_keeps_its_peers(self) -> None:
        rv = volume(member(0), member(1), member(2, A))
        with_disk = intended_drbd(rv, replica(0), logical_volume="lv")
        without = intended_drbd(rv, replica(0))
        assert (without.type, without.lvm_logical_volume_name, without.size) == ("Diskless", "", None)
        assert without.peers == with_disk.peers
        assert without.quorum == with_disk.quorum

    def test_role_and_two_primaries_come_from_the_datamesh(self) -> None:
        rv = volume(member(0, attached=True), member(1))
        rv = replace(rv, status=replace(rv.status, datamesh=replace(rv.status.datamesh, multiattach=True)))
        spec = intended_drbd(rv, replica(0), logical_volume="lv")
        assert (spec.role, spec.allow_two_primaries) == ("Primary", True)
        assert intended_drbd(rv, replica(1), logical_volume="lv").role == "Secondary"

    def test_size_is_aligned_and_never_lowered(self) -> None:
        rv = volume(member(0))
        rv = replace(rv, status=replace(rv.status, datamesh=replace(rv.status.datamesh, size=Quantity.of(GIB + 1))))
        spec = intended_drbd(rv, replica(0), logical_volume="lv")
        assert spec.size == Quantity.of(GIB + 4096)
        assert intended_drbd(volume(member(0)), replica(0), logical_volume="lv", existing=spec).size == spec.size

    def test_maintenance_name_and_node_are_kept(self) -> None:
        base = intended_drbd(volume(member(0)), replica(0), logical_volume="lv")
        existing = replace(
            base, maintenance="NoResourceReconciliation", actual_name_on_the_node="old", node_name="kept"
        )
        spec = intended_drbd(volume(member(0)), replica(0), logical_volume="lv", existing=existing)
        assert (spec.maintenance, spec.actual_name_on_the_node, spec.node_name) == (
            "NoResourceReconciliation",
            "old",
            "kept",
        )

    def test_suspended_tie_breakers_lose_their_vote_or_are_hidden_without_the_kernel_option(self) -> None:
        rv = volume(member(0), member(1), member(2, TB))
        rv = replace(rv, status=replace(rv.status, datamesh=replace(rv.status.datamesh, tie_breakers_suspended=True)))
        peers = {item.node_id: item for item in intended_drbd(rv, replica(0), logical_volume="lv").peers}
        assert (peers[1].tie_breaker, peers[2].tie_breaker, peers[2].allow_remote_read) == (True, False, True)
        old = intended_drbd(rv, replica(0), logical_volume="lv", features=Features(peer_tiebreaker_option=False))
        assert [item.allow_remote_read for item in old.peers if item.node_id == 2] == [False]

    def test_tie_breakers_drop_a_member_that_is_being_removed_in_an_emergency(self) -> None:
        rv = volume(member(0), member(1, tie_breakers_disconnected=True), member(2, TB))
        assert [item.node_id for item in intended_drbd(rv, replica(2, "TieBreaker")).peers] == [0]
        assert [item.node_id for item in intended_drbd(rv, replica(0), logical_volume="lv").peers] == [1, 2]
        assert [item.node_id for item in intended_drbd(rv, replica(1), logical_volume="lv").peers] == [0]

    def test_deleting_non_member_needs_no_disk(self) -> None:
        going = deleting(replica(0), FINALIZER_VOLUME)
        assert intended_drbd(volume(member(1)), going, logical_volume="lv").type == "Diskless"


class TestLife:
    def test_created_with_owner_finalizer_labels_and_revision(self) -> None:
        made = drbdr_for(world())
        assert made.metadata.name == f"{VOLUME}-0"
        assert made.metadata.finalizers == (FINALIZER_REPLICA,)
        assert made.metadata.owner_references == (controller_reference(replica()),)
        assert made.metadata.annotations[REVISION_ANNOTATION] == "1"

    def test_new_diskful_replica_waits_for_its_disk_and_is_brought_up_once(self) -> None:
        assert [type(obj).__name__ for obj in created(decide_at_once(world(volumes=())))] == ["LVMLogicalVolume"]
        assert drbdr_for(world()).spec.type == "Diskful"

    def test_diskless_replica_waits_for_nothing(self) -> None:
        assert drbdr_for(world(replica=replica(0, "Access"), volumes=())).spec.type == "Diskless"

    def test_member_never_waits_for_its_disk(self) -> None:
        lost = world(volume=volume(member(0), member(1), revision=2), volumes=())
        made = [obj for obj in created(decide_at_once(lost)) if isinstance(obj, DRBDResource)]
        assert [obj.spec.type for obj in made] == ["Diskless"]

    def test_joining_is_one_patch_of_the_spec(self) -> None:
        before = drbd_status(drbdr_for(world()))
        after = main_patch(world(drbdr=before, volume=volume(member(0), member(1), revision=2)))
        assert after is not None
        assert [item.node_id for item in after.spec.peers] == [1]
        assert after.metadata.annotations[REVISION_ANNOTATION] == "2"

    def test_spec_that_does_not_change_is_not_written(self) -> None:
        healthy = joined(type=TB, id=2, members=2)
        assert healthy.volume is not None
        mesh = volume(member(0, attached=True), member(1), member(2, TB), revision=3)
        assert main_patch(healthy.but(volume=mesh)) is None

    def test_drifted_metadata_is_repaired(self) -> None:
        healthy = joined()
        assert healthy.drbdr is not None
        bare = replace(healthy.drbdr, metadata=replace(healthy.drbdr.metadata, finalizers=(), owner_references=()))
        after = main_patch(healthy.but(drbdr=bare))
        assert after is not None
        assert after.metadata.finalizers == (FINALIZER_REPLICA,)
        assert after.metadata.owner_references == (controller_reference(replica()),)

    def test_drifted_spec_is_repaired_although_the_revision_is_the_same(self) -> None:
        healthy = joined()
        assert healthy.drbdr is not None
        edited = replace(
            healthy.drbdr,
            spec=replace(healthy.drbdr.spec, quorum=1),
            metadata=replace(healthy.drbdr.metadata, generation=healthy.drbdr.metadata.generation + 1),
        )
        after = main_patch(healthy.but(drbdr=edited))
        assert after is not None
        assert after.spec.quorum == 2

    def test_deleted_with_its_replica_then_released(self) -> None:
        going = joined().but(replica=deleting(replica(), FINALIZER_REPLICA))
        first = decide_at_once(going)
        assert f"{VOLUME}-0" in deleted(first)
        second = patches(decide_at_once(performed(going, first)), DRBDResource, Half.MAIN)
        assert [patch.after.metadata.finalizers for patch in second] == [()]

    def test_deleted_under_a_living_member_it_is_held_and_goes_on_working(self) -> None:
        healthy = joined()
        assert healthy.drbdr is not None
        marked = replace(healthy.drbdr, metadata=replace(healthy.drbdr.metadata, deletion_timestamp=DELETED))
        held = healthy.but(drbdr=marked, volume=volume(member(0, attached=True), member(1), revision=3))
        after = main_patch(held)
        assert after is not None
        assert FINALIZER_REPLICA in after.metadata.finalizers
        assert after.spec.role == "Primary"

    def test_leftover_of_an_earlier_replica_goes_before_the_name_is_used_again(self) -> None:
        earlier = replace(replica(), metadata=replace(replica().metadata, uid="uid-earlier"))
        old = drbdr_for(world(replica=earlier, volumes=(logical_volume(earlier),)))
        assert deleted(decide_at_once(world(drbdr=old))) == [f"{VOLUME}-0"]

    def test_deleting_non_member_without_resource_makes_none(self) -> None:
        going = world(replica=deleting(replica(), FINALIZER_VOLUME, FINALIZER_REPLICA), volumes=())
        assert created(decide_at_once(going)) == []


class TestCache:
    def cache(self, found: World) -> DRBDRReconciliationCache | None:
        return status_after(decide_at_once(found), found).drbdr_reconciliation_cache

    def test_stores_the_generation_that_the_create_produces(self) -> None:
        assert self.cache(world()) == DRBDRReconciliationCache(datamesh_revision=1, drbdr_generation=1, target_type=D)

    def test_stores_the_generation_that_the_patch_produces(self) -> None:
        configured = world(drbdr=drbd_status(drbdr_for(world())), volume=volume(member(0), member(1), revision=2))
        assert self.cache(configured) == DRBDRReconciliationCache(
            datamesh_revision=2, drbdr_generation=2, target_type=D
        )

    def test_pass_after_a_patch_corrects_nothing(self) -> None:
        configured = world(drbdr=drbd_status(drbdr_for(world())), volume=volume(member(0), member(1), revision=2))
        written = performed(configured, decide_at_once(configured))
        assert decide_at_once(written).effects == ()

    def test_target_type_follows_the_disk(self) -> None:
        lost = world(volume=volume(member(0), member(1), revision=2), volumes=())
        found = self.cache(lost)
        assert found is not None
        assert found.target_type == D0

    def test_non_member_does_not_follow_revisions_that_do_not_concern_it(self) -> None:
        waiting = published(world(drbdr=drbd_status(drbdr_for(world()))))
        assert decide_at_once(waiting.but(volume=volume(member(1), revision=9))).effects == ()


class TestRevision:
    def recorded(self, found: World) -> tuple[int, int]:
        status = status_after(decide_at_once(found), found)
        return status.datamesh_revision, status.datamesh_revision_observed_by_agent

    def configured(self, status: str, reason: str) -> World:
        fresh = joined()
        assert fresh.drbdr is not None
        assert fresh.volume is not None
        later = fresh.but(volume=volume(member(0), member(1), revision=3))
        report = condition(ConfiguredCondition.TYPE, status, reason, generation=fresh.drbdr.metadata.generation)
        return later.but(drbdr=drbd_status(fresh.drbdr, peer(1), conditions=(report,)))

    def test_recorded_when_configured(self) -> None:
        assert self.recorded(self.configured("True", "Configured")) == (3, 3)

    @pytest.mark.parametrize("reason", ["AttachFailed", "InMaintenance", "QuorumNotEnforced"])
    def test_not_recorded_while_the_agent_says_otherwise_but_observed(self, reason: str) -> None:
        assert self.recorded(self.configured("False", reason)) == (2, 3)

    @pytest.mark.parametrize("reason", ["PrimaryFailed", "SecondaryFailed"])
    def test_recorded_although_the_role_is_refused(self, reason: str) -> None:
        found = self.configured("False", reason)
        assert self.recorded(found) == (3, 3)
        assert find(status_after(decide_at_once(found), found), "DRBDConfigured") == ("False", "ConfigurationFailed")

    def test_not_recorded_while_the_kernel_does_not_enforce_the_quorum(self) -> None:
        found = self.configured("False", ConfiguredCondition.QUORUM_NOT_ENFORCED)
        status = status_after(decide_at_once(found), found)
        assert status.datamesh_revision == 2
        assert find(status, "DRBDConfigured") == ("False", "QuorumNotEnforced")

    def test_not_recorded_before_the_agent_reports_on_the_generation(self) -> None:
        fresh = joined()
        later = fresh.but(volume=volume(member(0, attached=True), member(1), revision=3))
        assert self.recorded(later) == (2, 2)

    def test_not_recorded_while_the_agent_is_away(self) -> None:
        assert self.recorded(self.configured("True", "Configured").but(pod=None)) == (2, 2)

    def test_not_recorded_for_a_volume_seen_in_an_older_state(self) -> None:
        assert self.recorded(joined(revision=5).but(volume=volume(member(0), member(1), revision=4))) == (5, 5)

    def test_unchanged_spec_is_good_for_the_new_revision(self) -> None:
        healthy = joined(type=TB, id=2, members=2)
        mesh = volume(member(0, attached=True), member(1), member(2, TB), revision=3)
        assert self.recorded(healthy.but(volume=mesh)) == (3, 3)

    def test_reset_to_zero_only_after_the_agent_applied_the_configuration_without_peers(self) -> None:
        left = joined().but(volume=volume(member(1), revision=3))
        first = decide_at_once(left)
        assert status_after(first, left).datamesh_revision == 2
        applied = performed(left, first)
        assert applied.drbdr is not None
        assert self.recorded(applied.but(drbdr=drbd_status(applied.drbdr))) == (0, 0)

    def test_not_reset_by_a_stale_view_that_does_not_list_the_member_yet(self) -> None:
        fresh = joined(revision=6)
        assert self.recorded(fresh.but(volume=volume(member(1), revision=5))) == (6, 6)

    def test_reset_when_nothing_runs_any_more(self) -> None:
        fresh = joined()
        assert fresh.replica is not None
        going = fresh.but(
            replica=deleting(fresh.replica, FINALIZER_VOLUME, FINALIZER_REPLICA),
            volume=volume(member(1), revision=3),
            drbdr=None,
        )
        assert self.recorded(going) == (0, 0)


class TestStaleView:
    """Caches of different kinds are not ordered (rule 8): nothing is undone because the volume is seen late."""

    def test_spec_written_for_a_later_revision_is_not_taken_back(self) -> None:
        ahead = joined(revision=7)
        assert ahead.replica is not None
        # The replica has not recorded anything yet: only the DRBDResource knows of revision 7.
        unrecorded = ahead.but(replica=replace(ahead.replica, status=ReplicatedVolumeReplicaStatus()))
        assert main_patch(unrecorded.but(volume=volume(member(0), revision=6))) is None

    def test_same_name_but_another_volume_is_no_volume(self) -> None:
        healthy = joined()
        other = volume(revision=1)
        other = replace(other, metadata=replace(other.metadata, uid="uid-another"))
        decision = decide_at_once(healthy.but(volume=other))
        assert [effect for effect in decision.effects if isinstance(getattr(effect, "after", None), DRBDResource)] == []
        assert find(status_after(decision, healthy), "DRBDConfigured") == ("Unknown", "WaitingForReplicatedVolume")
