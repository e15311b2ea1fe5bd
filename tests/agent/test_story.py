"""Three agents on three simulated nodes with hand-written DRBDResource objects only: formation to tear-down."""

from __future__ import annotations

import pytest

from quorate.api import conditions
from quorate.api.drbd_resource import DRBDResource, Peer
from quorate.api.drbd_resource_operation import CreateNewUUID, Phase
from quorate.api.labels import FINALIZER_AGENT
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.simulator.blocks import BLOCK
from tests.agent.world import SIZE, World, run_world

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
        found = [await world.drbdr(each) for each in members]
        return all(
            await_configured
            and len(each.status.peers) == len(each.spec.peers)
            and all(peer.connection_state == "Connected" for peer in each.status.peers)
            for each in found
            for await_configured in [conditions.is_true(each.status.conditions, "Configured", each.metadata.generation)]
        )

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


@pytest.mark.parametrize("thin", [False, True])
def test_formation_promotion_failure_resync_and_tear_down(thin: bool) -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        writer = Writer(world, 0)
        for block in range(20):
            writer.write(block)
        assert len(writer.acknowledged) == 20

        await world.crash("n1")

        async def lost() -> bool:
            peers = {peer.node_id: peer for peer in (await world.drbdr(0)).status.peers}
            return peers[1].connection_state != "Connected"

        await world.eventually(lost, "n0 noticed the loss")
        assert (await world.drbdr(0)).status.quorum is True
        for block in range(10, 40):
            writer.write(block)
        assert len(writer.acknowledged) == 40
        assert contents(world, 1, writer.acknowledged) != writer.acknowledged

        world.boot("n1")

        async def whole() -> bool:
            back = {peer.node_id: peer for peer in (await world.drbdr(0)).status.peers}[1]
            synchronised = (back.connection_state, back.disk_state) == ("Connected", "UpToDate")
            return synchronised and all([await configured(world, each) for each in range(3)])

        await world.eventually(whole, "n1 is back and synchronised")
        for each in range(3):
            assert contents(world, each, writer.acknowledged) == writer.acknowledged

        writer.close()
        await world.edit(0, role="Secondary")
        await promote(world, 2)
        second = Writer(world, 2)
        second.write(0)
        assert contents(world, 1, second.acknowledged) == second.acknowledged
        second.close()
        await world.edit(2, role="Secondary")
        await tear_down(world, 0, 1, 2)
        for name in world.nodes:
            node = world.cluster.node(name)
            assert node.kernel.resources == {}
            assert node.lvm.volume("/dev/vg/rv-0-disk") is None
            assert world.cluster.host(name).list_dir("/dev/sdsrv") == ()

    run_world(story, thin=thin)


def test_status_has_every_field_the_replica_controller_reads() -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1), tie_breakers=(2,))
        await first_data(world, 0, 0, 1)
        await promote(world, 0)
        writer = Writer(world, 0)

        async def opened() -> bool:
            return (await world.drbdr(0)).status.device_open is True

        await world.eventually(opened, "the opener is reported")
        status = (await world.drbdr(0)).status
        active = status.active_configuration
        assert active is not None
        assert (active.state, active.role, active.type, active.quorum, active.quorum_policy) == (
            "Up",
            "Primary",
            "Diskful",
            2,
            "majority",
        )
        assert active.lvm_logical_volume_name == "rv-0-disk"
        assert (status.device, status.device_io_suspended, status.device_open) == ("/dev/sdsrv/rv-0", False, True)
        assert status.size is not None
        assert status.size.value >= SIZE
        assert status.size.value % BLOCK == 0
        assert [(each.system_network_name, each.address.ipv4, each.address.port) for each in status.addresses] == [
            ("Internal", "10.0.0.1", 7000)
        ]
        assert (status.disk_state, status.quorum, len(status.device_uuid)) == ("UpToDate", True, 16)
        diskful, tie_breaker = status.peers
        assert (diskful.name, diskful.type, diskful.role, diskful.allow_remote_read) == (
            "rv-1",
            "Diskful",
            "Secondary",
            True,
        )
        assert (diskful.connection_state, diskful.replication_state, diskful.disk_state) == (
            "Connected",
            "Established",
            "UpToDate",
        )
        assert diskful.paths[0].established
        assert (tie_breaker.name, tie_breaker.type, tie_breaker.bitmap, tie_breaker.tie_breaker) == (
            "rv-2",
            "Diskless",
            False,
            True,
        )
        seen = (await world.drbdr(1)).status.peers
        assert [(peer.name, peer.role) for peer in seen if peer.node_id == 0] == [("rv-0", "Primary")]
        assert (await world.drbdr(2)).status.size is None
        writer.close()

        await world.crash("n2")

        async def missing() -> bool:
            return (await world.drbdr(0)).status.peers[1].connection_state != "Connected"

        await world.eventually(missing, "the tie-breaker is gone")
        # T3: a disconnected diskless peer stays diskless.
        assert (await world.drbdr(0)).status.peers[1].type == "Diskless"

    run_world(story)
