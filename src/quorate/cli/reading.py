"""Reading what status, explain and plan look at."""

from __future__ import annotations

import asyncio

from quorate.api import labels, names
from quorate.api.meta import Object
from quorate.api.node import Node
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.explain.view import KINDS, ClusterView, view_of
from quorate.machinery import errors
from quorate.machinery.client import Client


async def read_view(client: Client) -> ClusterView:
    """All objects of the kinds that matter, read at about the same time."""
    listings = await asyncio.gather(*(client.list(kind) for kind in KINDS))
    objects: list[Object] = [item for listing in listings for item in listing.items]
    return view_of(objects)


async def read_volume_view(client: Client, name: str) -> ClusterView:
    """What concerns one volume; cheap enough to be read again and again."""
    selector = f"{labels.LABEL_VOLUME}={names.label_value(name)}"
    nodes, pools, classes, replicas, attachments = await asyncio.gather(
        client.list(Node),
        client.list(ReplicatedStoragePool),
        client.list(ReplicatedStorageClass),
        client.list(ReplicatedVolumeReplica, label_selector=selector),
        client.list(ReplicatedVolumeAttachment, field_selector=f"spec.replicatedVolumeName={name}"),
    )
    try:
        volumes = (await client.get(ReplicatedVolume, name),)
    except errors.NotFound:
        volumes = ()
    return view_of((*nodes.items, *pools.items, *classes.items, *replicas.items, *attachments.items, *volumes))
