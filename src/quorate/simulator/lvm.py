"""LVM on one simulated node: answers the command lines of the real tools.

``Lvm.execute`` takes ``lvm <command> …`` or the command itself and returns exit code and texts; ``Lvm.device`` is where
the rest of the node finds the block devices. State survives everything but the loss of the disks: a node crash leaves
it as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from quorate.simulator import lvm_reports as reports
from quorate.simulator.blocks import BlockDevice, MemoryDisk
from quorate.simulator.lvm_arguments import VALUED, Arguments, human, parse, parse_size, volume_path
from quorate.simulator.lvm_model import DEFAULT_EXTENT, PV_HEADER, Kind, LogicalVolume, LvmError, LvmState, VolumeGroup
from quorate.simulator.result import Result

PROGRAMS = frozenset({"lvm", *VALUED})
READING = frozenset({"lvs", "vgs", "pvs"})


class Lvm:
    """The LVM of a node. ``state`` is for faults and for looking; changes go through ``execute``."""

    def __init__(self, node: str) -> None:
        self.state = LvmState(node)
        self.sizes: dict[str, int] = {}
        """Disks of the machine, whether given to LVM or not."""
        self.on_change: Callable[[], None] | None = None
        self._commands: dict[str, Callable[[Arguments], str | Result]] = {
            "lvcreate": self._lvcreate,
            "lvextend": self._lvextend,
            "lvresize": self._lvresize,
            "lvrename": self._lvrename,
            "lvremove": self._lvremove,
            "lvchange": self._lvchange,
            "lvs": self._lvs,
            "vgs": self._vgs,
            "pvs": self._pvs,
            "pvcreate": self._pvcreate,
            "pvresize": self._pvresize,
            "pvremove": self._pvremove,
            "vgcreate": self._vgcreate,
            "vgextend": self._vgextend,
            "vgremove": self._vgremove,
            "vgchange": self._vgchange,
        }

    # --- for the rest of the node ------------------------------------------------------------------------------

    def add_disk(self, path: str, size: int) -> None:
        """A disk of the machine that LVM may be given, or a known one that grew."""
        self.sizes[path] = size

    def add_group(self, name: str, size: int, *, disk: str = "", extent_size: int = DEFAULT_EXTENT) -> VolumeGroup:
        """A volume group with at least ``size`` bytes of extents on a disk of its own."""
        path = disk or f"/dev/disk-{name}"
        extents = -(-size // extent_size)
        self.add_disk(path, extents * extent_size + PV_HEADER)
        self.state.create_physical(path, self.sizes[path])
        group = self.state.create_group(name, (path,), extent_size)
        self._changed()
        return group

    def _changed(self) -> None:
        if self.on_change is not None:
            self.on_change()

    def device(self, path: str) -> BlockDevice | None:
        """The device of ``/dev/<vg>/<lv>`` or ``/dev/mapper/<vg>-<lv>``; None when no such volume is active."""
        volume = self.volume(path)
        return volume.disk if volume is not None and volume.active else None

    def volume(self, path: str) -> LogicalVolume | None:
        """The logical volume of a path, for faults; None when there is none."""
        group, name = volume_path(path)
        found = self.state.groups.get(group)
        return found.volumes.get(name) if found else None

    def disk(self, path: str) -> MemoryDisk:
        """The device of a volume, for faults (``failed``, ``seconds_per_block``)."""
        volume = self.volume(path)
        if volume is None or volume.disk is None:
            raise KeyError(path)
        return volume.disk

    def execute(self, argv: Sequence[str]) -> Result:
        """Run one command line; argv[0] is the program, with or without a directory."""
        words = list(argv)
        command = words.pop(0).rpartition("/")[2]
        if command == "lvm":
            command = words.pop(0) if words else ""
        handler = self._commands.get(command)
        if handler is None:
            return Result(2, "", f"  No such command '{command}'.  Try 'help'.\n")
        try:
            outcome = handler(parse(command, words))
        except LvmError as error:
            return Result(error.exit_code, "", f"  {error.text}\n")
        if command not in READING:
            self._changed()
        return outcome if isinstance(outcome, Result) else Result(0, outcome)

    # --- logical volumes ---------------------------------------------------------------------------------------

    def _lvcreate(self, arguments: Arguments) -> str | Result:
        if arguments.flag("-s"):
            return self._create_snapshot(arguments)
        kind = arguments.value("--type")
        if arguments.flag("-T") or arguments.value("--thinpool") or kind in ("thin", "thin-pool"):
            return self._create_thin(arguments)
        if kind not in ("", "linear", "striped"):
            raise LvmError(f"Segment type {kind} is not supported.", 3)
        group_name, name = volume_path(arguments.value("-n"))
        if not name:
            group_name, name = arguments.only("lvcreate"), group_name
        group = self.state.group(group_name)
        extents, note = self._extents(group, arguments)
        self.state.create_linear(
            group, name, extents, contiguous=arguments.value("--contiguous") == "y", tags=arguments.values("--addtag")
        )
        created = f'{note}  Logical volume "{name}" created.\n'
        if arguments.value("-Z") == "n":
            return Result(0, created, f"  WARNING: Logical volume {group.name}/{name} not zeroed.\n")
        return created

    def _create_thin(self, arguments: Arguments) -> str:
        group_name, pool_name = volume_path(arguments.only("lvcreate"))
        # `vg/pool`, or `vg` with the pool named by --thinpool, or by -n when the pool itself is made.
        pool_name = pool_name or arguments.value("--thinpool") or arguments.value("-n")
        group = self.state.group(group_name)
        if not arguments.value("-V"):
            extents, note = self._extents(group, arguments)
            self.state.create_pool(group, pool_name, extents)
            return f'{note}  Logical volume "{pool_name}" created.\n'
        pool = self.state.volume(group_name, pool_name)
        name = arguments.value("-n")
        size = parse_size(arguments.value("-V"))
        self.state.create_thin(group, pool, name, size, tags=arguments.values("--addtag"))
        return self._rounding(group, size) + f'  Logical volume "{name}" created.\n'

    def _create_snapshot(self, arguments: Arguments) -> str:
        group_name, origin_name = volume_path(arguments.only("lvcreate"))
        group = self.state.group(group_name)
        origin = self.state.volume(group_name, origin_name)
        if origin.kind is not Kind.THIN:
            raise LvmError("Please specify either size or extents with snapshots.", 3)
        pool = self.state.volume(group_name, origin.pool)
        name = arguments.value("-n")
        size = origin.extents * group.extent_size
        self.state.create_thin(group, pool, name, size, tags=arguments.values("--addtag"), origin=origin.name)
        return f'  Logical volume "{name}" created.\n'

    def _lvextend(self, arguments: Arguments) -> str:
        volume = self.state.volume(*volume_path(arguments.only("lvextend")))
        group = self.state.group(volume.group)
        before = volume.extents
        extents, note = self._extents(group, arguments, before)
        self.state.extend(volume, extents)
        where = f"{group.name}/{volume.name}"
        return (
            f"{note}  Size of logical volume {where} changed"
            f" from {human(before * group.extent_size)} ({before} extents)"
            f" to {human(extents * group.extent_size)} ({extents} extents).\n"
            f"  Logical volume {where} successfully resized.\n"
        )

    def _lvresize(self, arguments: Arguments) -> str:
        """As lvextend; shrinking needs a confirmation that nobody gives here."""
        volume = self.state.volume(*volume_path(arguments.only("lvresize")))
        extents, _ = self._extents(self.state.group(volume.group), arguments, volume.extents)
        if extents < volume.extents:
            raise LvmError(f"Logical volume {volume.group}/{volume.name} NOT reduced.")
        return self._lvextend(arguments)

    def _lvrename(self, arguments: Arguments) -> str:
        """``vg old new`` or ``vg/old [vg/]new``."""
        words = arguments.positional
        if len(words) not in (2, 3):
            raise LvmError("Old and new logical volume names required", 3)
        group_name, old = (words[0], words[1]) if len(words) == 3 else volume_path(words[0])
        new = words[-1].rpartition("/")[2]
        group, volume = self.state.group(group_name), self.state.volume(group_name, old)
        if new in group.volumes:
            raise LvmError(f'Logical Volume "{new}" already exists in volume group "{group_name}"')
        group.drop(volume)
        volume.name = new
        group.add(volume)
        return f'  Renamed "{old}" to "{new}" in volume group "{group_name}"\n'

    def _lvremove(self, arguments: Arguments) -> str:
        volume = self.state.volume(*volume_path(arguments.only("lvremove")))
        if not arguments.flag("-y") and not arguments.flag("-f"):
            raise LvmError(f"Logical volume {volume.group}/{volume.name} not removed.")
        return "".join(f'  Logical volume "{name}" successfully removed.\n' for name in self.state.remove(volume))

    def _lvchange(self, arguments: Arguments) -> str:
        volume = self.state.volume(*volume_path(arguments.only("lvchange")))
        self._activate(volume, arguments.value("-a"))
        kept = tuple(tag for tag in volume.tags if tag not in arguments.values("--deltag"))
        volume.tags = tuple(dict.fromkeys((*kept, *arguments.values("--addtag"))))
        changed = arguments.values("--deltag") or arguments.values("--addtag")
        return f"  Logical volume {volume.group}/{volume.name} changed.\n" if changed else ""

    def _activate(self, volume: LogicalVolume, how: str) -> None:
        if how.endswith("n") and volume.in_use:
            raise LvmError(f"Logical volume {volume.group}/{volume.name} is used by another device.")
        if how:
            volume.active = not how.endswith("n")

    def _extents(self, group: VolumeGroup, arguments: Arguments, current: int = 0) -> tuple[int, str]:
        """The wanted extents of ``-L`` or ``-l`` and the remark about rounding."""
        if arguments.value("-L"):
            text = arguments.value("-L")
            size = parse_size(text.removeprefix("+")) + (current * group.extent_size if text.startswith("+") else 0)
            return -(-size // group.extent_size), self._rounding(group, size)
        text = arguments.value("-l")
        if not text:
            raise LvmError("Please specify either size or extents (not both).", 3)
        number, percent, of = text.removeprefix("+").partition("%")
        if not number.isdigit():
            raise LvmError(f"Invalid argument for --extents: {text}\n  Error during parsing of command line.", 3)
        if not percent:
            return int(number) + (current if text.startswith("+") else 0), ""
        base = self.state.free_extents(group) if of == "FREE" else self.state.total_extents(group)
        share = base * int(number) // 100
        if of == "FREE" or text.startswith("+"):
            return current + share, ""
        return min(share, current + self.state.free_extents(group)), ""

    def _rounding(self, group: VolumeGroup, size: int) -> str:
        rounded = -(-size // group.extent_size) * group.extent_size
        if rounded == size:
            return ""
        return f"  Rounding up size to full physical extent {human(rounded)}\n"

    # --- reports -----------------------------------------------------------------------------------------------

    def _lvs(self, arguments: Arguments) -> str:
        only = volume_path(arguments.positional[0]) if arguments.positional else None
        rows = reports.lv_rows(self.state, hidden=arguments.flag("--all"), only=only)
        return self._report("lv", rows, arguments, reports.LV_DEFAULT, reports.LV_ALIASES)

    def _vgs(self, arguments: Arguments) -> str:
        rows = reports.vg_rows(self.state, arguments.positional[0] if arguments.positional else "")
        return self._report("vg", rows, arguments, reports.VG_DEFAULT, reports.VG_ALIASES)

    def _pvs(self, arguments: Arguments) -> str:
        return self._report("pv", reports.pv_rows(self.state), arguments, reports.PV_DEFAULT, reports.PV_ALIASES)

    def _report(
        self, key: str, rows: list[reports.Row], arguments: Arguments, default: Sequence[str], aliases: dict[str, str]
    ) -> str:
        names = reports.columns(arguments.value("-o"), default, aliases)
        rows = reports.select(rows, arguments.value("-S"))
        sort = arguments.value("-O")
        if sort:
            field = aliases.get(sort.lstrip("+-"), sort.lstrip("+-"))
            rows = sorted(rows, key=lambda row: row.get(field, ""), reverse=sort.startswith("-"))
        return reports.render(
            key,
            rows,
            names,
            as_json=arguments.value("--reportformat") == "json",
            headings=not arguments.flag("--noheadings"),
            separator=arguments.value("--separator"),
        )

    # --- physical volumes and groups ---------------------------------------------------------------------------

    def _pvcreate(self, arguments: Arguments) -> str:
        path = arguments.only("pvcreate")
        size = self.sizes.get(path)
        if size is None:
            raise LvmError(f"No device found for {path}.")
        self.state.create_physical(path, size)
        return f'  Physical volume "{path}" successfully created.\n'

    def _pvresize(self, arguments: Arguments) -> str:
        path = arguments.only("pvresize")
        pv = self.state.physical.get(path)
        if pv is None:
            raise LvmError(f'Failed to find physical volume "{path}".')
        pv.size = max(pv.size, self.sizes.get(path, pv.size))
        return f'  Physical volume "{path}" changed\n'

    def _pvremove(self, arguments: Arguments) -> str:
        path = arguments.only("pvremove")
        pv = self.state.physical.get(path)
        if pv is None:
            raise LvmError(f"No PV found on device {path}.")
        if pv.group:
            raise LvmError(f"PV {path} is used by VG {pv.group} so please use vgreduce first.")
        del self.state.physical[path]
        return f'  Labels on physical volume "{path}" successfully wiped.\n'

    def _vgcreate(self, arguments: Arguments) -> str:
        if len(arguments.positional) < 2:
            raise LvmError("Please enter physical volume name(s)", 3)
        name, *disks = arguments.positional
        for disk in disks:
            if disk not in self.state.physical and disk in self.sizes:
                self.state.create_physical(disk, self.sizes[disk])
        extent = parse_size(arguments.value("-s")) if arguments.value("-s") else DEFAULT_EXTENT
        self.state.create_group(name, tuple(disks), extent, arguments.values("--addtag"))
        return f'  Volume group "{name}" successfully created\n'

    def _vgextend(self, arguments: Arguments) -> str:
        name, *disks = arguments.positional
        for disk in disks:
            if disk not in self.state.physical and disk in self.sizes:
                self.state.create_physical(disk, self.sizes[disk])
        self.state.extend_group(self.state.group(name), tuple(disks))
        return f'  Volume group "{name}" successfully extended\n'

    def _vgremove(self, arguments: Arguments) -> str:
        name = arguments.only("vgremove")
        self.state.remove_group(self.state.group(name))
        return f'  Volume group "{name}" successfully removed\n'

    def _vgchange(self, arguments: Arguments) -> str:
        group = self.state.group(arguments.only("vgchange"))
        for volume in group.volumes.values():
            self._activate(volume, arguments.value("-a"))
        kept = tuple(tag for tag in group.tags if tag not in arguments.values("--deltag"))
        group.tags = tuple(dict.fromkeys((*kept, *arguments.values("--addtag"))))
        active = sum(1 for volume in group.volumes.values() if volume.active)
        return f'  {active} logical volume(s) in volume group "{group.name}" now active\n'
