"""The engine's rules that belong to no single plan: staging, enforcement, one voter change at a time."""

from __future__ import annotations

from quorate.api.common import DiskState
from quorate.api.replicated_volume import MemberType, TransitionGroup, TransitionType
from quorate.datamesh import ids
from quorate.datamesh.context import Context, Replica
from quorate.datamesh.dsl import Block
from quorate.datamesh.guards.emergency import WAITING_FOR_FENCING
from quorate.datamesh.records import active_index, confirmation_of, subject_of
from quorate.datamesh.registry import Rules, Staging

_TIE_BREAKER = MemberType.TIE_BREAKER
_VOTING_GROUPS = (TransitionGroup.VOTING_MEMBERSHIP, TransitionGroup.QUORUM, TransitionGroup.EMERGENCY)


def compute_staging(context: Context) -> Staging:
    """Decision 4: beside a tie-breaker (other than the subject) a voter is never changed in one step.

    A subject that is itself the only tie-breaker can be on one side only, so it becomes a voter in one step (facts 1.10.2); the
    other way round it is not enough (`_becomes_tie_breaker`).
    M1 in both voter modes: with two voters M2 asks for q = 3, which only the sticky tie-break meets, so a node that boots
    meanwhile waits for ever (docs/decisions/voter-changes-beside-a-tie-breaker.md).
    """
    beside = bool(context.mesh.tie_breakers & ~context.subject_bit)
    return Staging.VOTE_OFF if beside or _becomes_tie_breaker(context) else Staging.PLAIN


def _becomes_tie_breaker(context: Context) -> bool:
    """Whether a voter is to become a tie-breaker: its vote goes, and its word as a tie-breaker counts only after all know.

    In one step a Primary that knows it as the tie-breaker strikes the other voter by it and may then stand alone (dynamic
    voters, S6e), while the others still count it as a voter against the Primary.
    """
    if not context.mesh.voters & context.subject_bit:
        return False
    transition = context.transition
    if transition is not None:
        return transition.type == TransitionType.CHANGE_REPLICA_TYPE and transition.to_replica_type == _TIE_BREAKER
    rvr = context.replica.rvr
    return rvr is not None and not rvr.metadata.deleting and rvr.spec.type == _TIE_BREAKER


def compute_emergency_staged(context: Context) -> bool:
    """Decision 6: beside a tie-breaker an emergency removal of a voter takes two steps, unless its node is fenced."""
    return bool(context.mesh.tie_breakers & ~context.subject_bit) and not context.world.fenced & context.subject_bit


def compute_enforced(context: Context, replica_id: int) -> bool:
    """Decision 5: whether the kernel's flag is what the confirmed configuration says.

    A Primary keeps a flag that a raised q or qmr would take away until its next state change (S12, X7). The replica reports
    the comparison made from the kernel's own facts; the engine checks it once more from the reported connections, where
    they suffice: with dynamic voters a struck voter cannot be seen from outside, so there the report alone decides.
    """
    replica = context.world.replicas.get(replica_id)
    if replica is None or replica.rvr is None or not replica.agent_ready:
        return False
    mesh = context.mesh
    own = 1 << replica_id
    if not own & (mesh.voters | mesh.attached):
        return True
    reported = replica.rvr.status.quorum_enforced
    if reported is False or replica.quorum is None:
        return False
    if not replica.quorum or (reported and context.world.features.voter_mode == "dynamic"):
        return True
    return _expected_flag(context, replica_id)


def _expected_flag(context: Context, replica_id: int) -> bool:
    """The flag by the published q, qmr and the connections that the replica reports (facts/datamesh 1.2, 1.3)."""
    mesh = context.mesh
    replica = context.world.replicas[replica_id]
    own = 1 << replica_id
    visible = (replica.connected | own) & mesh.voters
    copies = ids.count(replica.peers_up_to_date & mesh.voters) + (1 if replica.up_to_date and own & mesh.voters else 0)
    if not own & mesh.voters & mesh.disks or not _has_disk(replica):
        # Without a disk, intended or lost, the quorum comes from the peers.
        return copies >= 1
    quorum = mesh.datamesh.quorum
    if ids.count(visible) >= quorum and copies >= mesh.datamesh.quorum_minimum_redundancy:
        return True
    breakers = 0 if mesh.datamesh.tie_breakers_suspended else mesh.tie_breakers
    connected = ids.count(replica.connected & breakers)
    return mesh.voter_count % 2 == 0 and ids.count(visible) == quorum - 1 and connected > ids.count(breakers) // 2


def _has_disk(replica: Replica) -> bool:
    backing = replica.rvr.status.backing_volume if replica.rvr is not None else None
    return backing is not None and backing.state not in ("", DiskState.DISKLESS, DiskState.FAILED, DiskState.DETACHING)


def compute_voter_change_pending(context: Context) -> Block | None:
    """One unconfirmed voter change at a time, emergencies included (S4, decision 6).

    A member on a fenced node that nobody reaches holds no configuration and is not waited for. Everybody else is, also the
    member that is about to be removed: a silent node is not a stopped one.
    """
    for other in context.transitions:
        if context.transition is not None and other.replica_name == context.transition.replica_name != "":
            continue
        plan = context.registry.find(other.type, other.plan_id)
        if plan is None:
            if other.group in _VOTING_GROUPS:
                return Block(f"waiting for {other.type} with the unknown plan {other.plan_id} to be released")
            continue
        index = active_index(other)
        if not plan.steps[index].voting:
            continue
        inner = Context(context.world, context.mesh, context.transitions, context.registry, subject_of(other), other)
        must, confirmed = confirmation_of(inner, plan.steps[index], other.steps[index].datamesh_revision)
        waiting = must & ~confirmed & ~context.world.fenced
        if waiting:
            return Block(
                f"{plan.display} is not confirmed by [{ids.text(waiting)}]; one voter change at a time, "
                f"or fencing evidence for a node that cannot confirm",
                WAITING_FOR_FENCING,
            )
    return None


DEFAULT_RULES = Rules(
    staging=compute_staging,
    enforced=compute_enforced,
    voter_change_pending=compute_voter_change_pending,
    emergency_staged=compute_emergency_staged,
)
"""The rules of production."""
