"""Replicas that listen on several networks: the perfect cluster has one."""

from __future__ import annotations

from dataclasses import replace as replace_cluster

from quorate.api.value import replace
from quorate.verification.perfect_cluster import Cluster
from tests.datamesh.builders import address, edit_member, edit_replica, edit_volume


def on_networks(cluster: Cluster, *names: str) -> Cluster:
    """The pool wants these networks."""
    pool = replace(cluster.pool, spec=replace(cluster.pool.spec, system_network_names=names))
    return replace_cluster(cluster, pool=pool)


def reporting(cluster: Cluster, *names: str) -> Cluster:
    """Every replica listens on these networks, is connected on the first, and has confirmed everything."""
    for rvr in cluster.replicas:
        number = int(rvr.metadata.name[-1])
        cluster = edit_replica(
            cluster,
            number,
            addresses=tuple(address(name, number + 1) for name in names),
            peers=tuple(replace(peer, connection_established_on=names[:1]) for peer in rvr.status.peers),
            datamesh_revision=cluster.volume.status.datamesh_revision,
        )
    return cluster


def settled_on(cluster: Cluster, *names: str) -> Cluster:
    """A volume whose members listen on these networks, and whose pool wants them."""
    for number in range(len(cluster.replicas)):
        cluster = edit_member(cluster, number, addresses=tuple(address(name, number + 1) for name in names))
    status = cluster.volume.status
    mesh = replace(status.datamesh, system_network_names=names)
    cluster = edit_volume(cluster, status=replace(status, datamesh=mesh))
    return on_networks(reporting(cluster, *names), *names)
