"""Published statuses as small numbers, and what each means on every node.

Guarantees: two statuses that differ only in texts, times, observed values or in the absolute values of revisions get the
same number, because nothing the engine decides depends on them: revisions are only compared, so they are replaced by their
ranks. What a node is told is computed by the production projection (`quorate.datamesh.projection`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from quorate.api.drbd_resource import DRBDResourceSpec
from quorate.api.meta import ObjectMeta
from quorate.api.names import replica_name
from quorate.api.replicated_volume import (
    Datamesh,
    DatameshTransition,
    EffectiveLayout,
    MemberType,
    ReplicatedVolume,
    ReplicatedVolumeStatus,
)
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec
from quorate.api.value import replace
from quorate.datamesh import projection
from quorate.datamesh.features import Features
from quorate.datamesh.members import id_of
from quorate.simulator.quorum import MAJORITY
from quorate.verification.configuration import (
    ACCESS,
    DISKFUL,
    GONE,
    LIMINAL,
    TIE_BREAKER,
    UNREACHABLE_QUORUM,
    NodeConfiguration,
    majority,
)
from quorate.verification.perfect_cluster import VOLUME, address_of
from quorate.verification.world import Target

KINDS = {
    MemberType.DISKFUL: DISKFUL,
    MemberType.LIMINAL_DISKFUL: LIMINAL,
    MemberType.TIE_BREAKER: TIE_BREAKER,
    MemberType.ACCESS: ACCESS,
}
_FIRST_RANK = 2
"""Revision 1 is formation's first; every status here is of a formed volume."""


class Published(NamedTuple):
    """One status with its revision and the targets of all nodes."""

    status: ReplicatedVolumeStatus
    revision: int
    targets: tuple[Target, ...]
    members: int


class PublishedTable:
    """Numbers for statuses of one volume on `size` nodes."""

    def __init__(self, volume: ReplicatedVolume, size: int, features: Features) -> None:
        self.volume = volume
        self.size = size
        self.features = features
        self.entries: list[Published] = []
        self._numbers: dict[ReplicatedVolumeStatus, int] = {}
        self._ranked: dict[tuple[int, tuple[int, ...]], tuple[ReplicatedVolumeStatus, tuple[int, tuple[int, ...]]]] = {}

    def number(self, status: ReplicatedVolumeStatus, revisions: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        """The number of a status, and the nodes' revisions in its ranks."""
        key = (id(status), revisions)
        known = self._ranked.get(key)
        if known is not None:
            return known[1]
        result = self._rank(status, revisions)
        # The status is kept with its entry, so that its identity stays its own.
        self._ranked[key] = (status, result)
        return result

    def _rank(self, status: ReplicatedVolumeStatus, revisions: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        ranks = _ranks(status, revisions)
        plain = _plain(status, ranks)
        found = self._numbers.get(plain)
        if found is None:
            found = self._numbers[plain] = len(self.entries)
            self.entries.append(self._entry(plain))
        return found, tuple(ranks.get(revision, 0) for revision in revisions)

    def image(self, number: int, places: tuple[int, ...]) -> int:
        """The number of a status with its nodes renamed: node i becomes `places[i]`."""
        status = self.entries[number].status

        def renamed(name: str) -> str:
            return replica_name(VOLUME, places[id_of(name)])

        members = tuple(
            replace(m, name=renamed(m.name), node_name=f"node-{place}", addresses=(address_of(place),))
            for m in status.datamesh.members
            for place in (places[id_of(m.name)],)
        )
        transitions = tuple(
            replace(t, replica_name=renamed(t.replica_name), node_name=f"node-{places[id_of(t.replica_name)]}")
            if t.replica_name
            else t
            for t in status.datamesh_transitions
        )
        changed = replace(
            status, datamesh=_ordered(replace(status.datamesh, members=members)), datamesh_transitions=transitions
        )
        found = self._numbers.get(changed)
        if found is None:
            found = self._numbers[changed] = len(self.entries)
            self.entries.append(self._entry(changed))
        return found

    def _entry(self, status: ReplicatedVolumeStatus) -> Published:
        volume = replace(self.volume, status=status)
        targets = tuple(self._target(volume, i) for i in range(self.size))
        members = sum(1 << i for i, target in enumerate(targets) if target.configuration.kind != GONE)
        return Published(status, status.datamesh_revision, targets, members)

    def _target(self, volume: ReplicatedVolume, i: int) -> Target:
        name = replica_name(volume.metadata.name, i)
        member = projection.find_member(volume.status.datamesh, name)
        if member is None:
            return Target(NodeConfiguration())
        replica = ReplicatedVolumeReplica(
            metadata=ObjectMeta(name=name),
            spec=ReplicatedVolumeReplicaSpec(
                replicated_volume_name=volume.metadata.name, type="Diskful", node_name=member.node_name
            ),
        )
        spec = projection.intended_drbd(volume, replica, logical_volume="lv", features=self.features)
        dynamic = self.features.voter_mode == "dynamic"
        return Target(_configuration(KINDS[member.type], spec, dynamic=dynamic), spec.role == "Primary")


def _configuration(kind: int, spec: DRBDResourceSpec, *, dynamic: bool) -> NodeConfiguration:
    """What the agent makes of the specification of its DRBD resource (decision 15 for `majority`)."""
    voters = ties = silent = 0
    for peer in spec.peers:
        bit = 1 << peer.node_id
        if not peer.allow_remote_read or (peer.type == "Diskless" and not peer.tie_breaker):
            silent |= bit
        elif peer.type == "Diskful":
            voters |= bit
        else:
            ties |= bit
    quorum, redundancy = spec.quorum or 0, spec.quorum_minimum_redundancy or 0
    if dynamic and ties and quorum != UNREACHABLE_QUORUM and quorum == majority(voters.bit_count() + 1):
        quorum = MAJORITY
    if kind not in (DISKFUL, LIMINAL):
        ties = 0
    return NodeConfiguration(kind, quorum, redundancy, voters, ties, silent)


def _ranks(status: ReplicatedVolumeStatus, revisions: Iterable[int]) -> dict[int, int]:
    used = {status.datamesh_revision, *revisions}
    used.update(s.datamesh_revision for t in status.datamesh_transitions for s in t.steps if s.status == "Active")
    used.discard(0)
    return {revision: rank for rank, revision in enumerate(sorted(used), _FIRST_RANK)} | {0: 0}


def _plain(status: ReplicatedVolumeStatus, ranks: dict[int, int]) -> ReplicatedVolumeStatus:
    return replace(
        status,
        conditions=(),
        # Nothing asks for the order of the members.
        datamesh=_ordered(status.datamesh),
        datamesh_revision=ranks[status.datamesh_revision],
        datamesh_transitions=tuple(_plain_transition(t, ranks) for t in status.datamesh_transitions),
        datamesh_replica_requests=(),
        effective_layout=EffectiveLayout(),
        observed_protection=None,
        membership_layout="",
    )


def _ordered(datamesh: Datamesh) -> Datamesh:
    members = tuple(sorted(datamesh.members, key=lambda member: id_of(member.name)))
    return datamesh if members == datamesh.members else replace(datamesh, members=members)


def _plain_transition(transition: DatameshTransition, ranks: dict[int, int]) -> DatameshTransition:
    steps = tuple(
        replace(
            step,
            message="",
            reason="",
            started_at="",
            completed_at="",
            # Only the active step's revision is ever compared.
            datamesh_revision=ranks[step.datamesh_revision] if step.status == "Active" else 0,
        )
        for step in transition.steps
    )
    return replace(transition, steps=steps, message="")
