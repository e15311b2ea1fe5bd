"""Internal guards of voter changes: parity (G13, G14) and staging (decision 4). A dispatcher never picks a plan they block."""

from __future__ import annotations

from quorate.datamesh import ids
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, Guard, guard
from quorate.datamesh.layout import majority
from quorate.datamesh.registry import Staging


@guard("G13")
def voters_even(context: Context) -> Block | None:
    """The plan was written for an even number of voters."""
    if context.mesh.voter_count % 2:
        return Block(f"internal: the plan expects an even number of voters, there are {context.mesh.voter_count}")
    return None


@guard("G14")
def voters_odd(context: Context) -> Block | None:
    """The plan was written for an odd number of voters."""
    if context.mesh.voter_count % 2 == 0:
        return Block(f"internal: the plan expects an odd number of voters, there are {context.mesh.voter_count}")
    return None


def staged_as(staging: Staging) -> Guard:
    """The tie-breakers there are now must be handled the way the plan handles them (E16, hazard H31).

    Asked again before every step that changes a vote: a tie-breaker that came meanwhile stops a plain plan.
    """

    def check(context: Context) -> Block | None:
        now = context.registry.rules.staging(context)
        if now is not staging:
            return Block(f"the voter must be changed by {now.value}, this plan does it by {staging.value}")
        return None

    return Guard("staging", check, takes_back=True)


@guard("vote-off", takes_back=True)
def vote_is_off(context: Context) -> Block | None:
    """M1: a vote changes only after every tie-breaker's vote was taken (decision 4)."""
    if context.mesh.tie_breakers and not context.mesh.datamesh.tie_breakers_suspended:
        return Block("the tie-breakers still have their vote")
    return None


@guard("q-first", takes_back=True)
def quorum_is_raised(context: Context) -> Block | None:
    """M2: a vote is added only after the old voters need one more (decision 4)."""
    if context.mesh.datamesh.quorum <= majority(context.mesh.voter_count):
        return Block(f"q {context.mesh.datamesh.quorum} is not raised above the majority yet")
    return None


def serving(context: Context) -> int:
    """Voters other than the subject that can serve now: with quorum, the attached ones if any of them has it."""
    replicas = context.world.replicas
    rest = context.mesh.voters & ~context.subject_bit
    quorate = ids.mask_of(i for i in ids.iterate(rest) if i in replicas and replicas[i].quorum)
    return quorate & context.mesh.attached or quorate


def _apart(context: Context, rest: int) -> Block | None:
    """The first of these voters that does not reach all others."""
    for replica_id in ids.iterate(rest):
        missing = context.unverified_peers(replica_id, 0, rest)
        if missing:
            return Block(
                f"nobody has quorum, and #{replica_id} is not connected to [{ids.text(missing)}]",
                "WaitingForConnection",
            )
    return None


@guard("keeps-quorum")
def rest_keeps_quorum(context: Context) -> Block | None:
    """A vote is given up only while those who serve have a majority of the remaining voters connected (S14).

    The leaving vote may be what holds the quorum while another voter is away. The same is asked before tie-breakers come and
    go: a side that lives on the tie-break would lose it, or need a second tie-breaker that it may not reach. While nobody
    serves, all remaining voters must be connected: otherwise the vote that goes could leave a side without the last writes
    as the majority.
    """
    rest = context.mesh.voters & ~context.subject_bit
    needed = majority(ids.count(rest))
    servers = serving(context)
    if not servers:
        return _apart(context, rest & ~context.world.fenced)
    for replica_id in ids.iterate(servers):
        others = rest & ~(1 << replica_id)
        visible = 1 + sum(context.world.linked(replica_id, peer, 0) for peer in ids.iterate(others))
        if visible < needed:
            return Block(
                f"#{replica_id} would see {visible} of {ids.count(rest)} voters, {needed} are needed",
                "WaitingForConnection",
            )
    return None
