"""The plan for one logical volume: from what LVM reports and what the object asks for to at most one command. Pure.

Guarantees: a volume never shrinks; a volume of another kind or of another incarnation under the same name (its tag names
another object) is never grown, wiped or removed; it is removed only when this agent's finalizer is the last one.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent import commands
from quorate.agent.parsers.lvm_reports import LogicalVolumeRow
from quorate.api.lvm_logical_volume import LVMLogicalVolume

TAG_PREFIX = "quorate.llv-uid="
"""Tag on volumes we make: the uid of the object they were made for."""


@dataclass(frozen=True, slots=True)
class VolumePlan:
    """One command or none, and why nothing can be done."""

    command: tuple[str, ...] = ()
    refusal: str = ""


def tag_of(volume: LVMLogicalVolume) -> str:
    return TAG_PREFIX + volume.metadata.uid


def compute_plan(volume: LVMLogicalVolume, group: str, row: LogicalVolumeRow | None, extent_size: int) -> VolumePlan:
    """Create, activate or grow."""
    if row is None:
        return VolumePlan(_create(volume, group))
    foreign = compute_foreign(volume, row)
    if foreign:
        return VolumePlan(refusal=foreign)
    device = f"/dev/{group}/{row.lv_name}"
    if not row.active:
        return VolumePlan(commands.lvm("lvchange", "-ay", device))
    wanted = aligned(volume.spec.size.value, extent_size)
    if row.size < wanted:
        return VolumePlan(commands.lvm("lvextend", "-L", kib(wanted), device))
    return VolumePlan()


def compute_removal(volume: LVMLogicalVolume, group: str, row: LogicalVolumeRow | None) -> VolumePlan:
    """Remove what is ours; leave what is not and let the object go all the same."""
    if row is None or compute_foreign(volume, row):
        return VolumePlan()
    if row.open:
        return VolumePlan(refusal=f"{group}/{row.lv_name} is in use")
    return VolumePlan(commands.lvm("lvremove", f"/dev/{group}/{row.lv_name}", "-y"))


def compute_foreign(volume: LVMLogicalVolume, row: LogicalVolumeRow) -> str:
    """Why a volume of that name is not ours; empty when it is or may be (made before tags were written)."""
    tags = [tag for tag in row.tags if tag.startswith(TAG_PREFIX)]
    if tags and tag_of(volume) not in tags:
        return f"{row.vg_name}/{row.lv_name} belongs to another incarnation of the object"
    if row.thin != (volume.spec.type == "Thin"):
        return f"{row.vg_name}/{row.lv_name} is not a {volume.spec.type} volume"
    if volume.spec.thin is not None and row.pool_lv != volume.spec.thin.pool_name:
        return f"{row.vg_name}/{row.lv_name} is in thin pool {row.pool_lv}"
    return ""


def aligned(size: int, extent_size: int) -> int:
    """LVM gives whole extents; requests are compared with what it would give."""
    return -(-size // extent_size) * extent_size


def kib(size: int) -> str:
    return f"{-(-size // 1024)}k"


def _create(volume: LVMLogicalVolume, group: str) -> tuple[str, ...]:
    spec = volume.spec
    name = spec.actual_lv_name_on_the_node
    size = kib(spec.size.value)
    wipe = ("-W", "y", "-y", "--addtag", tag_of(volume))
    if spec.thin is not None:
        return commands.lvm("lvcreate", "-ay", "-T", f"{group}/{spec.thin.pool_name}", "-n", name, "-V", size, *wipe)
    contiguous = ("--contiguous", "y") if spec.thick is not None and spec.thick.contiguous else ()
    return commands.lvm("lvcreate", "-ay", "-n", f"{group}/{name}", "-L", size, *wipe, *contiguous)
