"""Guards of emergencies (G25, S39, decision 6): never forget a member that may still run."""

from __future__ import annotations

from quorate.datamesh import ids
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, guard

WAITING_FOR_FENCING = "WaitingForFencing"
"""Reason of a transition that goes on only with fencing evidence."""


@guard("G25")
def unreachable(context: Context) -> Block | None:
    """Nobody with a fresh agent may report a connection to the subject."""
    seen_by = ids.mask_of(
        replica.id
        for replica in context.world.replicas.values()
        if replica.connected >> context.subject & 1 and replica.id != context.subject
    )
    if seen_by:
        return Block(f"replica #{context.subject} is still reachable from [{ids.text(seen_by)}]")
    return None


@guard("rest-has-quorum")
def rest_has_quorum(context: Context) -> Block | None:
    """A voter that may still run is forgotten only while all remaining voters have quorum (decision 6, hazard H8).

    Then the subject is not the side that writes. Without it the subject may be quorate all alone: beside a tie-breaker, and
    with dynamic voters after it struck the others (S6e); it may hold writes that the rest lacks. Fencing evidence for the
    subject settles it as well; remaining voters that are fenced are not asked. One of two voters without a tie-breaker, and
    any one voter of a static majority, cannot be quorate alone (facts/datamesh 1.10.5).
    """
    mesh = context.mesh
    if not context.subject_bit & mesh.voters or context.subject_bit & context.world.fenced:
        return None
    striking = context.world.features.voter_mode == "dynamic" and mesh.voter_count > 2
    if not (striking or mesh.tie_breakers):
        return None
    rest = context.mesh.voters & ~context.subject_bit & ~context.world.fenced
    replicas = context.world.replicas
    without = ids.mask_of(i for i in ids.iterate(rest) if i not in replicas or not replicas[i].quorum)
    if without or not rest:
        return Block(
            f"[{ids.text(without)}] has no quorum, so replica #{context.subject} may be the side that writes; "
            "waits for quorum or for fencing evidence",
            WAITING_FOR_FENCING,
        )
    return None


@guard("last-voter")
def not_the_last_voter(context: Context) -> Block | None:
    """A volume without voters cannot come back: the last one is never removed, not even in an emergency."""
    if context.mesh.voters == context.subject_bit:
        return Block("it is the last voter of the volume")
    return None


@guard("last-copy")
def another_copy_exists(context: Context) -> Block | None:
    """Without an explicit ForceLeave, a fenced member that holds the only current copy known is waited for (S16)."""
    if context.subject_bit & context.mesh.voters and not context.up_to_date & ~context.subject_bit:
        return Block("no other UpToDate copy is known; request ForceLeave to give this one up")
    return None
