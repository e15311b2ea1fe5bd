"""reconcileCreateAccessReplicas and reconcileDeleteAccessReplicas: diskless replicas follow the attachments."""

from __future__ import annotations

from quorate.api.replicated_volume import MemberType, ReplicatedVolumeStatus, TransitionType
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.controllers.volume import replicas
from quorate.controllers.volume.snapshot import Snapshot
from quorate.machinery.effects import Create, Effect


def active_nodes(snapshot: Snapshot) -> tuple[str, ...]:
    """Nodes that have an active (non-deleting) attachment, each once (creation guard 7)."""
    nodes = (a.spec.node_name for a in snapshot.attachments if not a.metadata.deleting)
    return tuple(dict.fromkeys(nodes))


def creations(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> tuple[Effect, ...]:
    """Access replicas for active attachments on nodes without any replica, under creation guards 1 to 7."""
    volume = snapshot.existing_volume()
    configuration = status.configuration
    if volume.metadata.deleting or configuration is None or snapshot.pool is None:  # guards 1 and 3
        return ()
    if configuration.volume_access == "Local":  # guard 2
        return ()
    eligible = {node.node_name: node for node in snapshot.pool.status.eligible_nodes}
    occupied = {replica.spec.node_name for replica in snapshot.replicas}  # guard 4: any type, deleting too
    occupied.update(member.node_name for member in status.datamesh.members)
    numbers = list(replicas.free_ids(status, snapshot.replicas))
    room = replicas.MAX_REPLICA_ID + 1 - len(snapshot.replicas)
    effects: list[Effect] = []
    for node_name in active_nodes(snapshot):
        node = eligible.get(node_name)
        if node_name in occupied or node is None or not node.node_ready or not node.agent_ready:  # guards 4 and 5
            continue
        if len(effects) >= room or not numbers:  # guard 6
            break
        created = replicas.new_replica(volume, numbers.pop(0), "Access", node_name)
        effects.append(Create(obj=created, cause=f"attachment on node {node_name} needs a replica there"))
    return tuple(effects)


def deletions(snapshot: Snapshot, status: ReplicatedVolumeStatus) -> tuple[Effect, ...]:
    """Access replicas that are redundant or unused, under deletion guards 1 to 6."""
    effects: list[Effect] = []
    for replica in snapshot.replicas:
        cause = _deletion_cause(snapshot, status, replica)
        if cause:
            effects.extend(replicas.deletion(replica, cause, decided_from=(snapshot.existing_volume(),)))
    return tuple(effects)


def _deletion_cause(snapshot: Snapshot, status: ReplicatedVolumeStatus, replica: ReplicatedVolumeReplica) -> str:
    """Why the replica goes; empty when it stays."""
    name, node_name = replica.metadata.name, replica.spec.node_name
    if replica.spec.type != MemberType.ACCESS or replica.metadata.deleting:  # guards 1 and 2
        return ""
    member = next((m for m in status.datamesh.members if m.name == name), None)
    if member is not None and member.attached:  # guard 3, hard invariant (S38)
        return ""
    churning = (TransitionType.DETACH, TransitionType.ADD_REPLICA, TransitionType.ATTACH)
    if any(t.replica_name == name and t.type in churning for t in status.datamesh_transitions):  # guard 4
        return ""
    if any(m.node_name == node_name and m.name != name for m in status.datamesh.members):  # guard 5
        return f"another member serves node {node_name}"
    if node_name not in active_nodes(snapshot):  # guard 6
        return f"no attachment uses node {node_name} any more"
    return ""
