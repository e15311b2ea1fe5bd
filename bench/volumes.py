"""Objects of realistic size: a formed volume of about 6 kB, and its replicas."""

from __future__ import annotations

from quorate.api import wire
from quorate.api.common import Address, Endpoint
from quorate.api.meta import Condition, ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_volume import (
    Datamesh,
    DatameshMember,
    DatameshTransition,
    DatameshTransitionStep,
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
    VolumeConfiguration,
)
from quorate.api.replicated_volume_replica import (
    ReplicatedVolumeReplica,
    ReplicatedVolumeReplicaSpec,
    ReplicatedVolumeReplicaStatus,
)
from quorate.api.value import FrozenMap, SharedSecret, replace

NODES = 50
VOLUME_BYTES = 6_000
TYPES = (
    "ConfigurationReady",
    "MembershipLayoutConverged",
    "SatisfyEligibleNodes",
    "Scheduled",
    "Configured",
    "IOReady",
    "Quorum",
)
NOW = "2026-01-01T00:00:00Z"


def meta(name: str, serial: int, version: int) -> ObjectMeta:
    """Metadata as a server fills it in."""
    return ObjectMeta(
        name=name,
        uid=f"00000000-0000-4000-8000-{serial:012x}",
        resource_version=str(version),
        generation=3,
        creation_timestamp=NOW,
        labels=FrozenMap({"sds-replicated-volume.deckhouse.io/replicated-storage-class": "fast"}),
        finalizers=("sds-replicated-volume.deckhouse.io/rv-controller",),
    )


def conditions(types: tuple[str, ...], message: str) -> tuple[Condition, ...]:
    """True conditions."""
    return tuple(
        Condition(
            type=type_, status="True", reason="Ready", message=message, observed_generation=3, last_transition_time=NOW
        )
        for type_ in types
    )


def volume(number: int, version: int, message: str = "") -> ReplicatedVolume:
    """A formed volume with three members and one transition."""
    name = f"pvc-{number:08d}-aaaa-bbbb-cccc-dddddddddddd"
    members = tuple(
        DatameshMember(
            name=f"{name}-{index}",
            type="Diskful",
            node_name=f"node-{(number + index) % NODES}",
            zone=f"zone-{index}",
            addresses=(
                Address(
                    system_network_name="Internal",
                    address=Endpoint(ipv4=f"10.0.{number % 250}.{index}", port=7000 + index),
                ),
            ),
            lvm_volume_group_name=f"vg-{index}",
        )
        for index in range(3)
    )
    steps = tuple(
        DatameshTransitionStep(name=step, status="Completed", datamesh_revision=5, started_at=NOW, completed_at=NOW)
        for step in ("Preconfigure", "Attach", "Confirm")
    )
    transition = DatameshTransition(
        type="Attach", group="Attachment", plan_id="attach/v1", replica_name=f"{name}-0", steps=steps
    )
    status = ReplicatedVolumeStatus(
        conditions=conditions(TYPES, message),
        size=Quantity.parse("10Gi"),
        configuration=VolumeConfiguration(
            replicated_storage_pool_name="pool",
            topology="TransZonal",
            failures_to_tolerate=1,
            guaranteed_minimum_data_redundancy=1,
            volume_access="PreferablyLocal",
        ),
        datamesh_revision=7,
        datamesh=Datamesh(
            system_network_names=("Internal",),
            shared_secret=SharedSecret("x" * 43),
            shared_secret_alg="SHA256",
            size=Quantity.parse("10Gi"),
            members=members,
            quorum=2,
            quorum_minimum_redundancy=2,
            data_present=True,
        ),
        datamesh_transitions=(transition,),
    )
    spec = ReplicatedVolumeSpec(size=Quantity.parse("10Gi"), replicated_storage_class_name="fast")
    return ReplicatedVolume(metadata=meta(name, number * 4, version), spec=spec, status=status)


def large_volume(number: int, version: int) -> ReplicatedVolume:
    """A volume whose JSON has about VOLUME_BYTES bytes: its conditions explain themselves at length."""
    missing = VOLUME_BYTES - len(wire.encode(volume(number, version)))
    return volume(number, version, "m" * (missing // len(TYPES)))


def replica(number: int, index: int, version: int) -> ReplicatedVolumeReplica:
    """A healthy diskful replica of a volume."""
    volume_name = f"pvc-{number:08d}-aaaa-bbbb-cccc-dddddddddddd"
    return ReplicatedVolumeReplica(
        metadata=meta(f"{volume_name}-{index}", number * 4 + 1 + index, version),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=volume_name,
            node_name=f"node-{(number + index) % NODES}",
            type="Diskful",
            lvm_volume_group_name=f"vg-{index}",
        ),
        status=ReplicatedVolumeReplicaStatus(
            conditions=conditions(TYPES, "everything is as intended"),
            phase="Healthy",
            addresses=(Address(system_network_name="Internal", address=Endpoint(ipv4="10.0.0.1", port=7000)),),
            type="Diskful",
            size=Quantity.parse("10Gi"),
            datamesh_revision=7,
            quorum=True,
        ),
    )


def with_phase(value: ReplicatedVolumeReplica, version: int, phase: str) -> ReplicatedVolumeReplica:
    """The same replica after a status change."""
    return replace(
        value,
        metadata=replace(value.metadata, resource_version=str(version)),
        status=replace(value.status, phase=phase),
    )
