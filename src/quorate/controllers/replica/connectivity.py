"""Condition FullyConnected: whether the replica is connected to all its peers (seed 001)."""

from __future__ import annotations

from quorate.api.common import ConnectionState
from quorate.api.replicated_volume_replica import (
    FullyConnectedCondition,
    PeerStatus,
    ReplicatedVolumeReplicaStatus,
)
from quorate.controllers.replica.drbd_resource import DrbdOutcome
from quorate.controllers.replica.situation import Situation
from quorate.controllers.replica.verdict import Verdict

R = FullyConnectedCondition


def compute_fully_connected(
    situation: Situation, status: ReplicatedVolumeReplicaStatus, outcome: DrbdOutcome, foreign: tuple[str, ...]
) -> Verdict | None:
    """The condition; absent where no connection is expected or possible yet."""
    member = situation.member is not None
    if situation.drbdr is None or not (member or status.peers) or not status.addresses:
        return None
    if not outcome.agent_ready:
        return Verdict.unknown(R.AGENT_NOT_READY, "Agent is not ready, connections are unknown")
    verdict = _evaluate(situation, status)
    if not foreign:
        return verdict
    return verdict._replace(message=f"{verdict.message}; foreign DRBD peers: {', '.join(foreign)}")


def _evaluate(situation: Situation, status: ReplicatedVolumeReplicaStatus) -> Verdict:
    datamesh = situation.datamesh
    if not status.peers:
        if situation.member is not None and datamesh is not None and len(datamesh.members) == 1:
            return Verdict.true(R.SOLE_MEMBER, "Replica is the sole datamesh member, no peers expected")
        return Verdict.false(R.NO_PEERS, "No peers configured")
    networks = tuple(address.system_network_name for address in status.addresses)
    # A member that DRBD does not report yet is a peer without a connection.
    reported = tuple(peer.name for peer in status.peers)
    missing = [peer.name for peer in situation.expected_peers if peer.name not in reported]
    connected = [peer for peer in status.peers if peer.connection_state == ConnectionState.CONNECTED]
    fully = [peer for peer in connected if _has_all_paths(peer, networks)]
    total = len(status.peers) + len(missing)
    if situation.member is None:
        return Verdict.false(
            R.PARTIALLY_CONNECTED if connected else R.NOT_CONNECTED,
            f"Connected to {len(connected)} of {total} peers while not a datamesh member",
        )
    if len(fully) == total:
        return Verdict.true(R.FULLY_CONNECTED, f"Fully connected to {total} of {total} peers on all paths")
    if not connected:
        return Verdict.false(R.NOT_CONNECTED, f"Not connected to any of {total} peers")
    if len(connected) == total:
        return Verdict.true(
            R.CONNECTED_TO_ALL_PEERS, f"Connected to all {total} peers, {len(fully)} of them on all paths"
        )
    away = sorted([*missing, *(peer.name for peer in status.peers if peer not in connected)])
    return Verdict.false(
        R.PARTIALLY_CONNECTED, f"Connected to {len(connected)} of {total} peers; missing: {', '.join(away)}"
    )


def _has_all_paths(peer: PeerStatus, networks: tuple[str, ...]) -> bool:
    return all(network in peer.connection_established_on for network in networks)
