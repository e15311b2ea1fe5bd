"""A whole life on a real API server, every process under the account and the rights that are shipped for it."""

from __future__ import annotations

from collections import Counter

from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.verification.system.data import check_contents
from quorate.verification.system.writer import acknowledging
from tests.kube.accounts import AGENT, CONTROLLER, EXTENDER, user
from tests.kube.servers import ControlPlane
from tests.kube.worlds import World, world_on
from tests.system import stories


async def test_a_whole_life_under_the_shipped_rights(plane: ControlPlane) -> None:
    """Form, attach, fail over, change the layout, resize, detach, delete; nothing that was asked for was refused."""
    async with world_on(plane) as world:
        extender = await world.processes.extender()
        await extender.ready()
        controller = await world.processes.controller(elect=True, extender=f"http://127.0.0.1:{extender.serves}")
        await controller.ready()
        await live(world)
        for account in (CONTROLLER, AGENT, EXTENDER):
            assert world.audit.entries(user(account)), f"{account} asked for nothing"
            assert not world.audit.refused(user(account))
        written = Counter(entry.resource for entry in world.audit.writes(user(CONTROLLER)))
        assert written["drbdresources/status"] == written["lvmlogicalvolumes/status"] == 0
        assert written["replicatedvolumes/status"] > 0


async def live(world: World) -> None:
    """The life of one volume."""
    system = world.system
    await system.create_class(ftt=1, gmdr=1)
    await system.create_volume(max_attachments=2)
    await system.formed()
    home, other, *_ = await stories.diskful_nodes(system)
    attachment = await system.attach("vol", home)
    writer = await stories.start_writer(system, home)
    await stories.set_size(system, "96Mi")
    await acknowledging(writer)
    await world.lose_node(home)
    writer.abandon()
    await system.delete(ReplicatedVolumeAttachment, attachment)
    moved = await system.attach("vol", other)
    second = await stories.start_writer(system, other)
    system.cluster.restart_node(home)
    await stories.healthy_again(system)
    await stories.set_promise(system, 0, 1)
    await stories.reached(system, 0, 1, 120)
    await stories.set_promise(system, 1, 1)
    await stories.reached(system, 1, 1, 120)
    report = await second.stop()
    assert report.failed == 0
    await check_contents(system)
    await system.detach(moved)
    await system.delete(ReplicatedVolume, "vol")
    await system.gone(ReplicatedVolume, "vol")
    await system.check_no_orphans()
