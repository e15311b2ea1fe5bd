"""A DRBD device as a program on a node uses it: open, write, read, close; and how long a write takes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorate.simulator import generations
from quorate.simulator.model import Opener, Volume

if TYPE_CHECKING:
    from quorate.simulator.cluster import Cluster


def compute_delay(cluster: Cluster, volume: Volume) -> float:
    """How much later the slowest copy is written than on an untouched network with fast disks: there and back over the
    network to each peer that takes data, and what its disk adds."""
    delays = [volume.backing.device.seconds_per_block if volume.backing is not None else 0.0]
    for peer in volume.peers():
        end = cluster.other_end(peer.connection) if generations.receives_data(peer) else None
        if end is not None:
            far = end[0].resource.volumes[volume.number].backing
            disk = far.device.seconds_per_block if far is not None else 0.0
            delays.append(cluster.network.round_trip(volume.resource.node, end[0].kernel.node) + disk)
    return max(delays)


@dataclass(slots=True)
class Device:
    """A DRBD device as a program on a node uses it."""

    cluster: Cluster
    node: str
    resource: str
    number: int
    opener: Opener | None = None

    def _volume(self) -> Volume:
        return self.cluster.nodes[self.node].kernel.resource(self.resource).volumes[self.number]

    def open(self, *, write: bool, program: str = "client", pid: int = 1) -> None:
        kernel = self.cluster.nodes[self.node].kernel
        self.opener = self.cluster.io.open(kernel, self._volume(), write=write, program=program, pid=pid)

    def close(self) -> None:
        if self.opener is not None:
            self.cluster.io.close(self.cluster.nodes[self.node].kernel, self._volume(), self.opener)
            self.opener = None

    def write(self, block: int, value: int, finish: Callable[[int | None], None] | None = None) -> None:
        """Writes a block; `finish` gets None when acknowledged, an error number when failed, nothing while it waits."""
        kernel, volume = self.cluster.nodes[self.node].kernel, self._volume()
        self.cluster.io.write(kernel, volume, block, (value,), lambda error: self._answer(volume, finish, error))

    def _answer(self, volume: Volume, finish: Callable[[int | None], None] | None, error: int | None) -> None:
        """Protocol C: the program waits for the slowest copy that takes the write."""
        if finish is None:
            return
        delay = compute_delay(self.cluster, volume) if error is None else 0.0
        if delay:
            self.cluster.scheduler.call_later(delay, lambda: finish(error))
        else:
            finish(error)

    def read(self, block: int) -> int:
        return self.cluster.io.read(self.cluster.nodes[self.node].kernel, self._volume(), block)
