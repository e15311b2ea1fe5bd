"""The LVMLogicalVolume controller of a node: create, grow, remove logical volumes. The decision is pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorate.agent.lvm.answers import LookAtVolume, LvmAnswers, RunLvm, VolumeSeen
from quorate.agent.lvm.plan import compute_plan, compute_removal
from quorate.api.indexes import LLV_BY_LVG
from quorate.api.labels import FINALIZER_LVM_OPERATOR
from quorate.api.lvm_logical_volume import LVMLogicalVolume, LVMLogicalVolumeStatus, Phase
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.quantity import Quantity
from quorate.api.value import replace
from quorate.machinery.controller import ControllerSpec, changed, watches
from quorate.machinery.effects import Answers, Decision, Effect, Half, Mode, Patch
from quorate.machinery.reader import Reader

NAME = "llv-controller"


@dataclass(frozen=True, slots=True)
class VolumeSnapshot:
    """A logical volume of this node, and its group."""

    volume: LVMLogicalVolume | None = None
    group: LVMVolumeGroup | None = None


def gather(reader: Reader, key: str, *, node_name: str) -> VolumeSnapshot:
    """Volumes of other nodes and of groups nobody knows are not ours."""
    volume = reader.get(LVMLogicalVolume, key)
    group = reader.get(LVMVolumeGroup, volume.spec.lvm_volume_group_name) if volume else None
    if group is None or group.spec.local is None or group.spec.local.node_name != node_name:
        return VolumeSnapshot()
    return VolumeSnapshot(volume, group)


def decide(snapshot: VolumeSnapshot, answers: Answers, now: float) -> Decision:
    """One command at most per look, then look again."""
    del now
    volume, group = snapshot.volume, snapshot.group
    if volume is None or group is None:
        return Decision()
    finalizers = volume.metadata.finalizers
    if volume.metadata.deleting:
        return _decide_removal(volume, group.spec.actual_vg_name_on_the_node, answers)
    if FINALIZER_LVM_OPERATOR not in finalizers:
        held = replace(volume.metadata, finalizers=(*finalizers, FINALIZER_LVM_OPERATOR))
        patch = Patch(volume, replace(volume, metadata=held), Half.MAIN, "a logical volume is made for it")
        return Decision(effects=(patch,), requeue=True)
    return _decide_volume(volume, group.spec.actual_vg_name_on_the_node, answers)


def _decide_volume(volume: LVMLogicalVolume, group: str, answers: Answers) -> Decision:
    seen = _look(volume, group, 0, answers)
    if isinstance(seen, LookAtVolume):
        return Decision(ask=(seen,))
    if seen.error:
        return _report(volume, seen, Phase.PENDING, seen.error)
    plan = compute_plan(volume, group, seen.row, seen.extent_size)
    if plan.refusal:
        return _report(volume, seen, Phase.FAILED, plan.refusal)
    if not plan.command:
        return _report(volume, seen, Phase.CREATED, "")
    run = RunLvm(plan.command, group)
    if run not in answers:
        return Decision(ask=(run,))
    after = _look(volume, group, 1, answers)
    if isinstance(after, LookAtVolume):
        return Decision(ask=(after,))
    left = compute_plan(volume, group, after.row, after.extent_size)
    if not left.command and not left.refusal and not after.error:
        # Judged by what is there: LVM may complain although the change happened (facts/agent 6.3).
        return _report(volume, after, Phase.CREATED, "")
    failed = str(answers[run]) or after.error or "the command had no effect"
    phase = Phase.RESIZING if after.row is not None else Phase.FAILED
    return _report(volume, after, phase, failed)


def _decide_removal(volume: LVMLogicalVolume, group: str, answers: Answers) -> Decision:
    """Only when nobody else holds the object: the DRBD side may still have the volume attached."""
    finalizers = volume.metadata.finalizers
    if finalizers != (FINALIZER_LVM_OPERATOR,):
        return Decision()
    seen = _look(volume, group, 0, answers)
    if isinstance(seen, LookAtVolume):
        return Decision(ask=(seen,))
    if seen.error:
        return Decision(error=seen.error)
    plan = compute_removal(volume, group, seen.row)
    if plan.refusal:
        return _report(volume, seen, Phase.FAILED, plan.refusal)
    if plan.command:
        run = RunLvm(plan.command, group)
        if run not in answers:
            return Decision(ask=(run,))
        after = _look(volume, group, 1, answers)
        if isinstance(after, LookAtVolume):
            return Decision(ask=(after,))
        if after.error or compute_removal(volume, group, after.row).command:
            return _report(volume, after, Phase.FAILED, str(answers[run]) or after.error or "the volume is still there")
    freed = replace(volume, metadata=replace(volume.metadata, finalizers=()))
    return Decision(effects=(Patch(volume, freed, Half.MAIN, "the logical volume is gone"),))


def _look(volume: LVMLogicalVolume, group: str, count: int, answers: Answers) -> VolumeSeen | LookAtVolume:
    request = LookAtVolume(group, volume.spec.actual_lv_name_on_the_node, count)
    answer = answers.get(request)
    return answer if isinstance(answer, VolumeSeen) else request


def _report(volume: LVMLogicalVolume, seen: VolumeSeen, phase: str, reason: str) -> Decision:
    row = seen.row
    status = LVMLogicalVolumeStatus(
        phase=phase,
        reason=reason,
        actual_size=Quantity.of(row.size) if row is not None and phase != Phase.FAILED else volume.status.actual_size,
        contiguous=row.contiguous if row is not None and volume.spec.type == "Thick" else None,
        conditions=volume.status.conditions,
        observed_generation=volume.metadata.generation,
    )
    effects: list[Effect] = []
    if status != volume.status:
        effects.append(Patch(volume, replace(volume, status=status), Half.STATUS, "what LVM reports", Mode.REPORT))
    return Decision(effects=tuple(effects), error=reason)


def spec(node_name: str, answers: LvmAnswers) -> ControllerSpec[VolumeSnapshot]:
    """The controller for one node."""

    def gather_one(reader: Reader, key: str) -> VolumeSnapshot:
        return gather(reader, key, node_name=node_name)

    def own_volume(old: LVMLogicalVolume | None, new: LVMLogicalVolume | None, reader: Reader) -> Iterable[str]:
        """Volumes of other nodes are no work; one whose group is not known yet comes with the group."""
        volume = new or old
        group = reader.get(LVMVolumeGroup, volume.spec.lvm_volume_group_name) if volume is not None else None
        if volume is None or group is None or group.spec.local is None or group.spec.local.node_name != node_name:
            return ()
        return (volume.metadata.name,)

    def volumes_of_group(old: LVMVolumeGroup | None, new: LVMVolumeGroup | None, reader: Reader) -> Iterable[str]:
        group = new or old
        if group is None or group.spec.local is None or group.spec.local.node_name != node_name:
            return ()
        return [each.metadata.name for each in reader.by_index(LVMLogicalVolume, LLV_BY_LVG, group.metadata.name)]

    return ControllerSpec(
        name=NAME,
        watches=(
            watches(LVMLogicalVolume, own_volume, changed(_volume_facts)),
            watches(LVMVolumeGroup, volumes_of_group, changed(lambda each: each.spec)),
        ),
        gather=gather_one,
        decide=decide,
        answer=answers.answer,
        concurrency=5,
    )


def _volume_facts(volume: LVMLogicalVolume) -> object:
    return (volume.metadata.generation, volume.metadata.deleting, volume.metadata.finalizers)
