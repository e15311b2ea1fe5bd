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
