"""The class controller: defaults, pool, StorageClass, configuration, rollout, phase, deletion."""

from __future__ import annotations

import pytest

from quorate.api import conditions, labels
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import (
    ConfigurationRolloutStrategy,
    LVMVolumeGroupRef,
    MaxParallel,
    Phase,
    ReplicatedStorageClass,
    ReplicatedStorageClassSpec,
    Storage,
)
from quorate.api.replicated_storage_pool import EligibleNode, ReplicatedStoragePool, UsedBy
from quorate.api.replicated_volume import (
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
    VolumeConfiguration,
)
from quorate.api.resources import AnyObject
from quorate.api.storage_class import StorageClass
from quorate.api.value import replace
from quorate.controllers.storage_class import configuration, controller, volumes
from quorate.controllers.storage_class.decide import decide
from quorate.controllers.storage_class.defaults import with_defaults, with_finalizer
from quorate.controllers.storage_class.pool import new_pool, pool_name_of
from quorate.controllers.storage_class.snapshot import gather
from quorate.machinery.effects import Create, Decision, Delete, Half, Patch
from quorate.machinery.reader import FixedReader
from tests.controllers import builders


def bare(*, topology: str = "Ignored", access: str = "PreferablyLocal", **spec: object) -> ReplicatedStorageClass:
    base = ReplicatedStorageClassSpec(
        reclaim_policy="Delete",
        topology="Ignored",
        storage=Storage(type="LVM", lvm_volume_groups=(LVMVolumeGroupRef(name="vg-a"),)),
    )
    return ReplicatedStorageClass(
        metadata=ObjectMeta(name="fast", uid="uid-fast", generation=2, resource_version="5"),
        spec=replace(base, topology=topology, volume_access=access, **spec),
    )


def settled(**spec: object) -> ReplicatedStorageClass:
    """A class whose defaults and finalizer are already there."""
    return with_finalizer(with_defaults(bare(**spec)))  # pyright: ignore[reportArgumentType]


def pool_for(found: ReplicatedStorageClass, *nodes: EligibleNode) -> ReplicatedStoragePool:
    ready = builders.pool(*nodes)
    made = new_pool(found, pool_name_of(found))
    users = UsedBy(replicated_storage_class_names=(found.metadata.name,))
    return replace(made, status=replace(ready.status, used_by=users))


def run(*objects: AnyObject) -> tuple[ReplicatedStorageClass | None, Decision]:
    """The class after one decision."""
    reader = FixedReader(objects)
    decision = decide(gather(reader, "fast"), {}, builders.NOW)
    found = reader.get(ReplicatedStorageClass, "fast")
    for effect in decision.effects:
        if isinstance(effect, Patch) and isinstance(effect.after, ReplicatedStorageClass):
            found = effect.after
    return found, decision


def created(decision: Decision, kind: type[AnyObject]) -> list[AnyObject]:
    return [e.obj for e in decision.effects if isinstance(e, Create) and isinstance(e.obj, kind)]


def created_kubernetes_class(found: ReplicatedStorageClass) -> StorageClass:
    (kubernetes,) = created(run(found)[1], StorageClass)
    assert isinstance(kubernetes, StorageClass)
    return kubernetes


def reason_of(found: ReplicatedStorageClass | None, type_: str) -> tuple[str, str]:
    assert found is not None
    value = conditions.get(found.status.conditions, type_)
    assert value is not None
    return value.status, value.reason


NODES = tuple(builders.eligible(name) for name in ("a", "b", "c"))


def test_missing_defaults_and_finalizer_are_written_in_one_patch() -> None:
    found, decision = run(bare())
    assert found is not None
    assert [type(e) for e in decision.effects] == [Patch]
    assert found.spec.system_network_names == ("Internal",)
    strategy = found.spec.configuration_rollout_strategy
    assert strategy is not None
    assert strategy.rolling_update == MaxParallel(max_parallel=5)
    assert found.spec.eligible_nodes_policy is not None
    assert found.metadata.finalizers == (labels.FINALIZER_STORAGE_CLASS,)
    assert decision.requeue


def test_legacy_finalizer_is_swapped_for_ours() -> None:
    old = bare()
    found = with_finalizer(
        replace(old, metadata=replace(old.metadata, finalizers=(labels.FINALIZER_STORAGE_CLASS_LEGACY,)))
    )
    assert found.metadata.finalizers == (labels.FINALIZER_STORAGE_CLASS,)


def test_pool_and_storage_class_are_created() -> None:
    found, decision = run(settled())
    (pool,) = created(decision, ReplicatedStoragePool)
    assert pool.metadata.name == "auto-rsp-" + pool.metadata.name.removeprefix("auto-rsp-")
    assert pool.metadata.finalizers == (labels.FINALIZER_STORAGE_CLASS,)
    (kubernetes,) = created(decision, StorageClass)
    assert isinstance(kubernetes, StorageClass)
    assert (kubernetes.provisioner, kubernetes.volume_binding_mode) == (
        "replicated.csi.storage.deckhouse.io",
        "WaitForFirstConsumer",
    )
    assert reason_of(found, "StoragePoolReady") == ("False", "StoragePoolNotFound")
    assert reason_of(found, "Ready") == ("False", "WaitingForStoragePool")
    assert found is not None
    assert found.status.phase == Phase.WAITING_FOR_STORAGE_POOL


@pytest.mark.parametrize(
    ("access", "binding"),
    [
        ("Any", "Immediate"),
        ("Local", "WaitForFirstConsumer"),
        ("EventuallyLocal", "WaitForFirstConsumer"),
        ("PreferablyLocal", "WaitForFirstConsumer"),
    ],
)
def test_binding_mode_follows_volume_access(access: str, binding: str) -> None:
    _, decision = run(settled(access=access))
    (kubernetes,) = created(decision, StorageClass)
    assert isinstance(kubernetes, StorageClass)
    assert kubernetes.volume_binding_mode == binding


@pytest.mark.parametrize(
    ("word", "promise"),
    [
        ("None", (0, 0)),
        ("Availability", (1, 0)),
        ("Consistency", (0, 1)),
        ("ConsistencyAndAvailability", (1, 1)),
        ("", (1, 1)),
    ],
)
def test_replication_words_become_ftt_and_gmdr(word: str, promise: tuple[int, int]) -> None:
    found, _ = run(settled(replication=word), pool_for(settled(replication=word), *NODES))
    assert found is not None
    accepted = found.status.configuration
    assert accepted is not None
    assert (accepted.failures_to_tolerate, accepted.guaranteed_minimum_data_redundancy) == promise
    assert found.status.configuration_generation == 2
    assert reason_of(found, "Ready") == ("True", "Ready")
    assert found.status.phase == Phase.READY


NODE_ROWS = [
    ("1D", "Ignored", 0, 0, ("a:",), ""),
    ("3D needs three nodes", "Ignored", 1, 1, ("a:", "b:"), "needs 3 nodes"),
    ("2D+1TB: the tie-breaker needs no disk", "Ignored", 1, 0, ("a:", "b:", "c:-"), ""),
    ("2D+1TB needs two disks", "Ignored", 1, 0, ("a:", "b:-", "c:-"), "2 of them with volume groups"),
    ("zonal: every zone must carry the layout", "Zonal", 1, 1, ("a:z", "b:z", "c:z", "d:y"), "in zone y"),
    ("transzonal 3D", "TransZonal", 1, 1, ("a:x", "b:y", "c:z"), ""),
    ("transzonal 3D in two zones", "TransZonal", 1, 1, ("a:x", "b:y", "c:y"), "needs 3 zones"),
    ("transzonal 4D", "TransZonal", 1, 2, ("a:w", "b:x", "c:y", "d:z"), ""),
    ("transzonal 4D in three zones", "TransZonal", 1, 2, ("a:w", "b:x", "c:y", "d:y"), "needs 4 zones"),
    ("no nodes", "Ignored", 0, 0, (), "the pool has none"),
]


@pytest.mark.parametrize(("name", "topology", "ftt", "gmdr", "nodes", "problem"), NODE_ROWS)
def test_eligible_nodes_must_carry_the_layout(
    name: str, topology: str, ftt: int, gmdr: int, nodes: tuple[str, ...], problem: str
) -> None:
    target = VolumeConfiguration(
        replicated_storage_pool_name="pool",
        topology=topology,
        failures_to_tolerate=ftt,
        guaranteed_minimum_data_redundancy=gmdr,
        volume_access="Any",
    )
    listed = [
        builders.eligible(n.split(":")[0], zone=n.split(":")[1].strip("-"), groups=() if n.endswith("-") else ("vg",))
        for n in nodes
    ]
    found = configuration.find_problem(target, listed)
    assert (problem in found) if problem else not found, (name, found)


def test_unfit_class_keeps_the_previous_configuration_and_says_what_would_change() -> None:
    first, _ = run(settled(), pool_for(settled(), *NODES))
    assert first is not None
    raised = replace(
        first,
        metadata=replace(first.metadata, generation=3),
        spec=replace(first.spec, failures_to_tolerate=2, guaranteed_minimum_data_redundancy=2),
    )
    found, _ = run(raised, pool_for(raised, *NODES))
    assert found is not None
    assert found.status.configuration == first.status.configuration
    assert found.status.configuration_generation == 2
    ready = conditions.get(found.status.conditions, "Ready")
    assert ready is not None
    assert ready.reason == "InsufficientEligibleNodes"
    assert ready.message.startswith("FTT 1 -> 2, GMDR 1 -> 2: 5D")
    assert found.status.phase == Phase.INSUFFICIENT_NODES


def test_class_without_storage_is_invalid() -> None:
    found, decision = run(bare(storage=None))
    assert reason_of(found, "Ready") == ("False", "InvalidConfiguration")
    assert found is not None
    assert found.status.phase == Phase.INVALID_CONFIGURATION
    assert [e.half for e in decision.effects if isinstance(e, Patch)] == [Half.STATUS]


def test_eventually_local_says_how_it_behaves() -> None:
    found, _ = run(settled(access="EventuallyLocal"), pool_for(settled(access="EventuallyLocal"), *NODES))
    assert found is not None
    assert configuration.EVENTUALLY_LOCAL_NOTE in found.status.message


def test_second_decision_changes_nothing() -> None:
    base = settled()
    kubernetes = created_kubernetes_class(base)
    first, _ = run(base, pool_for(base, *NODES), kubernetes)
    assert first is not None
    _, decision = run(first, pool_for(first, *NODES), kubernetes)
    assert decision.effects == ()


def volume(
    name: str,
    *,
    observed: int = 2,
    accepted: int = 2,
    converged: str = "True",
    ready: str = "True",
    satisfied: str = "True",
    mode: str = "Auto",
) -> ReplicatedVolume:
    found = tuple(
        builders.condition(type_, status, generation=1)
        for type_, status in (
            ("ConfigurationReady", ready),
            ("MembershipLayoutConverged", converged),
            ("SatisfyEligibleNodes", satisfied),
        )
        if status
    )
    spec = ReplicatedVolumeSpec(size=Quantity.parse("1Gi"), replicated_storage_class_name="fast")
    return ReplicatedVolume(
        metadata=ObjectMeta(name=name, generation=1),
        spec=replace(spec, configuration_mode=mode),
        status=ReplicatedVolumeStatus(
            conditions=found, configuration_observed_generation=observed, configuration_generation=accepted
        ),
    )


@pytest.mark.parametrize(
    ("name", "found", "bucket"),
    [
        ("aligned", volume("v"), volumes.Bucket.ALIGNED),
        ("has not seen it", volume("v", observed=1), volumes.Bucket.PENDING),
        ("has not judged itself", volume("v", converged=""), volumes.Bucket.PENDING),
        ("unknown", volume("v", converged="Unknown"), volumes.Bucket.PENDING),
        ("runs an older one", volume("v", accepted=1), volumes.Bucket.STALE),
        ("not converged", volume("v", converged="False"), volumes.Bucket.STALE),
        ("not ready", volume("v", ready="False"), volumes.Bucket.STALE),
    ],
)
def test_every_tracked_volume_is_in_one_bucket(name: str, found: ReplicatedVolume, bucket: volumes.Bucket) -> None:
    assert volumes.bucket_of(found, 2) is bucket, name


@pytest.mark.parametrize(
    ("name", "found", "strategy", "rolled", "phase"),
    [
        ("no volumes", (), "RollingUpdate", ("True", "RolledOutToAllVolumes"), Phase.READY),
        (
            "pending first",
            (volume("v", observed=1), volume("w", accepted=1)),
            "RollingUpdate",
            ("Unknown", "NewConfigurationNotYetObserved"),
            Phase.ROLLING_OUT,
        ),
        (
            "rolling",
            (volume("v", accepted=1),),
            "RollingUpdate",
            ("False", "ConfigurationRolloutInProgress"),
            Phase.ROLLING_OUT,
        ),
        (
            "disabled",
            (volume("v", accepted=1),),
            "NewVolumesOnly",
            ("False", "ConfigurationRolloutDisabled"),
            Phase.PARTIALLY_ALIGNED,
        ),
        (
            "manual volumes are not tracked",
            (volume("v", observed=0, mode="Manual"),),
            "RollingUpdate",
            ("True", "RolledOutToAllVolumes"),
            Phase.READY,
        ),
    ],
)
def test_rollout_is_reported(
    name: str, found: tuple[ReplicatedVolume, ...], strategy: str, rolled: tuple[str, str], phase: str
) -> None:
    rolling = MaxParallel() if strategy == "RollingUpdate" else None
    base = settled()
    chosen = replace(ConfigurationRolloutStrategy(type="NewVolumesOnly"), type=strategy, rolling_update=rolling)
    base = replace(base, spec=replace(base.spec, configuration_rollout_strategy=chosen))
    after, _ = run(base, pool_for(base, *NODES), *found)
    assert reason_of(after, "ConfigurationRolledOut") == rolled, name
    assert after is not None
    assert after.status.phase == phase
    assert after.status.volumes.total == len(found)


def test_conflicts_are_counted() -> None:
    base = settled()
    after, _ = run(base, pool_for(base, *NODES), volume("v", satisfied="False"))
    assert reason_of(after, "VolumesSatisfyEligibleNodes") == ("False", "ConflictResolutionInProgress")
    assert after is not None
    assert after.status.volumes.in_conflict_with_eligible_nodes == 1


def test_drifted_storage_class_is_made_anew_and_foreign_marks_stay() -> None:
    base = settled()
    kubernetes = created_kubernetes_class(base)
    drifted = replace(kubernetes, reclaim_policy="Retain")
    _, decision = run(base, pool_for(base, *NODES), drifted)
    kinds = [
        type(e) for e in decision.effects if not (isinstance(e, Patch) and isinstance(e.after, ReplicatedStorageClass))
    ]
    assert kinds == [Patch, Delete]
    foreign = replace(
        kubernetes,
        metadata=replace(kubernetes.metadata, labels=kubernetes.metadata.labels.with_(mine="1"), finalizers=()),
    )
    _, decision = run(base, pool_for(base, *NODES), foreign)
    (patched,) = [e.after for e in decision.effects if isinstance(e, Patch) and isinstance(e.after, StorageClass)]
    assert patched.metadata.labels["mine"] == "1"


def test_pools_are_released_when_no_volume_uses_them() -> None:
    base = settled()
    used = UsedBy(replicated_storage_class_names=("fast",))
    old = builders.pool(name="auto-rsp-old")
    old = replace(
        old,
        metadata=replace(old.metadata, finalizers=(labels.FINALIZER_STORAGE_CLASS,)),
        status=replace(old.status, used_by=used),
    )
    _, decision = run(base, pool_for(base, *NODES), old)
    assert [e.obj.metadata.name for e in decision.effects if isinstance(e, Delete)] == ["auto-rsp-old"]
    config = configuration.intended(base, "auto-rsp-old")
    holder = volume("v")
    holder = replace(holder, status=replace(holder.status, configuration=config))
    _, decision = run(base, pool_for(base, *NODES), old, holder)
    assert not any(isinstance(e, Delete) for e in decision.effects)


def test_deletion_waits_for_volumes_then_cleans_up() -> None:
    base = settled()
    dying = replace(base, metadata=replace(base.metadata, deletion_timestamp="2027-01-15T08:00:00Z"))
    after, decision = run(dying, pool_for(dying, *NODES), volume("v"))
    assert after is not None
    assert after.status.phase == Phase.TERMINATING
    assert not any(isinstance(e, Delete) for e in decision.effects)
    after, decision = run(dying, pool_for(dying, *NODES))
    assert after is not None
    assert after.metadata.finalizers == ()
    assert [type(e.obj) for e in decision.effects if isinstance(e, Delete)] == [ReplicatedStoragePool]


def test_legacy_storage_pool_becomes_storage() -> None:
    legacy = builders.pool(name="old-pool", groups=("vg-x",))
    after, _ = run(bare(storage=None, storage_pool="old-pool"), legacy)
    assert after is not None
    assert after.spec.storage_pool == ""
    assert after.spec.storage is not None
    assert after.spec.storage.lvm_volume_groups == legacy.spec.lvm_volume_groups
    after, _ = run(bare(storage_pool="old-pool"), legacy)
    assert reason_of(after, "Ready") == ("False", "InvalidConfiguration")
    after, _ = run(bare(storage_pool="nowhere"))
    assert reason_of(after, "StoragePoolReady") == ("False", "StoragePoolNotFound")


def test_events_reach_the_classes_they_concern() -> None:
    base = settled()
    pool = pool_for(base, *NODES)
    known = replace(base, status=replace(base.status, storage_pool_name=pool.metadata.name))
    reader = FixedReader((known,))
    assert list(controller.pool_keys(None, replace(pool, status=type(pool.status)()), reader)) == ["fast"]
    moved = volume("v")
    other = replace(moved, spec=replace(moved.spec, replicated_storage_class_name="slow"))
    assert list(controller.volume_keys(moved, other, reader)) == ["fast", "slow"]
    assert controller.volume_matters(moved, volume("v", accepted=1))
    assert not controller.volume_matters(moved, replace(moved, metadata=replace(moved.metadata, resource_version="9")))
