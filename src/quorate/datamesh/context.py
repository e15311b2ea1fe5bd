"""Contexts: everything a guard, a gate, a step or a confirmation may look at, built once and never changed.

* `World` is what does not change during a pass: the inputs, indexed.
* `Mesh` is the datamesh with its derived sets; a step builds a new one.
* `Context` joins the two with the transitions under way and the subject of the question.

Guarantees: all three are immutable; sets of replicas are integer masks (`ids`); nothing here reads a clock or decides.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from quorate.api import conditions
from quorate.api.common import ConnectionState, DiskState
from quorate.api.replicated_volume import (
    Datamesh,
    DatameshMember,
    DatameshTransition,
    MembershipRequest,
    MemberType,
    ReplicatedVolume,
    VolumeConfiguration,
)
from quorate.api.replicated_volume_replica import DRBDConfiguredCondition
from quorate.api.times import format as format_time
from quorate.datamesh import ids, members
from quorate.datamesh.layout import Layout
from quorate.datamesh.members import id_of

if TYPE_CHECKING:
    from quorate.api.replicated_storage_pool import EligibleNode, ReplicatedStoragePool
    from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
    from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
    from quorate.datamesh.contract import PassInput
    from quorate.datamesh.features import Features
    from quorate.datamesh.registry import Registry


@dataclass(frozen=True, slots=True, eq=False)
class Replica:
    """What is known about one replica id: its object, its request and what its agent reports.

    Reports (`connected`, `up_to_date`, `quorum`, ...) are empty while the agent is not ready: they are stale then and must
    not be used (facts/datamesh 2.3).
    """

    id: int
    name: str
    node_name: str
    rvr: ReplicatedVolumeReplica | None
    request: MembershipRequest | None
    revision: int
    """Revision confirmed; 0 = not a member as far as the replica knows."""
    agent_ready: bool
    deleting: bool
    connected: int
    """Peers it reports Connected."""
    up_to_date: bool
    """Whether its own disk is UpToDate."""
    peers_up_to_date: int
    """Connected peers whose disk it reports UpToDate."""
    quorum: bool | None
    """The kernel's quorum flag."""


def agent_is_ready(rvr: ReplicatedVolumeReplica) -> bool:
    """Whether the agent's reports about a replica are fresh: the one helper (hazard H27)."""
    condition = conditions.get(rvr.status.conditions, DRBDConfiguredCondition.TYPE)
    return condition is None or condition.reason != DRBDConfiguredCondition.AGENT_NOT_READY


def observe(rvr: ReplicatedVolumeReplica, request: MembershipRequest | None) -> Replica:
    """The facts of a replica that has an object."""
    status = rvr.status
    ready = agent_is_ready(rvr)
    connected = peers_up_to_date = 0
    if ready:
        for peer in status.peers:
            if peer.connection_state == ConnectionState.CONNECTED:
                position = 1 << id_of(peer.name)
                connected |= position
                if peer.backing_volume_state == DiskState.UP_TO_DATE:
                    peers_up_to_date |= position
    backing = status.backing_volume
    return Replica(
        id=id_of(rvr.metadata.name),
        name=rvr.metadata.name,
        node_name=rvr.spec.node_name,
        rvr=rvr,
        request=request,
        revision=status.datamesh_revision,
        agent_ready=ready,
        deleting=bool(rvr.metadata.deletion_timestamp),
        connected=connected,
        up_to_date=ready and backing is not None and backing.state == DiskState.UP_TO_DATE,
        peers_up_to_date=peers_up_to_date,
        quorum=status.quorum if ready else None,
    )


def absent(replica_id: int, name: str, node_name: str, request: MembershipRequest | None) -> Replica:
    """The facts of a replica whose object is gone."""
    return Replica(replica_id, name, node_name, None, request, 0, False, False, 0, False, 0, None)


@dataclass(frozen=True, slots=True, eq=False)
class Mesh:
    """A datamesh with the sets that every rule asks for. Build with `mesh_of`."""

    datamesh: Datamesh
    revision: int
    by_id: Mapping[int, DatameshMember]
    all: int
    voters: int
    disks: int
    full_mesh: int
    star: int
    tie_breakers: int
    attached: int
    isolated: int
    """Members that tie-breakers have no connection to for the moment (decision 6)."""

    @property
    def voter_count(self) -> int:
        """V."""
        return self.voters.bit_count()


def mesh_of(datamesh: Datamesh, revision: int) -> Mesh:
    """Index a datamesh."""
    by_id: dict[int, DatameshMember] = {}
    everyone = voters = disks = full_mesh = star = breakers = attached = isolated = 0
    for member in datamesh.members:
        replica_id = id_of(member.name)
        position = 1 << replica_id
        by_id[replica_id] = member
        everyone |= position
        member_type = member.type
        if members.is_full_mesh(member_type):
            full_mesh |= position
            if members.is_voter(member_type):
                voters |= position
            if members.has_disk(member_type):
                disks |= position
        elif members.is_star(member_type):
            star |= position
            if member_type == MemberType.TIE_BREAKER:
                breakers |= position
        if member.attached:
            attached |= position
        if member.tie_breakers_disconnected:
            isolated |= position
    return Mesh(datamesh, revision, by_id, everyone, voters, disks, full_mesh, star, breakers, attached, isolated)


@dataclass(frozen=True, eq=False)
class World:
    """The inputs of a pass, indexed."""

    volume: ReplicatedVolume
    configuration: VolumeConfiguration
    layout: Layout
    replicas: Mapping[int, Replica]
    """By id, ascending: every id named by an object, a member, a request or a transition."""
    attachments: Mapping[str, tuple[ReplicatedVolumeAttachment, ...]]
    """By node name, ascending; each node's by creation time, then name."""
    pool: ReplicatedStoragePool | None
    features: Features
    fenced_nodes: tuple[str, ...]
    now: str

    @property
    def deleting(self) -> bool:
        """Whether the volume is being deleted."""
        return bool(self.volume.metadata.deletion_timestamp)

    @cached_property
    def eligible_nodes(self) -> Mapping[str, EligibleNode]:
        """The pool's eligible nodes by name."""
        pool = self.pool
        return {node.node_name: node for node in pool.status.eligible_nodes} if pool is not None else {}

    @cached_property
    def ready_agents(self) -> int:
        """Replicas whose reports are fresh."""
        return ids.mask_of(replica.id for replica in self.replicas.values() if replica.agent_ready)

    @cached_property
    def seen_connected(self) -> int:
        """Replicas that some fresh report shows Connected: nobody in here may be declared lost (G25)."""
        mask = 0
        for replica in self.replicas.values():
            mask |= replica.connected
        return mask

    @cached_property
    def fenced(self) -> int:
        """Replicas on nodes with fencing evidence that nobody reaches."""
        fenced = self.fenced_nodes
        mask = ids.mask_of(r.id for r in self.replicas.values() if r.node_name and r.node_name in fenced)
        return mask & ~self.seen_connected

    @cached_property
    def silent(self) -> int:
        """Replicas whose agent does not report and that nobody reaches: they cannot cooperate, and may or may not run.

        Somebody else must be there to say so: without another fresh agent a restarting one would look like a dead node.
        """
        unheard = ids.mask_of(r.id for r in self.replicas.values() if not r.agent_ready) & ~self.seen_connected
        return ids.mask_of(i for i in ids.iterate(unheard) if self.ready_agents & ~(1 << i))

    def zone_of(self, node_name: str, recorded: str = "") -> str:
        """The zone of a node: as recorded in the member, else as the pool says; empty = unknown."""
        if recorded:
            return recorded
        node = self.eligible_nodes.get(node_name)
        return node.zone_name if node is not None else ""

    def linked(self, first: int, second: int, revision: int) -> bool:
        """Connection verified: one side has a fresh agent, has confirmed `revision` and reports the other Connected."""
        replicas = self.replicas
        one = replicas.get(first)
        if one is not None and one.connected >> second & 1 and one.revision >= revision:
            return True
        other = replicas.get(second)
        return other is not None and bool(other.connected >> first & 1) and other.revision >= revision


@dataclass(frozen=True, slots=True, eq=False)
class Context:
    """One question: this world, this mesh, these transitions, this subject."""

    world: World
    mesh: Mesh
    transitions: tuple[DatameshTransition, ...]
    registry: Registry
    subject: int = -1
    """Id of the replica the question is about; -1 for the whole volume."""
    transition: DatameshTransition | None = None
    """The transition the question is about; a candidate while it is being created."""

    @property
    def member(self) -> DatameshMember | None:
        """The subject's membership."""
        return self.mesh.by_id.get(self.subject)

    @property
    def replica(self) -> Replica:
        """The subject's facts."""
        return self.world.replicas[self.subject]

    @property
    def subject_bit(self) -> int:
        """The set of the subject alone; empty for the whole volume."""
        return 1 << self.subject if self.subject >= 0 else 0

    def expected_peers(self, replica_id: int) -> int:
        """Whom a member connects to: full mesh to all others, star to the full mesh (facts/datamesh 2.2)."""
        mesh = self.mesh
        own = 1 << replica_id
        peers = (mesh.all if mesh.full_mesh & own else mesh.full_mesh) & ~own
        if mesh.isolated:
            peers &= ~mesh.tie_breakers if mesh.isolated & own else -1
            peers &= ~mesh.isolated if mesh.tie_breakers & own else -1
        return peers

    def unverified_peers(self, replica_id: int, revision: int, among: int = -1) -> int:
        """Expected peers (restricted to `among`) whose connection with this member is not verified."""
        linked = self.world.linked
        return ids.mask_of(
            peer
            for peer in ids.iterate(self.expected_peers(replica_id) & among)
            if not linked(replica_id, peer, revision)
        )

    @property
    def up_to_date(self) -> int:
        """Diskful members with current data, as their own fresh agents report: the copies that count (G19)."""
        replicas = self.world.replicas
        return ids.mask_of(
            replica_id
            for replica_id in ids.iterate(self.mesh.voters & self.mesh.disks)
            if replica_id in replicas and replicas[replica_id].up_to_date
        )


def world_of(
    inputs: PassInput, configuration: VolumeConfiguration, requests: Mapping[int, MembershipRequest], now: str = ""
) -> World:
    """Index the inputs of a pass."""
    status = inputs.volume.status
    replicas: dict[int, Replica] = {}
    for rvr in inputs.replicas:
        replica = observe(rvr, requests.get(id_of(rvr.metadata.name)))
        replicas[replica.id] = replica
    for member in status.datamesh.members:
        replica_id = id_of(member.name)
        if replica_id not in replicas:
            replicas[replica_id] = absent(replica_id, member.name, member.node_name, requests.get(replica_id))
    for transition in status.datamesh_transitions:
        if transition.replica_name and (replica_id := id_of(transition.replica_name)) not in replicas:
            replicas[replica_id] = absent(replica_id, transition.replica_name, transition.node_name, None)
    return World(
        volume=inputs.volume,
        configuration=configuration,
        layout=Layout(configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy),
        replicas=dict(sorted(replicas.items())),
        attachments=_attachments_by_node(inputs.attachments),
        pool=inputs.pool,
        features=inputs.features,
        fenced_nodes=inputs.fenced_nodes,
        now=now or format_time(inputs.now),
    )


def _attachments_by_node(
    attachments: tuple[ReplicatedVolumeAttachment, ...],
) -> Mapping[str, tuple[ReplicatedVolumeAttachment, ...]]:
    by_node: dict[str, list[ReplicatedVolumeAttachment]] = {}
    ordered = sorted(
        attachments, key=lambda rva: (rva.spec.node_name, rva.metadata.creation_timestamp, rva.metadata.name)
    )
    for attachment in ordered:
        by_node.setdefault(attachment.spec.node_name, []).append(attachment)
    return {node: tuple(found) for node, found in by_node.items()}
