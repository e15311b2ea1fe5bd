"""The Formation transition inside the volume's status; its records come from the engine's package."""

from __future__ import annotations

from collections.abc import Callable

from quorate.api import times
from quorate.api.replicated_volume import DatameshTransition, ReplicatedVolumeStatus, TransitionType
from quorate.api.value import replace
from quorate.datamesh.plans import formation_records as records

PRECONFIGURE = records.PRECONFIGURE
ESTABLISH_CONNECTIVITY = records.ESTABLISH_CONNECTIVITY
BOOTSTRAP_DATA = records.BOOTSTRAP_DATA

find = records.find_formation
is_forming = records.is_forming


def created(now: float) -> DatameshTransition:
    """A new Formation transition with its first step active."""
    return records.formation_transition(1, times.format(now))


def active_step(status: ReplicatedVolumeStatus) -> str:
    """Name of the active step; the first one while there is no transition."""
    found = find(status)
    return records.formation_step(found) if found is not None else PRECONFIGURE


def advance(status: ReplicatedVolumeStatus, now: float) -> ReplicatedVolumeStatus:
    """Complete the active step and activate the next one."""
    return _with(status, lambda found: records.advanced(found, status.datamesh_revision, times.format(now)))


def with_message(status: ReplicatedVolumeStatus, message: str) -> ReplicatedVolumeStatus:
    """Say on the active step what it waits for, and which revision it is at."""
    return _with(status, lambda found: records.noted(found, message, status.datamesh_revision))


def removed(status: ReplicatedVolumeStatus) -> ReplicatedVolumeStatus:
    """Formation is complete: the transition goes."""
    rest = tuple(t for t in status.datamesh_transitions if t.type != TransitionType.FORMATION)
    return replace(status, datamesh_transitions=rest)


def _with(
    status: ReplicatedVolumeStatus, change: Callable[[DatameshTransition], DatameshTransition]
) -> ReplicatedVolumeStatus:
    found = find(status)
    changed = change(found) if found is not None else None
    if found is None or changed is None or changed is found:
        return status
    transitions = tuple(changed if t is found else t for t in status.datamesh_transitions)
    return replace(status, datamesh_transitions=transitions)
