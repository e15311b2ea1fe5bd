"""Guards of members that leave or give up their disk or their vote (G16-G20, G23, G24, S25)."""

from __future__ import annotations

from quorate.api.replicated_volume import TransitionType
from quorate.datamesh import ids
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, guard
from quorate.datamesh.guards.voting import serving
from quorate.datamesh.tie_breakers import needed, operational, why_not_operational

_ATTACHMENT_TYPES = (TransitionType.ATTACH, TransitionType.DETACH, TransitionType.FORCE_DETACH)


@guard("G17")
def not_attached(context: Context) -> Block | None:
    """An attached member does not leave; neither does one whose attach or detach is not confirmed (S36)."""
    member = context.member
    if member is not None and member.attached:
        return Block("Cannot leave datamesh: replica is attached, detach required first", sentence=True)
    for transition in context.transitions:
        if transition.replica_name == context.replica.name and transition.type in _ATTACHMENT_TYPES:
            return Block(f"{transition.type.lower()} is in progress on the replica")
    return None


@guard("G18")
def attached_keeps_disk_when_local(context: Context) -> Block | None:
    """With volumeAccess Local an attached node must keep its disk."""
    member = context.member
    if member is not None and member.attached and context.world.configuration.volume_access == "Local":
        return Block("the replica is attached and volumeAccess is Local")
    return None


@guard("G19", protects_copies=True)
def enough_copies_remain(context: Context) -> Block | None:
    """UpToDate copies other than the subject must exceed GMDR and satisfy qmr (S11, S15, S16).

    The subject is subtracted only if it is itself UpToDate. GMDR is at least 0, so the last copy is never given up. A qmr
    that has still to come down (ChangeQuorum does it) keeps the copy until it has. Only copies that are connected to each
    other count together: one that is cut off still calls itself UpToDate, whatever was written without it.
    """
    copies = context.up_to_date & ~context.subject_bit
    linked = context.world.linked
    remaining = max(
        (sum(i == j or linked(i, j, 0) for j in ids.iterate(copies)) for i in ids.iterate(copies)), default=0
    )
    required = max(context.world.layout.gmdr + 1, context.mesh.datamesh.quorum_minimum_redundancy)
    if remaining < required:
        return Block(
            f"would leave {remaining} UpToDate copies, {required} are needed (GMDR {context.world.layout.gmdr})"
        )
    return None


@guard("serving-copies")
def serving_side_keeps_copies(context: Context) -> Block | None:
    """A copy is given up only while those who can serve reach enough others (S14): copies behind a cut do not count.

    G19 counts every copy that is reported, also those of a side without quorum.
    """
    bit, mesh, replicas = context.subject_bit, context.mesh, context.world.replicas
    subject = replicas.get(context.subject)
    servers = serving(context)
    if not context.up_to_date & bit or not (servers or (subject is not None and subject.quorum)):
        return None
    copies, needed = context.up_to_date & ~bit, max(1, mesh.datamesh.quorum_minimum_redundancy)
    linked = context.world.linked
    reached = [
        sum(i == copy or linked(i, copy, 0) for copy in ids.iterate(copies)) >= needed for i in ids.iterate(servers)
    ]
    if any(reached) and (all(reached) or not servers & mesh.attached):
        return None
    return Block(
        f"those with quorum would not reach {needed} other UpToDate "
        f"{'copies' if needed > 1 else 'copy'}: [{ids.text(copies)}] must be connected",
        "WaitingForConnection",
    )


@guard("G20", protects_copies=True)
def enough_voters_remain(context: Context) -> Block | None:
    """A voter leaves only when there is one more than the layout needs: replacement joins first (decision 8)."""
    voters = context.mesh.voter_count
    wanted = context.world.layout.diskful
    if voters <= wanted:
        return Block(f"would leave {voters - 1} diskful members, {wanted} are needed (FTT {context.world.layout.ftt})")
    return None


@guard("S25", protects_copies=True)
def tie_breaker_ready_for_even_voters(context: Context) -> Block | None:
    """A voter leaves an even number behind only if the tie-breakers this needs are operational."""
    return _tie_breakers_ready(context, 0)


@guard("S25-TB", protects_copies=True)
def tie_breaker_ready_with_subject(context: Context) -> Block | None:
    """The same for D → TB: the subject becomes one of them."""
    return _tie_breakers_ready(context, 1)


def _tie_breakers_ready(context: Context, gained: int) -> Block | None:
    voters = context.mesh.voter_count - 1
    wanted = needed(voters, context.world.layout.ftt)
    present = ids.count(operational(context, context.mesh.tie_breakers)) + gained if wanted else 0
    if wanted > present:
        return Block(
            f"{voters} voters need an operational tie-breaker (FTT {context.world.layout.ftt}), there are {present}"
        )
    return None


def _tie_breaker_not_needed(context: Context, voters: int) -> Block | None:
    wanted = needed(voters, context.world.layout.ftt)
    others = context.mesh.tie_breakers & ~context.subject_bit
    if wanted == 0 or ids.count(operational(context, others)) >= wanted:
        return None
    why = [f"#{i} {why_not_operational(context, i)}" for i in ids.iterate(others) if why_not_operational(context, i)]
    detail = f": {', '.join(why)}" if why else ""
    return Block(
        f"the tie-breaker is required for {voters} voters (FTT {context.world.layout.ftt}) "
        f"and no other is operational{detail}"
    )


@guard("G23", protects_copies=True)
def tie_breaker_not_needed(context: Context) -> Block | None:
    """A tie-breaker goes only if enough others are operational (S24, S26)."""
    return _tie_breaker_not_needed(context, context.mesh.voter_count)


@guard("G23-D", protects_copies=True)
def tie_breaker_not_needed_as_voter(context: Context) -> Block | None:
    """The same for TB → D, judged with the vote that the subject brings."""
    return _tie_breaker_not_needed(context, context.mesh.voter_count + 1)


@guard("G24", protects_copies=True)
def zone_keeps_tie_breaker(context: Context) -> Block | None:
    """TransZonal: the last tie-breaker stays while the voters need one."""
    if context.world.configuration.topology != "TransZonal":
        return None
    others = context.mesh.tie_breakers & ~context.subject_bit
    if not others and needed(context.mesh.voter_count, context.world.layout.ftt):
        return Block("it is the last tie-breaker between the zones")
    return None


COPY_LOSING = (
    attached_keeps_disk_when_local,
    enough_copies_remain,
    serving_side_keeps_copies,
    enough_voters_remain,
)
"""The part of the copy-losing guards that does not depend on zones or tie-breakers."""
