"""What is true about volumes, replicas and attachments right now, counted at every scrape (facts/controllers 8.1).

Names and labels are those of the facts; `global` stands for transitions of the whole volume, `unknown` for what is missing. The
gauges per volume beyond them (protection, quorum, I/O, running steps) are what alerts need to name the volume.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from quorate.api import conditions, times
from quorate.api.meta import Object
from quorate.api.node import Node
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_volume import (
    DatameshTransition,
    DatameshTransitionStep,
    IOReadyCondition,
    MembershipLayoutConvergedCondition,
    QuorumCondition,
    ReplicatedVolume,
    StepStatus,
    TransitionType,
)
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.machinery.gauges import Gauges, Samples
from quorate.machinery.metrics import MetricSpec, Sample
from quorate.machinery.reader import Reader

UNKNOWN = "unknown"
GLOBAL = "global"

VOLUMES = MetricSpec("sds_rv_count", "gauge", "Volumes", ("storage_class", "phase"))
REPLICAS = MetricSpec("sds_rvr_count", "gauge", "Replicas", ("node", "storage_class", "phase"))
ATTACHMENTS = MetricSpec("sds_rva_count", "gauge", "Attachments", ("node", "storage_class", "phase"))
REPLICAS_DELETING = MetricSpec(
    "sds_rvr_deleting_count", "gauge", "Replicas that are being deleted", ("node", "storage_class")
)
ATTACHMENTS_DELETING = MetricSpec(
    "sds_rva_deleting_count", "gauge", "Attachments that are being deleted", ("node", "storage_class")
)
TRANSITIONS = MetricSpec(
    "sds_rv_datamesh_active_transitions", "gauge", "Transitions under way", ("storage_class", "node", "type")
)
STEP_START = MetricSpec(
    "sds_rv_datamesh_step_start_time_seconds",
    "gauge",
    "When the active step of a running transition began, with what holds it",
    ("name", "type", "replica", "step", "reason"),
)
CONVERGED = MetricSpec(
    "sds_rv_membership_layout_converged",
    "gauge",
    "1 while the members are what the configuration asks for",
    ("name", "reason"),
)
QUORUM = MetricSpec("sds_rv_quorum", "gauge", "1 while the diskful members have quorum", ("name", "reason"))
IO_READY = MetricSpec(
    "sds_rv_io_ready", "gauge", "1 while the volume serves I/O, or could after attaching", ("name", "reason")
)
_PER_VOLUME = ("name", "storage_class")
PROMISED_FTT = MetricSpec(
    "sds_rv_promised_failures_to_tolerate", "gauge", "Failures that the committed layout survives", _PER_VOLUME
)
OBSERVED_FTT = MetricSpec(
    "sds_rv_observed_failures_to_tolerate",
    "gauge",
    "Further failures that would be survived now; negative without quorum",
    _PER_VOLUME,
)
PROMISED_GMDR = MetricSpec(
    "sds_rv_promised_minimum_data_redundancy",
    "gauge",
    "Further copies that the committed layout guarantees for every acknowledged write",
    _PER_VOLUME,
)
OBSERVED_GMDR = MetricSpec(
    "sds_rv_observed_minimum_data_redundancy",
    "gauge",
    "Further copies that writes acknowledged now have at least",
    _PER_VOLUME,
)
OBJECTS = MetricSpec("sds_metrics_collector_objects", "gauge", "Objects that were counted", ("kind",))

PHASES = ("Active", "Deleting")
_COUNTED: tuple[tuple[str, type[Object]], ...] = (
    ("node", Node),
    ("rsc", ReplicatedStorageClass),
    ("rv", ReplicatedVolume),
    ("rva", ReplicatedVolumeAttachment),
    ("rvr", ReplicatedVolumeReplica),
)


def compute(reader: Reader) -> Samples:
    """One pass over everything that is cached."""
    volumes = reader.list(ReplicatedVolume)
    classes = {volume.metadata.name: volume.spec.replicated_storage_class_name or UNKNOWN for volume in volumes}
    replicas = reader.list(ReplicatedVolumeReplica)
    attachments = reader.list(ReplicatedVolumeAttachment)
    return {
        VOLUMES.name: _count_volumes(reader.list(ReplicatedStorageClass), volumes),
        REPLICAS.name: _counted(
            (r.spec.node_name or UNKNOWN, _class_of(r, classes), r.status.phase or UNKNOWN) for r in replicas
        ),
        REPLICAS_DELETING.name: _counted(
            (r.spec.node_name or UNKNOWN, _class_of(r, classes)) for r in replicas if r.metadata.deleting
        ),
        ATTACHMENTS.name: _counted(
            (a.spec.node_name or UNKNOWN, _class_of(a, classes), a.status.phase or UNKNOWN) for a in attachments
        ),
        ATTACHMENTS_DELETING.name: _counted(
            (a.spec.node_name or UNKNOWN, _class_of(a, classes)) for a in attachments if a.metadata.deleting
        ),
        TRANSITIONS.name: _counted(
            (classes[volume.metadata.name], node_label(found), found.type)
            for volume in volumes
            for found in volume.status.datamesh_transitions
        ),
        STEP_START.name: tuple(sample for volume in volumes for sample in _steps(volume)),
        CONVERGED.name: tuple(_converged(volume) for volume in volumes),
        QUORUM.name: tuple(_condition(volume, QuorumCondition.TYPE) for volume in volumes),
        IO_READY.name: tuple(_condition(volume, IOReadyCondition.TYPE) for volume in volumes),
        **_protection(volumes, classes),
        OBJECTS.name: tuple(Sample((name,), len(reader.list(kind))) for name, kind in _COUNTED),
    }


def node_label(found: DatameshTransition) -> str:
    """The node of a transition; `global` for those of the whole volume."""
    return GLOBAL if found.type in TransitionType.GLOBAL else found.node_name or UNKNOWN


def active_step(found: DatameshTransition) -> DatameshTransitionStep | None:
    """The step that waits for its confirmation."""
    return next((step for step in found.steps if step.status == StepStatus.ACTIVE), None)


def _class_of(obj: ReplicatedVolumeReplica | ReplicatedVolumeAttachment, classes: dict[str, str]) -> str:
    return classes.get(obj.spec.replicated_volume_name, UNKNOWN)


def _counted(labels: Iterable[tuple[str, ...]]) -> tuple[Sample, ...]:
    """Only combinations that were seen."""
    return tuple(Sample(key, count) for key, count in Counter(labels).items())


def _count_volumes(
    classes: tuple[ReplicatedStorageClass, ...], volumes: tuple[ReplicatedVolume, ...]
) -> tuple[Sample, ...]:
    """Every class has both phases, zeros included: a count that falls to zero must be seen to fall."""
    found = Counter({(known.metadata.name, phase): 0 for known in classes for phase in PHASES})
    for volume in volumes:
        name = volume.spec.replicated_storage_class_name or UNKNOWN
        for phase in PHASES:
            found[name, phase] += (phase == "Deleting") == volume.metadata.deleting
    return tuple(Sample(key, count) for key, count in found.items())


def _steps(volume: ReplicatedVolume) -> Iterable[Sample]:
    for found in volume.status.datamesh_transitions:
        step = active_step(found)
        if step is not None and step.started_at:
            labels = (volume.metadata.name, found.type, found.replica_name or GLOBAL, step.name, found.reason)
            yield Sample(labels, times.parse(step.started_at))


def _converged(volume: ReplicatedVolume) -> Sample:
    """1 only for True with reason Converged; the reason verbatim, `Unknown` when there is no condition."""
    found = conditions.get(volume.status.conditions, MembershipLayoutConvergedCondition.TYPE)
    if found is None:
        return Sample((volume.metadata.name, "Unknown"), 0.0)
    good = found.status == conditions.TRUE and found.reason == MembershipLayoutConvergedCondition.CONVERGED
    return Sample((volume.metadata.name, found.reason), float(good))


def _condition(volume: ReplicatedVolume, type_: str) -> Sample:
    found = conditions.get(volume.status.conditions, type_)
    if found is None:
        return Sample((volume.metadata.name, "Unknown"), 0.0)
    return Sample((volume.metadata.name, found.reason), float(found.status == conditions.TRUE))


def _protection(volumes: tuple[ReplicatedVolume, ...], classes: dict[str, str]) -> Samples:
    """Observed against promised; a value that is not known has no series."""
    found: dict[str, list[Sample]] = {
        spec.name: [] for spec in (PROMISED_FTT, OBSERVED_FTT, PROMISED_GMDR, OBSERVED_GMDR)
    }
    for volume in volumes:
        name, status = volume.metadata.name, volume.status
        promised, observed = status.effective_layout, status.observed_protection
        for spec, value in (
            (PROMISED_FTT, promised.failures_to_tolerate),
            (PROMISED_GMDR, promised.guaranteed_minimum_data_redundancy),
            (OBSERVED_FTT, observed.failures_to_tolerate if observed else None),
            (OBSERVED_GMDR, observed.guaranteed_minimum_data_redundancy if observed else None),
        ):
            if value is not None:
                found[spec.name].append(Sample((name, classes[name]), value))
    return found


GAUGES = Gauges(
    (
        VOLUMES,
        REPLICAS,
        ATTACHMENTS,
        REPLICAS_DELETING,
        ATTACHMENTS_DELETING,
        TRANSITIONS,
        STEP_START,
        CONVERGED,
        QUORUM,
        IO_READY,
        PROMISED_FTT,
        OBSERVED_FTT,
        PROMISED_GMDR,
        OBSERVED_GMDR,
        OBJECTS,
    ),
    compute,
)
