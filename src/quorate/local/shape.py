"""What a local cluster looks like: nodes, zones, volume groups."""

from __future__ import annotations

from dataclasses import dataclass

GIB = 1 << 30
NAMESPACE = "quorate-system"
"""Where the agent's pods and the leases live."""
THIN_POOL = "thin"


@dataclass(frozen=True)
class Shape:
    """A cluster of equal nodes, dealt to the zones in turn."""

    nodes: int = 5
    zones: int = 3
    groups: tuple[str, ...] = ("data",)
    """Volume groups that every node has."""
    thin: bool = True
    """Whether the volume groups carry a thin pool."""
    group_size: int = 100 * GIB
    voter_mode: str = "dynamic"
    """`dynamic` is the stock module, which is what people have."""

    def node_names(self) -> tuple[str, ...]:
        """node-1, node-2, …"""
        return tuple(f"node-{number}" for number in range(1, self.nodes + 1))

    def zone_of(self, index: int) -> str:
        """Zone of the node at an index; empty without zones."""
        return f"zone-{'abcdefghijklmnopqrstuvwxyz'[index % self.zones]}" if self.zones else ""

    def address_of(self, index: int) -> str:
        """A private address that exists only inside the simulation."""
        return f"10.{index // 62500 % 250}.{index // 250 % 250}.{index % 250 + 1}"

    def group_object_name(self, group: str, node: str) -> str:
        """Name of the LVMVolumeGroup object of a node's volume group."""
        return f"{group}-{node}"
