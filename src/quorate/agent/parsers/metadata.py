"""What `drbdmeta` says about a disk: whether DRBD metadata exists, and whose.

Exit codes differ between versions (1 up to utils 9.31, 255 from 9.32 on, T10), so the text decides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum

from quorate.agent.host import CommandResult
from quorate.agent.parsers import ParseError


class Metadata(Enum):
    """What a probe of a detached disk found."""

    NONE = "none"
    CLEAN = "clean"
    UNCLEAN = "unclean"
    """Used before; `apply-al` must run before the next attach."""
    BUSY = "busy"
    """Somebody holds the disk; nothing may be concluded."""
    UNREADABLE = "unreadable"
    """The disk or the tool failed; nothing may be concluded."""


@dataclass(frozen=True, slots=True)
class Dump:
    """The parts of `dump-md` the agent looks at."""

    node_id: int
    current_uuid: str
    device_uuid: str
    max_peers: int
    known_peers: tuple[int, ...] = ()
    """Node ids the kernel will count: they have a bitmap slot or were seen."""


NO_UUID = "0000000000000000"


def classify_probe(result: CommandResult) -> Metadata:
    """What `dump-md` found; an answer that is neither of the known ones is an error, never "none"."""
    if result.exit_code == 0:
        return Metadata.CLEAN
    if "No valid meta data found" in result.stderr or "No valid meta data found" in result.stdout:
        return Metadata.NONE
    if '"unclean"' in result.stderr or "unclean" in result.stdout:
        return Metadata.UNCLEAN
    if "Device or resource busy" in result.stderr or "is configured" in result.stderr:
        return Metadata.BUSY
    raise ParseError(f"drbdmeta dump-md: exit code {result.exit_code}: {result.stderr.strip()[:200]}")


def parse_device_uuid(stdout: str) -> str:
    """The first line of exactly 16 upper-case hexadecimal digits; empty when it is all zero."""
    for line in stdout.splitlines():
        if re.fullmatch(r"[0-9A-F]{16}", line.strip()):
            return "" if line.strip() == NO_UUID else line.strip()
    raise ParseError(f"drbdmeta read-dev-uuid: no device uuid in {stdout.strip()[:80]!r}")


def parse_dump(stdout: str) -> Dump:
    """The head and tail of a metadata dump."""

    def find(pattern: str) -> str:
        match = re.search(pattern, stdout, re.MULTILINE)
        if match is None:
            raise ParseError(f"drbdmeta dump-md: {pattern} is missing")
        return match[1]

    own = int(find(r"^node-id (-?\d+);"))
    entries = re.findall(r"^peer\[(\d+)\] \{\s*bitmap-index (-?\d+);.*?flags 0x([0-9A-Fa-f]+);", stdout, re.M | re.S)
    known = tuple(
        int(node_id) for node_id, slot, flags in entries if int(node_id) != own and (int(slot) >= 0 or int(flags, 16))
    )
    device_uuid = find(r"^device-uuid 0x([0-9A-F]{16});")
    return Dump(
        node_id=own,
        current_uuid=find(r"^current-uuid 0x([0-9A-F]{16});"),
        device_uuid="" if device_uuid == NO_UUID else device_uuid,
        max_peers=int(find(r"^max-peers (\d+);")),
        known_peers=known,
    )
