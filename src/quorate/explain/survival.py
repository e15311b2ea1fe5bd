"""What would still work after a loss: the engine's own arithmetic, asked about a changed world.

The loss of a node is played by taking away what its agents report and what others see of it; the observed protection of
that state is computed by the law itself (`datamesh.effective.compute_observed`), so this file has no quorum formula of its
own. A protection below zero failures to tolerate means that I/O stops. The answer is on the safe side: a kernel that
strikes missing voters may keep I/O alive where the published q says no.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from quorate.api import conditions
from quorate.api.common import ConnectionState, DiskState
from quorate.api.meta import Condition
from quorate.api.replicated_volume import ObservedProtection, ReplicatedVolume, TransitionType
from quorate.api.replicated_volume_replica import DRBDConfiguredCondition, PeerStatus, ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.datamesh import effective
from quorate.datamesh.context import mesh_of, world_of
from quorate.datamesh.contract import PassInput
from quorate.datamesh.default_registry import DEFAULT_REGISTRY
from quorate.datamesh.state import State
from quorate.explain.view import ClusterView

MAX_TOGETHER = 3
"""Losses of more nodes at once are not looked at."""


@dataclass(frozen=True)
class Survival:
    """Which losses a volume survives now."""

    any_of: int
    """Any choice of this many member nodes may be lost; -1 = the volume does not serve I/O even now."""
    fatal: tuple[tuple[str, ...], ...]
    """Smallest choices of nodes whose loss stops I/O."""


def is_formed(volume: ReplicatedVolume) -> bool:
    """Whether the volume is a volume yet."""
    status = volume.status
    forming = any(t.type == TransitionType.FORMATION for t in status.datamesh_transitions)
    return status.configuration is not None and bool(status.datamesh.members) and not forming


def protection_without(view: ClusterView, volume: ReplicatedVolume, lost: Iterable[str]) -> ObservedProtection:
    """The protection that would be observed if these nodes were gone; the volume is formed."""
    gone = tuple(lost)
    status = volume.status
    configuration = status.configuration
    assert configuration is not None
    absent = tuple(member.name for member in status.datamesh.members if member.node_name in gone)
    replicas = tuple(_seen_after(replica, absent) for replica in view.replicas_of(volume.metadata.name))
    inputs = PassInput(volume=volume, replicas=replicas, pool=view.pool_of(volume))
    world = world_of(inputs, configuration, {})
    mesh = mesh_of(status.datamesh, status.datamesh_revision)
    return effective.compute_observed(State(world, DEFAULT_REGISTRY, mesh, status.datamesh_transitions))


def serves_io(protection: ObservedProtection) -> bool:
    """Whether quorum and enough copies are there."""
    return protection.failures_to_tolerate is not None and protection.failures_to_tolerate >= 0


def survival_of(view: ClusterView, volume: ReplicatedVolume) -> Survival:
    """How many nodes may be lost, and which losses would be too much."""
    nodes = tuple(dict.fromkeys(member.node_name for member in volume.status.datamesh.members))
    if not serves_io(protection_without(view, volume, ())):
        return Survival(-1, ())
    for count in range(1, min(len(nodes), MAX_TOGETHER) + 1):
        fatal = tuple(
            chosen for chosen in combinations(nodes, count) if not serves_io(protection_without(view, volume, chosen))
        )
        if fatal:
            return Survival(count - 1, fatal)
    return Survival(min(len(nodes), MAX_TOGETHER), ())


def _seen_after(replica: ReplicatedVolumeReplica, absent: tuple[str, ...]) -> ReplicatedVolumeReplica:
    """The replica's report once the absent ones are gone: theirs is stale, others see no connection to them."""
    status = replica.status
    if replica.metadata.name in absent:
        silent = Condition(
            type=DRBDConfiguredCondition.TYPE,
            status=conditions.FALSE,
            reason=DRBDConfiguredCondition.AGENT_NOT_READY,
        )
        others = conditions.remove(status.conditions, DRBDConfiguredCondition.TYPE)
        return replace(replica, status=replace(status, conditions=(*others, silent), quorum=None))
    peers = tuple(_lost(peer) if peer.name in absent else peer for peer in status.peers)
    return replace(replica, status=replace(status, peers=peers))


def _lost(peer: PeerStatus) -> PeerStatus:
    return replace(peer, connection_state=ConnectionState.CONNECTING, backing_volume_state=DiskState.D_UNKNOWN)
