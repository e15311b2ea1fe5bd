"""A whole life on a real API server, every process under the account and the rights that are shipped for it."""

from __future__ import annotations

from collections import Counter

from quorate.api.event import Event
from quorate.api.replicated_storage_class import ReplicatedStorageClass
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.verification.system.data import check_contents
from quorate.verification.system.writer import acknowledging
from tests.kube import grants
from tests.kube.accounts import AGENT, CONTROLLER, EXTENDER, user
from tests.kube.servers import ControlPlane
from tests.kube.worlds import World, world_on
from tests.system import stories

UNKNOWN = "live read of an object whose write was refused or had no answer (rule 2)"
RARE: dict[str, dict[grants.Grant, str]] = {
    CONTROLLER: {
        ("get", "drbdresourceoperations"): UNKNOWN,
        ("get", "drbdresources"): UNKNOWN,
        ("get", "lvmlogicalvolumes"): UNKNOWN,
        ("get", "nodes"): UNKNOWN,
        ("get", "replicatedstorageclasses"): UNKNOWN,
        ("get", "replicatedstoragepools"): UNKNOWN,
        ("get", "replicatedvolumeattachments"): UNKNOWN,
        ("get", "storageclasses"): UNKNOWN,
        ("delete", "drbdresourceoperations"): "a formation that starts again takes its old operations away",
        ("update", "replicatedvolumes/finalizers"): "asked by the admission of owner references, which is no request",
        ("update", "replicatedvolumereplicas/finalizers"): "as above",
    },
    AGENT: {
        ("get", "drbdresourceoperations"): UNKNOWN,
        ("get", "drbdresources"): UNKNOWN,
        ("get", "lvmlogicalvolumes"): UNKNOWN,
        ("get", "lvmvolumegroups"): UNKNOWN,
        ("get", "nodes"): UNKNOWN,
        ("get", "events"): "an event that is told again is counted",
        ("patch", "events"): "as above",
    },
    EXTENDER: {},
}
"""What is granted and need not show in one life, with the reason."""


async def test_a_whole_life_under_the_shipped_rights(plane: ControlPlane) -> None:
    """Nothing that was asked for was refused, nothing that is granted is idle, and what a person cares about was told."""
    async with world_on(plane) as world:
        extender = await world.processes.extender()
        await extender.ready()
        controller = await world.processes.controller(elect=True, extender=f"http://127.0.0.1:{extender.serves}")
        await controller.ready()
        uid = await live(world)
        await check_what_was_told(world, uid)
        for account in (CONTROLLER, AGENT, EXTENDER):
            assert world.audit.entries(user(account)), f"{account} asked for nothing"
            assert not world.audit.refused(user(account))
            idle = set(grants.granted(account)) - grants.used(world.audit.entries(user(account)))
            assert sorted(idle - set(RARE[account])) == [], f"{account} may do what it does not need"
        written = Counter(entry.resource for entry in world.audit.writes(user(CONTROLLER)))
        assert written["drbdresources/status"] == written["lvmlogicalvolumes/status"] == 0
        assert written["replicatedvolumes/status"] > 0


async def check_what_was_told(world: World, uid: str) -> None:
    """The Events about the volume; each state once, however long it lasted and however often it was looked at."""
    client = world.system.cluster.client
    told = [event for event in (await client.list(Event)).items if event.involved_object.uid == uid]
    times = {event.reason: event.count for event in told}
    assert times["Formed"] == 1
    assert {"Degraded", "ProtectionRestored", "ReplicaJoined", "ReplicaReplaced"} <= set(times)
    assert max(event.count for event in told) <= 3, "a state that lasts is told again and again"


async def live(world: World) -> str:
    """Form, attach, resize, fail over, change the layout there and back, detach, delete; the answer is the volume's uid."""
    system = world.system
    await system.create_class(ftt=1, gmdr=1)
    await system.create_volume(max_attachments=2)
    await system.formed()
    uid = (await system.get(ReplicatedVolume, "vol")).metadata.uid
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
    await system.delete(ReplicatedStorageClass, "fast")
    await system.gone(ReplicatedStorageClass, "fast")
    return uid
