"""One pass as the checks of the invariants see it."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api.common import DiskState
from quorate.api.replicated_volume import (
    Datamesh,
    DatameshMember,
    DatameshTransition,
    MemberType,
    ReplicatedVolumeStatus,
    TransitionGroup,
)
from quorate.datamesh import members
from quorate.datamesh.context import agent_is_ready
from quorate.datamesh.contract import PassResult
from quorate.datamesh.layout import Layout
from quorate.verification.perfect_cluster import Cluster

VOTING_GROUPS = (TransitionGroup.VOTING_MEMBERSHIP, TransitionGroup.QUORUM, TransitionGroup.EMERGENCY)


@dataclass(frozen=True)
class Observation:
    """One pass."""

    cluster: Cluster
    """The inputs."""
    result: PassResult
    history: dict[int, Datamesh]
    """Every revision published so far, this pass included."""
    blank: frozenset[str] = frozenset()
    """Replicas whose node was proven down and has not answered since: whatever it boots with comes from the newest status."""

    @property
    def before(self) -> ReplicatedVolumeStatus:
        return self.cluster.volume.status

    @property
    def after(self) -> ReplicatedVolumeStatus:
        return self.result.status

    @property
    def layout(self) -> Layout:
        configuration = self.before.configuration
        assert configuration is not None
        return Layout(configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy)

    def new_transitions(self) -> list[DatameshTransition]:
        keys = [(t.type, t.plan_id, t.replica_name) for t in self.before.datamesh_transitions]
        return [t for t in self.after.datamesh_transitions if (t.type, t.plan_id, t.replica_name) not in keys]

    def emergency_subjects(self) -> list[str]:
        both = (*self.before.datamesh_transitions, *self.after.datamesh_transitions)
        return [t.replica_name for t in both if t.group == TransitionGroup.EMERGENCY]

    def fenced(self, name: str) -> bool:
        """Whether a member cannot run: fencing evidence and nobody reaches it."""
        member = by_name(self.before.datamesh).get(name) or by_name(self.after.datamesh).get(name)
        if name in self.blank:
            return True
        return member is not None and member.node_name in self.cluster.fenced and not self.reached(name)

    def taken_back(self, name: str) -> bool:
        """Whether a join is being taken back: nothing is lost that anybody counted on."""
        both = (*self.before.datamesh_transitions, *self.after.datamesh_transitions)
        return any(t.reverting and t.replica_name == name for t in both)

    def sees_somebody(self, name: str) -> bool:
        return any(
            rvr.metadata.name == name
            and agent_is_ready(rvr)
            and any(peer.connection_state == "Connected" for peer in rvr.status.peers)
            for rvr in self.cluster.replicas
        )

    def reached(self, name: str) -> bool:
        return any(
            peer.name == name and peer.connection_state == "Connected"
            for rvr in self.cluster.replicas
            if agent_is_ready(rvr)
            for peer in rvr.status.peers
        )

    def copies(self, without: str = "") -> int:
        """UpToDate voters that fresh agents report, other than one."""
        diskful = [m.name for m in self.before.datamesh.members if m.type == MemberType.DISKFUL and m.name != without]
        return sum(
            rvr.metadata.name in diskful
            and agent_is_ready(rvr)
            and rvr.status.backing_volume is not None
            and rvr.status.backing_volume.state == DiskState.UP_TO_DATE
            for rvr in self.cluster.replicas
        )


def by_name(datamesh: Datamesh) -> dict[str, DatameshMember]:
    return {member.name: member for member in datamesh.members}


def voters(datamesh: Datamesh) -> frozenset[str]:
    return frozenset(member.name for member in datamesh.members if members.is_voter(member.type))


def breakers(datamesh: Datamesh) -> frozenset[str]:
    return frozenset(member.name for member in datamesh.members if member.type == MemberType.TIE_BREAKER)


def changed_voters(o: Observation) -> frozenset[str]:
    return voters(o.before.datamesh) ^ voters(o.after.datamesh)


def is_copy(o: Observation, name: str) -> bool:
    return o.copies() > o.copies(name)


def was_copy(o: Observation, name: str) -> bool:
    """Whether a D∅ ever held data: it was D in some revision."""
    return any(
        by_name(d).get(name) is not None and by_name(d)[name].type == MemberType.DISKFUL for d in o.history.values()
    )
