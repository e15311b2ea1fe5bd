"""Step macros (facts/datamesh 3.4): what each step publishes.

Guarantees: an apply is a pure function from a context to a datamesh; it returns an equal datamesh when there is nothing to
do, and then no revision is spent (E4). q is always the majority of the voters *after* the step, plus one inside M2 and the
first half of an emergency beside a tie-breaker (decision 3); it is never derived from the stored q. Volume groups come from
the transition, never from a request that may be gone (E15, hazard H29).
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.api.common import Address
from quorate.api.replicated_volume import Datamesh, DatameshMember, MemberType
from quorate.api.value import replace
from quorate.datamesh import members
from quorate.datamesh.context import Context
from quorate.datamesh.dsl import Apply
from quorate.datamesh.layout import majority


def with_member(datamesh: Datamesh, member: DatameshMember) -> Datamesh:
    """The datamesh with this member added at the end, or replaced where it stands."""
    for index, present in enumerate(datamesh.members):
        if present.name == member.name:
            changed = (*datamesh.members[:index], member, *datamesh.members[index + 1 :])
            return replace(datamesh, members=changed)
    return replace(datamesh, members=(*datamesh.members, member))


def without_member(datamesh: Datamesh, name: str) -> Datamesh:
    """The datamesh without this member."""
    return replace(datamesh, members=tuple(member for member in datamesh.members if member.name != name))


def with_quorum(datamesh: Datamesh, extra: int = 0) -> Datamesh:
    """The datamesh with q = majority of its voters (+ `extra`)."""
    voters = sum(members.is_voter(member.type) for member in datamesh.members)
    return replace(datamesh, quorum=majority(voters) + extra)


def addresses_on(networks: tuple[str, ...], reported: tuple[Address, ...]) -> tuple[Address, ...]:
    """A replica's reported addresses on these networks, in their order (S43)."""
    by_name = {address.system_network_name: address for address in reported}
    return tuple(by_name[name] for name in networks if name in by_name)


class VolumeGroup(NamedTuple):
    """Where a disk is; empty for members without one (S17)."""

    name: str = ""
    thin_pool: str = ""


def _volume_group(context: Context) -> VolumeGroup:
    transition = context.transition
    assert transition is not None, "a step is applied for a transition"
    return VolumeGroup(transition.lvm_volume_group_name, transition.lvm_volume_group_thin_pool_name)


_NO_VOLUME_GROUP = VolumeGroup()


def _joined(context: Context, member_type: str) -> Datamesh:
    """The datamesh with the subject as a new member; unchanged when it is one already."""
    datamesh = context.mesh.datamesh
    replica = context.replica
    if context.member is not None or replica.rvr is None:
        return datamesh
    group = _volume_group(context) if members.needs_backing_volume(member_type) else _NO_VOLUME_GROUP
    member = DatameshMember(
        name=replica.name,
        type=member_type,
        node_name=replica.node_name,
        zone=context.world.zone_of(replica.node_name),
        addresses=addresses_on(datamesh.system_network_names, replica.rvr.status.addresses),
        lvm_volume_group_name=group.name,
        lvm_volume_group_thin_pool_name=group.thin_pool,
    )
    return with_member(datamesh, member)


def join(member_type: str) -> Apply:
    """✦ → A, ✦ → TB: a new star member."""
    return lambda context: _joined(context, member_type)


def join_voter(context: Context) -> Datamesh:
    """✦ → D∅: a new voter and q = majority."""
    return with_quorum(_joined(context, MemberType.LIMINAL_DISKFUL))


def leave(context: Context) -> Datamesh:
    """A → ✕, TB → ✕: a star member is removed."""
    return without_member(context.mesh.datamesh, context.replica.name)


def leave_voter(context: Context) -> Datamesh:
    """D∅ → ✕: a voter is removed and q = majority."""
    return with_quorum(without_member(context.mesh.datamesh, context.replica.name))


def _retyped(context: Context, member_type: str, group: VolumeGroup | None = None) -> Datamesh:
    """The subject with another type; its volume group stays unless one is given."""
    member = context.member
    if member is None:
        return context.mesh.datamesh
    changed = replace(member, type=member_type)
    if group is not None:
        changed = replace(changed, lvm_volume_group_name=group.name, lvm_volume_group_thin_pool_name=group.thin_pool)
    return with_member(context.mesh.datamesh, changed)


def attach_disk(context: Context) -> Datamesh:
    """D∅ → D: only the type changes."""
    return _retyped(context, MemberType.DISKFUL)


def detach_disk(context: Context) -> Datamesh:
    """D → D∅: only the type changes."""
    return _retyped(context, MemberType.LIMINAL_DISKFUL)


def change_volume(context: Context) -> Datamesh:
    """D∅ gets another volume group; its disk is attached by the next step."""
    return _retyped(context, MemberType.LIMINAL_DISKFUL, _volume_group(context))


def gain_vote(context: Context) -> Datamesh:
    """A → D∅, TB → D∅: the member becomes a voter and q = majority, in one revision (S5)."""
    return with_quorum(_retyped(context, MemberType.LIMINAL_DISKFUL, _volume_group(context)))


def lose_vote(to: str, extra: int = 0) -> Apply:
    """D∅ → A, D∅ → TB: the member stops voting and q = majority (+ `extra`), in one revision (S5)."""
    return lambda context: with_quorum(_retyped(context, to, _NO_VOLUME_GROUP), extra)


def retype(to: str) -> Apply:
    """A → TB, TB → A: only the type changes."""
    return lambda context: _retyped(context, to)


def raise_quorum(context: Context) -> Datamesh:
    """M2, first half of a gain: the old voters need one more."""
    return with_quorum(context.mesh.datamesh, 1)


def lower_quorum(context: Context) -> Datamesh:
    """M2, second half of a loss: q = majority again."""
    return with_quorum(context.mesh.datamesh)


def vote_off(context: Context) -> Datamesh:
    """M1: the tie-breakers have no vote on any diskful member."""
    return replace(context.mesh.datamesh, tie_breakers_suspended=True)


def vote_on(context: Context) -> Datamesh:
    """M1: the tie-breakers' vote comes back."""
    return replace(context.mesh.datamesh, tie_breakers_suspended=False)


def force_remove(extra: int = 0) -> Apply:
    """A member is removed without its help; q = majority of the remaining voters (+ `extra`), qmr stays (S12)."""

    def apply(context: Context) -> Datamesh:
        member = context.member
        if member is None:
            return context.mesh.datamesh
        rest = without_member(context.mesh.datamesh, member.name)
        return with_quorum(rest, extra) if members.is_voter(member.type) else rest

    return apply


def disconnect_tie_breakers(context: Context) -> Datamesh:
    """First half of an emergency removal of one of two voters: the tie-breakers drop their connection to it."""
    member = context.member
    if member is None:
        return context.mesh.datamesh
    return with_member(context.mesh.datamesh, replace(member, tie_breakers_disconnected=True))


def set_attached(attached: bool) -> Apply:
    """Attach and detach. The data latch is published together with the first promotion (decision 9)."""

    def apply(context: Context) -> Datamesh:
        member = context.member
        if member is None:
            return context.mesh.datamesh
        changed = with_member(context.mesh.datamesh, replace(member, attached=attached))
        return replace(changed, data_present=True) if attached else changed

    return apply


def set_multiattach(enabled: bool) -> Apply:
    """Enable or disable several Primaries."""
    return lambda context: replace(context.mesh.datamesh, multiattach=enabled)
