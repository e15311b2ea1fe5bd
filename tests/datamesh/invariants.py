"""The invariants of facts/datamesh 6 as checks of one pass: what stood before it against what it wrote.

Every function is named after its number and raises AssertionError. S1, S4, S5, S8 and S39 have the form that decisions 3-6
give them. `Observation` carries what a check may use; `history` maps every published revision to its datamesh, so that
"confirmed by all" can be judged from what each node really holds.
"""

from __future__ import annotations

from collections.abc import Callable

from quorate.api.replicated_volume import (
    MemberType,
    TransitionGroup,
    TransitionType,
)
from quorate.datamesh import members
from quorate.datamesh.layout import majority
from quorate.datamesh.tracker import changes_tie_breaker
from tests.datamesh.invariants_attachment import s28, s29, s30, s31, s33, s34, s36, s37
from tests.datamesh.invariants_engine import e1, e2, e3, e7, e11, e12, e14, e15
from tests.datamesh.observation import (
    VOTING_GROUPS,
    Observation,
    breakers,
    by_name,
    changed_voters,
    is_copy,
    voters,
    was_copy,
)


def s1(o: Observation) -> None:
    """q is at least the majority; exactly the majority when no change of voters, tie-breakers or quorum runs."""
    datamesh = o.after.datamesh
    count = len(voters(datamesh))
    if count == 0:
        return
    assert datamesh.quorum >= majority(count), f"S1: q {datamesh.quorum} of {count} voters"
    if not any(t.group in VOTING_GROUPS or changes_tie_breaker(t) for t in o.after.datamesh_transitions):
        assert datamesh.quorum == majority(count), f"S1: q {datamesh.quorum} of {count} voters at rest"


def s2(o: Observation) -> None:
    """qmr is at least 1 and moves only toward GMDR + 1."""
    old, new = o.before.datamesh.quorum_minimum_redundancy, o.after.datamesh.quorum_minimum_redundancy
    assert new >= 1, "S2: qmr 0"
    assert abs(new - o.layout.qmr) <= abs(old - o.layout.qmr), f"S2: qmr {old} -> {new}, target {o.layout.qmr}"
    assert (old - o.layout.qmr) * (new - o.layout.qmr) >= 0, "S2: qmr overshoots"


def s3(o: Observation) -> None:
    """q is always computed from the voters after the step: majority, or one more inside a staged change."""
    if o.after.datamesh.quorum != o.before.datamesh.quorum:
        right = majority(len(voters(o.after.datamesh)))
        assert o.after.datamesh.quorum in (right, right + 1), f"S3: q {o.after.datamesh.quorum}, majority {right}"


def s4(o: Observation) -> None:
    """Relative to what any member that may run still holds, the voter set differs by at most one member."""
    changed = changed_voters(o)
    if not changed:
        return
    assert len(changed) == 1, f"S4: {sorted(changed)} changed at once"
    present = by_name(o.before.datamesh)
    for rvr in o.cluster.replicas:
        name = rvr.metadata.name
        held = o.history.get(rvr.status.datamesh_revision)
        if name not in present or o.fenced(name) or held is None:
            continue
        difference = voters(held) ^ voters(o.after.datamesh)
        assert len(difference) <= 1, (
            f"S4: {name} holds {sorted(voters(held))}, published {sorted(voters(o.after.datamesh))}"
        )


def s5(o: Observation) -> None:
    """A voter change and its q are in the same revision."""
    if changed_voters(o):
        right = majority(len(voters(o.after.datamesh)))
        assert o.after.datamesh.quorum in (right, right + 1), "S5"


def s8(o: Observation) -> None:
    """Beside a tie-breaker no vote changes in one step: M1, M2, or the two steps of an emergency (decisions 4, 6)."""
    changed = changed_voters(o)
    if not changed:
        return
    (name,) = changed
    others = (breakers(o.before.datamesh) & breakers(o.after.datamesh)) - changed
    if not others:
        return
    old, new = o.before.datamesh, o.after.datamesh
    count = len(voters(new))
    if name in o.emergency_subjects() and name not in by_name(new):
        member = by_name(old)[name]
        if o.fenced(name):
            return  # a fenced node counts nobody: one step is enough
        votes_off = old.tie_breakers_suspended and new.tie_breakers_suspended
        assert (
            votes_off
            or (count >= 2 and new.quorum == majority(count) + 1)
            or (count == 1 and member.tie_breakers_disconnected)
        ), f"S8: emergency of {name} in one step"
        return
    if old.tie_breakers_suspended and new.tie_breakers_suspended:
        return
    gained = name in voters(new)
    raised = old.quorum > majority(len(voters(old))) if gained else new.quorum == majority(count) + 1
    assert raised, f"S8: vote of {name} changed beside a tie-breaker"
    assert o.cluster.features.voter_mode == "static", f"S8: M2 for {name} with dynamic voters"


def s8_groups(o: Observation) -> None:
    """No two transitions of the groups Voting and Quorum, and none of them next to Network."""
    groups = [t.group for t in o.after.datamesh_transitions]
    voting = groups.count(TransitionGroup.VOTING_MEMBERSHIP) + groups.count(TransitionGroup.QUORUM)
    assert voting <= 1, f"S8: {groups}"


def s10(o: Observation) -> None:
    """qmr rises only as far as UpToDate voters carry it."""
    old, new = o.before.datamesh.quorum_minimum_redundancy, o.after.datamesh.quorum_minimum_redundancy
    if new > old >= 1:
        assert o.copies() >= new, f"S10: qmr {old} -> {new} with {o.copies()} copies"


def s12(o: Observation) -> None:
    """An emergency never changes qmr or the baseline."""
    started = o.new_transitions()
    if started and all(t.group == TransitionGroup.EMERGENCY for t in started):
        quorum_runs = any(t.group == TransitionGroup.QUORUM for t in o.before.datamesh_transitions)
        same = o.before.datamesh.quorum_minimum_redundancy == o.after.datamesh.quorum_minimum_redundancy
        assert same or quorum_runs, "S12"


def s13(o: Observation) -> None:
    """baseline <= configured GMDR, baseline <= qmr - 1, and it rises only when no quorum change is unconfirmed."""
    baseline = o.after.baseline_guaranteed_minimum_data_redundancy
    assert baseline <= o.layout.gmdr, "S13: above the configuration"
    assert baseline <= max(o.after.datamesh.quorum_minimum_redundancy - 1, 0), "S13: above qmr - 1"
    if baseline > o.before.baseline_guaranteed_minimum_data_redundancy:
        assert not any(t.group == TransitionGroup.QUORUM for t in o.after.datamesh_transitions), "S13: unconfirmed"


def s14(o: Observation) -> None:
    """A vote is gained only while the member is connected to the voters (q never counts on an unreachable vote)."""
    old, new = by_name(o.before.datamesh), by_name(o.after.datamesh)
    for name, member in new.items():
        was = old.get(name)
        if was is None or members.is_voter(was.type) or not members.is_voter(member.type):
            continue
        assert o.reached(name) or o.sees_somebody(name), f"S14: {name} gains a vote unreachable"


def s15_s16(o: Observation) -> None:
    """A copy is given up voluntarily only while enough others are UpToDate, the last one never."""
    old, new = by_name(o.before.datamesh), by_name(o.after.datamesh)
    for name, member in old.items():
        lost_disk = member.type == MemberType.DISKFUL and (name not in new or new[name].type != MemberType.DISKFUL)
        lost_volume = member.type == MemberType.LIMINAL_DISKFUL and (
            name not in new or not members.needs_backing_volume(new[name].type)
        )
        forced = name not in new and name in o.emergency_subjects()
        if not (lost_disk or lost_volume) or forced or o.taken_back(name):
            continue
        if lost_volume and not was_copy(o, name):
            continue
        if lost_disk and not is_copy(o, name):
            continue
        assert o.copies(name) > o.layout.gmdr or (o.copies(name) >= 1 and not is_copy(o, name)), (
            f"S15: {name} leaves {o.copies(name)} copies, GMDR {o.layout.gmdr}"
        )


def s17(o: Observation) -> None:
    """Volume groups are set on D and D∅ and empty on TB and A."""
    for member in o.after.datamesh.members:
        assert bool(member.lvm_volume_group_name) == members.needs_backing_volume(member.type), f"S17: {member}"


def s18(o: Observation) -> None:
    """A disk attaches only after all members confirmed a revision in which its member is full mesh."""
    old, new = by_name(o.before.datamesh), by_name(o.after.datamesh)
    for name, member in new.items():
        if member.type != MemberType.DISKFUL or name not in old or old[name].type == MemberType.DISKFUL:
            continue
        for rvr in o.cluster.replicas:
            held = o.history.get(rvr.status.datamesh_revision)
            if rvr.metadata.name not in old or held is None or rvr.metadata.name == name or o.fenced(rvr.metadata.name):
                continue
            peer = by_name(held).get(name)
            has_slot = peer is not None and members.is_full_mesh(peer.type)
            assert has_slot, f"S18: {rvr.metadata.name} has no slot for {name}"


_EDGES = {
    ("", "Access"),
    ("", "TieBreaker"),
    ("", "LiminalDiskful"),
    ("Access", ""),
    ("TieBreaker", ""),
    ("LiminalDiskful", ""),
    ("Access", "TieBreaker"),
    ("TieBreaker", "Access"),
    ("Access", "LiminalDiskful"),
    ("TieBreaker", "LiminalDiskful"),
    ("LiminalDiskful", "Access"),
    ("LiminalDiskful", "TieBreaker"),
    ("LiminalDiskful", "Diskful"),
    ("Diskful", "LiminalDiskful"),
}


def s19(o: Observation) -> None:
    """Types change along the edges of facts 3.4 only; an emergency may take any member away."""
    old, new = by_name(o.before.datamesh), by_name(o.after.datamesh)
    for name in sorted(old.keys() | new.keys()):
        one = old[name].type if name in old else ""
        two = new[name].type if name in new else ""
        forced = two == "" and name in o.emergency_subjects()
        assert one == two or forced or (one, two) in _EDGES, f"S19: {name} {one} -> {two}"


def s20(o: Observation) -> None:
    """A member becomes attached only through an Attach transition; the data latch is set with it (decision 9)."""
    old = by_name(o.before.datamesh)
    for member in o.after.datamesh.members:
        if member.attached and not (member.name in old and old[member.name].attached):
            assert any(
                t.type == TransitionType.ATTACH and t.replica_name == member.name for t in o.after.datamesh_transitions
            ), f"S20: {member.name}"
        if member.attached:
            assert o.after.datamesh.data_present, "decision 9: attached without the data latch"
    assert o.after.datamesh.data_present or not o.before.datamesh.data_present, "decision 9: the latch fell"


def s21(o: Observation) -> None:
    """At most eight members carry a disk."""
    assert sum(members.needs_backing_volume(m.type) for m in o.after.datamesh.members) <= 8, "S21"


def s22(o: Observation) -> None:
    """The size never shrinks and never grows next to a transition that gains a disk."""
    assert o.after.datamesh.size.value >= o.before.datamesh.size.value, "S22"


def s24_s25(o: Observation) -> None:
    """A tie-breaker is given up voluntarily only if the voters do not need it; an even rest is left only with one."""
    old, new = o.before.datamesh, o.after.datamesh
    gone = {n for n in breakers(old) - breakers(new) if n not in o.emergency_subjects() and not o.taken_back(n)}
    for name in sorted(gone):
        count = len(voters(new))
        if count % 2 == 0 and o.layout.ftt >= count // 2 > 0:
            assert breakers(new), f"S24: the last tie-breaker {name} leaves {count} voters"
    for name in sorted(voters(old) - voters(new)):
        joined = name in by_name(new) and by_name(new)[name].type == MemberType.TIE_BREAKER
        if name in o.emergency_subjects() or o.taken_back(name):
            continue
        count = len(voters(new))
        if count and count % 2 == 0 and o.layout.ftt >= count // 2:
            assert breakers(new) or joined, f"S25: {count} voters without tie-breaker"


def s39(o: Observation) -> None:
    """Emergencies start only on members that no fresh agent reports connected."""
    for transition in o.new_transitions():
        if transition.group == TransitionGroup.EMERGENCY:
            assert not o.reached(transition.replica_name), f"S39: {transition.replica_name}"
    gone = by_name(o.before.datamesh).keys() - by_name(o.after.datamesh).keys()
    for name in sorted(gone):
        if name in o.emergency_subjects():
            assert not o.reached(name), f"S39: {name} removed while reachable"


def s40(o: Observation) -> None:
    """One member per node, unique names."""
    nodes = [member.node_name for member in o.after.datamesh.members]
    names = [member.name for member in o.after.datamesh.members]
    assert len(set(nodes)) == len(nodes), f"S40: {nodes}"
    assert len(set(names)) == len(names), f"S40: {names}"


def s43(o: Observation) -> None:
    """A member's addresses come from its own replica."""
    old = by_name(o.before.datamesh)
    reported = {rvr.metadata.name: rvr.status.addresses for rvr in o.cluster.replicas}
    for member in o.after.datamesh.members:
        if member.name not in old or old[member.name].addresses != member.addresses:
            assert all(address in reported.get(member.name, ()) for address in member.addresses), f"S43: {member.name}"


CHECKS: tuple[Callable[[Observation], None], ...] = (
    s1, s2, s3, s4, s5, s8, s8_groups, s10, s12, s13, s14, s15_s16, s17, s18, s19, s20, s21, s22, s24_s25, s28, s29, s30,
    s31, s33, s34, s36, s37, s39, s40, s43, e1, e2, e3, e7, e11, e12, e14, e15,
)  # fmt: skip
"""Every check that can be made of a single pass."""


def check_all(observation: Observation) -> None:
    for check in CHECKS:
        check(observation)
