"""The metrics that decisions observe about the life of volumes (facts/controllers 8.1): names, labels and buckets.

Values are computed with the decision and recorded by an `Observe` effect that stands behind the patch it belongs to, so
nothing is counted that was not written.
"""

from __future__ import annotations

from quorate.machinery.metrics import MetricSpec

_FORMATION = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 120.0, 300.0, 600.0, 1200.0, 1800.0)
_ATTACH = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 60.0)
_READY = (1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 60.0, 120.0)
_DELETION = (1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 120.0)
_TRANSITION = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0, 40.0, 60.0, 120.0)
_STEP = (0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 30.0)

_CLASS = ("storage_class",)
_NODE = ("node",)
_NODE_AND_CLASS = ("node", "storage_class")
_TRANSITION_LABELS = ("storage_class", "node", "type")
_STEP_LABELS = (*_TRANSITION_LABELS, "step")


def _duration(name: str, text: str, labels: tuple[str, ...], buckets: tuple[float, ...]) -> MetricSpec:
    return MetricSpec(f"sds_{name}_duration_seconds", "histogram", text, labels, buckets)


LIFECYCLE: tuple[MetricSpec, ...] = (
    _duration("rv_initial_formation", "Creation of a volume to the end of its formation", _CLASS, _FORMATION),
    _duration("rva_ready", "Creation of an attachment to Attached", _NODE, _ATTACH),
    _duration("rvr_ready_transition", "Time until a replica became Ready", _NODE_AND_CLASS, _READY),
    _duration("rvr_backing_volume", "Creation of a replica to BackingVolumeReady", _NODE_AND_CLASS, _STEP),
    _duration("rv_deletion", "Deletion of a volume", _CLASS, _DELETION),
    _duration("rvr_deletion", "Deletion of a replica", _NODE_AND_CLASS, _DELETION),
    _duration("rva_detach", "Deletion of an attachment", _NODE, _DELETION),
    _duration("rv_datamesh_transition", "Duration of a datamesh transition", _TRANSITION_LABELS, _TRANSITION),
    _duration("rv_datamesh_step", "Duration of a step of a transition", _STEP_LABELS, _STEP),
    MetricSpec(
        "sds_rv_datamesh_transitions_completed_total", "counter", "Completed datamesh transitions", _TRANSITION_LABELS
    ),
)
