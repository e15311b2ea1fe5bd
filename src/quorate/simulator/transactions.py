"""Changes that every reachable node must agree to: promotion, demotion, connect, disconnect, attach, detach, probe.

Guarantees: the nodes asked are those reachable over Connected links, directly or through others; if one of them
refuses, nobody changes (-10 at the initiator, with the name of the peer that was asked first); after a commit the
member set of the initiator is the reached set, and quorate participants take it over (Q17).

A transaction happens at one simulated moment. On the real kernel concurrent ones are serialised by random retries;
here they cannot overlap, which is one of the schedules the kernel allows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from quorate.simulator.change import Change
from quorate.simulator.errors import Refusal
from quorate.simulator.kernel import Kernel
from quorate.simulator.model import Connection, Resource
from quorate.simulator.settle import data_accessible
from quorate.simulator.states import Disk, Link, Replication, Role


class Member(NamedTuple):
    """A resource on a node that takes part."""

    kernel: Kernel
    resource: Resource


class Directory(Protocol):
    """Finds the other end of a connection, the node of a resource, and the connections between two nodes.

    `facing` is who answers at the other address, whatever node id it has.
    """

    def other_end(self, connection: Connection) -> tuple[Member, Connection] | None: ...
    def facing(self, connection: Connection) -> tuple[Member, Connection] | None: ...
    def owner(self, resource: Resource) -> Member | None: ...
    def between(self, one: str, other: str) -> list[Connection]: ...


class Reached(NamedTuple):
    """A participant and the first hop through which the initiator reaches it."""

    member: Member
    through: Connection


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What an initiator learns in the first phase."""

    reached: tuple[Reached, ...]
    primaries: frozenset[int]
    capable: bool  # some Primary has access to current data

    @property
    def node_ids(self) -> frozenset[int]:
        return frozenset(entry.member.resource.node_id for entry in self.reached)


Apply = Callable[[Member, Change, Connection | None], None]
"""Writes a participant's part; the connection is its own link to the initiator, None when it is further away."""


def explore(directory: Directory, start: Member, *, without: Connection | None = None) -> Surroundings:
    """Everybody reachable from `start`; `without` is a link that must not be used."""
    found: dict[int, Reached] = {}
    queue: list[tuple[Resource, Connection | None]] = [(start.resource, None)]
    while queue:
        resource, first = queue.pop(0)
        for connection in resource.connected():
            if connection is without:
                continue
            end = directory.other_end(connection)
            if end is None or end[0].resource.node_id in found or end[0].resource is start.resource:
                continue
            through = first if first is not None else connection
            found[end[0].resource.node_id] = Reached(end[0], through)
            queue.append((end[0].resource, through))
    everybody = [start.resource, *(entry.member.resource for entry in found.values())]
    primaries = [resource for resource in everybody if resource.role is Role.PRIMARY]
    capable = any(data_accessible(volume) for resource in primaries for volume in resource.volumes.values())
    return Surroundings(tuple(found.values()), frozenset(r.node_id for r in primaries), capable)


def direct_link(resource: Resource, node_id: int) -> Connection | None:
    connection = resource.connections.get(node_id)
    return connection if connection is not None and connection.link is Link.CONNECTED else None


def agree(surroundings: Surroundings, initiator: Resource, tag: str, apply: Apply) -> None:
    """The first phase: everybody tries its part and takes it back; raises -10 for the first refusal."""
    for entry in surroundings.reached:
        member = entry.member
        change = Change(member.resource, tag)
        try:
            apply(member, change, direct_link(member.resource, initiator.node_id))
            member.kernel.prepare(change)
        except Refusal:
            name, peer_id = entry.through.name, entry.through.peer_id
            raise Refusal(-10, f"Declined by peer {name} (id: {peer_id}), see the kernel log there") from None
        finally:
            change.undo()


def carry_out(
    surroundings: Surroundings,
    initiator: Resource,
    tag: str,
    apply: Apply,
    members: frozenset[int],
    *,
    forced: bool = True,
) -> None:
    """The second phase at the participants.

    What was agreed to is `forced`. A probe agrees on nothing: a Primary that would lose its quorum by what it learns
    declines and keeps what it knew (X3: the recorded probes end with -10).
    """
    for entry in surroundings.reached:
        member = entry.member
        quorate = take_members(member.resource, members)
        change = Change(member.resource, tag, forced=forced)
        apply(member, change, direct_link(member.resource, initiator.node_id))
        with suppress(Refusal):
            member.kernel.commit(change, recalculate=not quorate)


def take_members(resource: Resource, members: Iterable[int]) -> bool:
    """Q17: a participant takes the reached set over if it or a neighbour has quorum; answers whether it has."""
    quorate = all(volume.quorum for volume in resource.volumes.values())
    beside_quorate = any(p.quorate for v in resource.volumes.values() for p in v.peers())
    if quorate or beside_quorate:
        resource.members = {*members, resource.node_id}
    return quorate


def outdate_if_left_behind(change: Change, resource: Resource, surroundings: Surroundings) -> None:
    """D5: a Primary with data that can be reached only through others writes without this node (S5, X3)."""
    direct = {connection.peer_id for connection in resource.connected()} | {resource.node_id}
    if not surroundings.capable or not surroundings.primaries - direct:
        return
    for volume in resource.volumes.values():
        if volume.disk > Disk.OUTDATED:
            change.put(volume, "disk", Disk.OUTDATED)


def know_as_outdated(change: Change, connection: Connection) -> None:
    """The Primary's side of D5: it learns that the other node outdated itself."""
    for peer in connection.peer_volumes.values():
        if peer.replication is Replication.OFF and peer.disk > Disk.OUTDATED:
            change.put(peer, "disk", Disk.OUTDATED)
