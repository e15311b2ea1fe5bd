"""A verified writer inside the local cluster: writes on the node where a volume is attached, then reads everything back.

Guarantees: an acknowledgement is in the ledger before it is reported; at the end every block that was ever acknowledged
on the volume is read through the device, and looked up below it on every disk that the attached node sees as UpToDate.
A block is lost when what is there is older than what was acknowledged. A write that nobody acknowledged is never
counted as lost, whether it is there or not.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

import msgspec

from quorate.api import conditions
from quorate.api.names import drbd_name_on_node
from quorate.api.replicated_volume import DatameshMember, ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.local.cluster import LocalCluster
from quorate.local.io_ledger import IoLedger
from quorate.machinery import errors
from quorate.machinery.clock import Clock
from quorate.simulator.blocks import DeviceError
from quorate.simulator.cluster import Device
from quorate.simulator.model import Volume
from quorate.simulator.states import Disk

BLOCKS = 256
"""Blocks that a writer cycles through."""
SLOW = 1.0
"""A write that takes longer than this many seconds is a pause."""
TELL = 0.1
"""Seconds between two progress messages."""


class IoRefused(Exception):
    """Why nothing can be written, as a sentence for people."""


class IoRequest(msgspec.Struct, frozen=True):
    """What to write."""

    volume: str
    node: str = ""
    """Empty means the node where the volume is attached."""
    seconds: float = 10.0
    """0 only reads back what was acknowledged before."""
    rate: float = 50.0
    """Writes per second at most; a write waits for the one before."""


class Progress(msgspec.Struct, frozen=True, tag="progress", tag_field="type"):
    """What happened since the last message."""

    node: str
    writes: tuple[tuple[int, int], ...] = ()
    """Acknowledged blocks with their numbers."""
    acknowledged: int = 0
    failed: int = 0
    pauses: int = 0
    longest_pause: float = 0.0
    waiting: float = 0.0
    """Seconds for which the running write waits already."""


class IoReport(msgspec.Struct, frozen=True, tag="report", tag_field="type"):
    """The whole run."""

    volume: str
    node: str
    seconds: float
    acknowledged: int
    failed: int
    read_back: int
    """Blocks whose acknowledged content was read through the device."""
    lost: int
    copies: int
    """UpToDate disks that were compared below the device."""
    pauses: int
    longest_pause: float
    ended: str = ""
    """Why it ended early, if it did."""


@dataclass
class _Run:
    """State of one writer."""

    acknowledged: int = 0
    failed: int = 0
    pauses: int = 0
    longest_pause: float = 0.0
    ended: str = ""
    fresh: list[tuple[int, int]] = field(default_factory=list[tuple[int, int]])
    began: float | None = None
    """When the running write was sent."""


class LocalIo:
    """See the module docstring."""

    def __init__(self, cluster: LocalCluster, clock: Clock, ledger: IoLedger, highest: int = 0) -> None:
        self._cluster = cluster
        self._clock = clock
        self._ledger = ledger
        self._numbers = highest
        """The number of the last write, over all runs."""

    async def run(self, wish: IoRequest) -> AsyncGenerator[Progress | IoReport]:
        """Write and tell; the last message is the report. Refusals come before the first message."""
        uid, member = await self._target(wish)
        device = self._cluster.simulator.device(member.node_name, drbd_name_on_node(member.name))
        run = _Run()
        began = self._clock.monotonic()
        self._open(device, wish, member.node_name)
        try:
            yield Progress(member.node_name)
            if wish.seconds > 0:
                async for message in self._write_for(wish, uid, device, run):
                    yield message
            read_back, lost, copies = self._verify(uid, device, run) if self._alive(device) else (0, 0, 0)
        finally:
            self._close(device)
        took = self._clock.monotonic() - began
        counts = (run.acknowledged, run.failed, read_back, lost, copies, run.pauses)
        yield IoReport(wish.volume, member.node_name, round(took, 3), *counts, round(run.longest_pause, 3), run.ended)

    async def check(self, volume: str) -> tuple[int, int, int]:
        """Blocks read back, blocks lost and copies compared, of everything ever acknowledged on an attached volume."""
        uid, member = await self._target(IoRequest(volume))
        device = self._cluster.simulator.device(member.node_name, drbd_name_on_node(member.name))
        return self._verify(uid, device, _Run())

    # Where

    async def _target(self, wish: IoRequest) -> tuple[str, DatameshMember]:
        try:
            volume = await self._cluster.client.get(ReplicatedVolume, wish.volume)
        except errors.NotFound:
            raise IoRefused(f"there is no volume {wish.volume}") from None
        members = {member.node_name: member for member in volume.status.datamesh.members if member.attached}
        ready = [name for name in await self._ready_nodes(wish.volume) if name in members]
        if wish.node:
            if wish.node not in self._cluster.nodes:
                raise IoRefused(f"there is no node {wish.node}; nodes: {', '.join(self._cluster.nodes)}")
            if wish.node not in members:
                raise IoRefused(f"{wish.volume} is not attached on {wish.node}{_elsewhere(tuple(members))}")
            return volume.metadata.uid, members[wish.node]
        if not ready:
            raise IoRefused(
                f"{wish.volume} is attached nowhere yet; attach it first: quorate volume attach {wish.volume} NODE"
            )
        return volume.metadata.uid, members[ready[0]]

    async def _ready_nodes(self, volume: str) -> list[str]:
        found = (await self._cluster.client.list(ReplicatedVolumeAttachment)).items
        return [
            each.spec.node_name
            for each in found
            if each.spec.replicated_volume_name == volume and conditions.is_true(each.status.conditions, "Attached")
        ]

    def _open(self, device: Device, wish: IoRequest, node: str) -> None:
        if not self._cluster.simulator.nodes[node].running:
            raise IoRefused(f"{node} is down")
        try:
            device.open(write=True, program="quorate-io")
        except (DeviceError, LookupError) as error:
            told = error.strerror if isinstance(error, DeviceError) else "the device is not there"
            raise IoRefused(f"{wish.volume} cannot be opened on {node}: {told}") from None

    def _close(self, device: Device) -> None:
        if self._alive(device):
            device.close()

    def _alive(self, device: Device) -> bool:
        """Whether the device that was opened still exists: its node has not gone down since."""
        volume = self._volume(device)
        return volume is not None and device.opener in volume.openers

    def _volume(self, device: Device) -> Volume | None:
        node = self._cluster.simulator.nodes[device.node]
        resource = node.kernel.resources.get(device.resource) if node.running else None
        return resource.volumes.get(device.number) if resource is not None else None

    # Writing

    async def _write_for(self, wish: IoRequest, uid: str, device: Device, run: _Run) -> AsyncGenerator[Progress]:
        end = self._clock.monotonic() + wish.seconds
        writing = asyncio.create_task(self._write(wish, uid, device, run, end), name=f"io/{wish.volume}")
        try:
            while not writing.done() and self._clock.monotonic() < end and self._alive(device):
                await asyncio.wait((writing,), timeout=min(TELL, max(end - self._clock.monotonic(), 0.0)))
                yield self._progress(device, run)
            if not self._alive(device):
                run.ended = f"{device.node} lost the device"
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)
        self._account(run)
        yield self._progress(device, run)

    async def _write(self, wish: IoRequest, uid: str, device: Device, run: _Run, end: float) -> None:
        volume = self._volume(device)
        blocks = min(BLOCKS, volume.blocks) if volume is not None else 0
        if not blocks:
            run.ended = f"{device.node} lost the device"
            return
        block = 0
        while self._clock.monotonic() < end:
            due = self._clock.monotonic() + 1.0 / wish.rate
            await self._write_block(uid, device, block, run)
            block = (block + 1) % blocks
            await self._clock.sleep(max(0.0, due - self._clock.monotonic()))

    async def _write_block(self, uid: str, device: Device, block: int, run: _Run) -> None:
        done: asyncio.Future[int | None] = asyncio.get_running_loop().create_future()

        def finish(error: int | None) -> None:
            if not done.done():
                done.set_result(error)

        self._numbers += 1
        value = self._numbers
        run.began = self._clock.monotonic()
        try:
            device.write(block, value, finish)
            error = await done
        except (DeviceError, LookupError):
            error = -1
        self._account(run)
        if error is not None:
            run.failed += 1
            return
        self._ledger.note(uid, block, value)
        run.acknowledged += 1
        run.fresh.append((block, value))

    def _account(self, run: _Run) -> None:
        """A write ended, or is given up on: was it a pause?"""
        took = self._clock.monotonic() - run.began if run.began is not None else 0.0
        run.began = None
        if took > SLOW:
            run.pauses += 1
            run.longest_pause = max(run.longest_pause, took)

    def _progress(self, device: Device, run: _Run) -> Progress:
        writes, run.fresh = tuple(run.fresh), []
        waiting = self._clock.monotonic() - run.began if run.began is not None else 0.0
        counts = (run.acknowledged, run.failed, run.pauses, round(run.longest_pause, 3))
        return Progress(device.node, writes, *counts, round(waiting, 3))

    # Reading back

    def _verify(self, uid: str, device: Device, run: _Run) -> tuple[int, int, int]:
        """Blocks read back, blocks lost, disks compared."""
        volume = self._volume(device)
        if volume is None:
            return 0, 0, 0
        promised = self._ledger.of(uid)
        lost: set[int] = set()
        read_back = 0
        for block, value in promised.items():
            try:
                found = device.read(block)
            except DeviceError:
                run.ended = run.ended or f"{device.node} cannot read the device now"
                break
            read_back += 1
            if found < value:
                lost.add(block)
        copies = 0
        for disk in self._up_to_date(volume):
            assert disk.backing is not None
            copies += 1
            lost.update(block for block, value in promised.items() if disk.backing.device.read(block) < value)
        return read_back - len(lost), len(lost), copies

    def _up_to_date(self, volume: Volume) -> list[Volume]:
        """The disks that the attached node believes to hold everything: its own and its peers'."""
        found = [volume] if volume.backing is not None and volume.disk is Disk.UP_TO_DATE else []
        for peer in volume.peers():
            end = self._cluster.simulator.resync.mirror(peer) if peer.disk is Disk.UP_TO_DATE else None
            if end is not None and end.volume.backing is not None:
                found.append(end.volume)
        return [each for each in found if each.backing is not None and not each.backing.device.failed]  # type: ignore[attr-defined]


def _elsewhere(nodes: tuple[str, ...]) -> str:
    return f"; it is attached on {', '.join(nodes)}" if nodes else "; it is attached nowhere"
