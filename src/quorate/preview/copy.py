"""A simulated cluster that is like the real one as far as a volume is concerned.

Nodes with their zones and labels, volume groups with their sizes and what others use of them, the pool, and the volume
itself: formed with the same replicas at the same places, attached where it is attached, and only then are the nodes that
are down taken down. What cannot be copied is said in `notes`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.agent import commands
from quorate.agent.lvm.plan import kib
from quorate.api import labels, names
from quorate.api.lvm_volume_group import Local, LVMVolumeGroup, LVMVolumeGroupSpec, ThinPoolSpec
from quorate.api.meta import ObjectMeta
from quorate.api.namespace import Namespace
from quorate.api.node import Node
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import MemberType, ReplicatedVolume, ReplicatedVolumeSpec, VolumeConfiguration
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import FrozenMap, replace
from quorate.api.wire import merge_patch
from quorate.controllers.volume.replicas import new_replica
from quorate.datamesh.layout import layout_of
from quorate.explain.view import ClusterView, agent_ready, is_ready, zone_of
from quorate.local.cluster import LocalCluster
from quorate.local.shape import NAMESPACE
from quorate.preview.results import CannotPreview

MAX_NODES = 20
"""Nodes of the copy: those of the volume, then the eligible ones with most room."""
UNKNOWN_GROUP_SIZE = 1 << 40
OTHERS = "used-by-others"
FOREIGN_LABELS = (labels.LABEL_ZONE, labels.LABEL_NODE, "kubernetes.io/hostname")


@dataclass(frozen=True)
class Original:
    """What is copied."""

    view: ClusterView
    volume: ReplicatedVolume
    configuration: VolumeConfiguration
    pool: ReplicatedStoragePool
    members: tuple[ReplicatedVolumeReplica, ...]
    """Diskful replicas and tie-breakers, as many as the layout has."""
    attached: tuple[str, ...]
    """Nodes where it is attached."""
    nodes: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())


def original_of(view: ClusterView, name: str) -> Original:
    """What of the cluster is copied for a volume; CannotPreview when it has no configuration to start from."""
    volume = view.volume(name)
    if volume is None:
        raise CannotPreview(f"there is no volume {name}")
    configuration = volume.status.configuration
    pool = view.pool_of(volume)
    if configuration is None:
        raise CannotPreview(f"{name} has no configuration yet; quorate explain volume {name} says why")
    if pool is None:
        raise CannotPreview(f"pool {configuration.replicated_storage_pool_name} of {name} does not exist")
    notes: list[str] = []
    members = _members(view, volume, configuration, notes)
    attached = tuple(dict.fromkeys(m.node_name for m in volume.status.datamesh.members if m.attached))
    wanted = tuple(dict.fromkeys((*(r.spec.node_name for r in members), *attached)))
    missing = tuple(node for node in wanted if view.node(node) is None)
    if missing:
        notes.append(f"nodes without a Node object are copied as running: {', '.join(missing)}")
    return Original(
        view, volume, configuration, pool, members, attached, _nodes(view, pool, wanted, notes), tuple(notes)
    )


def _members(
    view: ClusterView, volume: ReplicatedVolume, configuration: VolumeConfiguration, notes: list[str]
) -> tuple[ReplicatedVolumeReplica, ...]:
    """The replicas of the layout, members first; surplus and missing ones are noted."""
    layout = layout_of(configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy)
    joined = tuple(member.name for member in volume.status.datamesh.members)
    chosen: list[ReplicatedVolumeReplica] = []
    for kind, count in ((MemberType.DISKFUL, layout.diskful), (MemberType.TIE_BREAKER, layout.tie_breakers)):
        placed = [
            replica
            for replica in view.replicas_of(volume.metadata.name)
            if replica.spec.type == kind
            and replica.spec.node_name
            and not replica.metadata.deleting
            and (kind != MemberType.DISKFUL or replica.spec.lvm_volume_group_name)
        ]
        placed.sort(key=lambda replica: (replica.metadata.name not in joined, names.replica_id(replica.metadata.name)))
        chosen.extend(placed[:count])
        if len(placed) < count:
            notes.append(f"{count - len(placed)} {kind} of {layout} missing: the copy starts with the full layout")
        if len(placed) > count:
            notes.append(f"{len(placed) - count} {kind} more than {layout}: the copy starts without the surplus")
    running = [t.type for t in volume.status.datamesh_transitions]
    if running:
        notes.append(f"changes under way are taken as finished: {', '.join(running)}")
    return tuple(chosen)


def _nodes(
    view: ClusterView, pool: ReplicatedStoragePool, wanted: tuple[str, ...], notes: list[str]
) -> tuple[str, ...]:
    others = [node.node_name for node in pool.status.eligible_nodes if node.node_name not in wanted]
    others.sort(key=lambda name: (-_free(view, name), name))
    room = max(MAX_NODES - len(wanted), 0)
    if len(others) > room:
        notes.append(f"of {len(others)} further nodes the {room} with most room are looked at")
    return tuple(sorted((*wanted, *others[:room])))


def _free(view: ClusterView, node: str) -> int:
    groups = groups_of(view, node)
    return max((group.status.vg_free.value for group in groups if group.status.vg_free is not None), default=0)


def groups_of(view: ClusterView, node: str) -> tuple[LVMVolumeGroup, ...]:
    """The volume groups of a node."""
    return tuple(
        group
        for group in view.groups
        if (group.spec.local is not None and group.spec.local.node_name == node)
        or any(each.name == node for each in group.status.nodes)
    )


async def build(cluster: LocalCluster, original: Original) -> None:
    """Nodes, groups, pool, volume and replicas; the controllers are started last, when the placement stands."""
    client = cluster.client
    await client.create(Namespace(metadata=ObjectMeta(name=NAMESPACE)))
    for index, name in enumerate(original.nodes):
        node = original.view.node(name)
        await cluster.add_node(name, index, zone=zone_of(node) if node is not None else "")
        await _copy_labels(cluster, name, node)
        for group in groups_of(original.view, name):
            _make_group(cluster, original, name, group)
            await client.create(_group_object(group, name))
    pool = original.pool
    await client.create(ReplicatedStoragePool(metadata=ObjectMeta(name=pool.metadata.name), spec=pool.spec))
    await _create_volume(cluster, original)
    cluster.start_controllers()


async def _copy_labels(cluster: LocalCluster, name: str, node: Node | None) -> None:
    """Labels decide about pools; everything else of the node is the simulated kubelet's."""
    if node is None:
        return
    wanted = {key: text for key, text in node.metadata.labels.items() if key not in FOREIGN_LABELS}
    mode = {
        key: node.metadata.annotations[key]
        for key in (labels.ANNOTATION_PEER_TIEBREAKER,)
        if key in node.metadata.annotations
    }
    found = await cluster.client.get(Node, name)
    meta = replace(
        found.metadata,
        labels=FrozenMap({**found.metadata.labels.as_dict(), **wanted}),
        annotations=FrozenMap({**found.metadata.annotations.as_dict(), **mode}),
    )
    patch = merge_patch(found, replace(found, metadata=meta))
    if patch:
        await cluster.client.patch(found, patch)


def _make_group(cluster: LocalCluster, original: Original, node: str, group: LVMVolumeGroup) -> None:
    """The group on the simulated machine, with what others use of it taken away."""
    machine = cluster.simulator.nodes[node]
    name = group.spec.actual_vg_name_on_the_node
    size = group.status.vg_size.value if group.status.vg_size is not None else UNKNOWN_GROUP_SIZE
    machine.lvm.add_group(name, size)
    pools = {pool.name: pool for pool in group.status.thin_pools}
    for pool in pools.values():
        if pool.actual_size is None:
            continue
        machine.execute(commands.lvm("lvcreate", "-ay", "-L", kib(pool.actual_size.value), "-T", f"{name}/{pool.name}"))
        allocated = pool.allocated_size.value if pool.allocated_size is not None else 0
        others = allocated - _own(original, node, group.metadata.name, pool.name)
        if others > 0:
            target = f"{name}/{pool.name}"
            machine.execute(
                commands.lvm(
                    "lvcreate", "-ay", "-T", target, "-n", f"{OTHERS}-{pool.name}", "-V", kib(others), "-W", "y", "-y"
                )
            )
    free = group.status.vg_free.value if group.status.vg_free is not None else size
    in_pools = sum(pool.actual_size.value for pool in pools.values() if pool.actual_size is not None)
    others = size - free - in_pools - _own(original, node, group.metadata.name, "")
    if others > 0:
        machine.execute(commands.lvm("lvcreate", "-ay", "-n", f"{name}/{OTHERS}", "-L", kib(others), "-W", "y", "-y"))


def _own(original: Original, node: str, group: str, pool: str) -> int:
    """What the volume's own replicas use of a place: the copy makes it anew."""
    return sum(
        replica.status.backing_volume.size.value
        for replica in original.members
        if replica.spec.node_name == node
        and replica.spec.lvm_volume_group_name == group
        and replica.spec.lvm_volume_group_thin_pool_name == pool
        and replica.status.backing_volume is not None
        and replica.status.backing_volume.size is not None
    )


def _group_object(group: LVMVolumeGroup, node: str) -> LVMVolumeGroup:
    pools = tuple(
        ThinPoolSpec(name=pool.name, size=str(pool.actual_size), allocation_limit=pool.allocation_limit)
        for pool in group.status.thin_pools
        if pool.actual_size is not None
    )
    closed = labels.ANNOTATION_UNSCHEDULABLE in group.metadata.annotations
    return LVMVolumeGroup(
        metadata=ObjectMeta(
            name=group.metadata.name,
            annotations=FrozenMap({labels.ANNOTATION_UNSCHEDULABLE: ""} if closed else {}),
        ),
        spec=LVMVolumeGroupSpec(
            actual_vg_name_on_the_node=group.spec.actual_vg_name_on_the_node,
            type="Local",
            local=Local(node_name=node),
            thin_pools=pools,
        ),
    )


async def _create_volume(cluster: LocalCluster, original: Original) -> None:
    real = original.volume
    size = max(real.status.datamesh.size.value, real.spec.size.value if not real.status.datamesh.members else 0)
    spec = ReplicatedVolumeSpec(
        size=Quantity.of(size or real.spec.size.value),
        configuration_mode="Manual",
        manual_configuration=original.configuration,
        max_attachments=max(real.spec.max_attachments, len(original.attached), 1),
    )
    volume = await cluster.client.create(ReplicatedVolume(metadata=ObjectMeta(name=real.metadata.name), spec=spec))
    for replica in original.members:
        made = new_replica(volume, names.replica_id(replica.metadata.name), replica.spec.type, replica.spec.node_name)
        placed = replace(
            made.spec,
            lvm_volume_group_name=replica.spec.lvm_volume_group_name,
            lvm_volume_group_thin_pool_name=replica.spec.lvm_volume_group_thin_pool_name,
        )
        await cluster.client.create(replace(made, spec=placed))


async def take_down(cluster: LocalCluster, original: Original) -> bool:
    """Bring the nodes to the state the real ones are in; whether anything had to be done."""
    changed = False
    for name in original.nodes:
        node = original.view.node(name)
        if node is None:
            continue
        if node.spec.unschedulable or node.spec.taints or labels.ANNOTATION_FENCED in node.metadata.annotations:
            await _copy_state(cluster, name, node)
            changed = True
        if not is_ready(node):
            await cluster.crash_node(name)
            changed = True
        elif agent_ready(original.view, name) is False:
            await cluster.stop_agent(name)
            changed = True
    return changed


async def _copy_state(cluster: LocalCluster, name: str, node: Node) -> None:
    found = await cluster.client.get(Node, name)
    annotations = found.metadata.annotations.as_dict()
    if labels.ANNOTATION_FENCED in node.metadata.annotations:
        annotations[labels.ANNOTATION_FENCED] = node.metadata.annotations[labels.ANNOTATION_FENCED]
    wanted = replace(
        found,
        metadata=replace(found.metadata, annotations=FrozenMap(annotations)),
        spec=replace(found.spec, unschedulable=node.spec.unschedulable, taints=node.spec.taints),
    )
    patch = merge_patch(found, wanted)
    if patch:
        await cluster.client.patch(found, patch)
