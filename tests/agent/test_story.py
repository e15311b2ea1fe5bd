"""Three agents on three simulated nodes with hand-written DRBDResource objects only: formation to tear-down."""

from __future__ import annotations

import pytest

from quorate.simulator.blocks import BLOCK
from tests.agent.mesh import Writer, configured, contents, first_data, form, promote, tear_down
from tests.agent.world import SIZE, World, run_world


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
