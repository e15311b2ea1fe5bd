"""The LVMVolumeGroup controller of a node: reports size, free space and thin pools; makes the pools the spec names.

Groups themselves are made by the administrator: which disks to give to LVM is not ours to decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorate.agent import commands
from quorate.agent.lvm.answers import GroupSeen, LookAtGroup, LvmAnswers, RunLvm
from quorate.agent.lvm.plan import kib
from quorate.agent.parsers.lvm_reports import LogicalVolumeRow
from quorate.api import conditions
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.lvm_volume_group import (
    LVMVolumeGroup,
    LVMVolumeGroupStatus,
    NodeStatus,
    ReadyCondition,
    ThinPoolSpec,
    ThinPoolStatus,
)
from quorate.api.quantity import Quantity
from quorate.api.value import replace
from quorate.machinery.controller import ControllerSpec, Watch, changed, for_
from quorate.machinery.effects import Answers, Decision, Effect, Half, Mode, Patch
from quorate.machinery.reader import Reader

NAME = "lvg-controller"
LOOK_AGAIN = 60.0
"""Space is used without anybody telling: thin pools fill up."""
SETTLE = 2.0
"""Seconds to wait for more volumes to change before their group is looked at: one report for many."""
DEFAULT_LIMIT = 150


@dataclass(frozen=True, slots=True)
class GroupSnapshot:
    """A volume group of this node."""

    group: LVMVolumeGroup | None
    node_name: str


def decide(snapshot: GroupSnapshot, answers: Answers, now: float) -> Decision:
    """Make missing pools, then report."""
    group = snapshot.group
    if group is None or group.metadata.deleting:
        return Decision()
    name = group.spec.actual_vg_name_on_the_node
    seen = _look(name, 0, answers)
    if isinstance(seen, LookAtGroup):
        return Decision(ask=(seen,))
    command = compute_pool_command(group, seen)
    failure = ""
    if command:
        run = RunLvm(command, name)
        if run not in answers:
            return Decision(ask=(run,))
        failure = str(answers[run])
        after = _look(name, 1, answers)
        if isinstance(after, LookAtGroup):
            return Decision(ask=(after,))
        seen = after
    status = compute_status(snapshot, group, seen, failure, now)
    effects: list[Effect] = []
    if status != group.status:
        effects.append(Patch(group, replace(group, status=status), Half.STATUS, "what LVM reports", Mode.REPORT))
    return Decision(effects=tuple(effects), wake_after=LOOK_AGAIN, error=failure or seen.error)


def compute_pool_command(group: LVMVolumeGroup, seen: GroupSeen) -> tuple[str, ...]:
    """The first pool that is missing or too small; pools never shrink."""
    if seen.row is None:
        return ()
    rows = {row.lv_name: row for row in seen.volumes}
    name = group.spec.actual_vg_name_on_the_node
    for pool in group.spec.thin_pools:
        row = rows.get(pool.name)
        wanted = pool_size(pool, seen.row.size, seen.row.extent_size)
        if row is None:
            return commands.lvm("lvcreate", "-ay", "-L", kib(wanted), "-T", f"{name}/{pool.name}")
        if row.thin_pool and row.size < wanted:
            return commands.lvm("lvextend", "-L", kib(wanted), f"/dev/{name}/{pool.name}")
    return ()


def pool_size(pool: ThinPoolSpec, group_size: int, extent_size: int) -> int:
    """A quantity, or per cent of the group; whole extents, rounded down for per cent and up for quantities."""
    text = str(pool.size)
    if text.endswith("%"):
        return group_size * int(text[:-1]) // 100 // extent_size * extent_size
    return -(-Quantity.parse(text).value // extent_size) * extent_size


def compute_status(
    snapshot: GroupSnapshot, group: LVMVolumeGroup, seen: GroupSeen, failure: str, now: float
) -> LVMVolumeGroupStatus:
    """Sizes, pools, phase and the Ready condition."""
    row = seen.row
    pools = tuple(_pool_status(pool, seen.volumes) for pool in group.spec.thin_pools) if row else ()
    unready = [pool.name for pool in pools if not pool.ready]
    problem = failure or seen.error
    if row is None and not problem:
        problem = f"volume group {group.spec.actual_vg_name_on_the_node} is not on this node"
    if not problem and unready:
        problem = f"thin pools are not ready: {', '.join(unready)}"
    updated = conditions.set_(
        group.status.conditions,
        ReadyCondition.TYPE,
        status=conditions.FALSE if problem else conditions.TRUE,
        reason=ReadyCondition.NOT_READY if problem else ReadyCondition.READY,
        message=problem,
        generation=group.metadata.generation,
        now=now,
    )
    return LVMVolumeGroupStatus(
        conditions=updated,
        phase="NotReady" if problem else "Ready",
        nodes=(NodeStatus(name=snapshot.node_name),),
        thin_pools=pools,
        vg_size=Quantity.of(row.size) if row else None,
        vg_free=Quantity.of(row.free) if row else None,
        allocated_size=Quantity.of(row.size - row.free) if row else None,
        vg_uuid=row.vg_uuid if row else group.status.vg_uuid,
        thin_pool_ready=f"{len(pools) - len(unready)}/{len(pools)}",
        configuration_applied="False" if problem else "True",
    )


def _pool_status(pool: ThinPoolSpec, volumes: tuple[LogicalVolumeRow, ...]) -> ThinPoolStatus:
    row = next((each for each in volumes if each.lv_name == pool.name), None)
    limit = pool.allocation_limit or f"{DEFAULT_LIMIT}%"
    if row is None or not row.thin_pool:
        text = "does not exist" if row is None else "is not a thin pool"
        return ThinPoolStatus(name=pool.name, ready=False, allocation_limit=limit, message=text)
    allocated = sum(each.size for each in volumes if each.pool_lv == pool.name)
    allowed = row.size * int(limit.rstrip("%")) // 100
    full = row.health in ("D", "F", "M")
    return ThinPoolStatus(
        name=pool.name,
        ready=not full,
        actual_size=Quantity.of(row.size),
        used_size=Quantity.of(row.used),
        allocated_size=Quantity.of(allocated),
        available_space=Quantity.of(max(allowed - allocated, 0)),
        allocation_limit=limit,
        message="out of data space" if row.health == "D" else "failed" if full else "",
    )


def _look(group: str, count: int, answers: Answers) -> GroupSeen | LookAtGroup:
    request = LookAtGroup(group, count)
    answer = answers.get(request)
    return answer if isinstance(answer, GroupSeen) else request


def spec(node_name: str, answers: LvmAnswers) -> ControllerSpec[GroupSnapshot]:
    """The controller for one node."""

    def gather(reader: Reader, key: str) -> GroupSnapshot:
        group = reader.get(LVMVolumeGroup, key)
        local = group.spec.local if group else None
        return GroupSnapshot(group if local is not None and local.node_name == node_name else None, node_name)

    def group_of_volume(old: LVMLogicalVolume | None, new: LVMLogicalVolume | None, reader: Reader) -> Iterable[str]:
        volume = new or old
        group = reader.get(LVMVolumeGroup, volume.spec.lvm_volume_group_name) if volume else None
        ours = group is not None and group.spec.local is not None and group.spec.local.node_name == node_name
        return (group.metadata.name,) if group is not None and ours else ()

    return ControllerSpec(
        name=NAME,
        watches=(
            for_(LVMVolumeGroup, changed(lambda each: (each.metadata.generation, each.metadata.deleting))),
            Watch(LVMLogicalVolume, changed(lambda each: each.status.actual_size), group_of_volume, settle=SETTLE),
        ),
        gather=gather,
        decide=decide,
        answer=answers.answer,
        concurrency=2,
    )
