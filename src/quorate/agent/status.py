"""From what is on the node to the status of the DRBDResource: every field the replica controller reads. Pure.

Sources where it matters: the type of this node and of a peer comes from the configuration (`backing-disk`, `bitmap`),
never from a transient disk state, so a disconnected diskless peer stays diskless (T3); role and allowRemoteRead of peers
are filled (T1). Numbers that change all the time (resync progress) are taken over in steps of one per cent, so that a
resync costs a hundred writes and not one per event.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent.actual import ActualPeer, ActualResource
from quorate.agent.intended import Settings, link_path
from quorate.agent.quorum_flag import Verdict, compute_threshold
from quorate.api.common import Address, DiskState, DrbdRole, DrbdType, Endpoint, ReplicationState
from quorate.api.drbd_resource import (
    ActiveConfiguration,
    DRBDResource,
    DRBDResourceStatus,
    PeerPathStatus,
    PeerStatus,
    QuorumPolicy,
    VoterFacts,
)
from quorate.api.quantity import Quantity
from quorate.api.value import replace

STATE_UP = "Up"
STATE_DOWN = "Down"


@dataclass(frozen=True, slots=True)
class Report:
    """What the status is made from, besides the object itself."""

    actual: ActualResource | None
    verdict: Verdict | None
    addresses: tuple[Address, ...]
    backing_volume: str
    """Name of the LVMLogicalVolume that backs the disk now; empty when there is none or it is not known."""
    to_release: tuple[str, ...]
    device_uuid: str


def compute_status(resource: DRBDResource, report: Report, settings: Settings) -> DRBDResourceStatus:
    """The status, conditions apart."""
    old = resource.status
    base = DRBDResourceStatus(
        conditions=old.conditions,
        addresses=report.addresses,
        device_uuid=old.device_uuid or report.device_uuid,
        active_configuration=ActiveConfiguration(state=STATE_DOWN, llv_finalizers_to_release=report.to_release),
    )
    actual = report.actual
    if actual is None:
        return base
    status = replace(
        base,
        active_configuration=_active_configuration(resource, actual, report),
        peers=_peers(resource, actual, report.addresses),
    )
    volume = actual.volume
    if volume is None:
        return status
    primary = actual.role == DrbdRole.PRIMARY
    sized = volume.disk_state != DiskState.DISKLESS and volume.size > 0
    return replace(
        status,
        device=link_path(resource.metadata.name),
        device_io_suspended=actual.suspended if primary else None,
        device_open=volume.open if primary else None,
        size=Quantity.of(volume.size) if sized else None,
        disk_state=volume.disk_state,
        quorum=volume.quorum,
        voter_facts=_voter_facts(report.verdict, settings) if report.verdict else None,
    )


def _active_configuration(resource: DRBDResource, actual: ActualResource, report: Report) -> ActiveConfiguration:
    volume = actual.volume
    diskful = volume is not None and bool(volume.backing_disk)
    voters = report.verdict.tally.voters if report.verdict else 0
    policy = _policy(actual.quorum_option)
    quorum = compute_threshold(actual.quorum_option, voters)
    if policy == QuorumPolicy.MAJORITY and resource.spec.quorum:
        # `majority` is written only where the published number is the majority of the published voters.
        quorum = resource.spec.quorum
    two_primaries = [peer.net.get("allow-two-primaries") for peer in actual.peers]
    return ActiveConfiguration(
        state=STATE_UP,
        role=actual.role,
        type=DrbdType.DISKFUL if diskful else DrbdType.DISKLESS,
        quorum=quorum or None,
        quorum_policy=policy,
        quorum_minimum_redundancy=compute_threshold(actual.redundancy_option, voters) or None,
        allow_two_primaries=two_primaries[0] in (True, "yes") if two_primaries else None,
        non_voting=_non_voting(actual) if diskful else None,
        lvm_logical_volume_name=report.backing_volume,
        llv_finalizers_to_release=report.to_release,
    )


def _policy(option: str) -> str:
    if option in (QuorumPolicy.MAJORITY, QuorumPolicy.ALL, QuorumPolicy.OFF):
        return option
    return QuorumPolicy.NUMBER


def _non_voting(actual: ActualResource) -> bool:
    volume = actual.volume
    return volume is not None and volume.disk_options.get("non-voting") in (True, "yes")


def _voter_facts(verdict: Verdict, settings: Settings) -> VoterFacts:
    tally = verdict.tally
    return VoterFacts(
        mode=settings.voter_mode,
        voters=tally.voters,
        present=tally.visible,
        up_to_date=tally.up_to_date,
        outdated=tally.outdated,
        unknown=tally.absent + tally.unknown_self,
        connected_tie_breakers=tally.connected_tie_breakers,
        missing_tie_breakers=tally.missing_tie_breakers,
        expected_quorum=verdict.expected,
    )


# --- peers -------------------------------------------------------------------------------------------------------


def _peers(resource: DRBDResource, actual: ActualResource, addresses: tuple[Address, ...]) -> tuple[PeerStatus, ...]:
    names = {peer.node_id: peer.name for peer in resource.spec.peers}
    before = {peer.node_id: peer for peer in resource.status.peers}
    peers = [
        _peer(peer, names.get(peer.node_id) or peer.name or f"peer-{peer.node_id}", addresses, before.get(peer.node_id))
        for peer in actual.peers
    ]
    return tuple(sorted(peers, key=lambda peer: peer.name))


def _peer(peer: ActualPeer, name: str, addresses: tuple[Address, ...], before: PeerStatus | None) -> PeerStatus:
    syncing = peer.replication_state in ReplicationState.SYNCING
    progress, out_of_sync = _progress(peer, before) if syncing else ("", None)
    return PeerStatus(
        name=name,
        node_id=peer.node_id,
        type=DrbdType.DISKFUL if peer.bitmap else DrbdType.DISKLESS,
        allow_remote_read=peer.allow_remote_read,
        bitmap=peer.bitmap,
        tie_breaker=peer.tie_breaker if not peer.bitmap else None,
        paths=_paths(peer, addresses),
        connection_state=peer.connection_state,
        disk_state=peer.disk_state,
        replication_state=peer.replication_state,
        role=peer.role,
        sync_progress=progress,
        out_of_sync=out_of_sync,
    )


def _progress(peer: ActualPeer, before: PeerStatus | None) -> tuple[str, int | None]:
    """Progress in steps of one per cent of the volume or of the resync: within a step the reported value stays."""
    done = f"{peer.resync_done:.2f}" if peer.resync_done is not None else ""
    if before is None or before.replication_state != peer.replication_state or not before.sync_progress or not done:
        return done, peer.out_of_sync
    if int(float(before.sync_progress)) == int(float(done)):
        return before.sync_progress, before.out_of_sync
    return done, peer.out_of_sync


def _paths(peer: ActualPeer, addresses: tuple[Address, ...]) -> tuple[PeerPathStatus, ...]:
    """One entry per network, the established one preferred; a local address that is not ours is left out."""
    networks = {address.address.ipv4: address.system_network_name for address in addresses}
    found: dict[str, PeerPathStatus] = {}
    for path in peer.paths:
        network = networks.get(path.local.address)
        if network is None or (network in found and not path.established):
            continue
        remote = Endpoint(ipv4=path.remote.address, port=path.remote.port)
        found[network] = PeerPathStatus(system_network_name=network, address=remote, established=path.established)
    return tuple(found[network] for network in sorted(found))
