"""The scheduling context: what is shared by the placements of one volume, and how a placement changes it.

Immutable: `placed` returns the context the next replica is placed in.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from quorate.api.labels import ANNOTATION_RESERVATION_ID
from quorate.api.names import llv_name
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import MemberType, ReplicatedVolume, VolumeConfiguration
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.sizes import align_4ki, lower_size
from quorate.controllers.scheduling.pipeline import Candidate
from quorate.controllers.scheduling.pool_view import PoolView, view_of
from quorate.controllers.scheduling.snapshot import Snapshot
from quorate.controllers.scheduling.zones import TRANS_ZONAL, ZoneCount
from quorate.datamesh.layout import Layout

LVM_THIN = "LVMThin"


@dataclass(frozen=True)
class SchedulingContext:
    """What placing the replicas of one volume depends on."""

    view: PoolView
    pool_type: str
    topology: str
    volume_access: str
    required_diskful: int
    """Diskful replicas that the layout has."""
    scheduled_diskful: int
    """Diskful replicas that have their place and stay."""
    occupied_nodes: frozenset[str]
    """Nodes of the volume's replicas and members, also of those that are being deleted."""
    attach_to_nodes: frozenset[str]
    """Nodes where the volume is to be used: those of active attachments."""
    zones: Mapping[str, ZoneCount]
    size: int
    """Bytes a replica takes on its volume group, DRBD's metadata included."""
    annotated_reservation: str
    first_diskful: str
    """The replica that the annotated reservation belongs to."""

    @property
    def remaining_demand(self) -> int:
        """Diskful replicas that still need a place."""
        return self.required_diskful - self.scheduled_diskful

    def reservation_id(self, replica: ReplicatedVolumeReplica) -> str:
        """Under which id capacity is claimed while the place is not known yet (ruling on 002)."""
        if self.annotated_reservation and replica.metadata.name == self.first_diskful:
            return self.annotated_reservation
        spec = replica.spec
        return llv_name(replica.metadata.name, spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name)

    def placed(self, replica: ReplicatedVolumeReplica, candidate: Candidate) -> SchedulingContext:
        """The context once the replica is there."""
        node = candidate.node
        zones = self.zones
        if not replica.spec.node_name:
            # A replica that had its node already was counted from the start.
            zones = {**zones, node.zone_name: zones[node.zone_name].plus(replica.spec.type)}
        diskful = self.scheduled_diskful + (1 if replica.spec.type == MemberType.DISKFUL else 0)
        return replace(
            self, zones=zones, scheduled_diskful=diskful, occupied_nodes=self.occupied_nodes | {node.node_name}
        )


def is_scheduled(replica: ReplicatedVolumeReplica, pool_type: str) -> bool:
    """Whether a replica has all of its place. A tie-breaker needs a node only; Access replicas are not scheduled here."""
    spec = replica.spec
    match spec.type:
        case "TieBreaker":
            return bool(spec.node_name)
        case "Diskful" | "ShadowDiskful":
            thin = bool(spec.lvm_volume_group_thin_pool_name)
            return bool(spec.node_name and spec.lvm_volume_group_name) and thin == (pool_type == LVM_THIN)
        case _:
            return False


def compute_context(
    snapshot: Snapshot, volume: ReplicatedVolume, configuration: VolumeConfiguration, pool: ReplicatedStoragePool
) -> SchedulingContext:
    """The context before the first placement of this pass."""
    view = view_of(pool.status.eligible_nodes)
    replicas = snapshot.replicas
    diskful = [item for item in replicas if item.spec.type == MemberType.DISKFUL and not item.metadata.deleting]
    members = (member.node_name for member in volume.status.datamesh.members)
    layout = Layout(configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy)
    return SchedulingContext(
        view=view,
        pool_type=pool.spec.type,
        topology=configuration.topology,
        volume_access=configuration.volume_access,
        required_diskful=layout.diskful,
        scheduled_diskful=sum(is_scheduled(item, pool.spec.type) for item in diskful),
        occupied_nodes=frozenset((*(item.spec.node_name for item in replicas if item.spec.node_name), *members)),
        attach_to_nodes=frozenset(item.spec.node_name for item in snapshot.attachments if not item.metadata.deleting),
        zones=compute_zones(replicas, view, configuration.topology),
        size=lower_size(max(align_4ki(volume.spec.size.value), align_4ki(volume.status.datamesh.size.value))),
        annotated_reservation=volume.metadata.annotations.get(ANNOTATION_RESERVATION_ID, ""),
        first_diskful=diskful[0].metadata.name if diskful else "",
    )


def compute_zones(
    replicas: tuple[ReplicatedVolumeReplica, ...], view: PoolView, topology: str
) -> Mapping[str, ZoneCount]:
    """Replicas by zone, partially placed ones included; those on nodes outside of the pool do not count.

    Spreading looks at the replicas that stay, so that a replacement takes the place of the one that goes. Sticking to a zone
    looks at all of them: the data is still there.
    """
    zones = dict(view.zones)
    for replica in replicas:
        zone = view.zone_by_node.get(replica.spec.node_name)
        if zone is None or (replica.metadata.deleting and topology == TRANS_ZONAL):
            continue
        zones[zone] = zones[zone].plus(replica.spec.type)
    return zones
