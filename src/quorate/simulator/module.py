"""The DRBD module of a simulated machine: its version, and which options it knows.

The stock module is the one of the recordings. The patched one (static voters, facts/agent [FX]) is never recorded; it is
told by its version, as on a real machine, and its behaviour is switched on per resource by the option it adds.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

STOCK: Final = "9.3.2"
PATCHED: Final = "9.2.18-flant.10"
"""What the reference product ships; older than the option peer-tiebreaker."""

_MARK: Final = "-flant"
_OF_THE_PATCH: Final = frozenset({"quorum-dynamic-voters", "non-voting"})
_NONE: Final[frozenset[str]] = frozenset()
_SINCE_9_3: Final = frozenset({"peer-tiebreaker", "resync-without-replication"})


@dataclass(frozen=True, slots=True)
class Module:
    """A kernel module by its version."""

    version: str = STOCK

    @property
    def patched(self) -> bool:
        return _MARK in self.version

    @property
    def absent(self) -> frozenset[str]:
        """Options this module and its tools do not know (exit 20)."""
        numbers = tuple(int(part) for part in re.findall(r"\d+", self.version)[:2])
        patch = _NONE if self.patched else _OF_THE_PATCH
        return patch | (_NONE if numbers >= (9, 3) else _SINCE_9_3)

    @property
    def proc(self) -> str:
        """The first line of /proc/drbd."""
        return f"version: {self.version} (api:2/proto:118-124)\n"


def module_of(voter_mode: str) -> Module:
    """The module that can behave so."""
    return Module(STOCK if voter_mode == "dynamic" else PATCHED)
