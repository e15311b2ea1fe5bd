"""A view of a perfect cluster, and small edits of it."""

from __future__ import annotations

from dataclasses import replace as replace_view

from quorate.api.meta import Condition, ObjectMeta
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import (
    ReplicatedVolumeAttachment,
    ReplicatedVolumeAttachmentSpec,
    ReplicatedVolumeAttachmentStatus,
)
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.explain.view import ClusterView
from quorate.verification.perfect_cluster import VOLUME, Cluster
from tests.controllers.builders import condition, node

SINCE = "2026-01-01T00:00:00Z"


def view_of_cluster(cluster: Cluster, *, down: tuple[str, ...] = ()) -> ClusterView:
    """The objects of a perfect cluster, with Node objects."""
    nodes = tuple(
        node(
            entry.node_name,
            zone=entry.zone_name,
            ready="Unknown" if entry.node_name in (*down, *cluster.dead) else "True",
            since=SINCE,
        )
        for entry in cluster.pool.status.eligible_nodes
    )
    return ClusterView(
        nodes=nodes,
        pools=(cluster.living_pool(),),
        volumes=(cluster.volume,),
        replicas=cluster.replicas,
        attachments=cluster.attachments,
    )


def the_volume(view: ClusterView) -> ReplicatedVolume:
    """The one volume."""
    return view.volumes[0]


def with_volume_condition(view: ClusterView, type_: str, status: str, reason: str, message: str = "") -> ClusterView:
    """The volume with one condition set."""
    volume = the_volume(view)
    made = replace(condition(type_, status, reason=reason, since=SINCE), message=message)
    kept = tuple(c for c in volume.status.conditions if c.type != type_)
    changed = replace(volume, status=replace(volume.status, conditions=(*kept, made)))
    return replace_view(view, volumes=(changed,))


def edit_volume_status(view: ClusterView, **changes: object) -> ClusterView:
    """The volume with other status fields."""
    volume = the_volume(view)
    return replace_view(view, volumes=(replace(volume, status=replace(volume.status, **changes)),))


def with_replica_condition(
    view: ClusterView, replica: str, type_: str, status: str, reason: str, message: str = ""
) -> ClusterView:
    """A replica with one condition set."""

    def changed(found: ReplicatedVolumeReplica) -> ReplicatedVolumeReplica:
        made = Condition(type=type_, status=status, reason=reason, message=message, last_transition_time=SINCE)
        kept = tuple(c for c in found.status.conditions if c.type != type_)
        return replace(found, status=replace(found.status, conditions=(*kept, made)))

    replicas = tuple(changed(r) if r.metadata.name == replica else r for r in view.replicas)
    return replace_view(view, replicas=replicas)


def attachment(
    node_name: str, reason: str, message: str = "", *, status: str = "False", name: str = "", in_use: bool = False
) -> ReplicatedVolumeAttachment:
    """An attachment of the volume."""
    attached = Condition(type="Attached", status=status, reason=reason, message=message, last_transition_time=SINCE)
    ready = Condition(type="Ready", status=status, reason="Ready" if status == "True" else "NotAttached")
    return ReplicatedVolumeAttachment(
        metadata=ObjectMeta(name=name or f"{VOLUME}-on-{node_name}"),
        spec=ReplicatedVolumeAttachmentSpec(replicated_volume_name=VOLUME, node_name=node_name),
        status=ReplicatedVolumeAttachmentStatus(
            conditions=(attached, ready),
            device_path=f"/dev/sdsrv/{VOLUME}-0" if status == "True" else "",
            in_use=in_use,
        ),
    )
