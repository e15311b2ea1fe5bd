"""A perfect cluster: agents that do at once what the datamesh tells them, links that are up, disks that synchronise.

It drives the production engine without kernels, time or faults, so that a test, the preview of a plan or a checker can
follow a volume from one layout to another. A `Cluster` is a value: every intermediate state can be kept, branched and
resumed. Nodes may be `dead` (silent and unreachable) and `fenced`. This file has the value and its builders;
`perfect_replicas` is what replicas do, `perfect_drive` runs the engine against them.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import names
from quorate.api.common import Address, Endpoint
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import (
    EligibleNode,
    EligibleNodeLVMVolumeGroup,
    ReplicatedStoragePool,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
)
from quorate.api.replicated_volume import (
    Datamesh,
    DatameshMember,
    EffectiveLayout,
    MemberType,
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
    VolumeConfiguration,
)
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec, ReplicaType
from quorate.api.value import replace
from quorate.datamesh import projection
from quorate.datamesh.contract import PassInput
from quorate.datamesh.engine import DEFAULT_REGISTRY
from quorate.datamesh.features import Features
from quorate.datamesh.layout import Layout, initial_quorum
from quorate.datamesh.members import id_of
from quorate.datamesh.registry import Registry

STOCK = Features()
VOLUME = "vol"
POOL = "pool"
CLASS = "class"
NETWORK = "Internal"
GROUP = "vg"
SIZE = Quantity.of(1 << 30)


@dataclass(frozen=True)
class Cluster:
    """A volume with its surroundings, as a value."""

    volume: ReplicatedVolume
    replicas: tuple[ReplicatedVolumeReplica, ...]
    pool: ReplicatedStoragePool
    attachments: tuple[ReplicatedVolumeAttachment, ...] = ()
    features: Features = STOCK
    dead: tuple[str, ...] = ()
    fenced: tuple[str, ...] = ()
    now: float = 1_000_000_000.0
    registry: Registry = DEFAULT_REGISTRY

    def inputs(self) -> PassInput:
        """What a pass would read."""
        return PassInput(
            volume=self.volume,
            replicas=self.replicas,
            attachments=self.attachments,
            pool=self.living_pool(),
            features=self.features,
            fenced_nodes=self.fenced,
            now=self.now,
        )

    def living_pool(self) -> ReplicatedStoragePool:
        """The pool as its controller would report it: dead nodes are not ready."""
        if not self.dead:
            return self.pool
        nodes = tuple(
            replace(node, node_ready=False, agent_ready=False) if node.node_name in self.dead else node
            for node in self.pool.status.eligible_nodes
        )
        return replace(self.pool, status=replace(self.pool.status, eligible_nodes=nodes))

    def replica(self, replica_id: int) -> ReplicatedVolumeReplica | None:
        """The object of a replica id."""
        return next((rvr for rvr in self.replicas if id_of(rvr.metadata.name) == replica_id), None)

    def member(self, replica_id: int) -> DatameshMember | None:
        """The member of a replica id."""
        return projection.find_member(self.volume.status.datamesh, f"{VOLUME}-{replica_id}")


def make_pool(zones: tuple[str, ...]) -> ReplicatedStoragePool:
    """A pool of nodes `node-0`, `node-1`, ... in these zones, each with a ready volume group."""
    nodes = tuple(
        EligibleNode(
            node_name=f"node-{index}",
            zone_name=zone,
            node_ready=True,
            agent_ready=True,
            lvm_volume_groups=(EligibleNodeLVMVolumeGroup(name=GROUP, ready=True),),
        )
        for index, zone in enumerate(zones)
    )
    return ReplicatedStoragePool(
        metadata=ObjectMeta(name=POOL),
        spec=ReplicatedStoragePoolSpec(type="LVM", lvm_volume_groups=()),
        status=ReplicatedStoragePoolStatus(eligible_nodes=nodes),
    )


def make_configuration(layout: Layout, *, topology: str = "Ignored", access: str = "Any") -> VolumeConfiguration:
    """The configuration of a layout."""
    return VolumeConfiguration(
        replicated_storage_pool_name=POOL,
        topology=topology,
        failures_to_tolerate=layout.ftt,
        guaranteed_minimum_data_redundancy=layout.gmdr,
        volume_access=access,
    )


def make_replica(replica_id: int, replica_type: ReplicaType, node: str = "") -> ReplicatedVolumeReplica:
    """A new replica object; placed when a node is given."""
    group = GROUP if node and replica_type == MemberType.DISKFUL else ""
    return ReplicatedVolumeReplica(
        metadata=ObjectMeta(name=names.replica_name(VOLUME, replica_id), generation=1),
        spec=ReplicatedVolumeReplicaSpec(
            replicated_volume_name=VOLUME, type=replica_type, node_name=node, lvm_volume_group_name=group
        ),
    )


def address_of(replica_id: int) -> Address:
    """The address of a replica."""
    return Address(system_network_name=NETWORK, address=Endpoint(ipv4=f"10.0.0.{replica_id + 1}", port=7000))


def published(
    layout: Layout,
    *,
    nodes: int = 8,
    zones: tuple[str, ...] | None = None,
    topology: str = "Ignored",
    access: str = "Any",
    features: Features | None = None,
    max_attachments: int = 1,
) -> Cluster:
    """A volume as formation publishes it: replica i on node-i, tie-breakers after the diskful ones; nobody answered yet."""
    types: tuple[ReplicaType, ...] = ("Diskful",) * layout.diskful + ("TieBreaker",) * layout.tie_breakers
    pool = make_pool(zones or ("",) * nodes)
    zone_of = {node.node_name: node.zone_name for node in pool.status.eligible_nodes}
    quorum = initial_quorum(layout, layout.diskful)
    found = tuple(
        DatameshMember(
            name=names.replica_name(VOLUME, index),
            type=replica_type,
            node_name=f"node-{index}",
            zone=zone_of[f"node-{index}"],
            addresses=(address_of(index),),
            lvm_volume_group_name=GROUP if replica_type == "Diskful" else "",
        )
        for index, replica_type in enumerate(types)
    )
    datamesh = Datamesh(
        system_network_names=(NETWORK,),
        size=SIZE,
        members=found,
        quorum=quorum.quorum,
        quorum_minimum_redundancy=quorum.qmr,
    )
    status = ReplicatedVolumeStatus(
        configuration=make_configuration(layout, topology=topology, access=access),
        datamesh_revision=2,
        datamesh=datamesh,
        baseline_guaranteed_minimum_data_redundancy=layout.gmdr,
        effective_layout=EffectiveLayout(
            failures_to_tolerate=layout.ftt, guaranteed_minimum_data_redundancy=layout.gmdr
        ),
    )
    volume = ReplicatedVolume(
        metadata=ObjectMeta(name=VOLUME, generation=1),
        spec=ReplicatedVolumeSpec(size=SIZE, replicated_storage_class_name=CLASS, max_attachments=max_attachments),
        status=status,
    )
    replicas = tuple(make_replica(index, replica_type, f"node-{index}") for index, replica_type in enumerate(types))
    return Cluster(volume, replicas, pool, features=features or Features())
