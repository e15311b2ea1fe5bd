"""The status fields that mirror the DRBDResource: addresses, type, size, attachment, peers, backing volume, quorum."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from quorate.api.common import ConnectionState, DiskState
from quorate.api.drbd_resource import DRBDResource, DrbdRole, DrbdType
from quorate.api.drbd_resource import PeerStatus as DrbdPeerStatus
from quorate.api.replicated_volume import MemberType
from quorate.api.replicated_volume_replica import (
    BackingVolume,
    PeerStatus,
    QuorumSummary,
    ReplicaAttachment,
    ReplicatedVolumeReplicaStatus,
)
from quorate.api.value import replace
from quorate.controllers.replica.backing_volume import disk_of, find_volume
from quorate.controllers.replica.drbd_resource import DrbdOutcome
from quorate.controllers.replica.situation import Situation
from quorate.datamesh import members

MAXIMUM_ID = 31


def is_attached(drbdr: DRBDResource | None) -> bool:
    """Whether DRBD is Primary on the node."""
    active = drbdr.status.active_configuration if drbdr is not None else None
    return active is not None and active.role == DrbdRole.PRIMARY


def ensure_addresses_type_and_size(
    status: ReplicatedVolumeReplicaStatus, drbdr: DRBDResource | None
) -> ReplicatedVolumeReplicaStatus:
    """Addresses, observed type and usable size; cleared without a DRBDResource."""
    if drbdr is None:
        return replace(status, addresses=(), type="", size=None)
    active = drbdr.status.active_configuration
    return replace(
        status,
        addresses=drbdr.status.addresses,
        type=active.type if active is not None else "",
        size=drbdr.status.size,
    )


def ensure_attachment(
    status: ReplicatedVolumeReplicaStatus, drbdr: DRBDResource | None, outcome: DrbdOutcome
) -> ReplicatedVolumeReplicaStatus:
    """The device while Primary; left as it is while the agent is away or still applying."""
    if drbdr is None:
        return replace(status, attachment=None)
    if not outcome.agent_ready or outcome.pending:
        return status
    if not is_attached(drbdr) or not drbdr.status.device:
        return replace(status, attachment=None)
    attachment = ReplicaAttachment(
        device_path=drbdr.status.device,
        io_suspended=bool(drbdr.status.device_io_suspended),
        in_use=bool(drbdr.status.device_open),
    )
    return replace(status, attachment=attachment)


@dataclass(frozen=True)
class MirroredPeers:
    """The peers of the volume, and the names of those that are none of it."""

    peers: tuple[PeerStatus, ...]
    foreign: tuple[str, ...]


def compute_peers(situation: Situation) -> MirroredPeers:
    """The DRBDResource's peers in the replica's words. Foreign ones are reported, the rest is mirrored (ruling on 001)."""
    drbdr = situation.drbdr
    mirrored: dict[str, PeerStatus] = {}
    foreign: list[str] = []
    for peer in drbdr.status.peers if drbdr is not None else ():
        name = compute_peer_name(peer.name, situation.replica.spec.replicated_volume_name)
        if name:
            mirrored[name] = _mirror(situation, name, peer)
        else:
            foreign.append(peer.name)
    return MirroredPeers(tuple(mirrored[name] for name in sorted(mirrored)), tuple(sorted(foreign)))


def compute_peer_name(name: str, volume_name: str) -> str:
    """The replica name of a peer; the agent's `peer-<id>` is rewritten. Empty for a foreign one."""
    for prefix in (f"{volume_name}-", "peer-"):
        suffix = name.removeprefix(prefix)
        if suffix != name and suffix.isdecimal() and str(int(suffix)) == suffix and int(suffix) <= MAXIMUM_ID:
            return f"{volume_name}-{suffix}"
    return ""


def _mirror(situation: Situation, name: str, peer: DrbdPeerStatus) -> PeerStatus:
    return PeerStatus(
        name=name,
        type=_compute_peer_type(situation, name, peer),
        attached=peer.role == DrbdRole.PRIMARY,
        connection_established_on=tuple(path.system_network_name for path in peer.paths if path.established),
        connection_state=peer.connection_state,
        backing_volume_state=peer.disk_state,
        replication_state=peer.replication_state,
        sync_progress=peer.sync_progress,
        out_of_sync=peer.out_of_sync,
    )


def _compute_peer_type(situation: Situation, name: str, peer: DrbdPeerStatus) -> str:
    """By the datamesh; by DRBD's own view for a peer that is no member (any more)."""
    datamesh = situation.datamesh
    for member in datamesh.members if datamesh is not None else ():
        if member.name == name:
            return MemberType.DISKFUL if members.is_full_mesh(member.type) else member.type
    if peer.type == DrbdType.DISKFUL or peer.bitmap:
        return MemberType.DISKFUL
    # A diskless peer that may be read from has a vote in ties (seed 001, foreign peer guard chart).
    return MemberType.TIE_BREAKER if peer.allow_remote_read else MemberType.ACCESS


@dataclass(frozen=True)
class BackingVolumeReport:
    """The backing volume as observed; `missing` names one that DRBD uses and nobody finds."""

    backing_volume: BackingVolume | None
    missing: str = ""


def compute_backing_volume(situation: Situation) -> BackingVolumeReport:
    """What DRBD has as its disk, and where that disk is."""
    drbdr = situation.drbdr
    active = drbdr.status.active_configuration if drbdr is not None else None
    if drbdr is None or active is None:
        return BackingVolumeReport(None)
    name, state = active.lvm_logical_volume_name, drbdr.status.disk_state
    if not name:
        has_disk = active.type == DrbdType.DISKFUL
        return BackingVolumeReport(BackingVolume(state=state) if has_disk and state else None)
    volume = find_volume(situation, name)
    if volume is None:
        # What was known about the place stays: a lagging cache is no change of place.
        known = situation.replica.status.backing_volume
        return BackingVolumeReport(replace(known or BackingVolume(), state=state), missing=name)
    disk = disk_of(volume)
    return BackingVolumeReport(
        BackingVolume(
            size=volume.status.actual_size,
            state=state,
            lvm_volume_group_name=disk.volume_group,
            lvm_volume_group_thin_pool_name=disk.thin_pool,
        )
    )


def compute_quorum_summary(drbdr: DRBDResource | None, peers: Sequence[PeerStatus]) -> QuorumSummary | None:
    """Connected peers by what they are worth, and the thresholds the kernel has."""
    if drbdr is None:
        return None
    connected = [peer for peer in peers if peer.connection_state == ConnectionState.CONNECTED]
    active = drbdr.status.active_configuration
    return QuorumSummary(
        connected_diskful_peers=sum(peer.type == MemberType.DISKFUL for peer in connected),
        connected_tie_breaker_peers=sum(peer.type == MemberType.TIE_BREAKER for peer in connected),
        connected_up_to_date_peers=sum(peer.backing_volume_state == DiskState.UP_TO_DATE for peer in connected),
        quorum=active.quorum if active is not None else None,
        quorum_minimum_redundancy=active.quorum_minimum_redundancy if active is not None else None,
    )


def ensure_quorum(
    status: ReplicatedVolumeReplicaStatus, drbdr: DRBDResource | None, now: str
) -> ReplicatedVolumeReplicaStatus:
    """The kernel's quorum flag, whether it is the one of the configuration, and since when it was reached."""
    if drbdr is None:
        return replace(status, quorum=None, quorum_enforced=None, quorum_summary=None, initial_quorum_reached_at="")
    quorum, facts = drbdr.status.quorum, drbdr.status.voter_facts
    expected = facts.expected_quorum if facts is not None else None
    reached = status.initial_quorum_reached_at
    if status.datamesh_revision == 0:
        reached = ""
    elif quorum and not reached:
        reached = now
    return replace(
        status,
        quorum=quorum,
        quorum_enforced=None if quorum is None or expected is None else quorum == expected,
        quorum_summary=compute_quorum_summary(drbdr, status.peers),
        initial_quorum_reached_at=reached,
    )
