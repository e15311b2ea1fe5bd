"""What each replica wants to be: its request, its object and its node, read as one wish (facts/datamesh 2.3, 3.15).

A wish may change at any moment (decision 8); it is computed afresh in every pass and compared with what is under way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from quorate.api.replicated_volume import DatameshMember, DatameshTransition, MemberType, Operation, TransitionType
from quorate.datamesh import members
from quorate.datamesh.context import Replica
from quorate.datamesh.state import State


@dataclass(frozen=True, slots=True)
class Become:
    """Be a member of this type, with this volume group if it has a disk."""

    type: str
    volume_group: str = ""
    thin_pool: str = ""


@dataclass(frozen=True, slots=True)
class NewVolume:
    """Stay Diskful, on another volume group."""

    volume_group: str
    thin_pool: str


@dataclass(frozen=True, slots=True)
class Leave:
    """Stop being a member."""


@dataclass(frozen=True, slots=True)
class Vanish:
    """Be removed without help: asked for, or the object is gone, or the replica shall leave and cannot cooperate."""

    explicit: bool
    """Whether an administrator asked for it (ForceLeave)."""


Intent: TypeAlias = Become | NewVolume | Leave | Vanish


def compute_intent(state: State, replica: Replica) -> Intent | None:
    """The wish of a replica; None when there is nothing to do for it."""
    member = state.mesh.by_id.get(replica.id)
    request = replica.request
    operation = request.operation if request is not None else ""
    if member is None:
        if request is not None and operation == Operation.JOIN and not replica.deleting:
            return Become(request.type, request.lvm_volume_group_name, request.thin_pool_name)
        return None
    if operation == Operation.FORCE_LEAVE:
        return Vanish(explicit=True)
    if replica.rvr is None:
        return Vanish(explicit=False)
    if operation == Operation.LEAVE or replica.deleting:
        # One that cannot cooperate is removed without its help; the emergency's guards and confirmations keep that safe
        # without fencing evidence as long as all other members answer (decision 6).
        return Vanish(explicit=False) if state.world.silent >> replica.id & 1 else Leave()
    if request is not None and operation in (Operation.JOIN, Operation.CHANGE_ROLE):
        return Become(request.type, request.lvm_volume_group_name, request.thin_pool_name)
    if request is not None and operation == Operation.CHANGE_BACKING_VOLUME:
        return NewVolume(request.lvm_volume_group_name, request.thin_pool_name)
    spec = replica.rvr.spec
    return Become(spec.type, spec.lvm_volume_group_name, spec.lvm_volume_group_thin_pool_name)


def serves(transition: DatameshTransition, intent: Intent) -> bool:
    """Whether a running membership transition already does what is wanted."""
    match intent:
        case Vanish():
            return transition.type == TransitionType.FORCE_REMOVE_REPLICA
        case Leave():
            return transition.type == TransitionType.REMOVE_REPLICA
        case NewVolume(volume_group, thin_pool):
            return (
                transition.to_replica_type == MemberType.DISKFUL
                and transition.lvm_volume_group_name == volume_group
                and transition.lvm_volume_group_thin_pool_name == thin_pool
            )
        case Become(wanted):
            if transition.type == TransitionType.ADD_REPLICA:
                return transition.replica_type == wanted
            return transition.type == TransitionType.CHANGE_REPLICA_TYPE and transition.to_replica_type == wanted


def is_served(member: DatameshMember, intent: Intent) -> bool:
    """Whether a member without a running transition is what is wanted."""
    match intent:
        case Become(wanted):
            return member.type == wanted
        case NewVolume(volume_group, thin_pool):
            return (
                member.type == MemberType.DISKFUL
                and member.lvm_volume_group_name == volume_group
                and member.lvm_volume_group_thin_pool_name == thin_pool
            )
        case Leave() | Vanish():
            return False


def steady_type(member: DatameshMember) -> str:
    """The replica type that a member stands for."""
    return members.resolved(member.type)
