"""A simulated cluster: nodes with DRBD and LVM, networks between them, faults, and the truth about the data.

Guarantees: a run is a function of the seed and the calls; a crashed node loses everything but its disks; nothing of
the control plane is imported. `scheduler` is anything with `time()` and `call_later()`, so an asyncio loop fits.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field

from quorate.simulator import disks, generations
from quorate.simulator.blocks import BlockDevice
from quorate.simulator.change import Change
from quorate.simulator.device import Device
from quorate.simulator.events import EventFeed, dump
from quorate.simulator.handshake import Decision
from quorate.simulator.host import SimulatedHost
from quorate.simulator.kernel import Kernel, MachineClock
from quorate.simulator.links import Links
from quorate.simulator.lvm import PROGRAMS, Lvm
from quorate.simulator.maintenance import Maintenance
from quorate.simulator.metatool import MetaTool
from quorate.simulator.model import Connection, PeerVolume, Resource, Volume
from quorate.simulator.module import module_of
from quorate.simulator.network import Network
from quorate.simulator.operations import Operations
from quorate.simulator.renegotiation import Renegotiation
from quorate.simulator.result import Result
from quorate.simulator.resync import Resync
from quorate.simulator.scheduler import Scheduler, SimulatedTime
from quorate.simulator.setup_tool import SetupTool
from quorate.simulator.states import Disk, Link, Replication
from quorate.simulator.timing import DefaultTiming, Timing
from quorate.simulator.transactions import Member
from quorate.simulator.volume_io import DeviceIo, Ledger


@dataclass(slots=True)
class Node:
    """A machine. `kernel` is replaced when it boots again."""

    name: str
    kernel: Kernel
    lvm: Lvm
    setup: SetupTool
    meta: MetaTool
    running: bool = True
    mapped: dict[str, BlockDevice] = field(default_factory=dict[str, BlockDevice])  # /dev/mapper/...

    def execute(self, argv: Sequence[str], stdin: str = "") -> Result:
        """Runs one command line to its end and answers what the tool prints."""
        del stdin
        if not self.running:
            return Result(255, "", f"{self.name}: node is down\n")
        program = argv[0].rsplit("/", 1)[-1]
        if program == "drbdsetup":
            return self.setup.execute(argv[1:])
        if program == "drbdmeta":
            return self.meta.execute(argv[1:])
        if program in PROGRAMS:
            return self.lvm.execute(argv)
        return Result(127, "", f"{program}: command not found\n")

    def device(self, path: str) -> BlockDevice | None:
        return self.mapped.get(path) or self.lvm.device(path)


class Cluster:
    """Nodes, networks and the DRBD between them."""

    def __init__(
        self,
        scheduler: Scheduler,
        seed: int = 0,
        nodes: Sequence[str] = (),
        voter_mode: str = "dynamic",
        timing: Timing | None = None,
    ) -> None:
        self.scheduler = scheduler
        self.random = random.Random(seed)
        self.module = module_of(voter_mode)
        self.nodes: dict[str, Node] = {}
        self.network = Network(scheduler, self._runs)
        self._ledgers: dict[str, Ledger] = {}
        self._values = 0
        self._hosts: dict[str, SimulatedHost] = {}
        self._feeds: dict[str, list[EventFeed]] = {}
        self._telling: set[int] = set()
        self.skews: dict[str, float] = {}
        self.witnesses: list[Callable[[str], None]] = []  # told the node's name at every change of what it reports
        self.resync = Resync(self, scheduler, self._sync_error)
        chosen = timing if timing is not None else DefaultTiming(self.random.random)
        self.links = Links(
            self,
            self.network,
            scheduler,
            chosen,
            self.node_of,
            self._after_meeting,
            self._after_connect,
            self._after_probe,
            lambda resource: self.operations.tell_disk_states(resource),
        )
        self.renegotiation = Renegotiation(self, self.resync)
        self.resync.reaches = self._reaches
        self.resync.compare_again = self.renegotiation.compare_again
        self.operations = Operations(self, self.links, self.resync, self.renegotiation)
        self.maintenance = Maintenance(self, self.operations, self.resync)
        self.io = DeviceIo(
            self,
            self.resync,
            self._spread,
            self._ledger_of,
            self._fail_own_disk,
            self._reaches,
            self._promote,
            self._demote,
            self._panic,
            chosen.news,
        )
        self.maintenance.begin_generation = self._begin_generation
        self.network.listeners.append(self.links.reconsider)
        self.network.listeners.append(self._wake_writers)
        for index, name in enumerate(nodes):
            self.add_node(name, {"default": f"10.0.0.{index + 1}"})

    # --- building ----------------------------------------------------------------------------------------------

    def add_node(self, name: str, addresses: Mapping[str, str]) -> Node:
        for network, address in addresses.items():
            self.network.add_interface(name, network, address)
        lvm = Lvm(name)
        self.nodes[name] = self._assemble(name, lvm)
        return self.nodes[name]

    def _assemble(self, name: str, lvm: Lvm) -> Node:
        clock = MachineClock(self.scheduler.time, lambda: self.skews.get(name, 0.0))
        kernel = Kernel(name, clock, self._draw, self.module)
        kernel.observers.append(lambda change: self._react(kernel, change))
        kernel.announcers.append(lambda line: self._announce(name, line))

        def find(path: str) -> BlockDevice | None:
            return self.nodes[name].device(path)

        def holder(device: BlockDevice) -> int | None:
            volumes = kernel.minors.values() if device.users else ()  # whoever attaches a device is one of its users
            return next((v.minor for v in volumes if v.backing is not None and v.backing.device is device), None)

        def attached(minor: int) -> bool:
            volume = kernel.minors.get(minor)
            return volume is not None and volume.backing is not None

        setup = SetupTool(kernel, self.operations, self.maintenance, find, self._wait)
        return Node(name, kernel, lvm, setup, MetaTool(name, find, holder, attached))

    def _wait(self, done: Callable[[], bool], limit: float) -> bool:
        """Lets simulated time pass inside a command; on a loop that is driven elsewhere only the present counts."""
        until = self.scheduler.time() + (limit or _PATIENCE)
        while isinstance(self.scheduler, SimulatedTime) and not done() and self.scheduler.step(until):
            pass
        return done()

    def _draw(self) -> int:
        """A generation number; bit 0 is the role mark and stays clear."""
        return self.random.getrandbits(63) << 1 | 0x8000000000000000

    def node(self, name: str) -> Node:
        return self.nodes[name]

    def _runs(self, name: str) -> bool:
        return name in self.nodes and self.nodes[name].running

    # --- the directory the rules use ---------------------------------------------------------------------------

    def node_of(self, resource: Resource) -> str:
        return resource.node if self.owner(resource) is not None else ""

    def owner(self, resource: Resource) -> Member | None:
        """The node of a resource, None once the node is down or the resource is gone."""
        node = self.nodes.get(resource.node)
        if node is None or not node.running or node.kernel.resources.get(resource.name) is not resource:
            return None
        return Member(node.kernel, resource)

    def facing(self, connection: Connection) -> tuple[Member, Connection] | None:
        for path in connection.paths:
            interface = self.network.interfaces.get(path.remote.split(":", 2)[1])
            node = self.nodes.get(interface.node) if interface is not None else None
            resource = node.kernel.endpoints.get(path.remote) if node is not None and node.running else None
            for back in resource.connections.values() if resource is not None else ():
                if node is not None and any(p.local == path.remote and p.remote == path.local for p in back.paths):
                    return Member(node.kernel, back.resource), back
        return None

    def other_end(self, connection: Connection) -> tuple[Member, Connection] | None:
        """By address, as on the wire: names of resources are local (S16), node ids must match both ways."""
        for path in connection.paths:
            interface = self.network.interfaces.get(path.remote.split(":", 2)[1])
            node = self.nodes.get(interface.node) if interface is not None else None
            resource = node.kernel.endpoints.get(path.remote) if node is not None and node.running else None
            if node is None or resource is None or resource.node_id != connection.peer_id:
                continue
            back = resource.connections.get(connection.resource.node_id)
            if back is not None and any(p.local == path.remote and p.remote == path.local for p in back.paths):
                return Member(node.kernel, resource), back
        return None

    def between(self, one: str, other: str) -> list[Connection]:
        found: list[Connection] = []
        for here, there in ((one, other), (other, one)):
            addresses = {a for a, i in self.network.interfaces.items() if i.node == there}
            node = self.nodes.get(here)
            for resource in node.kernel.resources.values() if node is not None and node.running else ():
                found += [c for c in resource.connections.values() if _leads_to(c, addresses)]
        return found

    # --- reactions ---------------------------------------------------------------------------------------------

    def host(self, name: str) -> SimulatedHost:
        """The node as an agent uses it; one object per node, so faults set on it stay."""
        return self._hosts.setdefault(name, SimulatedHost(self, name))

    async def event_lines(self, name: str, argv: Sequence[str]) -> AsyncIterator[str]:
        """`drbdsetup events2`: the dump, then every change, until the node stops or the reader leaves."""
        feed = EventFeed(stamped="--timestamps" in argv, clock=self.nodes[name].kernel.clock.wall)
        kernel = self.nodes[name].kernel
        feed.queue.extend(feed.dress(line) for line in dump(list(kernel.resources.values())))
        feeds = self._feeds.setdefault(name, [])
        feeds.append(feed)
        try:
            while "--now" not in argv or feed.queue:
                while feed.queue:
                    yield feed.queue.popleft()
                if not self.nodes[name].running or self.nodes[name].kernel is not kernel:
                    return
                feed.ready.clear()
                await feed.ready.wait()
        finally:
            feeds.remove(feed)

    def _react(self, kernel: Kernel, change: Change) -> None:
        for witness in self.witnesses:
            witness(kernel.node)
        for feed in self._feeds.get(kernel.node, ()):
            feed.offer(change)
        regained = change.old(change.resource, "suspended_quorum") is True and not change.resource.suspended_quorum
        if regained and not self.links.meeting:
            self.io.begin_generations(kernel, change.resource)
        for volume in change.resource.volumes.values() if not self.links.meeting else ():
            self.io.resume(kernel, volume)
        if any(isinstance(target, Volume) and name in _TOLD for target, name, _, _ in change.differences()):
            self._tell_soon(change.resource)
        for target, name, _, _ in list(change.differences()):
            if isinstance(target, PeerVolume) and name in _HELD and target.replication is not Replication.OFF:
                self.resync.follow_pauses(target)
        for target, name, _, now in list(change.differences()):
            if isinstance(target, PeerVolume) and name == "replication" and now is Replication.SYNC_TARGET:
                self.scheduler.call_later(0.0, lambda begun=target: self.resync.go_on(begun))

    def _announce(self, name: str, line: str) -> None:
        for witness in self.witnesses:
            witness(name)
        for feed in self._feeds.get(name, ()):
            feed.add(line)

    def lose_events(self, name: str, count: int) -> None:
        """A fault: the next `count` lines of every open stream of a node are lost."""
        for feed in self._feeds.get(name, ()):
            feed.lose += count

    def _tell_soon(self, resource: Resource) -> None:
        """State messages travel: neighbours learn of a change a moment later, once for many changes."""
        if id(resource) in self._telling:
            return
        self._telling.add(id(resource))

        def tell() -> None:
            self._telling.discard(id(resource))
            if self.owner(resource) is not None:
                self.operations.tell_disk_states(resource)

        self.scheduler.call_later(_MESSAGE, tell)

    def _after_meeting(self, peer: PeerVolume, decision: Decision) -> None:
        self.resync.begin(peer, decision)
        self.operations.tell_disk_states(peer.connection.resource)
        other = self.resync.mirror(peer)
        if other is not None:
            self.operations.tell_disk_states(other.connection.resource)
            self.renegotiation.follow_diskless_primary(other.connection.resource)
        self.renegotiation.follow_diskless_primary(peer.connection.resource)

    def _wake_writers(self, one: str, other: str) -> None:
        """A link that healed before its loss was noticed lets waiting writes go on."""
        for name in (one, other):
            node = self.nodes.get(name)
            if node is not None and node.running and self.io.waiting:
                for volume in list(node.kernel.minors.values()):
                    self.io.resume(node.kernel, volume)
        for connection in self.between(one, other):
            if connection.link is Link.CONNECTED and self.links.active_path(connection) is not None:
                self._tell_soon(connection.resource)  # what was sent into the silence arrives after all

    def _reaches(self, peer: PeerVolume) -> bool:
        return self.links.active_path(peer.connection) is not None

    def operations_notice(self, name: str) -> None:
        """Lets a node notice its dead links now, as any cluster-wide command does first."""
        for resource in list(self.nodes[name].kernel.resources.values()):
            self.operations.notice_dead(resource)

    def _promote(self, kernel: Kernel, resource: Resource) -> None:
        self.operations.primary(kernel, resource, force=False)

    def _demote(self, kernel: Kernel, resource: Resource) -> None:
        self.operations.secondary(kernel, resource, force=False)

    def _panic(self, resource: Resource) -> None:
        """The kernel dies, and the machine with it, as soon as the current step is over."""
        kernel = self.nodes[resource.node].kernel

        def die() -> None:
            node = self.nodes[resource.node]
            if node.running and node.kernel is kernel:
                self.crash(resource.node)

        self.scheduler.call_later(0.0, die)

    def _begin_generation(self, volume: Volume) -> None:
        self.io.begin_generation(self.nodes[volume.resource.node].kernel, volume)

    def _after_probe(self, member: Member) -> None:
        self.renegotiation.compare_unstable(member.resource)

    def _after_connect(self, one: Connection, other: Connection) -> None:
        """Both ends stand and know each other's disk: writes that waited for this link are replayed (I6)."""
        self.operations.tell_disk_states(one.resource, other.resource)
        for connection in (one, other):
            for peer in connection.peer_volumes.values():
                if peer.replication is Replication.ESTABLISHED:
                    self.resync.settle_equal(peer)  # U11 is part of the meeting: before anything new is written
                generations.learn_who_caught_up(peer.volume, peer)
        # Only this resource: whatever happens between the two nodes (a heal) has listeners of its own.
        for connection in (one, other):
            self._go_on(connection.resource)
        for connection in (one, other):
            if connection.link is Link.CONNECTED and self.links.active_path(connection) is not None:
                self._tell_soon(connection.resource)

    def _go_on(self, resource: Resource) -> None:
        owner = self.owner(resource)
        if owner is not None and self.io.waiting:
            for volume in list(resource.volumes.values()):
                self.io.resume(owner.kernel, volume)

    def _spread(self, volume: Volume) -> None:
        self.operations.tell_disk_states(volume.resource)

    def _sync_error(self, peer: PeerVolume) -> None:
        owner = self.owner(peer.connection.resource)
        if owner is not None:
            self._fail_own_disk(owner.kernel, peer.volume)

    def _fail_own_disk(self, kernel: Kernel, volume: Volume) -> None:
        """I8: Failed, then Diskless; also with pass_on this version detaches (S19)."""
        if volume.backing is None or volume.disk <= Disk.FAILED:
            return
        change = Change(volume.resource, "local-io-error", forced=True)
        change.put(volume, "disk", Disk.FAILED)
        kernel.commit(change)
        disks.detach(kernel, volume, "go-diskless")
        self._spread(volume)

    # --- faults ------------------------------------------------------------------------------------------------

    def crash(self, name: str) -> None:
        """Power loss: everything but the disks is gone; the others notice by silence."""
        node = self.nodes[name]
        node.running = False
        for feed in self._feeds.get(name, ()):
            feed.ready.set()
        for volume in node.kernel.minors.values():
            self.io.drop(volume)
            if volume.backing is not None:
                volume.backing.device.users -= 1
        for other in self.nodes:
            if other != name:
                self.network.tell(name, other)
                self._silence(other, name)

    def _silence(self, survivor: str, dead: str) -> None:
        addresses = {a for a, i in self.network.interfaces.items() if i.node == dead}
        for resource in self.nodes[survivor].kernel.resources.values():
            for connection in resource.connections.values():
                if connection.link is Link.CONNECTED and _leads_to(connection, addresses):
                    self.links.watch(connection)

    def restart(self, name: str) -> Node:
        """The machine boots: volume groups are there, no DRBD configuration is loaded."""
        fresh = self._assemble(name, self.nodes[name].lvm)
        fresh.mapped = self.nodes[name].mapped
        self.nodes[name] = fresh
        for other in self.nodes:
            if other != name:
                self.network.tell(name, other)
        return fresh

    def cut(self, one: str, other: str, network: str | None = None, *, one_way: bool = False) -> None:
        self.network.set_cut(one, other, network, cut=True)
        if not one_way:
            self.network.set_cut(other, one, network, cut=True)

    def heal(self, one: str, other: str, network: str | None = None) -> None:
        self.network.set_cut(one, other, network, cut=False)
        self.network.set_cut(other, one, network, cut=False)

    def delay(self, one: str, other: str, seconds: float, network: str | None = None) -> None:
        self.network.set_delay(one, other, network, seconds)

    def fail_disk(self, name: str, path: str, *, failed: bool = True) -> None:
        device = self.nodes[name].device(path)
        if device is None:
            raise KeyError(f"{name} has no {path}")
        device.failed = failed  # type: ignore[attr-defined]

    def slow_disk(self, name: str, path: str, seconds_per_block: float) -> None:
        """A disk that takes so long for each block: writers wait for it, and so does a resync to it."""
        self.nodes[name].lvm.disk(path).seconds_per_block = seconds_per_block

    def skew_clock(self, name: str, seconds: float) -> None:
        """The wall clock of a machine is off; what it stamps is, what it waits for is not."""
        self.skews[name] = seconds

    # --- data --------------------------------------------------------------------------------------------------

    def _ledger_of(self, volume: Volume) -> Ledger:
        return self.truth(volume.resource.name)

    def truth(self, resource: str) -> Ledger:
        """What was acknowledged to the writers of a resource."""
        return self._ledgers.setdefault(resource, Ledger())

    def ledgers(self) -> tuple[tuple[str, Ledger], ...]:
        """What was acknowledged, by resource name; the ends of a resource may have different names."""
        return tuple(self._ledgers.items())

    def fresh_value(self) -> int:
        self._values += 1
        return self._values

    def device(self, node: str, resource: str, volume: int = 0) -> Device:
        return Device(self, node, resource, volume)


_TOLD = frozenset({"disk", "quorum"})
_HELD = frozenset({"paused_by_user", "paused_by_dependency"})
_MESSAGE = 0.005
_PATIENCE = 60.0


def _leads_to(connection: Connection, addresses: set[str]) -> bool:
    return any(path.remote.split(":")[1] in addresses for path in connection.paths)
