"""The networks between nodes: links by direction and network, their faults, and message delivery.

Guarantees: a frame sent in one direction of a cut or a dead link is lost; delivery keeps the order of sending per
direction; nothing is polled. Cutting or healing a link tells the listeners once, and their timers take it from
there, so an idle cluster costs nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from quorate.simulator.scheduler import Scheduler

LATENCY: Final = 0.0005


@dataclass(slots=True)
class Direction:
    """One direction between two nodes on one network."""

    cut: bool = False
    delay: float = 0.0
    free_at: float = 0.0  # a later frame never overtakes an earlier one


@dataclass(slots=True)
class Interface:
    """An address of a node."""

    node: str
    network: str


@dataclass(slots=True)
class Network:
    """All networks of a cluster. `ready` answers whether a node runs at all."""

    scheduler: Scheduler
    ready: Callable[[str], bool]
    interfaces: dict[str, Interface] = field(default_factory=dict[str, Interface])  # by IP address
    directions: dict[tuple[str, str, str], Direction] = field(default_factory=dict[tuple[str, str, str], Direction])
    listeners: list[Callable[[str, str], None]] = field(default_factory=list[Callable[[str, str], None]])
    slow: bool = False  # whether any direction is delayed

    def add_interface(self, node: str, network: str, address: str) -> None:
        self.interfaces[address] = Interface(node, network)

    def direction(self, sender: str, receiver: str, network: str) -> Direction:
        return self.directions.setdefault((sender, receiver, network), Direction())

    def networks_between(self, one: str, other: str) -> list[str]:
        mine = {interface.network for interface in self.interfaces.values() if interface.node == one}
        return sorted({i.network for i in self.interfaces.values() if i.node == other and i.network in mine})

    def set_cut(self, sender: str, receiver: str, network: str | None, cut: bool) -> None:
        """Cuts or heals one direction, on one network or on all of them."""
        for name in self.networks_between(sender, receiver) if network is None else [network]:
            self.direction(sender, receiver, name).cut = cut
        self.tell(sender, receiver)

    def set_delay(self, sender: str, receiver: str, network: str | None, delay: float) -> None:
        for name in self.networks_between(sender, receiver) if network is None else [network]:
            self.direction(sender, receiver, name).delay = delay
        self.slow = any(direction.delay for direction in self.directions.values())
        self.tell(sender, receiver)

    def round_trip(self, one: str, other: str, network: str | None = None) -> float:
        """The added delay there and back, on one network or on the slowest between two nodes."""
        if not self.slow:
            return 0.0
        networks = self.networks_between(one, other) if network is None else [network]
        return max((self._delay(one, other, n) + self._delay(other, one, n) for n in networks), default=0.0)

    def _delay(self, sender: str, receiver: str, network: str) -> float:
        found = self.directions.get((sender, receiver, network))
        return found.delay if found is not None else 0.0

    def tell(self, one: str, other: str) -> None:
        """Something changed between two nodes: a cut, a heal, a crash, a return."""
        for listener in tuple(self.listeners):
            listener(one, other)

    def passes(self, sender: str, receiver: str, network: str) -> bool:
        """Whether a frame sent now would arrive."""
        return self.ready(sender) and self.ready(receiver) and not self.direction(sender, receiver, network).cut

    def works(self, one: str, other: str, network: str) -> bool:
        """Whether a TCP connection can live: frames pass both ways."""
        return self.passes(one, other, network) and self.passes(other, one, network)

    def send(self, sender: str, receiver: str, network: str, deliver: Callable[[], None]) -> bool:
        """Delivers after the link's delay; False when the frame is lost at once."""
        if not self.passes(sender, receiver, network):
            return False
        direction = self.direction(sender, receiver, network)
        now = self.scheduler.time()
        due = max(now + LATENCY + direction.delay, direction.free_at)
        direction.free_at = due

        def arrive() -> None:
            if self.passes(sender, receiver, network):
                deliver()

        self.scheduler.call_later(due - now, arrive)
        return True
