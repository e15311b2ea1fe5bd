"""Structured logs: one line per entry, JSON or text, with fields; the level can be changed at run time.

Guarantees: a logger never reads the wall clock itself (simulated processes log simulated time); bound fields
(controller, object, reconcile id) come first and in a fixed order; values are written in their text form, so a
`SharedSecret` stays redacted; an entry below the level costs one comparison.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import TextIO, TypeAlias

import msgspec

from quorate.machinery.clock import Clock


class Level(IntEnum):
    """Severity; TRACE is for candidate lists and extender traffic (verbosity 3 of facts/controllers 8.2)."""

    TRACE = 5
    DEBUG = 10
    INFO = 20
    WARNING = 30
    ERROR = 40


@dataclass(frozen=True)
class Entry:
    """One log entry."""

    time: float
    level: Level
    message: str
    fields: Mapping[str, object]


Sink: TypeAlias = Callable[[Entry], None]
"""Where entries go."""


class LogSettings:
    """What can be changed while the process runs."""

    def __init__(self, level: Level = Level.INFO) -> None:
        self.level = level

    def set_level(self, name: str) -> None:
        """Set the level by name; ValueError names the known ones."""
        try:
            self.level = Level[name.strip().upper()]
        except KeyError:
            known = ", ".join(level.name.lower() for level in Level)
            raise ValueError(f"unknown log level {name!r}, known: {known}") from None


class Logger:
    """A sink with bound fields."""

    def __init__(
        self, sink: Sink, clock: Clock, settings: LogSettings | None = None, fields: Mapping[str, object] | None = None
    ) -> None:
        self._sink = sink
        self._clock = clock
        self.settings = settings or LogSettings()
        self._fields: Mapping[str, object] = fields or {}

    def bind(self, **fields: object) -> Logger:
        """A logger that adds these fields to every entry."""
        return Logger(self._sink, self._clock, self.settings, {**self._fields, **fields})

    def log(self, level: Level, message: str, **fields: object) -> None:
        """Write one entry."""
        if level >= self.settings.level:
            self._sink(Entry(self._clock.now(), level, message, {**self._fields, **fields}))

    def trace(self, message: str, **fields: object) -> None:
        self.log(Level.TRACE, message, **fields)

    def debug(self, message: str, **fields: object) -> None:
        self.log(Level.DEBUG, message, **fields)

    def info(self, message: str, **fields: object) -> None:
        self.log(Level.INFO, message, **fields)

    def warning(self, message: str, **fields: object) -> None:
        self.log(Level.WARNING, message, **fields)

    def error(self, message: str, **fields: object) -> None:
        self.log(Level.ERROR, message, **fields)


def _plain(value: object) -> object:
    """JSON scalars stay, everything else becomes its (redacted) text."""
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)


def json_sink(stream: TextIO, format_time: Callable[[float], str]) -> Sink:
    """One JSON object per line."""

    def write(entry: Entry) -> None:
        line: dict[str, object] = {
            "time": format_time(entry.time),
            "level": entry.level.name.lower(),
            "msg": entry.message,
            **{key: _plain(value) for key, value in entry.fields.items()},
        }
        stream.write(msgspec.json.encode(line).decode() + "\n")
        stream.flush()

    return write


def text_sink(stream: TextIO, format_time: Callable[[float], str]) -> Sink:
    """`time LEVEL message key=value …`; values with spaces are quoted."""

    def write(entry: Entry) -> None:
        fields = "".join(f" {key}={_quoted(str(_plain(value)))}" for key, value in entry.fields.items())
        stream.write(f"{format_time(entry.time)} {entry.level.name:7} {entry.message}{fields}\n")
        stream.flush()

    return write


def _quoted(text: str) -> str:
    return msgspec.json.encode(text).decode() if not text or any(char in text for char in ' "=\n\t') else text


def discard(entry: Entry) -> None:
    """A sink that drops everything."""


def _read(path: Path) -> str:
    """A few bytes of a local file; not worth a thread."""
    return path.read_text(encoding="utf-8").strip()


async def follow_level(path: Path, settings: LogSettings, log: Logger, clock: Clock, interval: float = 5.0) -> None:
    """Follow a file whose content is a level name; runs until cancelled. An unreadable file changes nothing."""
    seen = ""
    while True:
        try:
            text = _read(path)
            if text and text != seen:
                seen = text
                settings.set_level(text)
                log.info("log level changed", level_now=settings.level.name.lower())
        except (OSError, ValueError) as error:
            log.warning("log level file ignored", error=error)
        await clock.sleep(interval)
