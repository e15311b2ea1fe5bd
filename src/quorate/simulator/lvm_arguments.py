"""Command lines of the LVM tools: which options take a value, how sizes are written."""

from __future__ import annotations

import re
from dataclasses import dataclass

from quorate.simulator.lvm_model import LvmError

COMMON_VALUED = {"--config": "--config", "--units": "--units", "-o": "-o", "--options": "-o"}
COMMON_FLAGS = {"-y": "-y", "--yes": "-y", "-f": "-f", "--force": "-f", "-ff": "-f", "-q": "-q", "--quiet": "-q"}

_REPORT = {
    "--reportformat": "--reportformat",
    "-O": "-O",
    "--sort": "-O",
    "--separator": "--separator",
    "-S": "-S",
    "--select": "-S",
}
_REPORT_FLAGS = {"--nosuffix": "--nosuffix", "--noheadings": "--noheadings", "--unbuffered": "--unbuffered"}

VALUED: dict[str, dict[str, str]] = {
    "lvcreate": {
        "-n": "-n",
        "--name": "-n",
        "-L": "-L",
        "--size": "-L",
        "-l": "-l",
        "--extents": "-l",
        "-V": "-V",
        "--virtualsize": "-V",
        "-W": "-W",
        "--wipesignatures": "-W",
        "-Z": "-Z",
        "--zero": "-Z",
        "-a": "-a",
        "--activate": "-a",
        "-k": "-k",
        "--setactivationskip": "-k",
        "--contiguous": "--contiguous",
        "-C": "--contiguous",
        "--addtag": "--addtag",
        "--thinpool": "--thinpool",
        "--type": "--type",
        "-c": "-c",
        "--chunksize": "-c",
        "--poolmetadatasize": "--poolmetadatasize",
        "--discards": "--discards",
        "--errorwhenfull": "--errorwhenfull",
        "-p": "-p",
        "--permission": "-p",
        "--alloc": "--alloc",
    },
    "lvextend": {"-L": "-L", "--size": "-L", "-l": "-l", "--extents": "-l"},
    "lvresize": {"-L": "-L", "--size": "-L", "-l": "-l", "--extents": "-l"},
    "lvrename": {},
    "lvremove": {},
    "lvchange": {"-a": "-a", "--activate": "-a", "--addtag": "--addtag", "--deltag": "--deltag"},
    "vgchange": {"-a": "-a", "--activate": "-a", "--addtag": "--addtag", "--deltag": "--deltag"},
    "vgcreate": {"-s": "-s", "--physicalextentsize": "-s", "--addtag": "--addtag"},
    "lvs": _REPORT,
    "vgs": _REPORT,
    "pvs": _REPORT,
    "pvcreate": {},
    "vgextend": {},
    "vgremove": {},
    "pvremove": {},
    "pvresize": {},
}
FLAGS: dict[str, dict[str, str]] = {
    "lvcreate": {"-T": "-T", "--thin": "-T", "-s": "-s", "--snapshot": "-s"},
    "lvs": {"--all": "--all", "-a": "--all", **_REPORT_FLAGS},
    "vgs": _REPORT_FLAGS,
    "pvs": {"--all": "--all", "-a": "--all", **_REPORT_FLAGS},
}

UNITS = {"b": 1, "s": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50, "e": 1 << 60}


@dataclass(frozen=True)
class Arguments:
    """A parsed command line: options under their short names, and the rest in order."""

    options: dict[str, tuple[str, ...]]
    positional: tuple[str, ...]

    def flag(self, name: str) -> bool:
        return name in self.options

    def value(self, name: str, default: str = "") -> str:
        values = self.options.get(name)
        return values[-1] if values else default

    def values(self, name: str) -> tuple[str, ...]:
        return self.options.get(name, ())

    def only(self, command: str) -> str:
        """The single positional argument."""
        if len(self.positional) != 1:
            raise LvmError(f"Please specify one argument for {command}.\n  Run `{command} --help' for help.", 3)
        return self.positional[0]


def parse(command: str, words: list[str]) -> Arguments:
    """Split options from arguments; unknown options are a usage error (exit code 3)."""
    valued = {**COMMON_VALUED, **VALUED[command]}
    flags = {**COMMON_FLAGS, **FLAGS.get(command, {})}
    options: dict[str, list[str]] = {}
    positional: list[str] = []
    rest = list(words)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-") or word == "-":
            positional.append(word)
        elif word in flags:
            options.setdefault(flags[word], []).append("")
        elif word in valued:
            if not rest:
                raise LvmError(f"{command}: option requires an argument -- '{word.lstrip('-')}'", 3)
            options.setdefault(valued[word], []).append(rest.pop(0))
        elif word.startswith("--") and word.split("=", 1)[0] in valued:
            name, text = word.split("=", 1)
            options.setdefault(valued[name], []).append(text)
        elif not word.startswith("--") and word[:2] in valued:
            options.setdefault(valued[word[:2]], []).append(word[2:])
        else:
            raise LvmError(f"{command}: unrecognized option '{word}'\n  Error during parsing of command line.", 3)
    return Arguments({name: tuple(values) for name, values in options.items()}, tuple(positional))


def parse_size(text: str) -> int:
    """Bytes of ``8M``, ``1024k``, ``4`` (MiB); always powers of 1024."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([bskmgtpe]?)(?:i?b)?", text.lower())
    if match is None:
        raise LvmError(f"Invalid argument for --size: {text}\n  Error during parsing of command line.", 3)
    return int(float(match[1]) * UNITS[match[2]]) if match[2] else int(float(match[1]) * UNITS["m"])


def volume_path(text: str) -> tuple[str, str]:
    """``/dev/vg/lv``, ``/dev/mapper/vg-lv`` or ``vg/lv`` as (group, volume); ``vg`` alone has an empty volume."""
    if text.startswith("/dev/mapper/"):
        parts = re.split(r"(?<!-)-(?!-)", text.removeprefix("/dev/mapper/"), maxsplit=1)
        return parts[0].replace("--", "-"), parts[1].replace("--", "-") if len(parts) > 1 else ""
    group, _, volume = text.removeprefix("/dev/").partition("/")
    return group, volume


def human(size: int) -> str:
    """Sizes in messages: ``40.00 MiB``."""
    for unit, factor in (("EiB", 1 << 60), ("PiB", 1 << 50), ("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20)):
        if size >= factor:
            return f"{size / factor:.2f} {unit}"
    return f"{size / 1024:.2f} KiB"
