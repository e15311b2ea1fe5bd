"""When formation has stalled (decision 7).

Timeouts keep the seed's values, but they count from the last time the progress tuple exceeded its maximum of this
formation, so a slow but moving cluster completes (H22, L10). Restarts are counted outside what a restart resets, and
each doubles the 30 s up to ten minutes.
"""

from __future__ import annotations

from quorate.api import times
from quorate.api.common import ConnectionState
from quorate.api.replicated_volume import Formation as FormationRecord
from quorate.api.replicated_volume import FormationProgress, MemberType, ReplicatedVolume, ReplicatedVolumeStatus
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.controllers.volume import replica_view

STEP_TIMEOUT = 30.0
"""Waits of the first two steps."""
STEP_TIMEOUT_LIMIT = 600.0
BOOTSTRAP_TIMEOUT = 60.0
"""Base of the data bootstrap."""
WORST_BANDWIDTH = 12_500_000
"""Bytes per second assumed for a full synchronisation: 100 Mbit/s."""


def formation_id(volume: ReplicatedVolume, restarts: int) -> str:
    """Identity of one formation, so that operations of earlier ones are recognised."""
    return f"{volume.metadata.uid}-{restarts}"[-64:]


def started(volume: ReplicatedVolume, status: ReplicatedVolumeStatus, now: float) -> ReplicatedVolumeStatus:
    """Begin the bookkeeping of a new formation; the number of restarts is kept."""
    restarts = status.formation.restarts if status.formation is not None else 0
    stamp = times.format(now)
    record = FormationRecord(
        id=formation_id(volume, restarts), restarts=restarts, started_at=stamp, progressed_at=stamp
    )
    return replace(status, formation=record)


def compute_progress(
    status: ReplicatedVolumeStatus, replicas: tuple[ReplicatedVolumeReplica, ...]
) -> FormationProgress:
    """How far this formation has come."""
    alive = tuple(r for r in replicas if not r.metadata.deleting)
    names = tuple(member.name for member in status.datamesh.members)
    diskful = tuple(m.name for m in status.datamesh.members if m.type == MemberType.DISKFUL)

    def connected(replica: ReplicatedVolumeReplica) -> bool:
        return all(replica_view.is_connected_to(replica, n) for n in diskful if n != replica.metadata.name)

    members = tuple(r for r in alive if r.metadata.name in names)
    return FormationProgress(
        created=len(alive),
        scheduled=sum(replica_view.is_scheduled(r) for r in alive),
        preconfigured=sum(replica_view.is_preconfigured(r) or r.metadata.name in names for r in alive),
        configured=sum(replica_view.is_configured(r, status.datamesh_revision) for r in members),
        connected=sum(connected(r) for r in members),
        up_to_date=sum(replica_view.is_up_to_date(r) for r in members),
        synced_bytes=sum(_synced_bytes(r, status.datamesh.size.value) for r in members),
    )


def _synced_bytes(replica: ReplicatedVolumeReplica, size: int) -> int:
    """Bytes of a running synchronisation that this replica reports as done, in whole per cents (few writes)."""
    best = 0
    for peer in replica.status.peers:
        if peer.connection_state == ConnectionState.CONNECTED and peer.out_of_sync is not None:
            done = max(0, size - peer.out_of_sync)
            best = max(best, done * 100 // max(size, 1) * size // 100)
    return best


def ensure_progress(
    status: ReplicatedVolumeStatus, replicas: tuple[ReplicatedVolumeReplica, ...], now: float
) -> ReplicatedVolumeStatus:
    """Remember the maximum and when it was reached."""
    record = status.formation
    if record is None:
        return status
    progress = compute_progress(status, replicas)
    if progress.key() <= record.progress.key():
        return status
    return replace(status, formation=replace(record, progress=progress, progressed_at=times.format(now)))


def step_timeout(status: ReplicatedVolumeStatus) -> float:
    """Patience of the first two steps; doubled by each restart."""
    restarts = status.formation.restarts if status.formation is not None else 0
    return min(STEP_TIMEOUT * 2 ** min(restarts, 10), STEP_TIMEOUT_LIMIT)


def bootstrap_timeout(status: ReplicatedVolumeStatus, *, force_resync: bool) -> float:
    """Patience of the data bootstrap: the base, plus the time of a full copy at the worst bandwidth."""
    copy = status.datamesh.size.value // WORST_BANDWIDTH if force_resync else 0
    return max(BOOTSTRAP_TIMEOUT, step_timeout(status)) + copy


def remaining(status: ReplicatedVolumeStatus, timeout: float, now: float) -> float:
    """Seconds until formation counts as stalled; zero or less when it has."""
    record = status.formation
    if record is None or not record.progressed_at:
        return timeout
    return times.parse(record.progressed_at) + timeout - now
