"""Faults of the local cluster, as a person causes them: machines, links, disks, pools, agents.

Nothing here decides anything about volumes: a fault changes the simulated machines, and the real controllers and agents
have to cope. What is broken is read from the machines themselves, so the list is always true. Faults end with the
process: the machines of the next run are whole, their disks hold what was written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Literal, assert_never

import msgspec

from quorate.local.cluster import LocalCluster
from quorate.simulator.lvm_model import Kind, LogicalVolume, VolumeGroup

Subject = Literal["node", "link", "disk", "pool", "agent"]
SLOWEST = 5.0
"""Seconds of extra round trip; a link that is slower than DRBD's timeout is as good as cut."""


class FaultRefused(Exception):
    """Why a fault cannot be caused, as a sentence for people."""


class FaultRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One fault, or its end."""

    subject: Subject
    action: str
    """`down`/`up` a node, `cut`/`heal`/`slow` a link, `fail`/`repair` a disk, `full`/`free` a pool, `stop`/`start` an agent."""
    node: str
    other: str = ""
    """The other end of a link."""
    target: str = ""
    """Volume group or volume whose disk fails; empty means all of the node."""
    seconds: float = 0.0
    """How much slower a slow link gets, for a round trip."""


class Fault(msgspec.Struct, frozen=True):
    """Something that is broken now."""

    subject: Subject
    where: str
    what: str
    end: str
    """The command that ends it."""


class Faults:
    """See the module docstring."""

    def __init__(self, cluster: LocalCluster) -> None:
        self._cluster = cluster
        self._simulator = cluster.simulator
        self._taken: dict[tuple[str, str], int] = {}
        """What was taken away from pools: (node, volume group) → chunks, or extents of a group without a pool."""

    async def apply(self, wish: FaultRequest) -> str:
        """Cause or end a fault; the answer is a sentence that says what is so now."""
        self._known(wish.node)
        match wish.subject:
            case "node":
                return await self._node(wish)
            case "agent":
                return await self._agent(wish)
            case "link":
                return self._link(wish)
            case "disk":
                return self._disk(wish)
            case "pool":
                return self._pool(wish)
            case _:
                assert_never(wish.subject)

    def current(self) -> tuple[Fault, ...]:
        """Everything that is broken now."""
        return (*self._machines(), *self._links(), *self._disks(), *self._pools())

    # Machines

    async def _node(self, wish: FaultRequest) -> str:
        name, running = wish.node, self._simulator.nodes[wish.node].running
        match wish.action:
            case "down":
                if not running:
                    raise FaultRefused(f"{name} is down already")
                await self._cluster.crash_node(name)
                return f"{name} lost its power; its disks keep what was written."
            case "up":
                if running:
                    raise FaultRefused(f"{name} is running")
                self._cluster.restart_node(name)
                return f"{name} boots; its agent brings its replicas up again."
            case _:
                raise _unknown(wish, "down", "up")

    async def _agent(self, wish: FaultRequest) -> str:
        name, node = wish.node, self._cluster.nodes[wish.node]
        match wish.action:
            case "stop":
                if node.agent_stopped:
                    raise FaultRefused(f"the agent of {name} is stopped already")
                await self._cluster.stop_agent(name)
                return f"The agent of {name} is stopped; DRBD on it runs on as it was told last."
            case "start":
                if not node.agent_stopped:
                    raise FaultRefused(f"the agent of {name} is not stopped")
                if not self._simulator.nodes[name].running:
                    node.agent_stopped = False
                    return f"The agent of {name} starts when the node is up again."
                self._cluster.start_agent(name)
                return f"The agent of {name} runs again."
            case _:
                raise _unknown(wish, "stop", "start")

    def _machines(self) -> Iterator[Fault]:
        for name, node in self._cluster.nodes.items():
            if not self._simulator.nodes[name].running:
                yield Fault("node", name, "down", f"quorate fault node up {name}")
            if node.agent_stopped:
                yield Fault("agent", name, "stopped", f"quorate fault agent start {name}")

    # Links

    def _link(self, wish: FaultRequest) -> str:
        one, other = wish.node, wish.other
        self._known(other)
        if one == other:
            raise FaultRefused("a link has two different ends")
        match wish.action:
            case "cut":
                self._simulator.cut(one, other)
                return f"Nothing passes between {one} and {other} any more; DRBD notices within ten seconds."
            case "heal":
                self._simulator.heal(one, other)
                self._set_delay(one, other, 0.0)
                return f"The link between {one} and {other} is as it was."
            case "slow":
                if not 0 < wish.seconds <= SLOWEST:
                    raise FaultRefused(f"a slow link takes more than 0 and at most {SLOWEST:g} seconds longer")
                self._set_delay(one, other, wish.seconds / 2)
                return (
                    f"A round trip between {one} and {other} takes {wish.seconds:g} s longer, and with it each write."
                )
            case _:
                raise _unknown(wish, "cut", "heal", "slow")

    def _set_delay(self, one: str, other: str, seconds: float) -> None:
        self._simulator.delay(one, other, seconds)
        self._simulator.delay(other, one, seconds)

    def _links(self) -> Iterator[Fault]:
        seen: set[tuple[str, str]] = set()
        for (sender, receiver, _), direction in self._simulator.network.directions.items():
            one, other = sorted((sender, receiver))
            if (one, other) in seen or not (direction.cut or direction.delay):
                continue
            seen.add((one, other))
            what = "cut" if direction.cut else f"slower by {2 * direction.delay:g} s"
            yield Fault("link", f"{one} - {other}", what, f"quorate fault link heal {one} {other}")

    # Disks

    def _disk(self, wish: FaultRequest) -> str:
        if wish.action not in ("fail", "repair"):
            raise _unknown(wish, "fail", "repair")
        failed = wish.action == "fail"
        groups = self._simulator.nodes[wish.node].lvm.state.groups
        if not wish.target or wish.target in groups:
            for group in groups.values() if not wish.target else (groups[wish.target],):
                group.failed = failed
                for volume in group.volumes.values():
                    _set_failed(volume, failed)
            where = f"volume group {wish.target}" if wish.target else "all disks"
            return f"On {wish.node}, {where} {_told(failed)}"
        found = [v for group in groups.values() for v in group.volumes.values() if _belongs(v, wish.target)]
        if not found:
            known = ", ".join(groups)
            raise FaultRefused(
                f"{wish.node} has no volume group and no disk of a volume {wish.target}; groups: {known}"
            )
        for volume in found:
            _set_failed(volume, failed)
        return f"On {wish.node}, the disk of {wish.target} {_told(failed)}"

    def _disks(self) -> Iterator[Fault]:
        for name, node in self._simulator.nodes.items():
            for group in node.lvm.state.groups.values():
                if group.failed:
                    end = f"quorate fault disk repair {name} {group.name}"
                    yield Fault("disk", f"{name} {group.name}", "failed", end)
                    continue
                for volume in group.volumes.values():
                    if volume.disk is not None and volume.disk.failed:
                        owner = _owner(volume)
                        end = f"quorate fault disk repair {name} {owner}"
                        yield Fault("disk", f"{name} {group.name}/{volume.name}", "failed", end)

    # Pools

    def _pool(self, wish: FaultRequest) -> str:
        if wish.action not in ("full", "free"):
            raise _unknown(wish, "full", "free")
        groups = self._simulator.nodes[wish.node].lvm.state.groups
        if wish.target and wish.target not in groups:
            raise FaultRefused(f"{wish.node} has no volume group {wish.target}; it has {', '.join(groups)}")
        for group in groups.values() if not wish.target else (groups[wish.target],):
            if wish.action == "full":
                self._fill(wish.node, group)
            else:
                self._release(wish.node, group)
        where = f"volume group {wish.target}" if wish.target else "every volume group"
        told = "is full: nothing more can be placed in it" if wish.action == "full" else "has its free space back"
        return f"On {wish.node}, {where} {told}."

    def _fill(self, node: str, group: VolumeGroup) -> None:
        space = next((v.space for v in group.volumes.values() if v.kind is Kind.POOL and v.space is not None), None)
        key = (node, group.name)
        if space is not None:
            amount = space.capacity - space.used
            space.take(amount)
        else:
            state = self._simulator.nodes[node].lvm.state
            amount = 0
            for disk in state.members(group):
                free = disk.extents(group.extent_size) - disk.used_extents
                disk.used_extents += free
                amount += free
        self._taken[key] = self._taken.get(key, 0) + amount

    def _release(self, node: str, group: VolumeGroup) -> None:
        amount = self._taken.pop((node, group.name), 0)
        space = next((v.space for v in group.volumes.values() if v.kind is Kind.POOL and v.space is not None), None)
        if space is not None:
            space.give_back(amount)
            return
        for disk in self._simulator.nodes[node].lvm.state.members(group):
            share = min(amount, disk.used_extents)
            disk.used_extents -= share
            amount -= share

    def _pools(self) -> Iterator[Fault]:
        for (node, group), amount in self._taken.items():
            if amount:
                yield Fault("pool", f"{node} {group}", "full", f"quorate fault pool free {node} {group}")

    def _known(self, name: str) -> None:
        if name not in self._cluster.nodes:
            raise FaultRefused(f"there is no node {name or 'without a name'}; nodes: {', '.join(self._cluster.nodes)}")


def _set_failed(volume: LogicalVolume, failed: bool) -> None:
    if volume.disk is not None:
        volume.disk.failed = failed


def _told(failed: bool) -> str:
    if failed:
        return "answers every access with an I/O error."
    return "works again; DRBD attaches it when the agent looks next."


def _owner(volume: LogicalVolume) -> str:
    """The replicated volume whose replica lives on a logical volume: `<volume>-<id>-<hash>`."""
    found = re.fullmatch(r"(.+)-\d+-[0-9a-f]+", volume.name)
    return found[1] if found else volume.name


def _belongs(volume: LogicalVolume, name: str) -> bool:
    return volume.disk is not None and _owner(volume) == name


def _unknown(wish: FaultRequest, *known: str) -> FaultRefused:
    return FaultRefused(f"a {wish.subject} cannot be told to {wish.action or 'do nothing'}; known: {', '.join(known)}")
