"""The invariants of facts/datamesh 6 as checks of one pass: what stood before it against what it wrote.

Every function is named after its number and raises AssertionError. S1, S4, S5, S8 and S39 have the form that decisions 3-6
give them. `Observation` carries what a check may use; `history` maps every published revision to its datamesh, so that
"confirmed by all" can be judged from what each node really holds.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from quorate.api.common import MESSAGE_LIMIT, DiskState
from quorate.api.replicated_volume import (
    Datamesh,
    DatameshMember,
    DatameshTransition,
    MemberType,
    ReplicatedVolumeStatus,
    StepStatus,
    TransitionGroup,
    TransitionType,
)
from quorate.datamesh import members
from quorate.datamesh.context import agent_is_ready
from quorate.datamesh.contract import PassResult
from quorate.datamesh.layout import Layout, majority
from quorate.datamesh.members import id_of
from quorate.datamesh.tracker import changes_tie_breaker, slot_of
from quorate.verification.perfect_cluster import Cluster

VOTING_GROUPS = (TransitionGroup.VOTING_MEMBERSHIP, TransitionGroup.QUORUM, TransitionGroup.EMERGENCY)


@dataclass(frozen=True)
class Observation:
    """One pass."""

    cluster: Cluster
    """The inputs."""
    result: PassResult
    history: dict[int, Datamesh]
    """Every revision published so far, this pass included."""
    blank: frozenset[str] = frozenset()
    """Replicas whose node was proven down and has not answered since: whatever it boots with comes from the newest status."""

    @property
    def before(self) -> ReplicatedVolumeStatus:
        return self.cluster.volume.status

    @property
    def after(self) -> ReplicatedVolumeStatus:
        return self.result.status

    @property
    def layout(self) -> Layout:
        configuration = self.before.configuration
        assert configuration is not None
        return Layout(configuration.failures_to_tolerate, configuration.guaranteed_minimum_data_redundancy)

    def new_transitions(self) -> list[DatameshTransition]:
        keys = [(t.type, t.plan_id, t.replica_name) for t in self.before.datamesh_transitions]
        return [t for t in self.after.datamesh_transitions if (t.type, t.plan_id, t.replica_name) not in keys]

    def emergency_subjects(self) -> list[str]:
        both = (*self.before.datamesh_transitions, *self.after.datamesh_transitions)
        return [t.replica_name for t in both if t.group == TransitionGroup.EMERGENCY]

    def fenced(self, name: str) -> bool:
        """Whether a member cannot run: fencing evidence and nobody reaches it."""
        member = by_name(self.before.datamesh).get(name) or by_name(self.after.datamesh).get(name)
        if name in self.blank:
            return True
        return member is not None and member.node_name in self.cluster.fenced and not self.reached(name)

    def taken_back(self, name: str) -> bool:
        """Whether a join is being taken back: nothing is lost that anybody counted on."""
        both = (*self.before.datamesh_transitions, *self.after.datamesh_transitions)
        return any(t.reverting and t.replica_name == name for t in both)

    def sees_somebody(self, name: str) -> bool:
        return any(
            rvr.metadata.name == name
            and agent_is_ready(rvr)
            and any(peer.connection_state == "Connected" for peer in rvr.status.peers)
            for rvr in self.cluster.replicas
        )

    def reached(self, name: str) -> bool:
        return any(
            peer.name == name and peer.connection_state == "Connected"
            for rvr in self.cluster.replicas
            if agent_is_ready(rvr)
            for peer in rvr.status.peers
        )

    def copies(self, without: str = "") -> int:
        """UpToDate voters that fresh agents report, other than one."""
        diskful = [m.name for m in self.before.datamesh.members if m.type == MemberType.DISKFUL and m.name != without]
        return sum(
            rvr.metadata.name in diskful
            and agent_is_ready(rvr)
            and rvr.status.backing_volume is not None
            and rvr.status.backing_volume.state == DiskState.UP_TO_DATE
            for rvr in self.cluster.replicas
        )


def by_name(datamesh: Datamesh) -> dict[str, DatameshMember]:
    return {member.name: member for member in datamesh.members}


def voters(datamesh: Datamesh) -> frozenset[str]:
    return frozenset(member.name for member in datamesh.members if members.is_voter(member.type))


def breakers(datamesh: Datamesh) -> frozenset[str]:
    return frozenset(member.name for member in datamesh.members if member.type == MemberType.TIE_BREAKER)


def changed_voters(o: Observation) -> frozenset[str]:
    return voters(o.before.datamesh) ^ voters(o.after.datamesh)


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


def is_copy(o: Observation, name: str) -> bool:
    return o.copies() > o.copies(name)


def was_copy(o: Observation, name: str) -> bool:
    """Whether a D∅ ever held data: it was D in some revision."""
    return any(
        by_name(d).get(name) is not None and by_name(d)[name].type == MemberType.DISKFUL for d in o.history.values()
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


def potentially_attached(status: ReplicatedVolumeStatus) -> frozenset[str]:
    attached = {member.name for member in status.datamesh.members if member.attached}
    moving = {
        t.replica_name for t in status.datamesh_transitions if t.type in (TransitionType.ATTACH, TransitionType.DETACH)
    }
    return frozenset(attached | moving)


def toggles(status: ReplicatedVolumeStatus) -> list[DatameshTransition]:
    types = (TransitionType.ENABLE_MULTIATTACH, TransitionType.DISABLE_MULTIATTACH)
    return [t for t in status.datamesh_transitions if t.type in types]


def new_attaches(o: Observation) -> list[str]:
    return [t.replica_name for t in o.new_transitions() if t.type == TransitionType.ATTACH]


def s28(o: Observation) -> None:
    """A second Attach starts only when multiattach is on and confirmed."""
    for name in new_attaches(o):
        if potentially_attached(o.after) - {name}:
            assert o.after.datamesh.multiattach, f"S28: {name}"
            assert not toggles(o.after), f"S28: {name}"


def s29(o: Observation) -> None:
    """Multiattach goes off only while at most one member may be attached."""
    if o.before.datamesh.multiattach and not o.after.datamesh.multiattach:
        assert len(potentially_attached(o.after)) <= 1, "S29"


def s30(o: Observation) -> None:
    """At most one multiattach toggle."""
    assert len(toggles(o.after)) <= 1, "S30"


def s31(o: Observation) -> None:
    """New attachments respect the slots; lowering the limit detaches nobody."""
    if new_attaches(o):
        assert len(potentially_attached(o.after)) <= o.cluster.volume.spec.max_attachments, "S31"


def s33(o: Observation) -> None:
    """No Attach on a deleting volume, a replica that is not Ready, or one whose membership changes."""
    for name in new_attaches(o):
        assert not o.cluster.volume.metadata.deletion_timestamp, "S33: deleting"
        rvr = next((r for r in o.cluster.replicas if r.metadata.name == name), None)
        assert rvr is not None, "S33: no replica"
        assert any(c.type == "Ready" and c.status == "True" for c in rvr.status.conditions), "S33: not Ready"
        membership = [
            t for t in o.after.datamesh_transitions if t.replica_name == name and t.type != TransitionType.ATTACH
        ]
        assert not membership, f"S33: {membership}"


def s34(o: Observation) -> None:
    """Detach does not start while the device is in use."""
    for transition in o.new_transitions():
        if transition.type == TransitionType.DETACH:
            rvr = next((r for r in o.cluster.replicas if r.metadata.name == transition.replica_name), None)
            assert rvr is None or rvr.status.attachment is None or not rvr.status.attachment.in_use, "S34"


def s36(o: Observation) -> None:
    """A member is removed only when it is not attached and has no attachment transition."""
    old, new = by_name(o.before.datamesh), by_name(o.after.datamesh)
    for name in sorted(old.keys() - new.keys()):
        if old[name].attached:
            assert name in o.emergency_subjects(), f"S36: {name} attached"
        assert not any(
            t.replica_name == name and t.type in (TransitionType.ATTACH, TransitionType.DETACH)
            for t in o.after.datamesh_transitions
        ), f"S36: {name} in transition"


def s37(o: Observation) -> None:
    """An attached node that is wanted keeps its attachment."""
    wanted = [rva.spec.node_name for rva in o.cluster.attachments if not rva.metadata.deletion_timestamp]
    new = by_name(o.after.datamesh)
    for member in o.before.datamesh.members:
        kept = member.name in new and new[member.name].attached
        if member.attached and member.node_name in wanted and member.name not in o.emergency_subjects():
            forced = not any(r.metadata.name == member.name for r in o.cluster.replicas) or o.fenced(member.name)
            assert kept or forced, f"S37: {member.name}"


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


def e1(o: Observation) -> None:
    """The revision never falls, and moves exactly when the datamesh does (zones aside)."""
    assert o.after.datamesh_revision >= o.before.datamesh_revision, "E1"


def e2(o: Observation) -> None:
    """Exactly one Active step; Completed before it, Pending after it; revisions do not decrease."""
    for transition in o.after.datamesh_transitions:
        states = [step.status for step in transition.steps]
        active = states.index(StepStatus.ACTIVE)
        assert states.count(StepStatus.ACTIVE) == 1, f"E2: {states}"
        assert all(state == StepStatus.COMPLETED for state in states[:active]), f"E2: {states}"
        assert all(state == StepStatus.PENDING for state in states[active + 1 :]), f"E2: {states}"
        revisions = [step.datamesh_revision for step in transition.steps[: active + 1]]
        assert revisions == sorted(revisions), f"E2: {revisions}"
        assert transition.steps[active].datamesh_revision <= o.after.datamesh_revision, "E2"


def e3(o: Observation) -> None:
    """No two transitions share a replica's slot."""
    slots = [(t.replica_name, slot_of(t)) for t in o.after.datamesh_transitions if t.replica_name]
    assert len(slots) == len(set(slots)), f"E3: {slots}"


def e7(o: Observation) -> None:
    """A transition that ends before its last step has reached its goal, or has a successor in the same pass."""
    after = {(t.type, t.plan_id, t.replica_name) for t in o.after.datamesh_transitions}
    for transition in o.before.datamesh_transitions:
        gone = (transition.type, transition.plan_id, transition.replica_name) not in after
        if gone and any(step.status == StepStatus.PENDING for step in transition.steps):
            assert o.new_transitions() or _reached_goal(o, transition), (
                f"E7: {transition.plan_id} of {transition.replica_name} vanished"
            )


def _reached_goal(o: Observation, transition: DatameshTransition) -> bool:
    member = by_name(o.after.datamesh).get(transition.replica_name)
    match transition.type:
        case TransitionType.CHANGE_QUORUM:
            return o.after.datamesh.quorum == majority(len(voters(o.after.datamesh)))
        case TransitionType.REMOVE_REPLICA | TransitionType.FORCE_REMOVE_REPLICA:
            return member is None
        case _:
            wanted = transition.replica_type or transition.to_replica_type
            return member is not None and member.type == wanted


def e11(o: Observation) -> None:
    """All texts fit, and every node with attachments has reason and message."""
    for transition in o.after.datamesh_transitions:
        assert all(len(step.message) <= MESSAGE_LIMIT for step in transition.steps), "E11"
        assert len(transition.message) <= MESSAGE_LIMIT, "E11"
    assert all(len(request.message) <= MESSAGE_LIMIT for request in o.after.datamesh_replica_requests), "E11"
    told = {node.node_name: node for node in o.result.attachments}
    for rva in o.cluster.attachments:
        node = told.get(rva.spec.node_name)
        assert node is not None, f"E11: {rva.spec.node_name}"
        assert node.reason, f"E11: {rva.spec.node_name}"
        assert node.message, f"E11: {rva.spec.node_name}"
        assert len(node.message) <= MESSAGE_LIMIT, "E11"


def e12(o: Observation) -> None:
    """A volume that is being deleted gets no new member and no new attachment."""
    if o.cluster.volume.metadata.deletion_timestamp:
        types = [t.type for t in o.new_transitions()]
        assert TransitionType.ADD_REPLICA not in types, "E12"
        assert TransitionType.ATTACH not in types, "E12"


def e14(o: Observation) -> None:
    """A liminal member has a membership transition of its own."""
    running = [
        t.replica_name
        for t in o.after.datamesh_transitions
        if t.type not in (TransitionType.ATTACH, TransitionType.DETACH)
    ]
    for member in o.after.datamesh.members:
        assert not members.is_liminal(member.type) or member.name in running, f"E14: {member.name}"


def e15(o: Observation) -> None:
    """A transition that will attach a disk carries its volume group."""
    for transition in o.after.datamesh_transitions:
        if transition.type == TransitionType.ADD_REPLICA and transition.replica_type == MemberType.DISKFUL:
            assert transition.lvm_volume_group_name, "E15"


CHECKS: tuple[Callable[[Observation], None], ...] = (
    s1, s2, s3, s4, s5, s8, s8_groups, s10, s12, s13, s14, s15_s16, s17, s18, s19, s20, s21, s22, s24_s25, s28, s29, s30,
    s31, s33, s34, s36, s37, s39, s40, s43, e1, e2, e3, e7, e11, e12, e14, e15,
)  # fmt: skip
"""Every check that can be made of a single pass."""


def check_all(observation: Observation) -> None:
    for check in CHECKS:
        check(observation)


def id_set(names: frozenset[str]) -> list[int]:
    return sorted(id_of(name) for name in names)
