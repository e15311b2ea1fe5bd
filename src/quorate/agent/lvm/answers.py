"""The host's side of the LVM controllers: one volume group at a time, judged by what LVM reports afterwards."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.agent import commands
from quorate.agent.broker import Broker, CommandUnavailable
from quorate.agent.parsers import ParseError
from quorate.agent.parsers.lvm_reports import LogicalVolumeRow, VolumeGroupRow, parse_lvs, parse_vgs
from quorate.machinery.effects import Answer, Request

BENIGN = ("File descriptor", "regex", "WARNING")


@dataclass(frozen=True, slots=True)
class LookAtVolume:
    """The row of one volume; `count` tells the looks of one decision apart. The answer is a `VolumeSeen`."""

    group: str
    volume: str
    count: int


@dataclass(frozen=True, slots=True)
class VolumeSeen:
    """What LVM reports about a volume; an error is not the absence of the volume."""

    row: LogicalVolumeRow | None
    extent_size: int = 4 * 1024 * 1024
    error: str = ""


@dataclass(frozen=True, slots=True)
class RunLvm:
    """Run an LVM command that changes a group; the answer is its error text, empty when it had none."""

    command: tuple[str, ...]
    group: str


@dataclass(frozen=True, slots=True)
class LookAtGroup:
    """A group with its pools; the answer is a `GroupSeen`. `count` tells the looks of one decision apart."""

    group: str
    count: int


@dataclass(frozen=True, slots=True)
class GroupSeen:
    """What LVM reports about a group."""

    row: VolumeGroupRow | None
    volumes: tuple[LogicalVolumeRow, ...] = ()
    error: str = ""


class LvmAnswers:
    """Answers the requests of the LVM controllers."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker

    async def answer(self, request: Request) -> Answer:
        match request:
            case LookAtVolume():
                return await self._look_at_volume(request)
            case LookAtGroup():
                return await self._look_at_group(request)
            case RunLvm():
                return await self._run(request)
            case _:
                raise TypeError(f"unknown request {request!r}")

    async def _look_at_volume(self, request: LookAtVolume) -> VolumeSeen:
        try:
            groups = {row.vg_name: row for row in parse_vgs(await self._report(request.group, commands.list_groups()))}
            group = groups.get(request.group)
            if group is None:
                return VolumeSeen(None, error=f'Volume group "{request.group}" not found')
            device = f"/dev/{request.group}/{request.volume}"
            result = await self._broker.run(f"lvm/{request.group}", commands.list_volume(device))
            if result.exit_code != 0:
                if "Failed to find logical volume" in result.stderr:
                    return VolumeSeen(None, group.extent_size)
                return VolumeSeen(None, group.extent_size, commands.error_text(result))
            rows = [row for row in parse_lvs(result.stdout) if row.lv_name == request.volume]
        except (CommandUnavailable, ParseError) as error:
            return VolumeSeen(None, error=str(error))
        return VolumeSeen(rows[0] if rows else None, group.extent_size)

    async def _look_at_group(self, request: LookAtGroup) -> GroupSeen:
        try:
            groups = {row.vg_name: row for row in parse_vgs(await self._report(request.group, commands.list_groups()))}
            listed = parse_lvs(await self._report(request.group, commands.list_volumes()))
        except (CommandUnavailable, ParseError) as error:
            return GroupSeen(None, error=str(error))
        volumes = tuple(row for row in listed if row.vg_name == request.group)
        return GroupSeen(groups.get(request.group), volumes)

    async def _report(self, group: str, argv: tuple[str, ...]) -> str:
        result = await self._broker.run(f"lvm/{group}", argv)
        if result.exit_code != 0:
            raise ParseError(commands.error_text(result))
        return result.stdout

    async def _run(self, request: RunLvm) -> str:
        """Benign noise may come with a non-zero exit code; whether the change happened is seen afterwards."""
        try:
            result = await self._broker.run(f"lvm/{request.group}", request.command)
        except CommandUnavailable as error:
            return str(error)
        if result.exit_code == 0:
            return ""
        lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
        return "; ".join(line for line in lines if not line.startswith(BENIGN)) or f"exit code {result.exit_code}"
