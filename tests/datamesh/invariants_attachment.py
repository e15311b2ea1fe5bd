"""S28-S37: attachments."""

from __future__ import annotations

from quorate.api.replicated_volume import (
    DatameshTransition,
    ReplicatedVolumeStatus,
    TransitionType,
)
from tests.datamesh.observation import (
    Observation,
    by_name,
)


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
