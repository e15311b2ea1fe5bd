"""When a voluntary change is refused: a chain of named guards, first violated one wins (facts/agent 5.2, 5.5).

A guard compares the state before with the settled state after. It asks for "at least as good", not for "good": a
resource that hard facts already brought into trouble must still be manageable.
"""

from __future__ import annotations

from quorate.simulator.change import Change
from quorate.simulator.errors import Refusal
from quorate.simulator.model import PeerVolume, Volume
from quorate.simulator.settle import data_accessible, data_was_accessible
from quorate.simulator.states import SYNCING, Disk, Link, Replication, Role
from quorate.simulator.voting import compute_refusal_text, evaluate

_STARTING = frozenset({Replication.STARTING_SYNC_S, Replication.STARTING_SYNC_T})
_VERIFYING = frozenset({Replication.VERIFY_S, Replication.VERIFY_T})


def check(change: Change, *, ignore_openers: bool = False) -> None:
    """Raises the refusal of the first violated guard."""
    _guard_two_primaries(change)
    _guard_forced_failures(change)
    _guard_new_primary_peer(change)
    for volume in change.resource.volumes.values():
        _guard_openers(change, volume, ignore_openers=ignore_openers)
        _guard_data(change, volume)
        _guard_quorum(change, volume)
        for peer in volume.peers():
            _guard_resync(change, volume, peer)
            _guard_bitmap(change, peer)


def _promotes(change: Change) -> bool:
    return change.resource.role is Role.PRIMARY and change.old_role(change.resource) is not Role.PRIMARY


def _guard_two_primaries(change: Change) -> None:
    """P3: no directly connected Primary unless that connection allows two."""
    if not _promotes(change):
        return
    for connection in change.resource.connections.values():
        if connection.peer_role is Role.PRIMARY and not connection.two_primaries:
            raise Refusal(-1)


def _guard_forced_failures(change: Change) -> None:
    """P9: no promotion until the last opener of a forcibly demoted device is gone."""
    if _promotes(change) and change.resource.fail_io:
        raise Refusal(-12)


def _guard_new_primary_peer(change: Change) -> None:
    """The side of the peer that promotes: P3 and P5."""
    resource = change.resource
    for connection in resource.connections.values():
        becomes = connection.peer_role is Role.PRIMARY and change.old_peer_role(connection) is not Role.PRIMARY
        if not becomes or connection.two_primaries:
            continue
        if change.old_role(resource) is Role.PRIMARY:
            raise Refusal(-1)
        readers = [volume for volume in resource.volumes.values() if volume.open and not volume.writable]
        if readers and not resource.fail_io:
            raise Refusal(-22)


def _guard_openers(change: Change, volume: Volume, *, ignore_openers: bool) -> None:
    """P8: a read-write opener keeps the device Primary, a read-only one does not."""
    demotes = change.old_role(change.resource) is Role.PRIMARY and change.resource.role is Role.SECONDARY
    if demotes and volume.writable and not ignore_openers:
        raise Refusal(-12)


def _guard_data(change: Change, volume: Volume) -> None:
    """P1 and D15: no promotion without data, and a Primary or a reader keeps its last current copy."""
    accessible, was_accessible = data_accessible(volume), data_was_accessible(change, volume)
    primary = change.resource.role is Role.PRIMARY
    was_primary = change.old_role(change.resource) is Role.PRIMARY
    if primary and not accessible and not (was_primary and not was_accessible):
        raise Refusal(-2)
    if volume.open and not volume.writable and was_accessible and not accessible:
        raise Refusal(-2)  # S4b: a detach under a read-only opener


def _guard_quorum(change: Change, volume: Volume) -> None:
    """P2 and D3: no promotion without quorum, and no voluntary change that costs a Primary its quorum."""
    had = change.old(volume, "quorum") is True
    was_secondary = change.old_role(change.resource) is Role.SECONDARY
    if change.resource.role is Role.PRIMARY and not volume.quorum and (was_secondary or had):
        verdict = evaluate(volume, had_quorum=had)
        raise Refusal(-25, compute_refusal_text(volume, verdict))


def _guard_resync(change: Change, volume: Volume, peer: PeerVolume) -> None:
    before = change.old_replication(peer)
    if peer.replication is before:
        return
    if peer.replication > Replication.ESTABLISHED and volume.disk < Disk.INCONSISTENT:
        raise Refusal(-4)
    if peer.replication > Replication.ESTABLISHED and peer.disk < Disk.INCONSISTENT:
        raise Refusal(-5)
    begins = peer.replication in _STARTING or peer.replication in _VERIFYING
    if begins and before < Replication.ESTABLISHED:
        raise Refusal(-15)
    if begins and before > Replication.ESTABLISHED:
        raise Refusal(-8)
    if peer.replication in _VERIFYING and not peer.connection.net["verify-alg"]:
        raise Refusal(-14)
    if before in SYNCING and peer.replication in (Replication.WF_BITMAP_S, Replication.WF_BITMAP_T):
        raise Refusal(-8)


def _guard_bitmap(change: Change, peer: PeerVolume) -> None:
    """D13: a peer without a bitmap slot must not turn up with a disk (S10)."""
    appears = peer.disk > Disk.DISKLESS and peer.disk is not Disk.UNKNOWN
    connected = peer.connection.link is Link.CONNECTED
    if connected and appears and change.old_disk(peer) is Disk.DISKLESS and not peer.wants_bitmap:
        raise Refusal(-26)
