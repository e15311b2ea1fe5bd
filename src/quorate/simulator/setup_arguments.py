"""The command line of `drbdsetup`: which words a command takes, which options it knows, and usage errors (exit 20).

Options may stand before or after the words. A switch takes `--x`, `--no-x` or `--x=yes|no`; a separate yes/no is an
excess argument, as in the real tool (facts/agent 2).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from quorate.simulator import options as tables
from quorate.simulator.options import Option, OptionError, Value, parse_value


@dataclass(frozen=True, slots=True)
class Grammar:
    """The positional words of a command (`*` marks an optional one) and its options."""

    words: tuple[str, ...]
    options: Mapping[str, Option] = field(default_factory=dict[str, Option])
    can_reset: bool = False  # knows --set-defaults


def _flags(*names: str) -> dict[str, Option]:
    return {name: Option(name, False) for name in names}


_SIZE: Final = {"size": Option("size", 0, unit="s")}
_FORCE: Final = _flags("force")
_COLOR: Final = {"color": Option("color", "auto", ("auto", "always", "never"), numeric=False)}
_RESET: Final = {"reset-bitmap": Option("reset-bitmap", True)}
_WAIT: Final = {
    **{name: Option(name, 0) for name in ("wfc-timeout", "degr-wfc-timeout", "outdated-wfc-timeout")},
    **_flags("wait-after-sb"),
}
_PEER: Final = ("resource", "peer_node_id")
_PEER_VOLUME: Final = (*_PEER, "volume")

COMMANDS: Final[Mapping[str, Grammar]] = {
    "new-resource": Grammar(("resource", "node_id"), tables.RESOURCE),
    "resource-options": Grammar(("resource",), tables.RESOURCE, can_reset=True),
    "del-resource": Grammar(("resource",)),
    "rename-resource": Grammar(("resource", "new_name")),
    "new-minor": Grammar(("resource", "minor", "volume"), {**tables.DEVICE, **_flags("diskless")}),
    "del-minor": Grammar(("minor",)),
    "attach": Grammar(("minor", "lower_dev", "meta_data_dev", "meta_data_index"), tables.DISK),
    "detach": Grammar(("minor",), _flags("force", "diskless")),
    "disk-options": Grammar(("minor",), tables.DISK, can_reset=True),
    "new-peer": Grammar(_PEER, tables.NET),
    "net-options": Grammar(_PEER, tables.NET, can_reset=True),
    "peer-device-options": Grammar(_PEER_VOLUME, tables.PEER_DEVICE, can_reset=True),
    "new-path": Grammar((*_PEER, "local-addr", "remote-addr")),
    "del-path": Grammar((*_PEER, "local-addr", "remote-addr")),
    "connect": Grammar(_PEER, _flags("tentative", "discard-my-data")),
    "disconnect": Grammar(_PEER, _FORCE),
    "del-peer": Grammar(_PEER, _FORCE),
    "forget-peer": Grammar(_PEER),
    "primary": Grammar(("resource",), _flags("force", "overwrite-data-of-peer")),
    "secondary": Grammar(("resource",), _FORCE),
    "down": Grammar(("*resource",)),
    "new-current-uuid": Grammar(("minor",), _flags("clear-bitmap", "force-resync")),
    "resize": Grammar(("minor",), {**_SIZE, **_flags("assume-peer-has-space", "assume-clean")}),
    "invalidate": Grammar(("minor",), {**_RESET, "sync-from-peer-node-id": Option("sync-from-peer-node-id", -1)}),
    "invalidate-remote": Grammar(_PEER_VOLUME, _RESET),
    "pause-sync": Grammar(_PEER_VOLUME),
    "resume-sync": Grammar(_PEER_VOLUME),
    "outdate": Grammar(("minor",)),
    "verify": Grammar(_PEER_VOLUME, {"start": Option("start", 0, unit="s"), "stop": Option("stop", 0, unit="s")}),
    "check-resize": Grammar(("minor",)),
    "suspend-io": Grammar(("minor",), {"bdev-freeze": Option("bdev-freeze", True)}),
    "resume-io": Grammar(("minor",)),
    "status": Grammar(("*resource",), {**_flags("json", "verbose", "statistics"), **_COLOR}),
    "show": Grammar(("*resource",), _flags("json", "show-defaults")),
    "events2": Grammar(
        ("*resource",),
        {**_flags("now", "timestamps", "statistics", "full", "poll", "diff", "verbose"), **_COLOR},
    ),
    "get-gi": Grammar(_PEER_VOLUME),
    "show-gi": Grammar(_PEER_VOLUME),
    "role": Grammar(("resource",)),
    "dstate": Grammar(("minor",)),
    "cstate": Grammar(_PEER),
    "wait-connect-resource": Grammar(("resource",), _WAIT),
    "wait-connect-connection": Grammar(_PEER, _WAIT),
    "wait-connect-volume": Grammar(_PEER_VOLUME, _WAIT),
    "wait-sync-resource": Grammar(("resource",), _WAIT),
    "wait-sync-connection": Grammar(_PEER, _WAIT),
    "wait-sync-volume": Grammar(_PEER_VOLUME, _WAIT),
}


@dataclass(frozen=True, slots=True)
class Invocation:
    """A parsed command line."""

    command: str
    words: tuple[str, ...]
    options: Mapping[str, Value]
    reset: bool = False

    def flag(self, name: str) -> bool:
        return self.options.get(name) is True


def parse(argv: Sequence[str], absent: frozenset[str] = frozenset()) -> Invocation:
    """Parses the words after `drbdsetup`; raises OptionError with the text of the usage error.

    `absent` are options that the tools of this machine do not know.
    """
    if not argv:
        raise OptionError("USAGE: drbdsetup command {arguments} [options]")
    command, grammar = argv[0], COMMANDS.get(argv[0])
    if grammar is None:
        raise OptionError(f"{command}: unknown command")
    words: list[str] = []
    values: dict[str, Value] = {}
    reset = False
    rest = list(argv[1:])
    while rest:
        word = rest.pop(0)
        if not word.startswith("--"):
            words.append(word)
        elif word == "--set-defaults" and grammar.can_reset:
            reset = True
        else:
            name, value = _option(command, grammar, word[2:], rest, absent)
            values[name] = value
    _check_words(command, grammar, words)
    return Invocation(command, tuple(words), values, reset)


def _option(command: str, grammar: Grammar, text: str, rest: list[str], absent: frozenset[str]) -> tuple[str, Value]:
    name, given, value = text.partition("=")
    option = grammar.options.get(name) if name not in absent else None
    if option is None and name.startswith("no-") and not given:
        switch = grammar.options.get(name[3:]) if name[3:] not in absent else None
        if switch is not None and isinstance(switch.default, bool):
            return switch.name, False
    if option is None:
        raise OptionError(f"drbdsetup {command}: unrecognized option '--{text}'")
    if given:
        return name, parse_value(option, value)
    if isinstance(option.default, bool):
        return name, True
    return name, parse_value(option, rest.pop(0) if rest else None)


def _check_words(command: str, grammar: Grammar, words: Sequence[str]) -> None:
    needed = [word for word in grammar.words if not word.startswith("*")]
    if len(words) < len(needed):
        missing = needed[len(words)]
        first = not words and missing in ("resource", "minor")
        raise OptionError("Missing argument 1 to command" if first else f"Missing argument '{missing}'")
    if len(words) > len(grammar.words):
        raise OptionError(f"Excess arguments: '{words[len(grammar.words)]}'")
