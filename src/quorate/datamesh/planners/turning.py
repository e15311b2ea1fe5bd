"""Turning a running change round: from which step of its successor to start (decision 8).

Plans that gain and plans that lose a vote are mirror images, so the successor starts at the step that takes back the last
published one; what stands before it was never done. While a voting step is not confirmed by everybody, the only legal
successor is one that leads exactly back: then no node ever holds a third configuration.
"""

from __future__ import annotations

from quorate.api.replicated_volume import DatameshTransition, MemberType, TransitionType
from quorate.datamesh.dsl import INVERSE, Kind, Plan

_GAINS = (Kind.JOIN, Kind.JOIN_VOTER, Kind.GAIN_VOTE)
_LOSSES = (Kind.LEAVE, Kind.LEAVE_VOTER, Kind.LOSE_VOTE)


def _direction(plan: Plan) -> int:
    """+1 for plans that add, -1 for plans that take away, 0 for those that end where they start."""
    kinds = [step.kind for step in plan.steps]
    if any(kind in kinds for kind in _GAINS):
        return 1
    return -1 if any(kind in kinds for kind in _LOSSES) else 0


def compute_start(active: Plan, index: int, confirmed: bool, successor: Plan) -> int | None:
    """The successor's first step, or None while the running change must be confirmed first."""
    step = active.steps[index]
    kinds = [other.kind for other in successor.steps]
    back = INVERSE.get(step.kind, ())
    opposite = _direction(active) * _direction(successor) < 0
    for kind in (*back, step.kind) if opposite else (step.kind, *back):
        if kind in kinds:
            return kinds.index(kind)
    if step.voting and not confirmed:
        return None
    return 0


def takes_back_join(active: Plan, successor: Plan) -> bool:
    """Whether the running change adds and its successor takes away."""
    return _direction(active) > 0 > _direction(successor)


def leads_back(active: DatameshTransition, successor: DatameshTransition) -> bool:
    """Whether a successor that undoes an unconfirmed gain or loss of a vote ends with the type from before."""
    if active.type == TransitionType.ADD_REPLICA:
        before = MemberType.ACCESS
    elif active.type == TransitionType.CHANGE_REPLICA_TYPE:
        before = active.from_replica_type
    else:
        before = MemberType.DISKFUL
    if successor.type == TransitionType.REMOVE_REPLICA:
        return before == MemberType.ACCESS
    return successor.to_replica_type == before
