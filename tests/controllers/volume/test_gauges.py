"""Gauges from the caches: counts by label, zeros where a fall must be seen, one series per volume."""

from __future__ import annotations

from quorate.api import conditions, times
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import EffectiveLayout, ObservedProtection, ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec
from quorate.api.resources import AnyObject
from quorate.api.value import replace
from quorate.controllers.storage_class import gauges as class_gauges
from quorate.controllers.storage_pool import gauges as pool_gauges
from quorate.controllers.volume import gauges
from quorate.machinery.metrics import MetricSpec, Registry
from quorate.machinery.reader import FixedReader
from tests.controllers import builders as common
from tests.controllers.volume.builders import NOW, POOL, attachment, configuration, storage_class, volume
from tests.controllers.volume.test_lifecycle import running


def values(spec: MetricSpec, *objects: AnyObject) -> dict[tuple[str, ...], float]:
    return {sample.labels: sample.value for sample in gauges.compute(FixedReader(objects))[spec.name]}


def replica(number: int, node: str, phase: str, *, deleting: bool = False, of: str = "vol") -> ReplicatedVolumeReplica:
    base = ReplicatedVolumeReplica(
        metadata=ObjectMeta(name=f"{of}-{number}", deletion_timestamp=times.format(NOW) if deleting else ""),
        spec=ReplicatedVolumeReplicaSpec(replicated_volume_name=of, type="Diskful", node_name=node),
    )
    return replace(base, status=replace(base.status, phase=phase))


def attached(node: str, phase: str) -> ReplicatedVolumeAttachment:
    base = attachment(node)
    return replace(base, status=replace(base.status, phase=phase))


def test_volumes_are_counted_per_class_with_zeros() -> None:
    deleting = volume("old")
    deleting = replace(deleting, metadata=replace(deleting.metadata, deletion_timestamp=times.format(NOW)))
    manual = volume("manual", manual=configuration(0, 0))
    unused = replace(storage_class(None), metadata=ObjectMeta(name="slow"))
    assert values(gauges.VOLUMES, volume(), deleting, manual, storage_class(None), unused) == {
        ("fast", "Active"): 1,
        ("fast", "Deleting"): 1,
        ("slow", "Active"): 0,
        ("slow", "Deleting"): 0,
        ("unknown", "Active"): 1,
        ("unknown", "Deleting"): 0,
    }


def test_replicas_and_attachments_are_counted_in_the_combinations_that_exist() -> None:
    objects = (
        volume(),
        replica(0, "node-a", "Healthy"),
        replica(1, "node-a", "Healthy"),
        replica(2, "", "", deleting=True),
        replica(0, "node-b", "Critical", of="gone"),
        attached("node-a", "Attached"),
        attachment("node-b", deleting=True),
    )
    assert values(gauges.REPLICAS, *objects) == {
        ("node-a", "fast", "Healthy"): 2,
        ("unknown", "fast", "unknown"): 1,
        ("node-b", "unknown", "Critical"): 1,
    }
    assert values(gauges.REPLICAS_DELETING, *objects) == {("unknown", "fast"): 1}
    assert values(gauges.ATTACHMENTS, *objects) == {("node-a", "fast", "Attached"): 1, ("node-b", "fast", "unknown"): 1}
    assert values(gauges.ATTACHMENTS_DELETING, *objects) == {("node-b", "fast"): 1}
    assert values(gauges.OBJECTS, *objects) == {("node",): 0, ("rsc",): 0, ("rv",): 1, ("rva",): 2, ("rvr",): 4}


def test_running_transitions_are_counted_and_say_since_when_they_wait() -> None:
    moving = running("Completed", "Active", started=NOW - 60)
    forming = replace(moving, type="Formation", replica_name="", node_name="", reason="Held")
    found = replace(volume(), status=replace(volume().status, datamesh_transitions=(moving, forming)))
    assert values(gauges.TRANSITIONS, found) == {("fast", "node-a", "Attach"): 1, ("fast", "global", "Formation"): 1}
    assert values(gauges.STEP_START, found) == {
        ("vol", "Attach", "vol-0", "step 1", ""): NOW - 50,
        ("vol", "Formation", "global", "step 1", "Held"): NOW - 50,
    }


def test_every_volume_has_one_series_of_its_layout_with_the_reason_verbatim() -> None:
    def said(name: str, status: str, reason: str) -> ReplicatedVolume:
        found = common.condition("MembershipLayoutConverged", status, reason=reason)
        return replace(volume(name), status=replace(volume().status, conditions=(found,)))

    objects = (
        said("a", conditions.TRUE, "Converged"),
        said("b", conditions.FALSE, "CannotConverge"),
        said("c", conditions.TRUE, "Other"),
        volume("d"),
    )
    assert values(gauges.CONVERGED, *objects) == {
        ("a", "Converged"): 1,
        ("b", "CannotConverge"): 0,
        ("c", "Other"): 0,
        ("d", "Unknown"): 0,
    }


def test_observed_protection_stands_beside_what_is_promised() -> None:
    status = replace(
        volume().status,
        effective_layout=EffectiveLayout(failures_to_tolerate=1, guaranteed_minimum_data_redundancy=1),
        observed_protection=ObservedProtection(failures_to_tolerate=-1),
        conditions=(common.condition("Quorum", conditions.FALSE, reason="QuorumLost"),),
    )
    found = replace(volume(), status=status)
    assert values(gauges.PROMISED_FTT, found) == {("vol", "fast"): 1}
    assert values(gauges.OBSERVED_FTT, found) == {("vol", "fast"): -1}
    assert values(gauges.PROMISED_GMDR, found) == {("vol", "fast"): 1}
    assert values(gauges.OBSERVED_GMDR, found) == {}
    assert values(gauges.QUORUM, found) == {("vol", "QuorumLost"): 0}
    assert values(gauges.IO_READY, found) == {("vol", "Unknown"): 0}


def test_room_in_volume_groups_and_thin_pools() -> None:
    group = common.volume_group("vg-a", "node-a", thin="thin")
    (thin,) = group.status.thin_pools
    thin = replace(thin, actual_size=Quantity.of(100), used_size=Quantity.of(30), allocated_size=Quantity.of(150))
    status = replace(group.status, vg_size=Quantity.of(200), vg_free=Quantity.of(80), thin_pools=(thin,))
    found = pool_gauges.compute(FixedReader((replace(group, status=status), POOL)))
    read = {name: {sample.labels: sample.value for sample in samples} for name, samples in found.items()}
    assert read == {
        "sds_lvg_size_bytes": {("vg-a", "", "node-a"): 200, ("vg-a", "thin", "node-a"): 100},
        "sds_lvg_free_bytes": {("vg-a", "", "node-a"): 80, ("vg-a", "thin", "node-a"): 70},
        "sds_lvg_allocated_bytes": {("vg-a", "thin", "node-a"): 150},
        "sds_rsp_eligible_nodes": {("pool",): 5},
    }


def test_the_phase_of_a_class() -> None:
    ready = replace(storage_class(None), status=replace(storage_class(None).status, phase="Ready"))
    (sample,) = class_gauges.compute(FixedReader((ready,)))["sds_rsc_phase"]
    assert (sample.labels, sample.value) == (("fast", "Ready"), 1.0)


def test_every_gauge_that_is_computed_is_declared_and_fits_its_labels() -> None:
    moving = replace(volume(), status=replace(volume().status, datamesh_transitions=(running("Active", started=NOW),)))
    objects = (moving, replica(0, "node-a", "Healthy"), attachment("node-a"), storage_class(None), POOL)
    for group in (gauges.GAUGES, pool_gauges.GAUGES, class_gauges.GAUGES):
        samples = group.compute(FixedReader(objects))
        assert sorted(samples) == sorted(spec.name for spec in group.specs)
        registry = Registry()
        registry.collect_group(group.specs, lambda samples=samples: samples)
        assert registry.text()
