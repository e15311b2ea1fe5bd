"""Observing a resource: two queries, and for a disk that is to be attached what the metadata tool finds on it.

A query that fails, hangs or prints something else is `ObservationFailed`: then nothing is planned, because "cannot see"
and "is not there" are different things.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from quorate.agent import commands
from quorate.agent.actual import ActualResource, DiskProbe, merge
from quorate.agent.broker import Broker, CommandUnavailable
from quorate.agent.host import CommandResult
from quorate.agent.parsers import ParseError
from quorate.agent.parsers.metadata import Metadata, classify_probe, parse_device_uuid, parse_dump
from quorate.agent.parsers.show import parse_show
from quorate.agent.parsers.status import parse_status
from quorate.api.drbd_resource import ConfiguredCondition as Reason

T = TypeVar("T")

PROC_DRBD = "/proc/drbd"


@dataclass(frozen=True)
class ObservationFailed(Exception):
    """The state is not known."""

    reason: str
    message: str

    def __str__(self) -> str:
        return self.message


async def observe_resource(broker: Broker, name: str) -> ActualResource | None:
    """What the kernel has under this name; None when it surely has nothing."""
    if broker.host.read_text(PROC_DRBD) is None:
        # drbdsetup would load the module, with a helper that breaks resyncs; without the module there is no resource.
        return None
    found = await broker.run(name, commands.status(name))
    if is_unknown_resource(found):
        return None
    status = next((each for each in _read(found, parse_status) if each.name == name), None)
    if status is None:
        return None
    configured = await broker.run(name, commands.show(name))
    show = next((each for each in _read(configured, parse_show) if each.resource == name), None)
    if show is None:
        raise ObservationFailed(Reason.STATE_QUERY_FAILED, f"{name} vanished between two queries")
    return merge(status, show)


def is_unknown_resource(result: CommandResult) -> bool:
    """`status` of a name the kernel does not have: exit code 10 and a plain text."""
    return result.exit_code != 0 and "No such resource" in result.stderr


async def probe_disk(broker: Broker, name: str, minor: int, device: str) -> DiskProbe:
    """What is on a disk that is not attached. A disk that cannot be read is an answer, too: the rest of the resource is
    configured and reported without it."""
    try:
        dumped = await broker.run(name, commands.dump_md(minor, device))
        metadata = classify_probe(dumped)
        if metadata in (Metadata.NONE, Metadata.BUSY):
            return DiskProbe(metadata)
        dump = parse_dump(dumped.stdout) if metadata is Metadata.CLEAN else None
        read = await broker.run(name, commands.read_dev_uuid(device))
        if read.exit_code != 0:
            return DiskProbe(Metadata.UNREADABLE, error=f"read-dev-uuid: {commands.error_text(read)}")
        return DiskProbe(metadata, parse_device_uuid(read.stdout), dump)
    except (ParseError, CommandUnavailable) as error:
        return DiskProbe(Metadata.UNREADABLE, error=str(error))


def _read(result: CommandResult, parse: Callable[[str], T]) -> T:
    """The parsed stdout; a failure of the query is a failure of the observation."""
    if result.exit_code != 0:
        raise ObservationFailed(Reason.STATE_QUERY_FAILED, commands.error_text(result))
    try:
        return parse(result.stdout)
    except ParseError as error:
        raise ObservationFailed(Reason.STATE_QUERY_FAILED, str(error)) from error
