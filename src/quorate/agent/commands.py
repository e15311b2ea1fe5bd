"""The exact command lines of the tools (facts/agent 2), and what a failed one means.

A step carries the reason that goes into the condition when it fails. Secrets are arguments of some commands; `Command`
prints them as `***` everywhere, only `argv` has them (rule 9).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from quorate.agent.host import CommandResult
from quorate.api.drbd_resource import ConfiguredCondition as Reason

LVM_CONFIG = (
    'devices/global_filter=["r|^/dev/drbd.*|","r|^/dev/rbd.*|","r|^/dev/nbd.*|","r|^/dev/loop.*|"] '
    "backup/retain_min=10 backup/retain_days=7"
)
"""LVM must not look into our own devices, which may carry volume groups of guests."""

METADATA_VERBS = frozenset({"create-md", "apply-al", "write-dev-uuid"})

MAX_PEERS = 7
"""Bitmap slots in new metadata."""


@dataclass(frozen=True, slots=True)
class Command:
    """A program to run on the node."""

    argv: tuple[str, ...]
    reason: str
    """Condition reason when it fails."""
    tolerated: tuple[int, ...] = ()
    """Kernel codes that are a normal answer: the step is repeated later, nothing is wrong."""
    soft: bool = False
    """Having no effect is no failure: a tuning value the kernel rounds, a size a peer cannot follow yet."""

    @property
    def verb(self) -> str:
        """What the command does: `attach`, `create-md`."""
        return self.argv[1] if self.argv[0] == "drbdsetup" else next(w for w in self.argv if w in METADATA_VERBS)

    def __str__(self) -> str:
        return " ".join(redact(self.argv))

    __repr__ = __str__


@dataclass(frozen=True, slots=True)
class MakeLink:
    """Point the stable device name to the minor."""

    path: str
    target: str
    reason: str = Reason.SYMLINK_FAILED

    def __str__(self) -> str:
        return f"link {self.path} -> {self.target}"


@dataclass(frozen=True, slots=True)
class RemoveLink:
    """Remove the stable device name."""

    path: str
    reason: str = Reason.SYMLINK_FAILED

    def __str__(self) -> str:
        return f"unlink {self.path}"


Step: TypeAlias = Command | MakeLink | RemoveLink


def redact(argv: Sequence[str]) -> list[str]:
    """The words of a command line with the values of secrets hidden."""
    words: list[str] = []
    hide = False
    for word in argv:
        if hide:
            words.append("***")
            hide = False
        elif word.startswith("--shared-secret="):
            words.append("--shared-secret=***")
        else:
            words.append(word)
            hide = word == "--shared-secret"
    return words


# --- what an answer means ----------------------------------------------------------------------------------------

RES_NOT_KNOWN = 158
ALREADY_EXISTS = 174
MINOR_EXISTS = 161
LOCAL_ADDRESS_IN_USE = 102
DISK_TOO_SMALL = 111
RESIZE_DURING_RESYNC = 130
REFUSED_BY_PEER = -10
NO_QUORUM = -25

_CODE = re.compile(r"(?:Failure|State change failed): \((-?\d+)\)")


def kernel_code(result: CommandResult) -> int:
    """The kernel's own code in an error text; 0 when there is none."""
    match = _CODE.search(result.stderr)
    return int(match[1]) if match else 0


def error_text(result: CommandResult) -> str:
    """One line that says what went wrong, with the kernel's additional information."""
    lines = [line.strip() for line in result.stderr.splitlines() if line.strip()]
    kept = [line for line in lines if line != "additional info from kernel:"]
    return "; ".join(kept)[:400] or f"exit code {result.exit_code}"


# --- DRBD: state -------------------------------------------------------------------------------------------------


def status(resource: str) -> tuple[str, ...]:
    return ("drbdsetup", "status", "--json", resource)


def status_of_all() -> tuple[str, ...]:
    return ("drbdsetup", "status", "--json")


def show(resource: str) -> tuple[str, ...]:
    return ("drbdsetup", "show", "--json", "--show-defaults", resource)


EVENTS = ("drbdsetup", "events2", "--timestamps")


# --- DRBD: resource and volume -----------------------------------------------------------------------------------


def new_resource(resource: str, node_id: int) -> Command:
    return Command(("drbdsetup", "new-resource", resource, str(node_id)), Reason.NEW_RESOURCE_FAILED)


def resource_options(resource: str, options: Sequence[tuple[str, str]]) -> Command:
    return Command(("drbdsetup", "resource-options", resource, *_flags(options)), Reason.RESOURCE_OPTIONS_FAILED)


def new_minor(resource: str, minor: int, *, diskless: bool) -> Command:
    words = ("drbdsetup", "new-minor", resource, str(minor), "0")
    return Command((*words, "--diskless") if diskless else words, Reason.NEW_MINOR_FAILED, tolerated=(MINOR_EXISTS,))


def attach(minor: int, device: str) -> Command:
    return Command(("drbdsetup", "attach", str(minor), device, device, "internal"), Reason.ATTACH_FAILED)


def disk_options(minor: int, options: Sequence[tuple[str, str]]) -> Command:
    return Command(("drbdsetup", "disk-options", str(minor), *_flags(options)), Reason.DISK_OPTIONS_FAILED, soft=True)


def detach(minor: int, *, diskless: bool) -> Command:
    words = ("drbdsetup", "detach", str(minor))
    return Command((*words, "--diskless") if diskless else words, Reason.DETACH_FAILED)


def resize(minor: int, size: int) -> Command:
    return Command(
        ("drbdsetup", "resize", str(minor), f"--size={size // 512}s"),
        Reason.RESIZE_FAILED,
        tolerated=(DISK_TOO_SMALL, RESIZE_DURING_RESYNC),
        soft=True,
    )


def primary(resource: str) -> Command:
    """Never forced: forcing is an operation with its own guards."""
    return Command(("drbdsetup", "primary", resource), Reason.PRIMARY_FAILED)


def secondary(resource: str) -> Command:
    return Command(("drbdsetup", "secondary", resource), Reason.SECONDARY_FAILED)


def down(resource: str) -> Command:
    return Command(("drbdsetup", "down", resource), Reason.DOWN_FAILED)


def rename(old: str, new: str) -> Command:
    return Command(("drbdsetup", "rename-resource", old, new), Reason.RENAME_FAILED)


# --- DRBD: peers -------------------------------------------------------------------------------------------------


def new_peer(resource: str, peer: int, name: str, options: Sequence[tuple[str, str]]) -> Command:
    words = ("drbdsetup", "new-peer", resource, str(peer), f"--_name={name}")
    return Command((*words, *_flags(options)), Reason.NEW_PEER_FAILED)


def net_options(resource: str, peer: int, options: Sequence[tuple[str, str]]) -> Command:
    return Command(("drbdsetup", "net-options", resource, str(peer), *_flags(options)), Reason.NET_OPTIONS_FAILED)


def peer_device_options(resource: str, peer: int, options: Sequence[tuple[str, str]]) -> Command:
    words = ("drbdsetup", "peer-device-options", resource, str(peer), "0")
    soft = all(name.startswith("c-") for name, _ in options)
    return Command((*words, *_flags(options)), Reason.PEER_DEVICE_OPTIONS_FAILED, soft=soft)


def new_path(resource: str, peer: int, local: str, remote: str) -> Command:
    return Command(("drbdsetup", "new-path", resource, str(peer), local, remote), Reason.NEW_PATH_FAILED)


def del_path(resource: str, peer: int, local: str, remote: str) -> Command:
    return Command(("drbdsetup", "del-path", resource, str(peer), local, remote), Reason.DEL_PATH_FAILED)


def connect(resource: str, peer: int) -> Command:
    return Command(("drbdsetup", "connect", resource, str(peer)), Reason.CONNECT_FAILED)


def disconnect(resource: str, peer: int, *, force: bool = False) -> Command:
    words = ("drbdsetup", "disconnect", resource, str(peer))
    return Command((*words, "--force") if force else words, Reason.DISCONNECT_FAILED)


def del_peer(resource: str, peer: int) -> Command:
    return Command(("drbdsetup", "del-peer", resource, str(peer)), Reason.DEL_PEER_FAILED)


def forget_peer(resource: str, peer: int) -> Command:
    return Command(("drbdsetup", "forget-peer", resource, str(peer)), Reason.FORGET_PEER_FAILED)


def pause_sync(resource: str, peer: int, *, pause: bool) -> Command:
    verb = "pause-sync" if pause else "resume-sync"
    return Command(("drbdsetup", verb, resource, str(peer), "0"), Reason.PEER_DEVICE_OPTIONS_FAILED)


# --- DRBD: metadata ----------------------------------------------------------------------------------------------


def create_md(minor: int, device: str) -> Command:
    """Without --force: metadata that is already there is never overwritten, the tool asks and gets no answer."""
    words = ("drbdmeta", str(minor), "v09", device, "internal", "create-md", str(MAX_PEERS))
    return Command(words, Reason.CREATE_METADATA_FAILED)


def dump_md(minor: int, device: str) -> tuple[str, ...]:
    return ("drbdmeta", str(minor), "v09", device, "internal", "dump-md")


def apply_al(minor: int, device: str) -> Command:
    return Command(("drbdmeta", "--force", str(minor), "v09", device, "internal", "apply-al"), Reason.APPLY_AL_FAILED)


def read_dev_uuid(device: str) -> tuple[str, ...]:
    return ("drbdmeta", "--force", "-", "v09", device, "internal", "read-dev-uuid")


def write_dev_uuid(minor: int, device: str, uuid: str) -> Command:
    words = ("drbdmeta", "--force", str(minor), "v09", device, "internal", "write-dev-uuid", uuid)
    return Command(words, Reason.WRITE_DEV_UUID_FAILED)


# --- DRBD: operations --------------------------------------------------------------------------------------------


def new_current_uuid(minor: int, *, clear_bitmap: bool, force_resync: bool) -> tuple[str, ...]:
    words = ["drbdsetup", "new-current-uuid", str(minor)]
    words += ["--clear-bitmap"] if clear_bitmap else []
    words += ["--force-resync"] if force_resync else []
    return tuple(words)


def invalidate(minor: int) -> tuple[str, ...]:
    return ("drbdsetup", "invalidate", str(minor))


def verify(resource: str, peer: int) -> tuple[str, ...]:
    return ("drbdsetup", "verify", resource, str(peer), "0")


def force_primary(resource: str) -> tuple[str, ...]:
    return ("drbdsetup", "primary", resource, "--force")


# --- LVM ---------------------------------------------------------------------------------------------------------


def lvm(*words: str) -> tuple[str, ...]:
    """An LVM command with the agent's configuration; the filter is an argument, not part of a shell line."""
    return ("lvm", words[0], "--config", LVM_CONFIG, *words[1:])


_REPORT = ("--units", "B", "--nosuffix", "--reportformat", "json")


def list_volumes() -> tuple[str, ...]:
    return lvm("lvs", "-o", "+vg_uuid,tags,thin_id,metadata_lv,lv_dm_path", *_REPORT, "--all")


def list_volume(device: str) -> tuple[str, ...]:
    return lvm("lvs", "-o", "+vg_uuid,tags", *_REPORT, device)


def list_groups() -> tuple[str, ...]:
    return lvm("vgs", "-o", "+uuid,tags,shared,vg_attr,vg_extent_size", *_REPORT)


def _flags(options: Sequence[tuple[str, str]]) -> list[str]:
    return [f"--{name}={value}" for name, value in options]
