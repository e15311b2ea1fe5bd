"""What the replica controller reads: one replica, its children, its volume, its pool's word on its node, and the agent.

`gather` is the only reader. The pool is reduced to the entry of the replica's node, so a snapshot stays small in a pool of
a thousand nodes, and a change of another node is no change of the snapshot.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import conditions
from quorate.api.drbd_resource import DRBDResource
from quorate.api.indexes import LLV_BY_OWNER_RVR, POD_BY_NODE
from quorate.api.labels import APP_AGENT, LABEL_APP
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.node import Node
from quorate.api.node import ReadyCondition as NodeReadyCondition
from quorate.api.pod import Pod
from quorate.api.pod import ReadyCondition as PodReadyCondition
from quorate.api.replicated_storage_pool import EligibleNode, ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.machinery.reader import Reader


@dataclass(frozen=True)
class PoolView:
    """What the pool says about the replica's node; `node` is None when the node is not eligible."""

    name: str
    type: str
    node: EligibleNode | None


@dataclass(frozen=True)
class AgentView:
    """Whether the agent on the replica's node works, and what the node itself says."""

    ready: bool
    node_ready: bool
    node_exists: bool = True
    """Whether there is a Node object; asked for only when there is no agent."""


@dataclass(frozen=True)
class Snapshot:
    """Everything a decision about one replica is made from."""

    name: str
    replica: ReplicatedVolumeReplica | None
    drbdr: DRBDResource | None = None
    volumes: tuple[LVMLogicalVolume, ...] = ()
    """Logical volumes owned by the replica, and the one its DRBDResource names; by name."""
    volume: ReplicatedVolume | None = None
    pool: PoolView | None = None
    agent: AgentView = AgentView(ready=False, node_ready=False)


def gather(reader: Reader, key: str, *, agent_namespace: str) -> Snapshot:
    """One consistent snapshot of the replica called `key`."""
    replica = reader.get(ReplicatedVolumeReplica, key)
    drbdr = reader.get(DRBDResource, key)
    volumes = _logical_volumes(reader, key, drbdr)
    if replica is None:
        return Snapshot(key, None, drbdr, volumes)
    volume = reader.get(ReplicatedVolume, replica.spec.replicated_volume_name)
    return Snapshot(
        name=key,
        replica=replica,
        drbdr=drbdr,
        volumes=volumes,
        volume=volume,
        pool=_pool_view(reader, volume, replica.spec.node_name),
        agent=_agent_view(reader, replica.spec.node_name, agent_namespace),
    )


def _logical_volumes(reader: Reader, key: str, drbdr: DRBDResource | None) -> tuple[LVMLogicalVolume, ...]:
    volumes = {volume.metadata.name: volume for volume in reader.by_index(LVMLogicalVolume, LLV_BY_OWNER_RVR, key)}
    # A volume that only the DRBDResource names counts too: migration and disk replacement.
    named = drbdr.spec.lvm_logical_volume_name if drbdr is not None else ""
    if named and named not in volumes and (found := reader.get(LVMLogicalVolume, named)) is not None:
        volumes[named] = found
    return tuple(volumes[name] for name in sorted(volumes))


def _pool_view(reader: Reader, volume: ReplicatedVolume | None, node_name: str) -> PoolView | None:
    if volume is None or volume.status.configuration is None:
        return None
    pool = reader.get(ReplicatedStoragePool, volume.status.configuration.replicated_storage_pool_name)
    if pool is None:
        return None
    entry = next((node for node in pool.status.eligible_nodes if node.node_name == node_name), None)
    return PoolView(pool.metadata.name, pool.spec.type, entry)


def is_agent_pod(pod: Pod, agent_namespace: str) -> bool:
    """Whether a pod is a node agent of this installation."""
    return pod.metadata.namespace == agent_namespace and pod.metadata.labels.get(LABEL_APP) == APP_AGENT


def is_pod_ready(pod: Pod) -> bool:
    """Whether a pod reports Ready."""
    return conditions.is_true(pod.status.conditions, PodReadyCondition.TYPE)


def is_node_ready(node: Node | None) -> bool:
    """Whether a node reports Ready; a missing Node object counts as not ready (trap 7)."""
    return node is not None and conditions.is_true(node.status.conditions, NodeReadyCondition.TYPE)


def _agent_view(reader: Reader, node_name: str, agent_namespace: str) -> AgentView:
    if not node_name:
        return AgentView(ready=False, node_ready=False)
    pods = reader.by_index(Pod, POD_BY_NODE, node_name)
    # Several pods may exist for a moment (rolling update): one that works is enough.
    ready = any(is_agent_pod(pod, agent_namespace) and is_pod_ready(pod) for pod in pods)
    if ready:
        return AgentView(ready=True, node_ready=True)
    # The node is looked at only to explain a missing agent.
    node = reader.get(Node, node_name)
    return AgentView(ready=False, node_ready=is_node_ready(node), node_exists=node is not None)
