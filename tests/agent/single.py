"""One node and one resource: what the tests of flows and operations share."""

from __future__ import annotations

from collections.abc import Callable, Coroutine

from quorate.api import conditions
from quorate.api.drbd_resource_operation import CreateNewUUID, Phase
from quorate.api.labels import FINALIZER_AGENT
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.quantity import Quantity
from quorate.api.value import replace
from quorate.api.wire import merge_patch
from quorate.simulator.result import Result
from tests.agent.world import World, run_world

NAME = "sdsrv-rv-0"
DISK = "/dev/vg/rv-0-disk"


async def condition(world: World, node_id: int = 0) -> tuple[str, str]:
    found = await world.drbdr(node_id)
    current = conditions.get(found.status.conditions, "Configured")
    if current is None or current.observed_generation != found.metadata.generation:
        return "pending", ""
    return current.status, current.reason


async def becomes(world: World, status: str, reason: str, node_id: int = 0) -> None:
    async def holds() -> bool:
        return await condition(world, node_id) == (status, reason)

    await world.eventually(holds, f"Configured={status}/{reason}")


async def configured(world: World, node_id: int = 0) -> None:
    await becomes(world, "True", "Configured", node_id)


async def create(world: World, *, quorum: int = 32, redundancy: int = 32) -> None:
    await world.client.create(world.volume("n0", "rv-0-disk"))
    await world.client.create(world.resource(0, quorum=quorum, quorum_minimum_redundancy=redundancy))
    await configured(world)


async def with_data(world: World) -> None:
    """A single UpToDate replica."""
    await create(world, quorum=1, redundancy=1)
    ended = await world.operate("formation", 0, "CreateNewUUID", CreateNewUUID(clear_bitmap=True))
    assert ended.status.phase == Phase.SUCCEEDED, ended.status.message

    async def current() -> bool:
        return (await world.drbdr(0)).status.disk_state == "UpToDate"

    await world.eventually(current, "UpToDate")


async def held(world: World) -> bool:
    return FINALIZER_AGENT in (await world.client.get(LVMLogicalVolume, "rv-0-disk")).metadata.finalizers


async def grow_volume(world: World, size: int) -> None:
    volume = await world.client.get(LVMLogicalVolume, "rv-0-disk")
    wanted = replace(volume, spec=replace(volume.spec, size=Quantity.of(size)))
    await world.client.patch(volume, merge_patch(volume, wanted))


def kernel(world: World, name: str = "n0") -> dict[str, object]:
    return dict(world.cluster.node(name).kernel.resources)


def role(world: World) -> str:
    return sh(world, f"drbdsetup role {NAME}").stdout.strip()


def sh(world: World, line: str) -> Result:
    return world.cluster.node("n0").execute(line.split())


def one(story: Callable[[World], Coroutine[object, object, None]]) -> None:
    run_world(story, nodes=("n0",))
