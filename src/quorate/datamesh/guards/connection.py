"""Gates about connections and earlier voter changes: what must be true right before a step that touches quorum."""

from __future__ import annotations

from quorate.datamesh import ids
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, guard


@guard("subject-connected")
def subject_connected(context: Context) -> Block | None:
    """Wait (a), (b) of facts/datamesh 3.5: a new vote must be reachable before q counts on it (S14, hazard H4)."""
    missing = context.unverified_peers(context.subject, 0, context.mesh.full_mesh)
    if missing:
        return Block(f"replica #{context.subject} is not connected to [{ids.text(missing)}]", "WaitingForConnection")
    return None


@guard("all-connected")
def voters_and_tie_breakers_connected(context: Context) -> Block | None:
    """A staged voter change starts only while all voters and tie-breakers are connected (decision 4)."""
    mesh = context.mesh
    for replica_id in ids.iterate(mesh.voters):
        missing = context.unverified_peers(replica_id, 0, mesh.voters | mesh.tie_breakers)
        if missing:
            return Block(
                f"all voters and tie-breakers must be connected, #{replica_id} is not connected to [{ids.text(missing)}]",
                "WaitingForConnection",
            )
    return None


@guard("newer-data-elsewhere")
def meets_current_data(context: Context) -> Block | None:
    """A disk that was away comes back only where it meets an UpToDate copy, or every other copy that is left.

    Detached while nobody was Primary, it still calls itself UpToDate, whatever was written since. If it came back next to
    enough votes but away from the copies that took those writes, it would serve the old data. Where it meets all others,
    Outdated ones included, the kernels compare generations and the newest data wins; the last two copies would otherwise
    wait for each other.
    """
    others = context.mesh.voters & context.mesh.disks & ~context.subject_bit & ~context.world.fenced
    met = ids.mask_of(i for i in ids.iterate(others) if context.world.linked(context.subject, i, 0))
    if met == others or met & context.up_to_date:
        return None
    return Block(
        f"replica #{context.subject} is not connected to an UpToDate copy, [{ids.text(others)}] may have newer data",
        "WaitingForConnection",
    )
