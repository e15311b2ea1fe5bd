"""Formation: three steps, their waits, messages, safety checks, trimming, restart (seed 000, Formation Steps)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from quorate.api import conditions
from quorate.api.drbd_resource_operation import DRBDResourceOperation
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_replica import BackingVolume, ReplicatedVolumeReplica
from quorate.api.sizes import lower_size
from quorate.api.value import replace
from quorate.controllers.volume.formation import preconfigure, progress
from quorate.controllers.volume.replicas import new_replica
from tests.controllers import builders as common
from tests.controllers.volume import builders
from tests.controllers.volume.builders import World, writes


def world(ftt: int = 1, gmdr: int = 1) -> World:
    config = builders.configuration(ftt, gmdr)
    return World(builders.volume(), builders.storage_class(config), builders.POOL)


def active_steps(volume: ReplicatedVolume) -> list[str]:
    return [s.name for t in volume.status.datamesh_transitions for s in t.steps if s.status == "Active"]


@pytest.mark.parametrize(("ftt", "gmdr"), builders.LAYOUTS)
def test_every_layout_forms_with_its_members_and_quorum(ftt: int, gmdr: int) -> None:
    found = world(ftt, gmdr)
    found.form()
    status = found.volume.status
    diskful = ftt + gmdr + 1
    tie_breakers = 1 if diskful % 2 == 0 and ftt == diskful // 2 else 0
    types = sorted(member.type for member in status.datamesh.members)
    assert types == ["Diskful"] * diskful + ["TieBreaker"] * tie_breakers
    assert (status.datamesh.quorum, status.datamesh.quorum_minimum_redundancy) == (diskful // 2 + 1, gmdr + 1)
    assert status.datamesh_transitions == ()
    assert status.datamesh_revision == 2
    assert status.effective_layout.failures_to_tolerate == ftt
    assert status.effective_layout.guaranteed_minimum_data_redundancy == gmdr
    assert found.condition("MembershipLayoutConverged").status == conditions.TRUE
    assert not found.step().effects


def test_intent_is_stored_before_replicas_are_created() -> None:
    decision = world().step()
    assert writes(decision) == [
        "patch main ReplicatedVolume vol",
        "patch status ReplicatedVolume vol",
        "create ReplicatedVolumeReplica vol-0",
        "create ReplicatedVolumeReplica vol-1",
        "create ReplicatedVolumeReplica vol-2",
    ]


def test_first_entry_initialises_the_datamesh() -> None:
    found = world()
    found.put(replace(builders.volume(size=builders.SIZE + 1)))
    found.step()
    status = found.volume.status
    assert status.datamesh_revision == 1
    assert status.datamesh.system_network_names == ("Internal",)
    assert status.datamesh.size == Quantity.of(builders.SIZE + 4096)
    assert active_steps(found.volume) == ["Preconfigure"]


def test_formation_of_three_costs_four_status_writes_of_the_volume() -> None:
    found = world()
    found.form()
    patches = [w for d in found.decisions for w in writes(d) if w == "patch status ReplicatedVolume vol"]
    assert len(patches) == 4


def test_shared_secret_is_drawn_once_and_stored_with_the_members() -> None:
    found = world()
    found.step()
    found.preconfigure_all()
    found.step()
    secret = found.volume.status.datamesh.shared_secret
    assert secret is not None
    assert len(secret.reveal()) == 43
    assert found.volume.status.datamesh.shared_secret_alg == "SHA256"
    found.now += 10
    found.step()
    assert found.volume.status.datamesh.shared_secret == secret


def late(found: World) -> World:
    """Old enough for texts to be written."""
    found.now += 5
    return found


def test_unplaced_and_unfinished_replicas_are_named_by_group() -> None:
    found = world()
    found.step()
    first, second, third = found.replicas
    found.put(builders.placed(first, "node-a"))
    found.put(builders.current(second, "Scheduled", conditions.FALSE, "SchedulingFailed", "4 excluded: node not ready"))
    late(found).step()
    assert found.message() == (
        "Waiting for replicas: pending scheduling [#2], "
        "scheduling failed [#1] (#1: 4 excluded: node not ready), preconfiguring [#0]"
    )
    assert third.metadata.name == "vol-2"


Spoil = Callable[[ReplicatedVolumeReplica], ReplicatedVolumeReplica]


def without_addresses(replica: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
    return replace(replica, status=replace(replica.status, addresses=()))


def on_a_stranger(replica: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
    return replace(replica, spec=replace(replica.spec, node_name="stranger"))


def on_another_group(replica: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
    return replace(replica, spec=replace(replica.spec, lvm_volume_group_name="other"))


def with_small_volume(replica: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
    return replace(replica, status=replace(replica.status, backing_volume=BackingVolume(size=Quantity.of(4096))))


SAFETY: list[tuple[str, Spoil, str]] = [
    ("addresses", without_addresses, "Waiting for replicas [#0] to report addresses on networks Internal"),
    ("eligible nodes", on_a_stranger, "Replicas [#0] are on nodes that are not eligible for pool pool"),
    ("spec mismatch", on_another_group, "The spec of replicas [#0] differs from what they ask to join with"),
    ("backing volume size", with_small_volume, "The backing volumes of replicas [#0] are too small for 1Gi"),
]


@pytest.mark.parametrize(("name", "spoil", "message"), SAFETY)
def test_safety_checks_before_membership(name: str, spoil: Spoil, message: str) -> None:
    found = world()
    found.step()
    found.preconfigure_all()
    found.put(spoil(found.replicas[0]))
    late(found).step()
    assert found.message() == message, name
    assert found.volume.status.datamesh.members == ()


def test_connectivity_waits_in_order() -> None:
    found = world()
    found.step()
    found.preconfigure_all()
    found.step()
    late(found).step()
    assert found.message() == "Waiting for replicas [#0, #1, #2] to be configured for revision 2"
    found.join_all("Inconsistent")
    first = found.replicas[0]
    found.put(replace(first, status=replace(first.status, peers=())))
    found.step()
    assert found.message() == "Waiting for replicas [#0] to connect to all diskful peers"
    found.join_all("Attaching")
    found.step()
    assert "to be ready for data bootstrap" in found.message()


def test_tie_breaker_must_be_operational_before_bootstrap_and_before_completion() -> None:
    found = world(1, 0)
    found.step()
    found.preconfigure_all()
    found.step()
    found.join_all("Inconsistent")
    breaker = found.replicas[2]
    assert breaker.spec.type == "TieBreaker"
    found.put(replace(breaker, status=replace(breaker.status, datamesh_revision=0)))
    late(found).step()
    assert found.message() == "Waiting for tie-breakers: #2 has not confirmed revision 2"
    found.join_all("Inconsistent")
    found.step()
    operation = found.operation
    assert operation is not None
    found.put(replace(operation, status=replace(operation.status, phase="Succeeded")))
    found.join_all("UpToDate")
    found.put(replace(found.replicas[2], status=replace(found.replicas[2].status, datamesh_revision=0)))
    found.now += 5000
    found.step()
    assert found.volume.status.datamesh_revision == 2, "data is bootstrapped: this wait never restarts"
    assert active_steps(found.volume) == ["Bootstrap data"]


@pytest.mark.parametrize(
    ("name", "ftt", "gmdr", "thin", "clear", "force"),
    [
        ("single replica, thick", 0, 0, False, True, False),
        ("single replica, thin", 0, 0, True, True, False),
        ("several replicas, thin", 1, 1, True, True, False),
        ("several replicas, thick", 1, 1, False, False, True),
    ],
)
def test_bootstrap_mode(name: str, ftt: int, gmdr: int, thin: bool, clear: bool, force: bool) -> None:
    found = world(ftt, gmdr)
    if thin:
        found.put(common.pool(*(common.eligible(n) for n in builders.NODES), thin="tp"))
    found.step()
    found.preconfigure_all()
    found.step()
    found.join_all("Inconsistent")
    found.step()
    operation = found.operation
    assert operation is not None
    mode = operation.spec.create_new_uuid
    assert mode is not None
    assert (mode.clear_bitmap, mode.force_resync) == (clear, force), name
    assert (operation.spec.node_name, operation.spec.drbd_resource_name) == ("node-a", "vol-0")


def bootstrapping() -> World:
    found = world()
    found.step()
    found.preconfigure_all()
    found.step()
    found.join_all("Inconsistent")
    found.step()
    return found


def test_operation_of_an_earlier_formation_is_deleted_first() -> None:
    found = bootstrapping()
    operation = found.operation
    assert operation is not None
    found.put(replace(operation, spec=replace(operation.spec, formation_id="uid-vol-77")))
    assert "delete DRBDResourceOperation vol-formation" in writes(found.step())
    assert "create DRBDResourceOperation vol-formation" in writes(found.step())


@pytest.mark.parametrize(
    ("phase", "message"),
    [
        ("", "Waiting for data bootstrap on node node-a"),
        ("Running", "Waiting for data bootstrap on node node-a"),
        ("Failed", "Data bootstrap failed on node-a: disk on fire"),
        ("Succeeded", "Waiting for replicas [#0, #1, #2] to become UpToDate"),
    ],
)
def test_operation_status_is_followed(phase: str, message: str) -> None:
    found = bootstrapping()
    operation = found.operation
    assert operation is not None
    found.put(replace(operation, status=replace(operation.status, phase=phase, message="disk on fire")))
    late(found).step()
    assert found.message() == message


def test_foreign_parameters_of_the_operation_are_refused() -> None:
    found = bootstrapping()
    operation = found.operation
    assert operation is not None
    found.put(replace(operation, spec=replace(operation.spec, drbd_resource_name="vol-1")))
    late(found).step()
    assert "has other parameters than expected" in found.message()


def test_bootstrap_timeout_allows_a_full_copy_at_the_worst_bandwidth() -> None:
    found = bootstrapping()
    status = found.volume.status
    assert progress.bootstrap_timeout(status, force_resync=False) == 60
    assert progress.bootstrap_timeout(status, force_resync=True) == 60 + builders.SIZE // 12_500_000


def test_unwanted_replicas_are_deleted_and_awaited_before_new_ones_are_made() -> None:
    found = world()
    found.put(builders.stored(new_replica(builders.volume(), 5, "Access", "node-e")))
    assert "delete ReplicatedVolumeReplica vol-5" in writes(found.step())
    deleting = found.replicas[-1]
    assert deleting.metadata.name == "vol-5"
    assert deleting.metadata.deleting
    late(found).step()
    assert found.message() == "Waiting for replicas [#5] to be deleted"


def test_misplaced_replica_blocks_creation_and_goes() -> None:
    found = world()
    found.step()
    bad = builders.current(builders.placed(found.replicas[0], "x"), "SatisfyEligibleNodes", "False", "NodeMismatch")
    found.put(bad)
    decision = found.step()
    assert "delete ReplicatedVolumeReplica vol-0" in writes(decision)
    assert not any(w.startswith("create") for w in writes(decision))


def test_least_progressed_replica_is_trimmed_first() -> None:
    volume = builders.volume()
    fresh = [builders.stored(new_replica(volume, n, "Diskful")) for n in range(4)]
    ready = builders.preconfigured(builders.placed(fresh[0], "node-a"))
    placed = builders.placed(fresh[1], "node-b")
    candidates = [ready, placed, fresh[2], fresh[3]]
    order: list[str] = []
    while candidates:
        victim = preconfigure.least_progressed(candidates)
        candidates.remove(victim)
        order.append(victim.metadata.name)
    assert order == ["vol-3", "vol-2", "vol-1", "vol-0"]


def test_stalled_formation_restarts_from_scratch_and_doubles_its_patience() -> None:
    found = world()
    found.step()
    found.place_all()
    late(found).step()
    found.now += 29
    found.step()
    assert found.volume.status.datamesh_revision == 1
    found.now += 2
    decision = found.step()
    status = found.volume.status
    assert status.datamesh_revision == 0
    assert status.datamesh_transitions == ()
    assert status.configuration is not None
    assert status.formation is not None
    assert status.formation.restarts == 1
    assert [w for w in writes(decision) if w.startswith("delete")] == [
        f"delete ReplicatedVolumeReplica vol-{n}" for n in range(3)
    ]
    assert progress.step_timeout(status) == 60
    for restarts, patience in ((2, 120), (4, 480), (5, 600), (9, 600)):
        record = replace(status.formation, restarts=restarts)
        assert progress.step_timeout(replace(status, formation=record)) == patience


def test_slow_but_moving_formation_is_not_restarted() -> None:
    found = world()
    found.step()
    for index, replica in enumerate(found.replicas):
        found.now += 25
        found.put(builders.placed(replica, builders.NODES[index]))
        found.step()
    assert found.volume.status.datamesh_revision == 1
    assert found.now - builders.NOW > 60


def test_no_restart_once_data_may_be_present() -> None:
    found = bootstrapping()
    volume = found.volume
    found.put(
        replace(volume, status=replace(volume.status, datamesh=replace(volume.status.datamesh, data_present=True)))
    )
    found.now += 100_000
    found.step()
    assert found.volume.status.datamesh_revision == 2


def test_texts_are_not_written_while_a_step_is_young() -> None:
    found = world()
    found.step()
    found.put(builders.placed(found.replicas[0], "node-a"))
    decision = found.step()
    assert decision.effects == ()
    assert decision.wake_after is not None
    assert decision.wake_after <= 3.0


def test_attachments_wait_for_formation() -> None:
    found = world()
    found.put(builders.attachment("node-a"))
    found.step()
    rva = found.attachment("node-a")
    attached = conditions.get(rva.status.conditions, "Attached")
    assert attached is not None
    assert (attached.status, attached.reason) == ("False", "WaitingForReplicatedVolume")
    assert attached.message == "Datamesh formation is in progress"
    ready = conditions.get(rva.status.conditions, "Ready")
    assert ready is not None
    assert ready.reason == "NotAttached"
    assert conditions.get(rva.status.conditions, "ReplicaReady") is None


def test_operation_kind_is_complete() -> None:
    operation = bootstrapping().operation
    assert isinstance(operation, DRBDResourceOperation)
    assert operation.metadata.owner_references[0].kind == "ReplicatedVolume"
    assert operation.spec.formation_id == "uid-vol-0"
    assert lower_size(builders.SIZE) > builders.SIZE
    assert isinstance(bootstrapping().replicas[0], ReplicatedVolumeReplica)
