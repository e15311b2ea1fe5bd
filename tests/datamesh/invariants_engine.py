"""E1-E15: the engine itself."""

from __future__ import annotations

from quorate.api.common import MESSAGE_LIMIT
from quorate.api.replicated_volume import (
    DatameshTransition,
    MemberType,
    StepStatus,
    TransitionType,
)
from quorate.datamesh import members
from quorate.datamesh.layout import majority
from quorate.datamesh.tracker import slot_of
from tests.datamesh.observation import (
    Observation,
    by_name,
    voters,
)


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
