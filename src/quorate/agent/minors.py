"""Device minors: one per resource, never two of them the same.

The kernel refuses a used minor (161), so this only has to be right nearly always: minors in `/sys/block` and those handed
out since are left out, the lowest free one is taken.
"""

from __future__ import annotations

from quorate.agent.host import Host

SYS_BLOCK = "/sys/block"
MAXIMUM = (1 << 20) - 1


class Minors:
    """Hands out minors of a node."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._promised: dict[str, int] = {}

    def free_for(self, resource: str) -> int:
        """A free minor for this resource; the same one until it is used or refused."""
        taken = {
            int(name[4:]) for name in self._host.list_dir(SYS_BLOCK) if name.startswith("drbd") and name[4:].isdigit()
        }
        promised = self._promised.get(resource)
        if promised is not None and promised not in taken:
            return promised
        others = {minor for name, minor in self._promised.items() if name != resource}
        minor = next(number for number in range(MAXIMUM) if number not in taken and number not in others)
        self._promised[resource] = minor
        return minor

    def settle(self, resource: str) -> None:
        """The resource has its minor now, or is gone."""
        self._promised.pop(resource, None)
