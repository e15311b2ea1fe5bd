"""reconcileFormation: the three steps fall through in one pass when they are ready, so each costs one status write."""

from __future__ import annotations

from quorate.api.replicated_volume import ReplicatedVolumeStatus
from quorate.controllers.volume.formation import bootstrap_data, establish_connectivity, preconfigure, transition
from quorate.controllers.volume.outcome import Outcome
from quorate.controllers.volume.snapshot import Snapshot
from quorate.machinery.effects import Answers


def reconcile(
    snapshot: Snapshot, status: ReplicatedVolumeStatus, answers: Answers, now: float
) -> Outcome | ReplicatedVolumeStatus:
    """An `Outcome` while the volume is forming, the status without the Formation transition once it is formed."""
    if snapshot.pool is None and transition.find(status) is None:
        return Outcome(status=status)
    status = preconfigure.begin(snapshot, status, now)
    if transition.active_step(status) == transition.PRECONFIGURE:
        done = preconfigure.step(snapshot, status, now)
        if isinstance(done, Outcome):
            return done
        status = transition.advance(done, now)
    if transition.active_step(status) == transition.ESTABLISH_CONNECTIVITY:
        done = establish_connectivity.step(snapshot, status, answers, now)
        if isinstance(done, Outcome):
            return done
        status = transition.advance(done, now)
    return bootstrap_data.step(snapshot, status, now)
