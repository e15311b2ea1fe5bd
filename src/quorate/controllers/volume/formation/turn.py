"""How many volumes form at the same time.

A volume that makes no progress for 30 s starts its formation again. When hundreds are created at once and all of them form
side by side, each progresses so rarely that this happens although nothing is wrong, and starting again makes more work for
everybody. So only some form at a time, oldest first; the others wait for their turn and are done no later.

A volume that cannot progress does not keep its turn: it counts only while it moves.
"""

from __future__ import annotations

from quorate.api import times
from quorate.api.replicated_volume import ReplicatedVolume, ReplicatedVolumeStatus
from quorate.controllers.volume.formation import progress, transition
from quorate.controllers.volume.snapshot import Snapshot

AT_ONCE = 50
LOOK_AGAIN = 15.0
"""Seconds; the end of a formation wakes the next volume at once, this is for turns that lapse."""
MESSAGE = f"Waiting for its turn to form: {AT_ONCE} volumes form at a time, oldest first"


def waits(snapshot: Snapshot, status: ReplicatedVolumeStatus, now: float) -> bool:
    """Whether a volume that has not begun to form must wait."""
    if transition.find(status) is not None or status.datamesh_revision:
        return False
    return sum(_moves(volume, now) for volume in snapshot.forming) >= AT_ONCE


def _moves(volume: ReplicatedVolume, now: float) -> bool:
    record = volume.status.formation
    return record is None or times.parse(record.progressed_at) + progress.STEP_TIMEOUT > now
