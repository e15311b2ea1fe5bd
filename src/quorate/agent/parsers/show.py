"""`drbdsetup show --json --show-defaults`: the configuration the kernel holds.

Option values are strings or booleans; numbers carry a unit suffix. From utils 9.33 on, an intentionally diskless volume
carries the key `disk` twice, once as text and once as an object (T10); the absence of `backing-disk` is what counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from quorate.agent.parsers import ParseError
from quorate.agent.parsers.status import Endpoint

Options: TypeAlias = Mapping[str, str | bool | int | float]


class PathConfig(msgspec.Struct, frozen=True):
    """A configured path."""

    this_host: Endpoint
    remote_host: Endpoint


class PeerVolumeConfig(msgspec.Struct, frozen=True):
    """Peer device options of one volume."""

    volume_nr: int
    disk: dict[str, str | bool | int | float] = msgspec.field(default_factory=dict[str, str | bool | int | float])


class ConnectionConfig(msgspec.Struct, frozen=True):
    """A configured connection; `_cstate` since utils 9.32, `_is_standalone` before (T10)."""

    peer_node_id: int = msgspec.field(name="_peer_node_id")
    cstate: str = msgspec.field(default="", name="_cstate")
    is_standalone: bool = msgspec.field(default=False, name="_is_standalone")
    paths: tuple[PathConfig, ...] = ()
    net: dict[str, str | bool | int | float] = msgspec.field(default_factory=dict[str, str | bool | int | float])
    volumes: tuple[PeerVolumeConfig, ...] = ()


class VolumeConfig(msgspec.Struct, frozen=True):
    """The local side of a volume."""

    volume_nr: int
    device_minor: int
    backing_disk: str = msgspec.field(default="", name="backing-disk")
    meta_disk: str = msgspec.field(default="", name="meta-disk")
    disk: str | dict[str, str | bool | int | float] = ""

    @property
    def disk_options(self) -> Options:
        return self.disk if isinstance(self.disk, dict) else {}


class ThisHost(msgspec.Struct, frozen=True):
    """What belongs to this node."""

    node_id: int = msgspec.field(name="node-id")
    volumes: tuple[VolumeConfig, ...] = ()


class ResourceConfig(msgspec.Struct, frozen=True):
    """One resource."""

    resource: str
    this_host: ThisHost = msgspec.field(name="_this_host")
    options: dict[str, str | bool | int | float] = msgspec.field(default_factory=dict[str, str | bool | int | float])
    connections: tuple[ConnectionConfig, ...] = ()


_decoder = msgspec.json.Decoder(tuple[ResourceConfig, ...])


def parse_show(stdout: str) -> tuple[ResourceConfig, ...]:
    """All resources of the output; an unknown resource prints an empty list."""
    text = stdout.strip()
    if not text:
        return ()
    try:
        return _decoder.decode(text)
    except msgspec.MsgspecError as error:
        raise ParseError(f"drbdsetup show: {error}") from error


def flag(options: Options, name: str, default: bool) -> bool:
    """A boolean option, in any of the spellings the versions print."""
    value = options.get(name, default)
    if isinstance(value, str):
        return value in ("yes", "true", "1")
    return bool(value)


def text(options: Options, name: str, default: str = "") -> str:
    """An option as text; booleans as yes and no."""
    value = options.get(name, default)
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)
