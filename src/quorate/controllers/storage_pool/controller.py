"""Which events concern the pool controller."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from quorate.api import conditions, indexes, labels
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.node import Node
from quorate.api.pod import Pod
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.controllers.storage_pool import gauges
from quorate.controllers.storage_pool.decide import decide
from quorate.controllers.storage_pool.snapshot import Settings, Snapshot, gather, is_agent_pod, is_pod_ready, may_belong
from quorate.machinery.controller import ControllerSpec, Watch
from quorate.machinery.reader import Reader

NAME = "rsp-controller"


def spec(settings: Settings) -> ControllerSpec[Snapshot]:
    """The controller as data."""
    return ControllerSpec(
        name=NAME,
        watches=(
            Watch(ReplicatedStoragePool, pool_matters, pool_keys),
            Watch(Node, node_matters, partial(node_keys, settings)),
            Watch(LVMVolumeGroup, volume_group_matters, volume_group_keys),
            Watch(Pod, partial(pod_matters, settings), pod_keys),
        ),
        gather=partial(gather, settings=settings),
        decide=decide,
        gauges=(gauges.GAUGES,),
    )


def pool_matters(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None) -> bool:
    """The spec, or anything of our own half of the status (somebody else may have changed it)."""
    if old is None or new is None:
        return new is not None
    ours = (new.status.conditions, new.status.phase, new.status.message, new.status.eligible_nodes)
    theirs = (old.status.conditions, old.status.phase, old.status.message, old.status.eligible_nodes)
    return old.metadata.generation != new.metadata.generation or ours != theirs


def pool_keys(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None, reader: Reader) -> Iterable[str]:
    """The pool itself."""
    del old, reader
    return (new.metadata.name,) if new is not None else ()


def node_matters(old: Node | None, new: Node | None) -> bool:
    """Labels, readiness and cordon."""
    return _node_facts(old) != _node_facts(new)


def _node_facts(node: Node | None) -> object:
    if node is None:
        return None
    ready = conditions.get(node.status.conditions, "Ready")
    state = (ready.status, ready.last_transition_time) if ready is not None else None
    return node.metadata.labels, node.spec.unschedulable, state


def node_keys(settings: Settings, old: Node | None, new: Node | None, reader: Reader) -> Iterable[str]:
    """Pools that list the node, and pools that it may belong to now."""
    found = new if new is not None else old
    if found is None:
        return ()
    listed = reader.by_index(ReplicatedStoragePool, indexes.RSP_BY_ELIGIBLE_NODE, found.metadata.name)
    names = {pool.metadata.name for pool in listed}
    if new is not None:
        pools = reader.list(ReplicatedStoragePool)
        names.update(pool.metadata.name for pool in pools if may_belong(pool, new, settings))
    return sorted(names)


def volume_group_matters(old: LVMVolumeGroup | None, new: LVMVolumeGroup | None) -> bool:
    """Spec, the unschedulable mark, readiness of the group and of its thin pools."""
    return _group_facts(old) != _group_facts(new)


def _group_facts(group: LVMVolumeGroup | None) -> object:
    if group is None:
        return None
    return (
        group.spec,
        labels.ANNOTATION_UNSCHEDULABLE in group.metadata.annotations,
        conditions.is_true(group.status.conditions, "Ready"),
        tuple((thin.name, thin.ready) for thin in group.status.thin_pools),
    )


def volume_group_keys(old: LVMVolumeGroup | None, new: LVMVolumeGroup | None, reader: Reader) -> Iterable[str]:
    """Pools that name the group."""
    found = new if new is not None else old
    if found is None:
        return ()
    pools = reader.by_index(ReplicatedStoragePool, indexes.RSP_BY_LVG, found.metadata.name)
    return tuple(pool.metadata.name for pool in pools)


def pod_matters(settings: Settings, old: Pod | None, new: Pod | None) -> bool:
    """Agent pods that appear, go, move or change readiness."""
    return _pod_facts(settings, old) != _pod_facts(settings, new)


def _pod_facts(settings: Settings, pod: Pod | None) -> object:
    if pod is None or not is_agent_pod(pod, settings.namespace):
        return None
    return pod.spec.node_name, is_pod_ready(pod)


def pod_keys(old: Pod | None, new: Pod | None, reader: Reader) -> Iterable[str]:
    """Pools that list the pod's node."""
    nodes = {pod.spec.node_name for pod in (old, new) if pod is not None and pod.spec.node_name}
    names: set[str] = set()
    for node in sorted(nodes):
        listed = reader.by_index(ReplicatedStoragePool, indexes.RSP_BY_ELIGIBLE_NODE, node)
        names.update(pool.metadata.name for pool in listed)
    return sorted(names)
