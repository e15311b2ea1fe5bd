"""`lvs`, `vgs` and `pvs` with `--reportformat json`: every value is a string, empty when it does not apply."""

from __future__ import annotations

from typing import TypeVar

import msgspec

from quorate.agent.parsers import ParseError

T = TypeVar("T")


class LogicalVolumeRow(msgspec.Struct, frozen=True):
    """A logical volume; the attribute letters say kind, state and health."""

    lv_name: str
    vg_name: str
    lv_attr: str
    lv_size: str
    pool_lv: str = ""
    origin: str = ""
    data_percent: str = ""
    lv_tags: str = ""

    @property
    def size(self) -> int:
        return number(self.lv_size)

    @property
    def used(self) -> int:
        """Bytes really taken: of the pool, or by a thin volume."""
        return int(self.size * float(self.data_percent) / 100) if self.data_percent else self.size

    @property
    def thin(self) -> bool:
        return self.lv_attr[:1] == "V"

    @property
    def thin_pool(self) -> bool:
        return self.lv_attr[:1] == "t"

    @property
    def contiguous(self) -> bool:
        return self.lv_attr[2:3] in ("c", "C")

    @property
    def active(self) -> bool:
        return self.lv_attr[4:5] in ("a", "s")

    @property
    def open(self) -> bool:
        return self.lv_attr[5:6] == "o"

    @property
    def health(self) -> str:
        """Empty when healthy; `D` pool full, `F` failed, `M` metadata read-only, `p` partial."""
        return self.lv_attr[8:9].strip("-")

    @property
    def tags(self) -> tuple[str, ...]:
        return tuple(tag for tag in self.lv_tags.split(",") if tag)


class VolumeGroupRow(msgspec.Struct, frozen=True):
    """A volume group."""

    vg_name: str
    vg_size: str
    vg_free: str
    vg_uuid: str = ""
    vg_tags: str = ""
    vg_extent_size: str = "4194304"

    @property
    def size(self) -> int:
        return number(self.vg_size)

    @property
    def free(self) -> int:
        return number(self.vg_free)

    @property
    def extent_size(self) -> int:
        return number(self.vg_extent_size)


class PhysicalVolumeRow(msgspec.Struct, frozen=True):
    """A physical volume."""

    pv_name: str
    vg_name: str = ""
    pv_size: str = "0"
    pv_free: str = "0"
    pv_uuid: str = ""


class _LvSection(msgspec.Struct, frozen=True):
    lv: tuple[LogicalVolumeRow, ...] = ()


class _VgSection(msgspec.Struct, frozen=True):
    vg: tuple[VolumeGroupRow, ...] = ()


class _PvSection(msgspec.Struct, frozen=True):
    pv: tuple[PhysicalVolumeRow, ...] = ()


class _LvReport(msgspec.Struct, frozen=True):
    report: tuple[_LvSection, ...]


class _VgReport(msgspec.Struct, frozen=True):
    report: tuple[_VgSection, ...]


class _PvReport(msgspec.Struct, frozen=True):
    report: tuple[_PvSection, ...]


def number(text: str) -> int:
    """A size in bytes; some versions print a suffix although asked not to."""
    digits = text.strip().rstrip("Bb")
    try:
        return int(float(digits)) if digits else 0
    except ValueError as error:
        raise ParseError(f"LVM report: {text!r} is not a size in bytes") from error


def parse_lvs(stdout: str) -> tuple[LogicalVolumeRow, ...]:
    return tuple(row for section in _decode(_LvReport, stdout).report for row in section.lv)


def parse_vgs(stdout: str) -> tuple[VolumeGroupRow, ...]:
    return tuple(row for section in _decode(_VgReport, stdout).report for row in section.vg)


def parse_pvs(stdout: str) -> tuple[PhysicalVolumeRow, ...]:
    return tuple(row for section in _decode(_PvReport, stdout).report for row in section.pv)


def _decode(kind: type[T], stdout: str) -> T:
    try:
        return msgspec.json.decode(stdout, type=kind)
    except msgspec.MsgspecError as error:
        raise ParseError(f"LVM report: {error}") from error
