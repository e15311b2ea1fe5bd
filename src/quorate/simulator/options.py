"""The options of DRBD objects: names in printed order, defaults, units and accepted values (facts/agent 3.2).

The tables were taken from recorded `show --json` output. A value is kept in the form the kernel stores (bool, int,
str); `render` gives the text of `show`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

Value = bool | int | str


@dataclass(frozen=True, slots=True)
class Option:
    """One option: `unit` is the suffix in `show`, `default_unit` what a bare number means, in units of `unit`."""

    name: str
    default: Value
    choices: tuple[str, ...] = ()
    unit: str = ""
    remark: str = ""
    numeric: bool = True  # words beside numbers are in `choices`


class OptionError(ValueError):
    """The command line is wrong before the kernel is asked: exit 20."""


def _table(*options: Option) -> Mapping[str, Option]:
    return {option.name: option for option in options}


def _words(name: str, default: str, *choices: str) -> Option:
    return Option(name, default, choices or (default,), numeric=False)


def _text(name: str, default: str = "") -> Option:
    return Option(name, default, numeric=False)


RESOURCE: Final = _table(
    _text("cpu-mask"),
    _words("on-no-data-accessible", "io-error", "io-error", "suspend-io"),
    Option("auto-promote", True),
    Option("peer-ack-window", 4096, unit="s"),
    Option("peer-ack-delay", 100),
    Option("twopc-timeout", 300),
    Option("twopc-retry-timeout", 1),
    Option("auto-promote-timeout", 20),
    Option("max-io-depth", 8000),
    Option("quorum", "off", ("off", "majority", "all")),
    _words("on-no-quorum", "suspend-io", "io-error", "suspend-io"),
    Option("quorum-minimum-redundancy", "off", ("off", "majority", "all")),
    _words("on-suspended-primary-outdated", "disconnect", "disconnect", "force-secondary"),
    Option("drbd8-api-compatibility", False),
    Option("quorum-dynamic-voters", True),
)

DISK: Final = _table(
    Option("size", 0, unit="s"),
    _words("on-io-error", "detach", "pass_on", "call-local-io-error", "detach"),
    Option("disk-barrier", False),
    Option("disk-flushes", True),
    Option("disk-drain", True),
    Option("md-flushes", True),
    Option("resync-after", -1),
    Option("al-extents", 1237),
    Option("al-updates", True),
    Option("discard-zeroes-if-aligned", True),
    Option("disable-write-same", False),
    Option("disk-timeout", 0),
    _words("read-balancing", "prefer-local", "prefer-local", "prefer-remote", "round-robin", "least-pending"),
    Option("rs-discard-granularity", 0),
    Option("bitmap", True),
    Option("non-voting", False),
)

DEVICE: Final = _table(
    Option("max-bio-size", 1048576),
    _words("diskless", "no", "yes", "no"),
    Option("block-size", 512),
    Option("discard-granularity", 4294967295),
)

_SPLIT_BRAIN: Final = (
    "disconnect",
    "discard-younger-primary",
    "discard-older-primary",
    "discard-zero-changes",
    "discard-least-changes",
    "discard-local",
    "discard-remote",
    "consensus",
    "discard-secondary",
    "call-pri-lost-after-sb",
    "violently-as0p",
)

NET: Final = _table(
    _text("transport"),
    Option("load-balance-paths", False),
    _words("protocol", "C", "A", "B", "C"),
    Option("timeout", 60, remark="1/10 seconds"),
    Option("max-epoch-size", 2048),
    Option("connect-int", 10, remark="seconds"),
    Option("ping-int", 10, remark="seconds"),
    Option("sndbuf-size", 0),
    Option("rcvbuf-size", 0),
    Option("ko-count", 7),
    Option("allow-two-primaries", False),
    _text("cram-hmac-alg"),
    _text("shared-secret"),
    _words("after-sb-0pri", "disconnect", *_SPLIT_BRAIN),
    _words("after-sb-1pri", "disconnect", *_SPLIT_BRAIN),
    _words("after-sb-2pri", "disconnect", *_SPLIT_BRAIN),
    Option("always-asbp", False),
    _words("rr-conflict", "disconnect", "disconnect", "call-pri-lost", "violently", "retry-connect", "auto-discard"),
    Option("ping-timeout", 5, remark="1/10 seconds"),
    _text("data-integrity-alg"),
    Option("tcp-cork", True),
    _words("on-congestion", "block", "block", "pull-ahead", "disconnect"),
    Option("congestion-fill", 0, unit="s"),
    Option("congestion-extents", 1237),
    _text("csums-alg"),
    Option("csums-after-crash-only", False),
    _text("verify-alg"),
    Option("use-rle", True),
    Option("socket-check-timeout", 0),
    _words("fencing", "dont-care", "dont-care", "resource-only", "resource-and-stonith"),
    Option("max-buffers", 2048),
    Option("allow-remote-read", True),
    Option("tls", False),
    _text("tls-keyring", "(null)"),
    _text("tls-privkey", "(null)"),
    _text("tls-certificate", "(null)"),
    Option("rdma-ctrl-rcvbuf-size", 0),
    Option("rdma-ctrl-sndbuf-size", 0),
    _text("_name"),
)

PEER_DEVICE: Final = _table(
    Option("resync-rate", 250, unit="k"),
    Option("c-plan-ahead", 20),
    Option("c-delay-target", 10),
    Option("c-fill-target", 100, unit="s"),
    Option("c-max-rate", 102400, unit="k"),
    Option("c-min-rate", 250, unit="k"),
    Option("bitmap", True),
    Option("resync-without-replication", True),
    Option("peer-tiebreaker", True),
)

_SCALE: Final = {"s": 512, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40, "p": 1 << 50}


def compute_defaults(table: Mapping[str, Option]) -> dict[str, Value]:
    return {name: option.default for name, option in table.items()}


def parse_number(option: str, text: str, unit: str) -> int:
    """A number with an optional suffix, in units of `unit`; a bare number already is in that unit."""
    digits, suffix = (text[:-1], text[-1].lower()) if text and not text[-1].isdigit() else (text, "")
    if not digits.lstrip("-").isdigit() or (suffix and suffix not in _SCALE):
        raise OptionError(f"Option --{option}: invalid argument '{text}'")
    if not suffix:
        return int(digits)
    return int(digits) * _SCALE[suffix] // _SCALE.get(unit, 1)


def parse_value(option: Option, text: str | None) -> Value:
    """The value of `--name=text`; None is the bare form `--name` of a switch."""
    if isinstance(option.default, bool):
        words = {None: True, "yes": True, "no": False}
        if text not in words:
            raise OptionError(f"Option --{option.name}: invalid argument '{text}'")
        return words[text]
    if text is None:
        raise OptionError(f"Option --{option.name}: argument missing")
    if option.choices and text in option.choices:
        return text
    if not option.numeric:
        if option.choices:
            raise OptionError(f"Option --{option.name}: invalid argument '{text}'")
        return text
    value = parse_number(option.name, text, option.unit)
    # The kernel takes the number 0 and prints it as the word (S12).
    return "off" if value == 0 and "off" in option.choices else value


def render_json(option: Option, value: Value) -> bool | str:
    """The JSON of `show`: booleans as such, everything else as text with its unit."""
    if isinstance(value, bool):
        return value
    return f"{value}{option.unit}" if isinstance(value, int) else value


def without(table: Mapping[str, Option], absent: frozenset[str]) -> Mapping[str, Option]:
    """The options a module knows."""
    return {name: option for name, option in table.items() if name not in absent}


def section_json(
    table: Mapping[str, Option], values: Mapping[str, Value], absent: frozenset[str]
) -> dict[str, bool | str]:
    return {name: render_json(option, values[name]) for name, option in table.items() if name not in absent}


def changed(table: Mapping[str, Option], values: Mapping[str, Value]) -> Iterable[tuple[Option, Value]]:
    """What plain `show` prints: the options that are not at their default, in order."""
    return [(option, values[name]) for name, option in table.items() if values[name] != option.default]
