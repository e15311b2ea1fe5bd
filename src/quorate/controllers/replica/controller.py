"""The replica controller as data: what it watches, which replicas a change concerns, and who remembers held-back reports.

The watch table of seed 001 is the minimum (ruling): whatever changes a decision passes, which a property test checks by
mutating every object. The handlers stay targeted: a new datamesh revision concerns the members of the old and the new
datamesh, a changed pool the replicas on the changed nodes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from quorate.api.drbd_resource import DRBDResource
from quorate.api.indexes import RV_BY_POOL, RVR_BY_NODE, RVR_BY_VOLUME, RVR_BY_VOLUME_AND_NODE, volume_and_node
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.node import Node
from quorate.api.pod import Pod
from quorate.api.replicated_storage_pool import EligibleNode, ReplicatedStoragePool
from quorate.api.replicated_volume import Datamesh, ReplicatedVolume, StepStatus
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.resources import controller_of
from quorate.controllers.replica.decide import decide
from quorate.controllers.replica.lifecycle import METRICS
from quorate.controllers.replica.publish import HeldSince
from quorate.controllers.replica.refusal import WouldBeRefused, dry_run
from quorate.controllers.replica.snapshot import Snapshot, gather, is_agent_pod, is_node_ready, is_pod_ready
from quorate.machinery.client import Client
from quorate.machinery.clock import Clock
from quorate.machinery.controller import ControllerSpec, for_, watches
from quorate.machinery.effects import Answer, Request
from quorate.machinery.reader import Reader

NAME = "rvr-controller"
MEMORY_LIMIT = 100_000
"""Held-back reports remembered at most; forgetting one only delays its publication once more."""


class HoldMemory:
    """Remembers since when a report of a replica has been held back. One entry per replica."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: dict[str, tuple[str, float]] = {}

    def since(self, request: HeldSince) -> float:
        """When this version of the replica was first asked about."""
        version, since = self._since.get(request.uid, ("", 0.0))
        if version != request.resource_version:
            since = self._clock.now()
            self._since.pop(request.uid, None)
            self._since[request.uid] = (request.resource_version, since)
            if len(self._since) > MEMORY_LIMIT:
                del self._since[next(iter(self._since))]
        return since


def answer_with(memory: HoldMemory, client: Client | None) -> Callable[[Request], Awaitable[Answer]]:
    """Answers what decisions ask for: the memory of held-back reports, and the server's word on a logical volume."""
    would_be_refused = dry_run(client)

    async def answer(request: Request) -> Answer:
        match request:
            case HeldSince():
                return memory.since(request)
            case WouldBeRefused():
                return await would_be_refused(request)
            case _:
                raise TypeError(f"the replica controller does not ask for {type(request).__name__}")

    return answer


def spec(clock: Clock, *, agent_namespace: str, client: Client | None = None) -> ControllerSpec[Snapshot]:
    """The controller; `agent_namespace` is where the node agents run.

    With a `client` the server is asked why it refuses a logical volume; without one the refusal is an error with an Event.
    """
    return ControllerSpec(
        name=NAME,
        watches=(
            for_(ReplicatedVolumeReplica, replica_matters),
            watches(LVMLogicalVolume, keys_of_logical_volume),
            watches(DRBDResource, keys_of_drbd_resource),
            watches(ReplicatedVolume, keys_of_volume, volume_matters),
            watches(ReplicatedStoragePool, keys_of_pool, pool_matters),
            watches(Pod, keys_of_pod, partial(agent_pod_matters, agent_namespace)),
            watches(Node, keys_of_node, node_matters),
        ),
        gather=partial(gather, agent_namespace=agent_namespace),
        decide=decide,
        answer=answer_with(HoldMemory(clock), client),
        metrics=METRICS,
    )


def node_matters(old: Node | None, new: Node | None) -> bool:
    """Readiness explains a missing agent; a Node that is gone will not clean up any more."""
    return (old is None) != (new is None) or is_node_ready(old) != is_node_ready(new)


def replica_matters(old: ReplicatedVolumeReplica | None, new: ReplicatedVolumeReplica | None) -> bool:
    """Spec, metadata or status: the status too, because a foreign edit of what we report is to be corrected."""
    if old is None or new is None:
        return True
    before, after = old.metadata, new.metadata
    return (
        old.spec != new.spec
        or old.status != new.status
        or (before.generation, before.deletion_timestamp, before.finalizers, before.labels, before.owner_references)
        != (after.generation, after.deletion_timestamp, after.finalizers, after.labels, after.owner_references)
        or before.uid != after.uid
    )


def keys_of_drbd_resource(old: DRBDResource | None, new: DRBDResource | None, reader: Reader) -> Iterable[str]:
    """A DRBDResource has the name of its replica."""
    del reader
    return _names(old, new)


def keys_of_logical_volume(old: LVMLogicalVolume | None, new: LVMLogicalVolume | None, reader: Reader) -> Iterable[str]:
    """The owning replica; a volume without one may be named by a DRBDResource (migration)."""
    keys: dict[str, None] = {}
    for volume in (old, new):
        if volume is None:
            continue
        owner = controller_of(volume)
        if owner is not None and owner.kind == ReplicatedVolumeReplica.__name__:
            keys[owner.name] = None
        else:
            name = volume.metadata.name
            resources = reader.list(DRBDResource)
            keys.update(
                {drbdr.metadata.name: None for drbdr in resources if drbdr.spec.lvm_logical_volume_name == name}
            )
    return keys


def _names(*objects: DRBDResource | None) -> Iterable[str]:
    return {obj.metadata.name: None for obj in objects if obj is not None}


def _volume_facts(volume: ReplicatedVolume) -> tuple[object, ...]:
    """What concerns all replicas of the volume, members or not."""
    status, datamesh = volume.status, volume.status.datamesh
    return (
        volume.metadata.uid,
        volume.spec.size,
        volume.spec.replicated_storage_class_name,
        status.configuration,
        status.datamesh_revision > 0,
        datamesh.system_network_names,
        datamesh.size,
    )


def _awaited_steps(volume: ReplicatedVolume) -> tuple[tuple[str, str, int], ...]:
    """Which revisions steps wait for: a report of an awaited revision is published at once."""
    return tuple(
        (transition.group, transition.replica_name, step.datamesh_revision)
        for transition in volume.status.datamesh_transitions
        for step in transition.steps
        if step.status == StepStatus.ACTIVE
    )


def volume_matters(old: ReplicatedVolume | None, new: ReplicatedVolume | None) -> bool:
    """The datamesh, what steps wait for, messages on requests, and what concerns all replicas."""
    if old is None or new is None:
        return True
    return (
        _volume_facts(old) != _volume_facts(new)
        or old.status.datamesh_revision != new.status.datamesh_revision
        or old.status.datamesh != new.status.datamesh
        or _awaited_steps(old) != _awaited_steps(new)
        or _messages(old) != _messages(new)
    )


def _messages(volume: ReplicatedVolume) -> dict[str, str]:
    return {request.name: request.message for request in volume.status.datamesh_replica_requests}


def keys_of_volume(old: ReplicatedVolume | None, new: ReplicatedVolume | None, reader: Reader) -> Iterable[str]:
    """All replicas, or only the members of the old and the new datamesh and those whose request's message changed."""
    found = new if new is not None else old
    if found is None:
        return ()
    if old is None or new is None or _volume_facts(old) != _volume_facts(new):
        replicas = reader.by_index(ReplicatedVolumeReplica, RVR_BY_VOLUME, found.metadata.name)
        return tuple(replica.metadata.name for replica in replicas)
    keys: dict[str, None] = {}
    if (
        old.status.datamesh_revision != new.status.datamesh_revision
        or old.status.datamesh != new.status.datamesh
        or _awaited_steps(old) != _awaited_steps(new)
    ):
        keys.update(dict.fromkeys(_member_names(old.status.datamesh)))
        keys.update(dict.fromkeys(_member_names(new.status.datamesh)))
    before, after = _messages(old), _messages(new)
    for name in (*before, *after):
        if before.get(name, "") != after.get(name, ""):
            keys[name] = None
    return keys


def _member_names(datamesh: Datamesh) -> tuple[str, ...]:
    return tuple(member.name for member in datamesh.members)


def pool_matters(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None) -> bool:
    """The eligible nodes changed, told by their revision first and by their content in any case."""
    if old is None or new is None:
        return True
    return (
        old.spec.type != new.spec.type
        or old.status.eligible_nodes_revision != new.status.eligible_nodes_revision
        or old.status.eligible_nodes != new.status.eligible_nodes
    )


def keys_of_pool(old: ReplicatedStoragePool | None, new: ReplicatedStoragePool | None, reader: Reader) -> Iterable[str]:
    """Replicas on the nodes whose entry changed; all replicas of the pool's volumes when it appears or goes."""
    found = new if new is not None else old
    if found is None:
        return ()
    volumes = reader.by_index(ReplicatedVolume, RV_BY_POOL, found.metadata.name)
    if old is None or new is None or old.spec.type != new.spec.type:
        return _replicas(reader, volumes)
    nodes = compute_changed_nodes(old.status.eligible_nodes, new.status.eligible_nodes)
    keys: dict[str, None] = {}
    for volume in volumes:
        for node in nodes:
            key = volume_and_node(volume.metadata.name, node)
            for replica in reader.by_index(ReplicatedVolumeReplica, RVR_BY_VOLUME_AND_NODE, key):
                keys[replica.metadata.name] = None
    return keys


def compute_changed_nodes(old: tuple[EligibleNode, ...], new: tuple[EligibleNode, ...]) -> tuple[str, ...]:
    """Nodes that were added, removed or changed; shared entries are skipped by identity."""
    before = {node.node_name: node for node in old}
    after = {node.node_name: node for node in new}
    changed_nodes = [name for name, node in after.items() if before.get(name) is not node and before.get(name) != node]
    return (*changed_nodes, *(name for name in before if name not in after))


def _replicas(reader: Reader, volumes: Iterable[ReplicatedVolume]) -> tuple[str, ...]:
    return tuple(
        replica.metadata.name
        for volume in volumes
        for replica in reader.by_index(ReplicatedVolumeReplica, RVR_BY_VOLUME, volume.metadata.name)
    )


def agent_pod_matters(agent_namespace: str, old: Pod | None, new: Pod | None) -> bool:
    """An agent appeared, went, moved, or became ready or unready."""

    def facts(pod: Pod | None) -> tuple[str, bool] | None:
        if pod is None or not is_agent_pod(pod, agent_namespace):
            return None
        return pod.spec.node_name, is_pod_ready(pod)

    return facts(old) != facts(new)


def keys_of_pod(old: Pod | None, new: Pod | None, reader: Reader) -> Iterable[str]:
    """Replicas on the pod's node."""
    return _replicas_on(reader, *(pod.spec.node_name for pod in (old, new) if pod is not None))


def keys_of_node(old: Node | None, new: Node | None, reader: Reader) -> Iterable[str]:
    """Replicas on the node."""
    return _replicas_on(reader, *(node.metadata.name for node in (old, new) if node is not None))


def _replicas_on(reader: Reader, *nodes: str) -> Iterable[str]:
    keys: dict[str, None] = {}
    for node in dict.fromkeys(nodes):
        if node:
            keys.update(
                {replica.metadata.name: None for replica in reader.by_index(ReplicatedVolumeReplica, RVR_BY_NODE, node)}
            )
    return keys
