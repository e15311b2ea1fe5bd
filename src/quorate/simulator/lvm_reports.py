"""What ``lvs``, ``vgs`` and ``pvs`` print: every value a string, empty when it does not apply.

Units are bytes without a suffix (``--units B --nosuffix``), the only form the agent asks for; the plain table has the
same values in columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from quorate.simulator.lvm_devices import ThinDisk
from quorate.simulator.lvm_model import (
    Kind,
    LogicalVolume,
    LvmError,
    LvmState,
    PhysicalVolume,
    VolumeGroup,
    mapper_path,
)

LV_DEFAULT = [
    "lv_name", "vg_name", "lv_attr", "lv_size", "pool_lv", "origin", "data_percent", "metadata_percent", "move_pv",
    "mirror_log", "copy_percent", "convert_lv",
]  # fmt: skip
VG_DEFAULT = ["vg_name", "pv_count", "lv_count", "snap_count", "vg_attr", "vg_size", "vg_free"]
PV_DEFAULT = ["pv_name", "vg_name", "pv_fmt", "pv_attr", "pv_size", "pv_free"]

LV_ALIASES = {"tags": "lv_tags", "name": "lv_name", "size": "lv_size", "attr": "lv_attr"}
VG_ALIASES = {"tags": "vg_tags", "uuid": "vg_uuid", "shared": "vg_shared", "name": "vg_name", "size": "vg_size"}
PV_ALIASES = {"tags": "pv_tags", "uuid": "pv_uuid", "name": "pv_name", "size": "pv_size"}

Row = dict[str, str]


def lv_rows(state: LvmState, *, hidden: bool, only: tuple[str, str] | None) -> list[Row]:
    """Logical volumes in order of group and name; ``only`` names one, or a group with an empty volume name."""
    rows: list[Row] = []
    for group in sorted(state.groups.values(), key=lambda each: each.name):
        if only is not None and only[0] != group.name:
            continue
        one = group.volumes.get(only[1]) if only is not None and only[1] else None
        chosen = [one] if one else [] if only is not None and only[1] else group.volumes.values()
        for volume in sorted(chosen, key=lambda each: each.name):
            if volume.kind is Kind.POOL_METADATA and not hidden:
                continue
            rows.append(_lv_row(group, volume))
            if volume.kind is Kind.POOL and hidden:
                rows.append(_pool_data_row(group, volume))
    if only is not None and not rows:
        state.group(only[0])
        if only[1]:
            raise LvmError(f'Failed to find logical volume "{only[0]}/{only[1]}"')
    return rows


def vg_rows(state: LvmState, only: str) -> list[Row]:
    if only:
        state.group(only)
    names = [only] if only else sorted(state.groups)
    return [_vg_row(state, state.groups[name]) for name in names]


def pv_rows(state: LvmState) -> list[Row]:
    return [_pv_row(state, pv) for pv in sorted(state.physical.values(), key=lambda each: each.name)]


def columns(wanted: str, default: Sequence[str], aliases: dict[str, str]) -> list[str]:
    """``-o a,b`` replaces the default columns, ``-o +a,b`` adds to them."""
    if not wanted:
        return list(default)
    names = [aliases.get(name, name) for name in wanted.removeprefix("+").split(",")]
    merged = [*default, *names] if wanted.startswith("+") else names
    return list(dict.fromkeys(merged))


def select(rows: list[Row], condition: str) -> list[Row]:
    """``-S a=b && c!=d``: equality and inequality, joined by ``&&`` or ``,``; anything else is a usage error."""
    for term in filter(None, (part.strip() for part in condition.replace("&&", ",").split(","))):
        name, equals, value = term.partition("!=" if "!=" in term else "=")
        if not equals or (rows and name.strip() not in rows[0]):
            raise LvmError(f"Unrecognised selection field: {name}\n  Selection syntax error at '{term}'.", exit_code=3)
        wanted = value.strip().strip("\"'")
        rows = [row for row in rows if (row[name.strip()] == wanted) is (equals == "=")]
    return rows


def render(
    key: str,
    rows: Iterable[Row],
    names: Sequence[str],
    *,
    as_json: bool,
    headings: bool = True,
    separator: str = "",
) -> str:
    """The report text; an unknown column is a usage error as with the real tools."""
    picked: list[Row] = []
    for row in rows:
        unknown = next((name for name in names if name not in row), None)
        if unknown is not None:
            raise LvmError(f"Unrecognised field: {unknown}\n  Invalid argument for --options", exit_code=3)
        picked.append({name: row[name] for name in names})
    if as_json:
        return json.dumps({"report": [{key: picked}]}) + "\n"
    shown = [*([{name: name for name in names}] if headings else []), *picked]
    if separator:
        return "".join(f"  {separator.join(row[name] for name in names)}\n" for row in shown)
    width = {name: max((len(row[name]) for row in shown), default=0) for name in names}
    return "".join("  " + " ".join(row[name].ljust(width[name]) for name in names) + "\n" for row in shown)


def _lv_row(group: VolumeGroup, volume: LogicalVolume) -> Row:
    name = f"[{volume.name}]" if volume.kind is Kind.POOL_METADATA else volume.name
    thin = volume.disk if isinstance(volume.disk, ThinDisk) else None
    percent = "" if thin is None else f"{thin.percent():.2f}"
    metadata_percent, metadata_lv = "", ""
    if volume.space is not None:
        percent = f"{volume.space.percent():.2f}"
        metadata_percent, metadata_lv = f"{min(volume.space.percent() / 10 + 10, 100):.2f}", f"[{volume.name}_tmeta]"
    return {
        "lv_name": name,
        "vg_name": group.name,
        "lv_attr": _attributes(group, volume),
        "lv_size": str(volume.extents * group.extent_size),
        "pool_lv": volume.pool if volume.kind is Kind.THIN else "",
        "origin": volume.origin,
        "data_percent": percent,
        "metadata_percent": metadata_percent,
        "move_pv": "",
        "mirror_log": "",
        "copy_percent": "",
        "convert_lv": "",
        "vg_uuid": group.uuid,
        "lv_uuid": volume.uuid,
        "lv_tags": ",".join(volume.tags),
        "thin_id": str(volume.thin_id) if volume.kind is Kind.THIN else "",
        "metadata_lv": metadata_lv,
        "lv_dm_path": mapper_path(volume),
        "lv_path": "" if volume.kind is Kind.POOL_METADATA else volume.path,
    }


def _pool_data_row(group: VolumeGroup, pool: LogicalVolume) -> Row:
    return {
        **_lv_row(group, pool),
        "lv_name": f"[{pool.name}_tdata]",
        "lv_attr": "Twi-ao----",
        "data_percent": "",
        "metadata_percent": "",
        "metadata_lv": "",
        "lv_dm_path": f"{mapper_path(pool)}_tdata",
        "lv_path": "",
    }


def _attributes(group: VolumeGroup, volume: LogicalVolume) -> str:
    state = "s" if volume.suspended else "a" if volume.active else "-"
    pool_open = volume.kind is Kind.POOL and any(lv.pool == volume.name for lv in group.volumes.values())
    opened = "o" if volume.in_use or pool_open or volume.kind is Kind.POOL_METADATA else "-"
    target, zero = ("t", "z") if volume.kind in (Kind.THIN, Kind.POOL) else ("-", "-")
    space = volume.disk.pool if isinstance(volume.disk, ThinDisk) else volume.space
    health = "-"
    if volume.disk is not None and volume.disk.failed:
        health = "p"
    elif volume.kind is Kind.POOL and space is not None and space.full:
        health = "D"
    allocation = "c" if volume.contiguous else "i"
    return f"{volume.kind.value}w{allocation}-{state}{opened}{target}{zero}{health}-"


def _vg_row(state: LvmState, group: VolumeGroup) -> Row:
    return {
        "vg_name": group.name,
        "pv_count": str(len(state.members(group))),
        "lv_count": str(len(group.volumes) - group.hidden),
        "snap_count": "0",
        "vg_attr": "wz--n-",
        "vg_size": str(state.total_extents(group) * group.extent_size),
        "vg_free": str(state.free_extents(group) * group.extent_size),
        "vg_uuid": group.uuid,
        "vg_tags": ",".join(group.tags),
        "vg_shared": "",
        "vg_extent_size": str(group.extent_size),
    }


def _pv_row(state: LvmState, pv: PhysicalVolume) -> Row:
    group = state.groups.get(pv.group)
    used = pv.used_extents * group.extent_size if group else 0
    size = pv.extents(group.extent_size) * group.extent_size if group else pv.size
    return {
        "pv_name": pv.name,
        "vg_name": pv.group,
        "pv_fmt": "lvm2",
        "pv_attr": "a--" if group else "---",
        "pv_size": str(size),
        "pv_free": str(size - used),
        "pv_used": str(used),
        "pv_uuid": pv.uuid,
        "pv_tags": "",
        "vg_tags": ",".join(group.tags) if group else "",
        "vg_uuid": group.uuid if group else "",
    }
