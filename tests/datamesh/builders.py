"""Builders for engine tests: a formed volume and small edits of what its replicas report."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace as replace_cluster
from dataclasses import replace as replace_rules

from quorate.api import wire
from quorate.api.common import Address, Endpoint
from quorate.api.meta import Condition
from quorate.api.replicated_storage_pool import EligibleNode
from quorate.api.replicated_volume import (
    Datamesh,
    DatameshMember,
    DatameshTransition,
    MembershipRequest,
    ReplicatedVolume,
    ReplicatedVolumeStatus,
)
from quorate.api.replicated_volume_replica import DRBDConfiguredCondition, ReadyCondition, ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.datamesh.context import Context, mesh_of, world_of
from quorate.datamesh.contract import PassResult
from quorate.datamesh.dsl import Guard
from quorate.datamesh.engine import DEFAULT_REGISTRY, run_pass
from quorate.datamesh.features import Features
from quorate.datamesh.layout import Layout, layout_of
from quorate.datamesh.members import id_of
from quorate.datamesh.registry import Staging
from quorate.verification.perfect_cluster import VOLUME, Cluster
from quorate.verification.perfect_drive import walk

ONE = layout_of(0, 0)
PAIR = layout_of(0, 1)
PAIR_TB = layout_of(1, 0)
THREE = layout_of(1, 1)
FOUR = layout_of(1, 2)
FOUR_TB = layout_of(2, 1)
FIVE = layout_of(2, 2)


def _q_first(context: Context) -> Staging:
    return Staging.QUORUM_FIRST if context.mesh.tie_breakers & ~context.subject_bit else Staging.PLAIN


Q_FIRST_REGISTRY = DEFAULT_REGISTRY.with_rules(replace_rules(DEFAULT_REGISTRY.rules, staging=_q_first))
"""M2 instead of M1: its plans are known for running transitions, production creates no new ones."""

MODES = ("M1 dynamic", "M1 static", "M2 static")


def staged(cluster: Cluster, mode: str) -> Cluster:
    """The cluster in a voter mode and with a sequence for voter changes beside a tie-breaker."""
    features = Features(voter_mode="dynamic" if mode.endswith("dynamic") else "static")
    registry = Q_FIRST_REGISTRY if mode.startswith("M2") else DEFAULT_REGISTRY
    return replace_cluster(cluster, features=features, registry=registry)


def one_pass(cluster: Cluster) -> PassResult:
    """One pass over a cluster."""
    return run_pass(cluster.inputs(), cluster.registry)


def with_status(cluster: Cluster, status: ReplicatedVolumeStatus) -> Cluster:
    """The cluster after a status was written."""
    return replace_cluster(cluster, volume=replace(cluster.volume, status=status))


def passed(cluster: Cluster) -> Cluster:
    """The cluster after one pass was written; actions are not carried out."""
    return with_status(cluster, one_pass(cluster).status)


def edit_replica(cluster: Cluster, replica_id: int, **changes: object) -> Cluster:
    """Change fields of a replica's status."""
    name = f"{VOLUME}-{replica_id}"
    replicas = tuple(
        replace(rvr, status=replace(rvr.status, **changes)) if rvr.metadata.name == name else rvr
        for rvr in cluster.replicas
    )
    return replace_cluster(cluster, replicas=replicas)


def edit_datamesh(cluster: Cluster, **changes: object) -> Cluster:
    """Change fields of the published datamesh."""
    status = cluster.volume.status
    return with_status(cluster, replace(status, datamesh=replace(status.datamesh, **changes)))


def edit_member(cluster: Cluster, replica_id: int, **changes: object) -> Cluster:
    """Change fields of a member."""
    name = f"{VOLUME}-{replica_id}"
    members = tuple(
        replace(member, **changes) if member.name == name else member
        for member in cluster.volume.status.datamesh.members
    )
    return edit_datamesh(cluster, members=members)


def edit_volume(cluster: Cluster, **changes: object) -> Cluster:
    """Change fields of the volume."""
    return replace_cluster(cluster, volume=replace(cluster.volume, **changes))


def edit_configuration(cluster: Cluster, **changes: object) -> Cluster:
    """Change fields of the configuration in force."""
    status = cluster.volume.status
    assert status.configuration is not None
    return with_status(cluster, replace(status, configuration=replace(status.configuration, **changes)))


def edit_node(cluster: Cluster, node: str, **changes: object) -> Cluster:
    """Change fields of an eligible node."""
    nodes: tuple[EligibleNode, ...] = tuple(
        replace(entry, **changes) if entry.node_name == node else entry for entry in cluster.pool.status.eligible_nodes
    )
    pool = replace(cluster.pool, status=replace(cluster.pool.status, eligible_nodes=nodes))
    return replace_cluster(cluster, pool=pool)


def without_node(cluster: Cluster, node: str) -> Cluster:
    """A node that the pool does not allow any more."""
    nodes = tuple(entry for entry in cluster.pool.status.eligible_nodes if entry.node_name != node)
    pool = replace(cluster.pool, status=replace(cluster.pool.status, eligible_nodes=nodes))
    return replace_cluster(cluster, pool=pool)


def deleting_volume(cluster: Cluster) -> Cluster:
    """The volume is being deleted."""
    metadata = replace(cluster.volume.metadata, deletion_timestamp="2001-09-09T01:46:40Z")
    return edit_volume(cluster, metadata=metadata)


def silent(cluster: Cluster, replica_id: int) -> Cluster:
    """The agent of a replica does not report."""
    condition = Condition(
        type=DRBDConfiguredCondition.TYPE, status="False", reason=DRBDConfiguredCondition.AGENT_NOT_READY
    )
    return edit_replica(cluster, replica_id, conditions=(condition,))


def not_ready(cluster: Cluster, replica_id: int) -> Cluster:
    """A replica whose Ready condition is False."""
    rvr = cluster.replica(replica_id)
    assert rvr is not None
    kept = tuple(c for c in rvr.status.conditions if c.type != ReadyCondition.TYPE)
    condition = Condition(type=ReadyCondition.TYPE, status="False", reason=ReadyCondition.QUORUM_LOST)
    return edit_replica(cluster, replica_id, conditions=(*kept, condition))


def requesting(cluster: Cluster, replica_id: int, operation: str, **fields: str) -> Cluster:
    """A replica that asks for something."""
    return edit_replica(cluster, replica_id, datamesh_request=MembershipRequest(operation=operation, **fields))


def without_object(cluster: Cluster, replica_id: int) -> Cluster:
    """Somebody stripped a replica's finalizers: its object is gone."""
    kept = tuple(rvr for rvr in cluster.replicas if id_of(rvr.metadata.name) != replica_id)
    return replace_cluster(cluster, replicas=kept)


def context_of(cluster: Cluster, subject: int = -1, transition: DatameshTransition | None = None) -> Context:
    """The context in which guards see a cluster."""
    status = cluster.volume.status
    assert status.configuration is not None
    requests = {
        id_of(rvr.metadata.name): rvr.status.datamesh_request
        for rvr in cluster.replicas
        if rvr.status.datamesh_request is not None
    }
    world = world_of(cluster.inputs(), status.configuration, requests)
    mesh = mesh_of(status.datamesh, status.datamesh_revision)
    return Context(world, mesh, status.datamesh_transitions, cluster.registry, subject, transition)


def verdict(guard: Guard, cluster: Cluster, subject: int = -1, transition: DatameshTransition | None = None) -> str:
    """What a guard says; empty = it lets pass."""
    block = guard.check(context_of(cluster, subject, transition))
    return block.text if block is not None else ""


def transition(cluster: Cluster, transition_type: str, replica_id: int | None = None) -> DatameshTransition | None:
    """The transition of a type (and replica)."""
    for found in cluster.volume.status.datamesh_transitions:
        if found.type == transition_type and replica_id in (None, id_of(found.replica_name or "x-99")):
            return found
    return None


def datamesh(cluster: Cluster) -> Datamesh:
    """The published datamesh."""
    return cluster.volume.status.datamesh


def member(cluster: Cluster, replica_id: int) -> DatameshMember:
    """A member that must be there."""
    found = cluster.member(replica_id)
    assert found is not None
    return found


def replica(cluster: Cluster, replica_id: int) -> ReplicatedVolumeReplica:
    """A replica that must be there."""
    found = cluster.replica(replica_id)
    assert found is not None
    return found


def through_json(cluster: Cluster) -> Cluster:
    """The cluster whose volume went through the wire, as after a restart (E10)."""
    return replace_cluster(cluster, volume=wire.decode(ReplicatedVolume, wire.encode(cluster.volume)))


def address(network: str, last: int) -> Address:
    """An address on a network."""
    return Address(system_network_name=network, address=Endpoint(ipv4=f"10.9.0.{last}", port=7000))


def layout_id(layout: Layout) -> str:
    """The name of a layout as a test id."""
    return str(layout)


def first_state(start: Cluster, wanted: Callable[[Cluster], bool]) -> Cluster:
    """The first state on the way to rest, right after a pass, that is wanted."""
    for state, _ in walk(start):
        if wanted(state):
            return state
    raise AssertionError("the wanted state is never reached")
