"""A verified writer: writes blocks one after another on an attached device and remembers what was acknowledged."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from quorate.simulator.blocks import DeviceError
from quorate.simulator.cluster import Device
from quorate.verification.system.system import System

INTERVAL = 0.2
"""Seconds between two writes."""
BLOCKS = 64
"""Blocks that a writer cycles through."""
SLOW = 1.0
"""A write that takes longer than this counts as a pause."""


@dataclass
class Report:
    """What a writer did."""

    acknowledged: int = 0
    failed: int = 0
    read_back: int = 0
    lost: int = 0
    pauses: int = 0
    longest_pause: float = 0.0


@dataclass
class Writer:
    """Writes on a node until told to stop."""

    system: System
    volume: str
    node: str
    replica: str
    report: Report = field(default_factory=Report)
    _task: asyncio.Task[None] | None = None
    _stopping: bool = False

    @property
    def device(self) -> Device:
        """The device on the node."""
        return self.system.cluster.simulator.device(self.node, self.system.resource_of(self.replica))

    def start(self) -> None:
        """Begin to write; the device is held open meanwhile."""
        self._task = asyncio.create_task(self._run(), name=f"writer/{self.volume}/{self.node}")

    async def stop(self) -> Report:
        """Close the device and tell what was done."""
        self._stopping = True
        if self._task is not None:
            await self._task
        return self.report

    def abandon(self) -> Report:
        """The node is gone: nothing can be closed."""
        if self._task is not None:
            self._task.cancel()
        return self.report

    async def _run(self) -> None:
        device = self.device
        device.open(write=True, program="writer")
        try:
            block = 0
            while not self._stopping:
                await self._write(device, block)
                block = (block + 1) % BLOCKS
                await self.system.clock.sleep(INTERVAL)
        finally:
            if self.system.cluster.simulator.nodes[self.node].running:
                device.close()

    async def _write(self, device: Device, block: int) -> None:
        loop = asyncio.get_running_loop()
        done: asyncio.Future[int | None] = loop.create_future()
        began = self.system.clock.monotonic()

        def finish(error: int | None) -> None:
            if not done.done():
                done.set_result(error)

        try:
            device.write(block, self.system.cluster.simulator.fresh_value(), finish)
        except DeviceError:
            self.report.failed += 1
            return
        error = await done
        took = self.system.clock.monotonic() - began
        if took > SLOW:
            self.report.pauses += 1
            self.report.longest_pause = max(self.report.longest_pause, took)
        if error is None:
            self.report.acknowledged += 1
        else:
            self.report.failed += 1


async def acknowledging(writer: Writer, count: int = 5, seconds: float = 60) -> None:
    """Wait until `count` further writes are acknowledged: I/O goes on."""
    goal = writer.report.acknowledged + count

    async def reached() -> bool:
        return writer.report.acknowledged >= goal

    await writer.system.until(reached, seconds, f"{count} further writes on {writer.node} are acknowledged")


async def stalled(writer: Writer, seconds: float = 20) -> None:
    """Check that nothing is acknowledged for a while: I/O stopped."""
    await writer.system.clock.sleep(5)
    before = writer.report.acknowledged
    await writer.system.clock.sleep(seconds)
    assert writer.report.acknowledged == before, "writes are acknowledged although I/O must stop"
