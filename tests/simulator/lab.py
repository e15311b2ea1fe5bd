"""The lab of the recordings on the simulator: up to four nodes, one volume, losses by dropped frames."""

from __future__ import annotations

from quorate.simulator.cluster import Cluster, Device
from quorate.simulator.model import Connection, Resource, Volume
from quorate.simulator.result import Result
from quorate.simulator.scheduler import SimulatedTime
from quorate.simulator.states import Disk, Link, Role

NET = "--protocol=C --timeout=20 --ping-int=3 --connect-int=3 --ping-timeout=10"
REST = "--on-no-quorum=suspend-io --on-no-data-accessible=suspend-io --auto-promote=no"


class Lab:
    """Diskful nodes and diskless tie-breakers, connected and UpToDate; other nodes are there without DRBD."""

    def __init__(
        self,
        *,
        quorum: str = "2",
        redundancy: str = "1",
        disks: tuple[int, ...] = (0, 1),
        ties: tuple[int, ...] = (2,),
        voter_mode: str = "dynamic",
        options: str = "",
    ) -> None:
        self.time = SimulatedTime(1000.0)
        self.cluster = Cluster(self.time, seed=1, voter_mode=voter_mode)
        self.options = f"--quorum={quorum} --quorum-minimum-redundancy={redundancy} {REST} {options}"
        self.ties = ties
        self._cuts: list[tuple[int, int]] = []
        self._devices: dict[int, Device] = {}
        for index in range(4):
            node = self.cluster.add_node(f"n{index}", {"net_a": f"10.1.0.1{index}"})
            node.lvm.add_group("vg", 1 << 28)
            self.must(index, "lvcreate -y -n r0 -L 16M vg")
            self.must(index, "drbdmeta --force 1000 v09 /dev/vg/r0 internal create-md 7")
        members = (*disks, *ties)
        for index in members:
            self.new_resource(index, tuple(other for other in members if other != index), attach=index in disks)
        self.wait(10)
        self.must(disks[0], "drbdsetup new-current-uuid 1000 --clear-bitmap")
        self.wait(1)

    def run(self, index: int, line: str) -> Result:
        return self.cluster.node(f"n{index}").execute(line.split())

    def must(self, index: int, line: str) -> None:
        result = self.run(index, line)
        assert result.exit_code == 0, (index, line, result)

    def wait(self, seconds: float) -> None:
        self.time.advance(seconds)

    def new_resource(self, index: int, others: tuple[int, ...], *, attach: bool) -> None:
        self.must(index, f"drbdsetup new-resource r0 {index} {self.options}")
        self.must(index, "drbdsetup new-minor r0 1000 0" + (" --diskless" if index in self.ties else ""))
        for other in others:
            self.new_peer(index, other)
        if attach:
            self.must(index, "drbdsetup attach 1000 /dev/vg/r0 /dev/vg/r0 internal")
        for other in others:
            self.must(index, f"drbdsetup connect r0 {other}")

    def new_peer(self, index: int, other: int) -> None:
        self.must(index, f"drbdsetup new-peer r0 {other} --_name=n{other} {NET}")
        self.must(index, f"drbdsetup new-path r0 {other} 10.1.0.1{index}:7000 10.1.0.1{other}:7000")
        if other in self.ties:
            self.must(index, f"drbdsetup peer-device-options r0 {other} 0 --bitmap=no")

    def add(self, newcomer: int, known_to: tuple[int, ...], members: tuple[int, ...], *, attach: bool = False) -> None:
        """A new diskful member that only some of the others are told about."""
        self.new_resource(newcomer, members, attach=False)
        for index in known_to:
            self.new_peer(index, newcomer)
            self.must(index, f"drbdsetup connect r0 {newcomer}")
        self.wait(5)
        if attach:
            self.must(newcomer, "drbdsetup attach 1000 /dev/vg/r0 /dev/vg/r0 internal")
            self.wait(5)

    def set_quorum(self, value: str, *nodes: int) -> None:
        for index in nodes:
            self.must(index, f"drbdsetup resource-options r0 --quorum={value}")

    def part(self, side: tuple[int, ...], other: tuple[int, ...]) -> None:
        for one in side:
            for far in other:
                self.cluster.cut(f"n{one}", f"n{far}")
                self._cuts.append((one, far))
        self.wait(12)

    def heal(self, seconds: float = 20) -> None:
        for one, far in self._cuts:
            self.cluster.heal(f"n{one}", f"n{far}")
        self._cuts.clear()
        self.wait(seconds)

    def promote(self, index: int) -> Result:
        return self.run(index, "drbdsetup primary r0")

    def writes(self, index: int, block: int = 0) -> bool:
        """Whether a write through this node is acknowledged within a few seconds."""
        device = self._devices.setdefault(index, self.cluster.device(f"n{index}", "r0"))
        if device.opener is None:
            device.open(write=True)
        answers: list[int | None] = []
        device.write(block, self.cluster.fresh_value(), answers.append)
        self.wait(5)
        return answers == [None]

    def close(self, index: int) -> None:
        self._devices.pop(index).close()

    def resource(self, index: int) -> Resource:
        return self.cluster.node(f"n{index}").kernel.resource("r0")

    def volume(self, index: int) -> Volume:
        return self.resource(index).volumes[0]

    def connection(self, index: int, other: int) -> Connection:
        return self.resource(index).connections[other]

    def link(self, index: int, other: int) -> Link:
        return self.connection(index, other).link

    def quorum(self, index: int) -> bool:
        return self.volume(index).quorum

    def disk(self, index: int) -> Disk:
        return self.volume(index).disk

    def role(self, index: int) -> Role:
        return self.resource(index).role
