"""Who may run next to whom: slots, admission, and transitions that make room (facts/datamesh 4).

Guarantees: a transition whose plan is unknown keeps its group and its slot (E8). Nothing is cancelled except together with
the transition that takes its place (E7): an emergency on the same replica, a change that is turned round, or a change that
is held at a steady point and yields to one that can go on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorate.api.replicated_volume import DatameshTransition, MemberType, TransitionGroup, TransitionType
from quorate.datamesh import members
from quorate.datamesh.dsl import Block, Plan, Slot
from quorate.datamesh.guards.emergency import WAITING_FOR_FENCING
from quorate.datamesh.guards.joining import gains_disk
from quorate.datamesh.records import active_step, subject_of

if TYPE_CHECKING:
    from quorate.datamesh.state import State

_ATTACHMENT_TYPES = (TransitionType.ATTACH, TransitionType.DETACH, TransitionType.FORCE_DETACH)

HELD = "Held"
"""Reason of a transition whose confirmed step waits for a gate without a reason of its own."""

UNKNOWN_PLAN = "UnknownPlan"
"""Reason of a transition whose plan this version does not know."""

BUSY = "Busy"
"""Reason of a block by another transition: it passes by itself."""

_NOT_HELD = ("", WAITING_FOR_FENCING, UNKNOWN_PLAN)


def slot_of(transition: DatameshTransition) -> Slot:
    """The slot of a record, by its type alone, so that unknown plans keep theirs."""
    if not transition.replica_name:
        return Slot.VOLUME
    return Slot.ATTACHMENT if transition.type in _ATTACHMENT_TYPES else Slot.MEMBERSHIP


def occupant(state: State, replica_name: str, slot: Slot) -> DatameshTransition | None:
    """The transition in a replica's slot."""
    for transition in state.transitions:
        if transition.replica_name == replica_name and slot_of(transition) is slot:
            return transition
    return None


def potentially_attached(state: State) -> int:
    """Members that are attached or may still be: attached, attaching, detaching. They occupy attachment slots."""
    mask = state.mesh.attached
    for transition in state.transitions:
        if transition.type in (TransitionType.ATTACH, TransitionType.DETACH) and transition.replica_name:
            mask |= 1 << subject_of(transition)
    return mask


def changes_tie_breaker(transition: DatameshTransition) -> bool:
    """Whether a transition adds, removes or retypes a tie-breaker."""
    return MemberType.TIE_BREAKER in (
        transition.replica_type,
        transition.from_replica_type,
        transition.to_replica_type,
    )


def is_held(transition: DatameshTransition) -> bool:
    """Whether its current step is confirmed and the next one waits for a gate."""
    return transition.reason not in _NOT_HELD


def yields(state: State, transition: DatameshTransition) -> bool:
    """Whether a transition makes room for one that can go on: held, and its member is nothing half-way."""
    if transition.group != TransitionGroup.VOTING_MEMBERSHIP or not is_held(transition):
        return False
    member = state.mesh.by_id.get(subject_of(transition))
    return member is None or not members.is_liminal(member.type)


def _excludes(plan: Plan, record: DatameshTransition, other: DatameshTransition) -> bool:
    """The admission table (4.2), with S25: voters and tie-breakers never change next to each other."""
    group, present = plan.group, other.group
    voting, non_voting = TransitionGroup.VOTING_MEMBERSHIP, TransitionGroup.NON_VOTING_MEMBERSHIP
    quorum, network, resize = TransitionGroup.QUORUM, TransitionGroup.NETWORK, TransitionGroup.RESIZE
    if present == TransitionGroup.FORMATION:
        return group != network
    match group:
        case TransitionGroup.VOTING_MEMBERSHIP:
            return (
                present in (voting, quorum, network)
                or (present == resize and gains_disk(record))
                or (present == non_voting and changes_tie_breaker(other))
            )
        case TransitionGroup.NON_VOTING_MEMBERSHIP:
            return present == voting and changes_tie_breaker(record)
        case TransitionGroup.QUORUM:
            return present in (quorum, voting, network)
        case TransitionGroup.NETWORK:
            return present == network
        case TransitionGroup.MULTIATTACH:
            return present == TransitionGroup.MULTIATTACH
        case TransitionGroup.RESIZE:
            return present == resize or gains_disk(other)
        case _:
            return False


def admit(state: State, plan: Plan, record: DatameshTransition) -> Block | tuple[DatameshTransition, ...]:
    """The transitions that make room for a new one, or what stands in its way."""
    room: list[DatameshTransition] = []
    for other in state.transitions:
        if other.replica_name and other.replica_name == record.replica_name:
            continue
        if not _excludes(plan, record, other):
            continue
        if yields(state, other):
            room.append(other)
            continue
        found = state.plan_of(other)
        name = found.display if found is not None else f"{other.type} ({other.plan_id})"
        whose = f" of #{subject_of(other)}" if other.replica_name else ""
        progress = active_step(other).message
        return Block(f"waiting for {name}{whose} to complete" + (f". {progress}" if progress else ""), BUSY)
    return tuple(room)
