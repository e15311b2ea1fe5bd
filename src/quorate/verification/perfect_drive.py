"""Driving a perfect cluster: one pass of the production engine, its actions on replica objects, one round of replicas."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import replace as replace_cluster

from quorate.api.meta import ObjectMeta
from quorate.api.replicated_volume import MemberType, VolumeConfiguration
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment, ReplicatedVolumeAttachmentSpec
from quorate.api.times import format as format_time
from quorate.api.value import replace
from quorate.datamesh.contract import CreateReplica, DeleteReplica, PassResult, ReplicaAction, RetypeReplica
from quorate.datamesh.engine import run_pass
from quorate.datamesh.features import Features
from quorate.datamesh.layout import Layout
from quorate.datamesh.members import id_of
from quorate.verification.perfect_cluster import VOLUME, Cluster, make_configuration, make_replica, published
from quorate.verification.perfect_replicas import react

MAX_ROUNDS = 400


def form(
    layout: Layout,
    *,
    nodes: int = 8,
    zones: tuple[str, ...] | None = None,
    topology: str = "Ignored",
    access: str = "Any",
    features: Features | None = None,
    max_attachments: int = 1,
) -> Cluster:
    """A healthy volume right after formation."""
    cluster = published(
        layout,
        nodes=nodes,
        zones=zones,
        topology=topology,
        access=access,
        features=features,
        max_attachments=max_attachments,
    )
    # The second round reports the peers' disks that the first one attached.
    return react(react(cluster, synced=True), synced=True)


def decide(cluster: Cluster) -> tuple[Cluster, PassResult]:
    """One pass; its status is written, its action carried out."""
    result = run_pass(cluster.inputs(), cluster.registry)
    volume = replace(cluster.volume, status=result.status)
    after = replace_cluster(cluster, volume=volume, now=cluster.now + 1)
    for action in result.actions:
        after = perform(after, action)
    return after, result


def perform(cluster: Cluster, action: ReplicaAction) -> Cluster:
    """What the volume controller does with an action."""
    match action:
        case CreateReplica():
            return with_replica(cluster, action.type)
        case DeleteReplica():
            return delete_replica(cluster, id_of(action.name))
        case RetypeReplica():
            return retype_replica(cluster, id_of(action.name), action.type)


def with_replica(cluster: Cluster, replica_type: str, node: str = "") -> Cluster:
    """A new replica object with the lowest id that nothing names (S41)."""
    status = cluster.volume.status
    taken = [id_of(rvr.metadata.name) for rvr in cluster.replicas]
    taken += [id_of(member.name) for member in status.datamesh.members]
    taken += [id_of(t.replica_name) for t in status.datamesh_transitions if t.replica_name]
    free = next(number for number in range(32) if number not in taken)
    match replica_type:
        case "Diskful" | "TieBreaker" | "Access" | "ShadowDiskful":
            new = make_replica(free, replica_type, node)
        case _:
            raise ValueError(replica_type)
    return replace_cluster(cluster, replicas=(*cluster.replicas, new))


def _changed(cluster: Cluster, replica_id: int, **changes: object) -> Cluster:
    name = f"{VOLUME}-{replica_id}"
    replicas = tuple(replace(r, **changes) if r.metadata.name == name else r for r in cluster.replicas)
    return replace_cluster(cluster, replicas=replicas)


def delete_replica(cluster: Cluster, replica_id: int) -> Cluster:
    """Somebody deletes a replica object; its finalizers keep it for the moment."""
    rvr = cluster.replica(replica_id)
    if rvr is None or rvr.metadata.deletion_timestamp:
        return cluster
    return _changed(cluster, replica_id, metadata=replace(rvr.metadata, deletion_timestamp=format_time(cluster.now)))


def retype_replica(cluster: Cluster, replica_id: int, replica_type: str) -> Cluster:
    """Somebody changes the type in a replica's spec."""
    rvr = cluster.replica(replica_id)
    if rvr is None:
        return cluster
    group = rvr.spec.lvm_volume_group_name if replica_type == MemberType.DISKFUL else ""
    return _changed(cluster, replica_id, spec=replace(rvr.spec, type=replica_type, lvm_volume_group_name=group))


def with_configuration(cluster: Cluster, layout: Layout) -> Cluster:
    """Somebody asks for another layout; topology and access stay."""
    present = cluster.volume.status.configuration
    assert isinstance(present, VolumeConfiguration)
    wanted = make_configuration(layout, topology=present.topology, access=present.volume_access)
    status = replace(cluster.volume.status, configuration=wanted)
    return replace_cluster(cluster, volume=replace(cluster.volume, status=status))


def with_attachment(cluster: Cluster, node: str, name: str = "", created: float = 0.0) -> Cluster:
    """Somebody wants the volume on a node."""
    attachment = ReplicatedVolumeAttachment(
        metadata=ObjectMeta(name=name or f"rva-{node}", creation_timestamp=format_time(created or cluster.now)),
        spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name=VOLUME, node_name=node),
    )
    return replace_cluster(cluster, attachments=(*cluster.attachments, attachment))


def without_attachment(cluster: Cluster, node: str) -> Cluster:
    """Nobody wants the volume on a node any more."""
    kept = tuple(rva for rva in cluster.attachments if rva.spec.node_name != node)
    return replace_cluster(cluster, attachments=kept)


def walk(cluster: Cluster, rounds: int = MAX_ROUNDS) -> Iterator[tuple[Cluster, PassResult]]:
    """Passes and rounds in turn until nothing changes; every state right after a pass is yielded."""
    for _ in range(rounds):
        decided, result = decide(cluster)
        yield decided, result
        after = react(decided)
        if after.replicas == decided.replicas and not result.changed and not result.actions:
            return
        cluster = after
    raise AssertionError(f"not stable after {rounds} rounds: {cluster.volume.status.datamesh_transitions}")


def run(cluster: Cluster, rounds: int = MAX_ROUNDS) -> tuple[Cluster, PassResult]:
    """The stable end of `walk`."""
    return deque(walk(cluster, rounds), maxlen=1)[0]
