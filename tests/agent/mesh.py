"""What the controllers would do to a mesh of resources, by hand: form, join, promote, write, tear down."""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.drbd_resource import DRBDResource, Peer
from quorate.api.drbd_resource_operation import CreateNewUUID, Phase
from quorate.api.labels import FINALIZER_AGENT
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from tests.agent.world import World

KERNEL_NAME = "sdsrv-rv-{}"


async def configured(world: World, node_id: int) -> bool:
    found = await world.drbdr(node_id)
    return conditions.is_true(found.status.conditions, "Configured", found.metadata.generation)


async def up_to_date(world: World, *node_ids: int) -> bool:
    return all([(await world.drbdr(each)).status.disk_state == "UpToDate" for each in node_ids])


async def form(world: World, *, diskful: tuple[int, ...] = (0, 1, 2), tie_breakers: tuple[int, ...] = ()) -> None:
    """What the controllers do at formation, by hand."""
    members = (*diskful, *tie_breakers)
    for each in members:
        if each in diskful:
            await world.client.create(world.volume(world.nodes[each], f"rv-{each}-disk"))
        await world.client.create(world.resource(each, diskful=each in diskful))

    async def addressed() -> bool:
        return all([(await world.drbdr(each)).status.addresses for each in members])

    await world.eventually(addressed, "all resources have addresses")
    await join(world, diskful, tie_breakers)


async def stands(world: World, node_id: int) -> bool:
    """Configured, with all its peers connected."""
    found = await world.drbdr(node_id)
    linked = [peer.connection_state == "Connected" for peer in found.status.peers]
    return all(linked) and len(linked) == len(found.spec.peers) and await configured(world, node_id)


async def join(world: World, diskful: tuple[int, ...], tie_breakers: tuple[int, ...] = ()) -> None:
    """Publish the same mesh to every member and wait until it stands."""
    members = (*diskful, *tie_breakers)
    entries: dict[int, Peer] = {each: await world.peer(each, diskful=each in diskful) for each in members}
    quorum = len(diskful) // 2 + 1
    for each in members:
        full_mesh = each in diskful
        peers = tuple(entries[other] for other in members if other != each and (full_mesh or other in diskful))
        await world.edit(each, peers=peers, quorum=quorum if full_mesh else 32, quorum_minimum_redundancy=1)

    async def connected() -> bool:
        return all([await stands(world, each) for each in members])

    await world.eventually(connected, "the mesh is connected and configured")


async def first_data(world: World, node_id: int, *up: int) -> None:
    ended = await world.operate("rv-formation", node_id, "CreateNewUUID", CreateNewUUID(clear_bitmap=True))
    assert ended.status.phase == Phase.SUCCEEDED, ended.status.message
    await world.eventually(lambda: up_to_date(world, *up), "all disks are UpToDate")


async def promote(world: World, node_id: int) -> None:
    await world.edit(node_id, role="Primary")

    async def primary() -> bool:
        found = await world.drbdr(node_id)
        active = found.status.active_configuration
        return active is not None and active.role == "Primary" and await configured(world, node_id)

    await world.eventually(primary, f"rv-{node_id} is Primary")


class Writer:
    """A program that writes blocks through a device and remembers what was acknowledged."""

    def __init__(self, world: World, node_id: int) -> None:
        self._world = world
        self._device = world.cluster.device(world.nodes[node_id], KERNEL_NAME.format(node_id))
        self._device.open(write=True)
        self.acknowledged: dict[int, int] = {}

    def write(self, block: int) -> None:
        value = self._world.cluster.fresh_value()

        def finish(error: int | None) -> None:
            if error is None:
                self.acknowledged[block] = value

        self._device.write(block, value, finish)

    def close(self) -> None:
        self._device.close()


def contents(world: World, node_id: int, blocks: dict[int, int]) -> dict[int, int]:
    """What the logical volume of a node holds in these blocks."""
    disk = world.cluster.node(world.nodes[node_id]).lvm.disk(f"/dev/vg/rv-{node_id}-disk")
    return {block: disk.read(block) for block in blocks}


async def tear_down(world: World, *node_ids: int) -> None:
    for each in node_ids:
        await world.client.delete(await world.drbdr(each))

    async def all_gone() -> bool:
        return all([await world.gone(DRBDResource, f"rv-{each}") for each in node_ids])

    await world.eventually(all_gone, "the resources are gone")
    for each in node_ids:
        volume = await world.client.get(LVMLogicalVolume, f"rv-{each}-disk")
        assert FINALIZER_AGENT not in volume.metadata.finalizers
        await world.client.delete(volume)

    async def volumes_gone() -> bool:
        return all([await world.gone(LVMLogicalVolume, f"rv-{each}-disk") for each in node_ids])

    await world.eventually(volumes_gone, "the logical volumes are gone")
