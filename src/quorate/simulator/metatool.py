"""`drbdmeta`: creates, probes, repairs and wipes metadata; texts and exit codes as recorded (S1, S9, S10, S13, S15)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from quorate.simulator.blocks import BlockDevice, DeviceError
from quorate.simulator.generations import forget
from quorate.simulator.metadata import (
    ACTIVITY_LOG,
    HISTORY,
    MAX_NODES,
    MAX_PEERS,
    Metadata,
    compute_bitmap_bytes,
    compute_metadata_bytes,
    compute_offset,
    compute_usable_blocks,
)
from quorate.simulator.result import OK, Result

INVALID: Final = "No valid meta data found\n"
UNCLEAN: Final = 'Found meta data is "unclean", please apply-al first\n'
_FORCED: Final = "*** confirmation forced via --force option ***\n"
_NO_TERMINAL: Final = "stdin not a TTY, not waiting for confirmation\n"
_WITHOUT_MINOR: Final = frozenset({"read-dev-uuid", "dump-md", "get-gi", "show-gi"})
_INDEXES: Final = frozenset({"internal", "flex-internal"})
_COMMANDS: Final = (
    "create-md wipe-md dump-md get-gi show-gi outdate invalidate apply-al read-dev-uuid write-dev-uuid forget-peer"
    " check-resize"
)


class Target(NamedTuple):
    """What a `drbdmeta` line is about."""

    minor: str
    path: str
    device: BlockDevice
    forced: bool


class MetaTool:
    """Runs `drbdmeta` on one node. `find` gives the device of a path, `attached` the minor that holds it."""

    def __init__(
        self,
        node: str,
        find: Callable[[str], BlockDevice | None],
        attached: Callable[[BlockDevice], int | None],
        configured: Callable[[int], bool],
    ) -> None:
        self._node = node
        self._find = find
        self._attached = attached
        self._configured = configured

    def execute(self, argv: Sequence[str]) -> Result:
        forced = any(word in ("--force", "-f") for word in argv)
        words = [word for word in argv if not word.startswith("-") or word == "-"]
        if len(words) < 5 or words[1] != "v09":
            return Result(20, "", "USAGE: drbdmeta [--force] minor v09 meta_dev index command [args]\n")
        minor, _, path, index, command, *arguments = words
        if index not in _INDEXES:
            return Result(20, "", f"'{index}' is not a valid index: the simulator knows internal metadata only\n")
        if command not in _COMMANDS.split():
            return Result(20, "", f"Unknown command '{command}'.\n")
        arguments += [word.partition("=")[2] for word in argv if word.startswith("--node-id=")]
        device = self._find(path)
        if device is None:
            return Result(20, "", f"open({path}) failed: No such file or directory\n")
        target = Target(minor, path, device, forced)
        refused = self._refuse_busy(target, command)
        if refused is not None:
            return refused
        try:
            return self._run(target, command, arguments)
        except DeviceError as error:
            return Result(20, "", f"{path}: {error.strerror}\n")

    def _refuse_busy(self, target: Target, command: str) -> Result | None:
        """An attached minor is refused; under another minor only the exclusive open would stop it (S15)."""
        holder = self._attached(target.device)
        if holder is None:
            return None
        if target.minor.isdigit() and self._configured(int(target.minor)) and holder == int(target.minor):
            if target.forced:
                return Result(20, "", f"Device '{target.minor}' is configured!\n")
            question = f"open({target.path}) failed: Device or resource busy\n\nExclusive open failed. Do it anyways?\n"
            return Result(20, "Operation canceled.\n", question + _NO_TERMINAL)
        if not target.forced and command not in _WITHOUT_MINOR:
            question = f"open({target.path}) failed: Device or resource busy\n\nExclusive open failed. Do it anyways?\n"
            return Result(20, "Operation canceled.\n", question + _NO_TERMINAL)
        return None

    def _run(self, target: Target, command: str, arguments: Sequence[str]) -> Result:
        if command == "create-md":
            return self._create(target, arguments)
        offset = compute_offset(target.device.size)
        found = target.device.structure(offset)
        if not isinstance(found, Metadata):
            return Result(255, "", INVALID)
        match command:
            case "dump-md":
                return Result(0, self._dump(target, found), "") if found.log_clean else Result(255, "", UNCLEAN)
            case "apply-al":
                return self._apply_log(found)
            case "wipe-md":
                return self._wipe(target, offset)
            case "read-dev-uuid":
                return Result(0, f"{found.device_uuid:016X}\n", "")
            case "write-dev-uuid":
                found.device_uuid = int(arguments[0], 16)
                return OK
            case "get-gi" | "show-gi":
                return self._identifiers(found, arguments)
            case "outdate":
                return self._outdate(found)
            case "invalidate":
                found.consistent = found.was_up_to_date = False
                for bitmap in found.bitmaps:
                    bitmap.add(0, found.effective_blocks or compute_usable_blocks(target.device.size, found.max_peers))
                return OK
            case "forget-peer":
                if not arguments or not arguments[-1].isdigit() or int(arguments[-1]) >= MAX_NODES:
                    return Result(20, "", "USAGE: forget-peer --node-id={0..31}\n")
                forget(found, int(arguments[-1]), found.effective_blocks)
                return OK
            case "check-resize":
                return OK
            case _:
                raise AssertionError(command)  # checked against the list of commands above

    def _identifiers(self, metadata: Metadata, arguments: Sequence[str]) -> Result:
        """As `drbdsetup get-gi`, from the disk: current, bitmap and history UUIDs, then the flags."""
        peer = int(arguments[-1]) if arguments and arguments[-1].isdigit() else 0
        entry = metadata.peers[peer % MAX_NODES]
        uuids = [metadata.current, entry.bitmap_uuid, *[*metadata.history, 0, 0][:2]]
        flags = (metadata.consistent, metadata.was_up_to_date, False, metadata.crashed_primary, entry.connected)
        return Result(0, ":".join([*(f"{uuid:016X}" for uuid in uuids), *(str(int(flag)) for flag in flags)]) + "\n")

    def _outdate(self, metadata: Metadata) -> Result:
        """Exit 5 for data that is not even consistent (facts/agent 2.2)."""
        if not metadata.consistent:
            return Result(5)
        metadata.was_up_to_date = False
        return OK

    def _apply_log(self, metadata: Metadata) -> Result:
        # Printed when the log was used since attach and a Primary was near at the end (S10, S13; not S1, S9, S4b).
        noted = metadata.apply_log()
        return Result(0, "", "Marked additional 0 KB as out-of-sync based on AL.\n" if noted else "")

    def _wipe(self, target: Target, offset: int) -> Result:
        question = "\nDo you really want to wipe out the DRBD meta data?\n"
        if not target.forced:
            return Result(1, "Operation cancelled.\n", question + _NO_TERMINAL)
        target.device.put_structure(offset, None)
        text = "Wiping meta data...\nDRBD meta data block successfully wiped out.\n"
        return Result(0, text, question + _FORCED)

    def _create(self, target: Target, arguments: Sequence[str]) -> Result:
        peers = int(arguments[0]) if arguments and arguments[0].isdigit() else 1
        if not 1 <= peers <= MAX_PEERS:
            return Result(20, "", f"MAX_PEERS argument not in allowed range 1 .. {MAX_PEERS}.\n")
        device, offset = target.device, compute_offset(target.device.size)
        existing = device.structure(offset)
        stdout = stderr = ""
        if isinstance(existing, Metadata):
            stderr = (
                "You want me to create a v09 style flexible-size internal meta data block.\n"
                "There appears to be a v09 flexible-size internal meta data block\n"
                f"already in place on {target.path} at byte offset {offset}\n\n"
                "Do you really want to overwrite the existing meta-data?\n"
            )
            if not target.forced:
                return Result(1, "Operation cancelled.\n", stderr + _NO_TERMINAL)
            stderr += _FORCED
        elif device.written(0, device.size // 4096):
            bitmap = compute_bitmap_bytes(device.size, peers)
            stdout = (
                f"md_offset {offset}\nal_offset {offset - ACTIVITY_LOG}\nbm_offset {offset - ACTIVITY_LOG - bitmap}\n"
            )
            stdout += "\nFound some data\n\n ==> This might destroy existing data! <==\n"
            stderr = "\nDo you want to proceed?\n"
            if not target.forced:
                return Result(1, stdout + "Operation cancelled.\n", stderr + _NO_TERMINAL)
            stderr += _FORCED
        device.put_structure(offset, Metadata(peers))
        stdout += "initializing activity log\nWriting meta data...\nNew drbd meta data block successfully created.\n"
        stderr += f"initializing bitmap ({compute_bitmap_bytes(device.size, peers) // 1024} KB) to all zero\n"
        return Result(0, stdout, stderr)

    def _dump(self, target: Target, metadata: Metadata) -> str:
        size, offset = target.device.size, compute_offset(target.device.size)
        bitmap = compute_bitmap_bytes(size, metadata.max_peers)
        lines = [
            "# DRBD meta data dump",
            f"# {self._node}> drbdmeta {target.minor} v09 {target.path} internal dump-md",
            "#",
            "",
            'version "v09";',
            "",
            f"max-peers {metadata.max_peers};",
            f"# md_size_sect {compute_metadata_bytes(size, metadata.max_peers) // 512}",
            f"# md_offset {offset}",
            f"# al_offset {offset - ACTIVITY_LOG}",
            f"# bm_offset {offset - ACTIVITY_LOG - bitmap}",
            "",
            f"node-id {metadata.node_id};",
            f"current-uuid 0x{metadata.current:016X};",
            f"flags 0x{metadata.flags():08X};",
            f"members 0x{sum(1 << member for member in metadata.members):016X};",
        ]
        for node_id in range(MAX_NODES):
            entry = metadata.peers[node_id]
            lines += [f"peer[{node_id}] {{", f"    bitmap-index {entry.slot};"]
            lines += [f"    bitmap-uuid 0x{entry.bitmap_uuid:016X};", "}"]
        history = [*metadata.history, *([0] * HISTORY)][:HISTORY]
        lines += ["history-uuids {", *(f"    0x{uuid:016X};" for uuid in history), "}"]
        lines += [f"la-size-sect {metadata.effective_blocks * 8};", "bm-byte-per-bit 4096;"]
        lines += [f"device-uuid 0x{metadata.device_uuid:016X};"]
        lines += [f"# bits-set {sum(len(bits) for bits in metadata.bitmaps)};"]
        return "\n".join(lines) + "\n"
