"""Attach and detach guards of seed 000 (ensureDatameshAttachTransitions, ensureDatameshDetachTransitions).

The planner asks what concerns all nodes (slots, global block, eligibility); these guards ask what concerns one replica. The
texts are the seed's, word for word.
"""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.replicated_volume import TransitionType
from quorate.api.replicated_volume_attachment import AttachedCondition
from quorate.api.replicated_volume_replica import ReadyCondition
from quorate.datamesh import members
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, guard

_MEMBERSHIP_TEXTS = {
    TransitionType.ADD_REPLICA: "Waiting for replica to join datamesh",
    TransitionType.REMOVE_REPLICA: "Waiting for replica to leave datamesh",
    TransitionType.FORCE_REMOVE_REPLICA: "Waiting for replica to be removed from datamesh",
    TransitionType.CHANGE_REPLICA_TYPE: "Waiting for replica to change its type",
}


def _blocked(text: str, reason: str) -> Block:
    return Block(text, reason, sentence=True)


def _active(context: Context, *types: str) -> str:
    """Type of the first transition of the subject among these types; empty = none."""
    name = context.replica.name
    for transition in context.transitions:
        if transition.replica_name == name and transition.type in types:
            return transition.type
    return ""


@guard("attach-3")
def no_active_detach(context: Context) -> Block | None:
    """Attach guard 3."""
    if _active(context, TransitionType.DETACH):
        return _blocked("Attach pending, waiting for detach to complete first", AttachedCondition.PENDING)
    return None


@guard("attach-4")
def no_active_membership_change(context: Context) -> Block | None:
    """Attach guard 4, by ruling for every membership transition, each with its own text."""
    active = _active(context, *_MEMBERSHIP_TEXTS)
    return _blocked(_MEMBERSHIP_TEXTS[active], AttachedCondition.WAITING_FOR_REPLICA) if active else None


@guard("attach-5")
def is_member(context: Context) -> Block | None:
    """Attach guard 5 (defensive)."""
    if context.member is None:
        return _blocked("Waiting for datamesh member", AttachedCondition.WAITING_FOR_REPLICA)
    return None


@guard("attach-6")
def replica_exists(context: Context) -> Block | None:
    """Attach guard 6 (defensive)."""
    if context.replica.rvr is None:
        return _blocked("Waiting for replica", AttachedCondition.WAITING_FOR_REPLICA)
    return None


@guard("attach-fenced")
def node_not_fenced(context: Context) -> Block | None:
    """What was detached by force is not attached again while the evidence stands and nobody reaches the node.

    An agent may run there and report Ready all the same; then attach and force-detach would take turns for ever.
    """
    if context.world.fenced & context.subject_bit:
        return _blocked(
            f"Node {context.replica.node_name} is fenced and no other replica reaches it",
            AttachedCondition.WAITING_FOR_REPLICA,
        )
    return None


@guard("attach-7")
def replica_ready(context: Context) -> Block | None:
    """Attach guard 7."""
    rvr = context.replica.rvr
    if rvr is None or not conditions.is_true(rvr.status.conditions, ReadyCondition.TYPE):
        return _blocked("Waiting for replica to become Ready", AttachedCondition.WAITING_FOR_REPLICA)
    return None


def locality_text(context: Context) -> str:
    """Why a node without a disk cannot be used with volumeAccess Local."""
    volume = context.world.volume
    if volume.spec.configuration_mode == "Auto":
        scope = f"storage class {volume.spec.replicated_storage_class_name}"
    else:
        scope = f"pool {context.world.configuration.replicated_storage_pool_name}"
    return f"No Diskful replica on this node (volumeAccess is Local for {scope})"


@guard("attach-8")
def disk_is_local(context: Context) -> Block | None:
    """Attach guard 8."""
    member = context.member
    if context.world.configuration.volume_access != "Local" or (member is not None and members.has_disk(member.type)):
        return None
    return _blocked(locality_text(context), AttachedCondition.VOLUME_ACCESS_LOCALITY_NOT_SATISFIED)


@guard("detach-3")
def no_active_attach(context: Context) -> Block | None:
    """Detach guard 3."""
    if _active(context, TransitionType.ATTACH):
        return _blocked("Detach pending, waiting for attach to complete first", AttachedCondition.DETACHING)
    return None


@guard("detach-4")
def not_in_use(context: Context) -> Block | None:
    """Detach guard 4. An agent that does not report cannot say that the device was closed, so the last word stands."""
    rvr = context.replica.rvr
    if rvr is not None and rvr.status.attachment is not None and rvr.status.attachment.in_use:
        return _blocked("Device in use, detach blocked", AttachedCondition.DETACHING)
    return None
