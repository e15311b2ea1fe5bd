"""The DRBDResource controller of a node: what wakes it, and with what it works."""

from __future__ import annotations

from collections.abc import Iterable

from quorate.agent.intended import Settings
from quorate.agent.resource.answers import ResourceAnswers
from quorate.agent.resource.decide import decide
from quorate.agent.resource.report import CONFIGURED_DURATION, DELETION_DURATION
from quorate.agent.resource.snapshot import Snapshot, gather
from quorate.api.drbd_resource import DRBDResource
from quorate.api.indexes import DRBDR_BY_NODE
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.node import Node
from quorate.machinery.controller import ControllerSpec, changed, for_, watches
from quorate.machinery.metrics import MetricSpec
from quorate.machinery.reader import Reader

NAME = "drbdr-controller"
METRICS = (
    MetricSpec(
        CONFIGURED_DURATION,
        "histogram",
        "Seconds from the creation of a DRBDResource to its first Configured=True.",
        buckets=(0.5, 1.0, 2.0, 4.0, 8.0, 10.0, 30.0),
    ),
    MetricSpec(
        DELETION_DURATION,
        "histogram",
        "Seconds from the deletion of a DRBDResource to the removal of the agent's finalizer.",
        buckets=(1.0, 2.0, 5.0, 10.0, 20.0, 40.0, 120.0),
    ),
)


def spec(node_name: str, settings: Settings, answers: ResourceAnswers) -> ControllerSpec[Snapshot]:
    """The controller for one node."""

    def gather_one(reader: Reader, key: str) -> Snapshot:
        return gather(reader, key, node_name=node_name, settings=settings)

    def users_of_volume(old: LVMLogicalVolume | None, new: LVMLogicalVolume | None, reader: Reader) -> Iterable[str]:
        volume = new or old
        if volume is None:
            return ()
        group = reader.get(LVMVolumeGroup, volume.spec.lvm_volume_group_name)
        if group is not None and group.spec.local is not None and group.spec.local.node_name != node_name:
            return ()
        resources = reader.by_index(DRBDResource, DRBDR_BY_NODE, node_name)
        return [each.metadata.name for each in resources if _uses(each, volume.metadata.name)]

    def all_of_node(old: object, new: object, reader: Reader) -> Iterable[str]:
        del old, new
        return [each.metadata.name for each in reader.by_index(DRBDResource, DRBDR_BY_NODE, node_name)]

    return ControllerSpec(
        name=NAME,
        watches=(
            for_(DRBDResource, changed(lambda each: _resource_facts(each, node_name))),
            watches(LVMLogicalVolume, users_of_volume, changed(_volume_facts)),
            watches(LVMVolumeGroup, all_of_node, changed(_group_facts)),
            watches(Node, all_of_node, changed(lambda each: _node_facts(each, node_name))),
        ),
        gather=gather_one,
        decide=decide,
        answer=answers.answer,
        concurrency=20,
        metrics=METRICS,
    )


def _uses(resource: DRBDResource, volume: str) -> bool:
    active = resource.status.active_configuration
    listed = (active.lvm_logical_volume_name, *active.llv_finalizers_to_release) if active else ()
    return volume == resource.spec.lvm_logical_volume_name or volume in listed


def _resource_facts(resource: DRBDResource, node_name: str) -> object:
    """Pure status changes are our own."""
    if resource.spec.node_name != node_name:
        return None
    return (resource.metadata.generation, resource.metadata.deleting, resource.metadata.finalizers)


def _volume_facts(volume: LVMLogicalVolume) -> object:
    """Existence, readiness, growth and deletion; our own finalizer alone is no news."""
    status = volume.status
    return (volume.metadata.deleting, status.phase, status.actual_size)


def _group_facts(group: LVMVolumeGroup) -> object:
    return (group.spec.actual_vg_name_on_the_node, group.spec.local)


def _node_facts(node: Node, node_name: str) -> object:
    return node.status.addresses if node.metadata.name == node_name else None
