"""Addresses of a resource: one per system network, with a port that is kept (facts/agent 7).

Pure part: which addresses a resource needs and which of them need a port. `Ports` hands out ports and is the one place
with a memory: what it gave away is not given again for ten minutes, even if the status that says so is still on its way.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from quorate.agent.host import Host
from quorate.api.common import Address, Endpoint
from quorate.api.drbd_resource import DRBDResource
from quorate.api.node import Node
from quorate.machinery.clock import Clock

REMEMBERED = 600.0
"""Seconds a port stays taken after it was handed out."""
LISTENING = "0A"
"""State of a listening socket in /proc/net/tcp."""


@dataclass(frozen=True, slots=True)
class Place:
    """An address that needs a port."""

    network: str
    ipv4: str


@dataclass(frozen=True, slots=True)
class Wanted:
    """The addresses of a resource: those that stand, and those that need a port."""

    kept: tuple[Address, ...]
    missing: tuple[Place, ...]


class PortsExhausted(Exception):
    """No port of the range is free."""


def network_address_type(network: str) -> str:
    """The type of Node address that carries a system network: `Internal` → `InternalIP`."""
    return f"{network}IP"


def compute_addresses(resource: DRBDResource, node: Node | None) -> Wanted:
    """An address per network the node has; the port of an unchanged (network, IP) pair is kept; Down has none."""
    if resource.spec.state == "Down" or node is None:
        return Wanted(() if node is not None else resource.status.addresses, ())
    ips = {address.type: address.address for address in node.status.addresses}
    known = {address.system_network_name: address for address in resource.status.addresses}
    kept: list[Address] = []
    missing: list[Place] = []
    for network in resource.spec.system_networks:
        ip = ips.get(network_address_type(network))
        if ip is None:
            continue
        before = known.get(network)
        if before is not None and before.address.ipv4 == ip:
            kept.append(before)
        else:
            missing.append(Place(network, ip))
    return Wanted(tuple(kept), tuple(missing))


def with_port(place: Place, port: int) -> Address:
    return Address(system_network_name=place.network, address=Endpoint(ipv4=place.ipv4, port=port))


def in_network_order(resource: DRBDResource, addresses: Iterable[Address]) -> tuple[Address, ...]:
    """In the order of the spec, so that equal sets are equal values."""
    order = {network: position for position, network in enumerate(resource.spec.system_networks)}
    return tuple(sorted(addresses, key=lambda address: order.get(address.system_network_name, len(order))))


@dataclass(frozen=True, slots=True)
class _Promise:
    resource: str
    until: float


class Ports:
    """Hands out ports of a node."""

    def __init__(self, host: Host, clock: Clock, minimum: int, maximum: int) -> None:
        self._host = host
        self._clock = clock
        self._range = range(minimum, maximum + 1)
        self._promised: dict[tuple[str, int], _Promise] = {}
        self._kernel: dict[tuple[str, int], str] = {}

    # --- what the event stream says about paths ----------------------------------------------------------------

    def path_appeared(self, resource: str, ip: str, port: int) -> None:
        self._kernel[(ip, port)] = resource

    def resource_gone(self, resource: str) -> None:
        for key in [key for key, holder in self._kernel.items() if holder == resource]:
            del self._kernel[key]

    def forget_kernel(self) -> None:
        """A new stream begins: its dump says everything again."""
        self._kernel.clear()

    # --- handing out -------------------------------------------------------------------------------------------

    def allocate(self, resource: str, kernel_name: str, ip: str, taken: frozenset[int]) -> int:
        """A port on `ip`: the one the kernel already uses for this resource (adoption), else the lowest free one."""
        adopted = next((port for (known, port), name in self._kernel.items() if known == ip and name == kernel_name), 0)
        if adopted and adopted not in taken:
            return self._promise(resource, ip, adopted)
        now = self._clock.monotonic()
        listening = self._listening(ip)
        for port in self._range:
            promise = self._promised.get((ip, port))
            promised = promise is not None and promise.until > now and promise.resource != resource
            holder = self._kernel.get((ip, port), kernel_name)
            if port not in taken and not promised and holder == kernel_name and port not in listening:
                return self._promise(resource, ip, port)
        raise PortsExhausted(f"no free port on {ip} in {self._range.start}..{self._range.stop - 1}")

    def refuse(self, ip: str, port: int) -> None:
        """The kernel says the port is in use (102): not again for a while, not by anybody."""
        self._promised[(ip, port)] = _Promise("", self._clock.monotonic() + REMEMBERED)

    def _promise(self, resource: str, ip: str, port: int) -> int:
        now = self._clock.monotonic()
        for key, promise in list(self._promised.items()):
            if promise.until <= now:
                del self._promised[key]
        self._promised[(ip, port)] = _Promise(resource, now + REMEMBERED)
        return port

    def _listening(self, ip: str) -> frozenset[int]:
        """Ports somebody listens on, on this address or on all; racy by nature, error 102 decides (T15)."""
        wanted = (_hexadecimal(ip), "00000000")
        ports: set[int] = set()
        for line in (self._host.read_text("/proc/net/tcp") or "").splitlines()[1:]:
            words = line.split()
            if len(words) > 3 and words[3] == LISTENING:
                address, _, port = words[1].partition(":")
                if address in wanted:
                    ports.add(int(port, 16))
        return frozenset(ports)


def _hexadecimal(ip: str) -> str:
    """An IPv4 address as /proc/net/tcp writes it: bytes in reverse order."""
    return "".join(f"{int(part):02X}" for part in reversed(ip.split(".")))


def replace_port(addresses: tuple[Address, ...], ip: str, port: int) -> tuple[Address, ...]:
    """The addresses with another port on this IP."""
    return tuple(
        Address(system_network_name=each.system_network_name, address=Endpoint(ipv4=ip, port=port))
        if each.address.ipv4 == ip
        else each
        for each in addresses
    )
