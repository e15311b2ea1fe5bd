"""Zone guards (G8-G10, G21, G22), relative: a change may not make the loss of a zone worse than it is (hazard H11).

An absolute rule would forbid every add-first replacement in 3D over three zones and every recovery after a zone is gone. So
members that are on their way out (their object is being deleted, or gone) do not count when a newcomer is judged (L6), and a
zone whose loss was fatal before blocks nothing. Layouts with FTT 0 make no promise about zones and are not asked.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.datamesh import ids
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Block, guard
from quorate.datamesh.layout import majority


def _zone(context: Context, replica_id: int) -> str:
    member = context.mesh.by_id.get(replica_id)
    if member is not None:
        return context.world.zone_of(member.node_name, member.zone)
    return context.world.zone_of(context.world.replicas[replica_id].node_name)


def _staying(context: Context, among: int) -> int:
    """Members of a set that are not on their way out."""
    replicas = context.world.replicas
    return ids.mask_of(i for i in ids.iterate(among) if replicas[i].rvr is not None and not replicas[i].deleting)


def _in_zone(context: Context, among: int, zone: str) -> int:
    return ids.mask_of(i for i in ids.iterate(among) if _zone(context, i) == zone)


def _zones(context: Context, among: int) -> tuple[str, ...]:
    found = dict.fromkeys(_zone(context, i) for i in ids.iterate(among))
    return tuple(sorted(zone for zone in found if zone))


def _breaks_quorum(context: Context, voters: int, breakers: int, zone: str) -> bool:
    """Whether the loss of a zone leaves these voters without a majority (tie-break included)."""
    total = ids.count(voters)
    survivors = total - ids.count(_in_zone(context, voters, zone))
    quorum = majority(total)
    if survivors >= quorum:
        return False
    outside = ids.count(breakers) - ids.count(_in_zone(context, breakers, zone))
    tie_break = total % 2 == 0 and survivors == quorum - 1 and outside >= majority(ids.count(breakers))
    return not (tie_break and breakers)


def _breaks_redundancy(context: Context, copies: int, zone: str) -> bool:
    """Whether the loss of a zone leaves no more copies than GMDR."""
    return ids.count(copies) - ids.count(_in_zone(context, copies, zone)) <= context.world.layout.gmdr


def _promised(context: Context) -> bool:
    return context.world.configuration.topology == "TransZonal" and context.world.layout.ftt > 0


def _newly_bad(context: Context, zones: tuple[str, ...], bad: Callable[[str, bool], bool]) -> str:
    """The first zone whose loss is fatal after the change and was not before; empty = none."""
    for zone in zones:
        if bad(zone, True) and not bad(zone, False):
            return zone
    return ""


@guard("G8")
def in_primary_zone(context: Context) -> Block | None:
    """Zonal: everything lives in the zone that has most voters."""
    if context.world.configuration.topology != "Zonal":
        return None
    zone = _zone(context, context.subject)
    voters = _staying(context, context.mesh.voters & ~context.subject_bit)
    if not zone or not voters:
        return None
    sizes = {name: ids.count(_in_zone(context, voters, name)) for name in _zones(context, voters)}
    if not sizes:
        return None
    primary = tuple(name for name in sorted(sizes) if sizes[name] == max(sizes.values()))
    if zone not in primary:
        return Block(f"zone {zone} is not the volume's zone ({', '.join(primary)})")
    return None


@guard("G9")
def keeps_zone_promise_when_joining(context: Context) -> Block | None:
    """TransZonal: with the newcomer, no zone's loss may be fatal that was not before."""
    if not _promised(context):
        return None
    before = _staying(context, context.mesh.voters & ~context.subject_bit)
    after = before | context.subject_bit
    breakers = context.mesh.tie_breakers & ~context.subject_bit
    zone = _newly_bad(
        context,
        _zones(context, after),
        lambda name, changed: _breaks_quorum(context, after if changed else before, breakers, name),
    )
    if not zone or ids.count(before) == 0:
        return None
    left = ids.count(after) - ids.count(_in_zone(context, after, zone))
    return Block(
        f"the loss of zone {zone} would leave {left} of {ids.count(after)} voters, {majority(ids.count(after))} are needed"
    )


@guard("G10")
def tie_breaker_zone_is_thin(context: Context) -> Block | None:
    """TransZonal: the tie-breaker's zone may hold at most one diskful member."""
    if context.world.configuration.topology != "TransZonal":
        return None
    zone = _zone(context, context.subject)
    voters = _staying(context, context.mesh.voters & ~context.subject_bit)
    present = ids.count(_in_zone(context, voters, zone)) if zone else 0
    if present > 1:
        return Block(f"zone {zone} holds {present} diskful members, a tie-breaker's zone may hold at most one")
    return None


@guard("G21", protects_copies=True)
def keeps_zone_redundancy_when_leaving(context: Context) -> Block | None:
    """TransZonal: without the subject's copy, no zone's loss may take the last copy above GMDR that it did not take before."""
    if not _promised(context):
        return None
    before = context.up_to_date
    after = before & ~context.subject_bit
    zone = _newly_bad(
        context,
        _zones(context, context.mesh.voters),
        lambda name, changed: _breaks_redundancy(context, after if changed else before, name),
    )
    if zone:
        return Block(f"the loss of zone {zone} would leave too few UpToDate copies (GMDR {context.world.layout.gmdr})")
    return None


def _keeps_zone_quorum(context: Context, breakers_after: int) -> Block | None:
    if not _promised(context):
        return None
    before = context.mesh.voters
    after = before & ~context.subject_bit
    breakers = context.mesh.tie_breakers
    zone = _newly_bad(
        context,
        _zones(context, before),
        lambda name, changed: (
            _breaks_quorum(context, after, breakers_after, name)
            if changed
            else _breaks_quorum(context, before, breakers, name)
        ),
    )
    if not zone:
        return None
    left = ids.count(after) - ids.count(_in_zone(context, after, zone))
    return Block(
        f"the loss of zone {zone} would leave {left} of {ids.count(after)} voters, {majority(ids.count(after))} are needed"
    )


@guard("G22a", protects_copies=True)
def keeps_zone_quorum_when_leaving(context: Context) -> Block | None:
    """TransZonal: without the subject's vote, no zone's loss may be fatal that was not before."""
    return _keeps_zone_quorum(context, context.mesh.tie_breakers)


@guard("G22b", protects_copies=True)
def keeps_zone_quorum_when_becoming_tie_breaker(context: Context) -> Block | None:
    """The same for D → TB: the subject counts as a tie-breaker in its zone."""
    return _keeps_zone_quorum(context, context.mesh.tie_breakers | context.subject_bit)
