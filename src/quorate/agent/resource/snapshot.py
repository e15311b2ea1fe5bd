"""What the decision about one DRBDResource reads: the object, its node, its logical volumes and volume groups."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent.addresses import Wanted, compute_addresses
from quorate.agent.intended import Settings, kernel_name
from quorate.api.drbd_resource import DRBDResource
from quorate.api.indexes import DRBDR_BY_NODE, LVG_BY_NODE
from quorate.api.labels import FINALIZER_AGENT
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.node import Node
from quorate.machinery.reader import Reader

NOTHING_WANTED = Wanted((), ())


@dataclass(frozen=True, slots=True)
class BackingVolume:
    """A logical volume that belongs, belonged or shall belong to the resource."""

    name: str
    volume: LVMLogicalVolume | None
    group: LVMVolumeGroup | None

    @property
    def device(self) -> str:
        """Its path on the node; empty when that is not known."""
        if self.volume is None or self.group is None:
            return ""
        return f"/dev/{self.group.spec.actual_vg_name_on_the_node}/{self.volume.spec.actual_lv_name_on_the_node}"


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One consistent view."""

    name: str
    node_name: str
    settings: Settings
    resource: DRBDResource | None = None
    node: Node | None = None
    wanted: Wanted = NOTHING_WANTED
    taken_ports: tuple[tuple[str, int], ...] = ()
    """Addresses of other resources of the node; gathered only when a port is needed."""
    volumes: tuple[BackingVolume, ...] = ()
    namesakes: tuple[str, ...] = ()
    """Other resources of the node that claim the same name in the kernel."""

    def volume(self, name: str) -> BackingVolume:
        return next((each for each in self.volumes if each.name == name), BackingVolume(name, None, None))

    def volume_of(self, device: str) -> str:
        """The logical volume behind a device; empty when no known one is."""
        return next((each.name for each in self.volumes if each.device and each.device == device), "")


def in_cleanup(resource: DRBDResource) -> bool:
    """Deleting, and nobody but the agent holds it."""
    others = [finalizer for finalizer in resource.metadata.finalizers if finalizer != FINALIZER_AGENT]
    return resource.metadata.deleting and not others


def up_and_live(resource: DRBDResource) -> bool:
    """Shall exist in the kernel."""
    return not in_cleanup(resource) and resource.spec.state != "Down"


def name_in_kernel(resource: DRBDResource) -> str:
    """The name to look for: the adopted one in maintenance (it is not renamed then), else the standard one."""
    adopted = resource.spec.actual_name_on_the_node
    return adopted if adopted and resource.spec.maintenance else kernel_name(resource)


def gather(reader: Reader, key: str, *, node_name: str, settings: Settings) -> Snapshot:
    """The snapshot for one name."""
    found = reader.get(DRBDResource, key)
    if found is None or found.spec.node_name != node_name:
        return Snapshot(key, node_name, settings)
    node = reader.get(Node, node_name)
    wanted = compute_addresses(found, node)
    others = reader.by_index(DRBDResource, DRBDR_BY_NODE, node_name) if wanted.missing or _adopts(found) else ()
    return Snapshot(
        name=key,
        node_name=node_name,
        settings=settings,
        resource=found,
        node=node,
        wanted=wanted,
        taken_ports=_taken_ports(found, others),
        volumes=_volumes(reader, found, node_name),
        namesakes=tuple(
            other.metadata.name
            for other in others
            if _adopts(found)
            and other.metadata.name != key
            and other.spec.actual_name_on_the_node == found.spec.actual_name_on_the_node
        ),
    )


def _adopts(resource: DRBDResource) -> bool:
    return bool(resource.spec.actual_name_on_the_node)


def _taken_ports(resource: DRBDResource, others: tuple[DRBDResource, ...]) -> tuple[tuple[str, int], ...]:
    return tuple(
        (address.address.ipv4, address.address.port)
        for other in others
        if other.metadata.name != resource.metadata.name
        for address in other.status.addresses
    )


def _volumes(reader: Reader, resource: DRBDResource, node_name: str) -> tuple[BackingVolume, ...]:
    """The volumes the object names anywhere; a group counts only when it is a group of this node."""
    active = resource.status.active_configuration
    names = [resource.spec.lvm_logical_volume_name]
    if active is not None:
        names += [active.lvm_logical_volume_name, *active.llv_finalizers_to_release]
    groups = {group.metadata.name: group for group in reader.by_index(LVMVolumeGroup, LVG_BY_NODE, node_name)}
    found: list[BackingVolume] = []
    for name in dict.fromkeys(name for name in names if name):
        volume = reader.get(LVMLogicalVolume, name)
        group = groups.get(volume.spec.lvm_volume_group_name) if volume else None
        found.append(BackingVolume(name, volume, group))
    return tuple(found)
