"""When to write the status: at once when somebody waits for it, a little later when it only reports progress.

A status write costs more than everything else a pass does, and most intermediate states are gone before anybody reads them.
So a difference between the published and the computed status falls into one of four classes:

| class | examples | published after |
|---|---|---|
| awaited | a request, a revision that a step waits for, lost quorum or connection, a failure | at once |
| flux | some peers connected, not yet all; configured during formation, not yet connected | 2 s |
| progress | ApplyingConfiguration, Provisioning, phase, texts, a revision that nobody waits for | 3 s |
| sync | percentage of a running synchronisation | 10 s |

or earlier, together with the next difference of a higher class.

Held-back differences are never lost: the pass asks since when it holds back (`HeldSince`, answered by the shell from memory)
and publishes when the time is up. Every row of the seed's condition tables therefore still appears on the wire as soon as it
lasts long enough for anyone to read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from quorate.api import conditions
from quorate.api.common import ConnectionState, DiskState, ReplicationState
from quorate.api.meta import Condition
from quorate.api.replicated_volume import Operation, ReplicatedVolume, StepStatus, TransitionGroup
from quorate.api.replicated_volume_replica import (
    AttachedCondition,
    BackingVolumeReadyCondition,
    BackingVolumeUpToDateCondition,
    DRBDConfiguredCondition,
    FullyConnectedCondition,
    PeerStatus,
    ReadyCondition,
    ReplicatedVolumeReplicaStatus,
    SatisfyEligibleNodesCondition,
)
from quorate.api.value import replace

DRBD, READY = DRBDConfiguredCondition, ReadyCondition


class Urgency(IntEnum):
    """How soon a difference must be published; the smallest wins."""

    AWAITED = 0
    FLUX = 1
    PROGRESS = 2
    SYNC = 3
    NONE = 4


PATIENCE = {Urgency.AWAITED: 0.0, Urgency.FLUX: 2.0, Urgency.PROGRESS: 3.0, Urgency.SYNC: 10.0}
"""Seconds a difference may be held back."""


@dataclass(frozen=True)
class HeldSince:
    """Since when a difference to this version of the replica has been held back; answered with epoch seconds."""

    uid: str
    resource_version: str


TRANSIENT_DRBD = (
    DRBD.APPLYING_CONFIGURATION,
    DRBD.WAITING_FOR_BACKING_VOLUME,
    DRBD.WAITING_FOR_DRBD_RESIZE,
    DRBD.WAITING_FOR_REPLICATED_VOLUME,
    DRBD.PENDING_SCHEDULING,
    DRBD.NOT_APPLICABLE,
)
"""States on the way to something: nobody acts on them."""
TRANSIENT_READY = (
    READY.APPLYING_CONFIGURATION,
    READY.WAITING_FOR_REPLICATED_VOLUME,
    READY.PENDING_SCHEDULING,
    READY.PENDING_DATAMESH_JOIN,
)
FAILURES = (BackingVolumeReadyCondition.PROVISIONING_FAILED, BackingVolumeReadyCondition.RESIZE_FAILED)


def compute_urgency(
    volume: ReplicatedVolume | None, name: str, old: ReplicatedVolumeReplicaStatus, new: ReplicatedVolumeReplicaStatus
) -> Urgency:
    """How soon the difference between the published and the computed status must be written."""
    if old == new:
        return Urgency.NONE
    if _is_awaited(volume, name, old, new):
        return Urgency.AWAITED
    if (
        _without_sync_progress(old.peers) != _without_sync_progress(new.peers)
        or old.quorum_summary != new.quorum_summary
    ):
        return Urgency.FLUX if new.datamesh_revision else Urgency.PROGRESS
    if replace(old, peers=(), conditions=(), message="") == replace(new, peers=(), conditions=(), message="") and _same(
        old.conditions, new.conditions
    ):
        return Urgency.SYNC
    return Urgency.PROGRESS


def _same(old: tuple[Condition, ...], new: tuple[Condition, ...]) -> bool:
    """Whether conditions differ in messages at most."""
    return [(c.type, c.status, c.reason, c.observed_generation) for c in old] == [
        (c.type, c.status, c.reason, c.observed_generation) for c in new
    ]


def _without_sync_progress(peers: tuple[PeerStatus, ...]) -> tuple[PeerStatus, ...]:
    return tuple(replace(peer, sync_progress="", out_of_sync=None) for peer in peers)


def _is_awaited(
    volume: ReplicatedVolume | None, name: str, old: ReplicatedVolumeReplicaStatus, new: ReplicatedVolumeReplicaStatus
) -> bool:
    if _is_connecting_in_formation(volume, old, new):
        return False
    if _are_conditions_awaited(old, new) or _is_request_awaited(old, new):
        return True
    if old.datamesh_revision != new.datamesh_revision and is_revision_awaited(volume, name, old, new):
        return True
    if old.attachment != new.attachment:
        return True
    if not new.datamesh_revision:
        # Before it joins, a replica is awaited as a whole: its request above comes when it is preconfigured.
        return False
    return (
        old.addresses != new.addresses
        or (old.type, old.size, old.quorum, old.quorum_enforced)
        != (new.type, new.size, new.quorum, new.quorum_enforced)
        or old.backing_volume != new.backing_volume
        or _are_peers_awaited(volume, old.peers, new.peers)
    )


def _is_connecting_in_formation(
    volume: ReplicatedVolume | None, old: ReplicatedVolumeReplicaStatus, new: ReplicatedVolumeReplicaStatus
) -> bool:
    """Whether a forming volume's new member is configured and about to connect: formation waits for both together."""
    return (
        old.datamesh_revision == 0
        and new.datamesh_revision > 0
        and volume is not None
        and any(transition.group == TransitionGroup.FORMATION for transition in volume.status.datamesh_transitions)
        and not conditions.is_true(new.conditions, FullyConnectedCondition.TYPE)
    )


def is_revision_awaited(
    volume: ReplicatedVolume | None, name: str, old: ReplicatedVolumeReplicaStatus, new: ReplicatedVolumeReplicaStatus
) -> bool:
    """Whether a step waits for the new revision of this replica; a reset to 0 is the confirmation of a leave."""
    if new.datamesh_revision == 0 or old.datamesh_revision == 0 or volume is None:
        return True
    for transition in volume.status.datamesh_transitions:
        if transition.group == TransitionGroup.ATTACHMENT and transition.replica_name != name:
            continue  # Attach and Detach are confirmed by their subject alone.
        for step in transition.steps:
            if step.status == StepStatus.ACTIVE and step.datamesh_revision > old.datamesh_revision:
                return True
    return False


def _is_request_awaited(old: ReplicatedVolumeReplicaStatus, new: ReplicatedVolumeReplicaStatus) -> bool:
    if old.datamesh_request == new.datamesh_request:
        return False
    joining = new.datamesh_request is not None and new.datamesh_request.operation == Operation.JOIN
    # A Join is of use once the replica is preconfigured; before that the volume could only wait for its addresses.
    return not joining or conditions.reason_of(new.conditions, DRBD.TYPE) == DRBD.PENDING_DATAMESH_JOIN


def _are_conditions_awaited(old: ReplicatedVolumeReplicaStatus, new: ReplicatedVolumeReplicaStatus) -> bool:
    return any(
        _is_condition_awaited(conditions.get(old.conditions, type), conditions.get(new.conditions, type), type)
        for type in (
            DRBD.TYPE,
            READY.TYPE,
            AttachedCondition.TYPE,
            BackingVolumeUpToDateCondition.TYPE,
            SatisfyEligibleNodesCondition.TYPE,
            BackingVolumeReadyCondition.TYPE,
        )
    )


def _is_condition_awaited(old: Condition | None, new: Condition | None, type: str) -> bool:
    before = (old.status, old.reason) if old is not None else ("", "")
    status, reason = (new.status, new.reason) if new is not None else ("", "")
    if before == (status, reason):
        return False
    match type:
        case DRBD.TYPE:
            return reason not in TRANSIENT_DRBD
        case READY.TYPE:
            return reason not in TRANSIENT_READY and before[0] != status
        case AttachedCondition.TYPE:
            return reason != AttachedCondition.APPLYING_CONFIGURATION
        case SatisfyEligibleNodesCondition.TYPE:
            return conditions.FALSE in (before[0], status)
        case BackingVolumeReadyCondition.TYPE:
            return reason in FAILURES
        case _:
            # The data: good or bad news, but not "being applied" and not another reason for the same.
            return (
                before[0] != status and status in (conditions.TRUE, conditions.FALSE) and bool(old or status == "True")
            )


def _are_peers_awaited(
    volume: ReplicatedVolume | None, old: tuple[PeerStatus, ...], new: tuple[PeerStatus, ...]
) -> bool:
    """Whether links or peers' data got worse, became complete, or changed while a membership step may wait for them."""
    if _without_sync_progress(old) == _without_sync_progress(new):
        return False
    before = {peer.name: peer for peer in old}
    for peer in new:
        known = before.get(peer.name)
        if known is None:
            continue
        if known.connection_state == ConnectionState.CONNECTED and peer.connection_state != ConnectionState.CONNECTED:
            return True
        if known.backing_volume_state == DiskState.UP_TO_DATE and peer.backing_volume_state != DiskState.UP_TO_DATE:
            return True
        if known.attached != peer.attached:
            return True
    return _may_await_links(volume) or all(_is_settled(peer) for peer in new)


def _may_await_links(volume: ReplicatedVolume | None) -> bool:
    """Whether a step under way may wait for a single connection; formation waits for all of them, attachments for none."""
    quiet = (TransitionGroup.FORMATION, TransitionGroup.ATTACHMENT)
    return volume is not None and any(item.group not in quiet for item in volume.status.datamesh_transitions)


def _is_settled(peer: PeerStatus) -> bool:
    """Connected and replicating: nothing more is about to happen by itself."""
    return peer.connection_state == ConnectionState.CONNECTED and peer.replication_state == ReplicationState.ESTABLISHED
