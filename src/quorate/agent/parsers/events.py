"""Lines of `drbdsetup events2 --timestamps`.

Grammar: `[<timestamp> ]<verb> <object>( <key>:<value>)*`; the first colon separates key from value. `exists -` ends the
initial dump. The stream is only a signal that something changed, so a line that cannot be read is no loss of truth: the
reader says None and the listener rescans.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

VERBS: Final = frozenset({"exists", "create", "change", "destroy", "rename", "call", "response"})
OBJECTS: Final = frozenset({"resource", "device", "connection", "peer-device", "path", "helper", "-"})
_TIMESTAMP: Final = re.compile(r"\d{4}-\d\d-\d\dT\S+ ")


@dataclass(frozen=True, slots=True)
class Event:
    """One line."""

    verb: str
    object: str
    keys: tuple[tuple[str, str], ...] = ()

    def get(self, key: str, default: str = "") -> str:
        return next((value for name, value in self.keys if name == key), default)

    @property
    def resource(self) -> str:
        return self.get("name")

    @property
    def ends_dump(self) -> bool:
        return self.verb == "exists" and self.object == "-"


def parse_event(line: str) -> Event | None:
    """The event of a line, None when the line is not one (`all: module unloaded`, half a line, a warning)."""
    words = _TIMESTAMP.sub("", line.strip(), count=1).split()
    if len(words) < 2 or words[0] not in VERBS or words[1] not in OBJECTS:
        return None
    keys: list[tuple[str, str]] = []
    for word in words[2:]:
        name, colon, value = word.partition(":")
        if not colon:
            return None
        keys.append((name, value))
    event = Event(words[0], words[1], tuple(keys))
    if event.ends_dump or event.resource:
        return event
    return None


def parse_endpoint(value: str) -> tuple[str, int] | None:
    """`ipv4:10.0.0.1:7000` as address and port."""
    family, _, rest = value.partition(":")
    address, _, port = rest.rpartition(":")
    if family not in ("ipv4", "ipv6") or not port.isdigit():
        return None
    return address.strip("[]"), int(port)
