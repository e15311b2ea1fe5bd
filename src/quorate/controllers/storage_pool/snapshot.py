"""What the pool controller reads about one pool."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.meta import LabelSelector
from quorate.api.node import Node
from quorate.api.pod import Pod
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.value import EMPTY_MAP, FrozenMap
from quorate.machinery.reader import Reader

AGENT_APP = "agent"
"""Value of the `app` label of the agent's pods."""


@dataclass(frozen=True)
class Settings:
    """What the deployment says about all pools."""

    namespace: str
    """Namespace of the agent's pods."""
    data_node_selector: FrozenMap = EMPTY_MAP
    """Labels that every data node must have; empty means all nodes."""


@dataclass(frozen=True)
class Snapshot:
    """A pool with the nodes, volume groups and agents it depends on."""

    pool: ReplicatedStoragePool | None
    settings: Settings
    volume_groups: tuple[LVMVolumeGroup, ...] = ()
    """The volume groups the pool names and that exist."""
    nodes: tuple[Node, ...] = ()
    """All nodes, sorted by name."""
    ready_agents: tuple[str, ...] = ()
    """Names of the nodes with a ready agent."""


def gather(reader: Reader, key: str, settings: Settings) -> Snapshot:
    """One consistent snapshot for a pool."""
    pool = reader.get(ReplicatedStoragePool, key)
    if pool is None:
        return Snapshot(pool=None, settings=settings)
    wanted = dict.fromkeys(group.name for group in pool.spec.lvm_volume_groups)
    groups = tuple(group for name in wanted if (group := reader.get(LVMVolumeGroup, name)) is not None)
    return Snapshot(
        pool=pool,
        settings=settings,
        volume_groups=groups,
        nodes=tuple(node for node in reader.list(Node) if may_belong(pool, node, settings)),
        ready_agents=ready_agents(reader, settings.namespace),
    )


def may_belong(pool: ReplicatedStoragePool, node: Node, settings: Settings) -> bool:
    """Whether labels and zone of the node fit: the data-node selector, the pool's selector and its zones."""
    selector = LabelSelector(match_labels=settings.data_node_selector)
    if not selector.matches(node.metadata.labels):
        return False
    own = pool.spec.node_label_selector
    if own is not None and not own.matches(node.metadata.labels):
        return False
    return not pool.spec.zones or node.metadata.labels.get(ZONE_LABEL, "") in pool.spec.zones


ZONE_LABEL = "topology.kubernetes.io/zone"


def is_agent_pod(pod: Pod, namespace: str) -> bool:
    """Whether the pod is an agent of this installation."""
    return pod.metadata.namespace == namespace and pod.metadata.labels.get("app") == AGENT_APP


def is_pod_ready(pod: Pod) -> bool:
    """Whether the pod's Ready condition is True."""
    return any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)


def ready_agents(reader: Reader, namespace: str) -> tuple[str, ...]:
    """Nodes with at least one ready agent pod."""
    names = {p.spec.node_name for p in reader.list(Pod) if is_agent_pod(p, namespace) and is_pod_ready(p)}
    return tuple(sorted(names))
