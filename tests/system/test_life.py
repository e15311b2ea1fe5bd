"""The life of a volume in each of the seven layouts, thick and thin, on a whole simulated cluster."""

from __future__ import annotations

import pytest

from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.local.shape import Shape
from quorate.verification.system.system import System, SystemOptions, run_system
from quorate.verification.system.writer import acknowledging, stalled
from tests.system import stories
from tests.system.stories import LAYOUTS, layout_id

THICK = SystemOptions(shape=Shape(nodes=6, thin=False))
THIN = SystemOptions(shape=Shape(nodes=6, thin=True))


@pytest.mark.parametrize("options", [THIN, THICK], ids=["thin", "thick"])
@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_id)
def test_form_attach_write_grow_detach_delete(layout: tuple[int, int], options: SystemOptions) -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=layout[0], gmdr=layout[1])
        await system.create_volume()
        await system.formed()
        found = await system.get(ReplicatedVolume, "vol")
        assert found.status.membership_layout == layout_id(layout)
        home = (await stories.diskful_nodes(system))[0]
        attachment = await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        await system.delete(ReplicatedVolumeAttachment, attachment)
        await system.clock.sleep(10)
        _, reason, message = await stories.condition_of(system, attachment, "Attached")
        assert (reason, message) == ("Detaching", "Device in use, detach blocked")
        await stories.set_size(system, "96Mi")
        await acknowledging(writer)
        report = await writer.stop()
        assert report.failed == report.pauses == 0
        await system.gone(ReplicatedVolumeAttachment, attachment)
        await stories.end_of_story(system)

    run_system(story, options)


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_id)
def test_attach_on_a_node_without_a_copy(layout: tuple[int, int]) -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=layout[0], gmdr=layout[1])
        await system.create_volume()
        await system.formed()
        away = await stories.node_without_copy(system)
        assert away is not None
        attachment = await system.attach("vol", away)
        writer = await stories.start_writer(system, away)
        report = await writer.stop()
        assert report.failed == 0
        await system.detach(attachment)

        async def access_replica_is_gone() -> bool:
            return all(member.node_name != away for member in await stories.members(system))

        await system.until(access_replica_is_gone, 60, "the Access replica is gone")
        await stories.healthy_again(system)
        await stories.end_of_story(system)

    run_system(story, THIN)


@pytest.mark.parametrize("layout", LAYOUTS, ids=layout_id)
def test_second_attachment_turns_multiattach_on_and_off(layout: tuple[int, int]) -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=layout[0], gmdr=layout[1])
        await system.create_volume(max_attachments=2)
        await system.formed()
        first = (await stories.diskful_nodes(system))[0]
        second = await stories.node_without_copy(system)
        assert second is not None
        one = await system.attach("vol", first)
        two = await system.attach("vol", second)
        assert (await system.get(ReplicatedVolume, "vol")).status.datamesh.multiattach
        writer = await stories.start_writer(system, first)
        other = await stories.start_writer(system, second)
        await writer.stop()
        await other.stop()
        await system.detach(two)

        async def single() -> bool:
            return not (await system.get(ReplicatedVolume, "vol")).status.datamesh.multiattach

        await system.until(single, 60, "multiattach is off again")
        await system.detach(one)
        await stories.healthy_again(system)
        await stories.end_of_story(system)

    run_system(story, THIN)


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout[0]], ids=layout_id)
def test_losing_members_and_getting_them_back(layout: tuple[int, int]) -> None:
    """FTT members other than the writer's node: I/O goes on. One more: I/O stops, nothing is lost. Back: resync."""

    async def story(system: System) -> None:
        await system.create_class(ftt=layout[0], gmdr=layout[1])
        await system.create_volume()
        await system.formed()
        home, *others = await stories.diskful_nodes(system)
        await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        lost = others[: layout[0]]
        if layout == (1, 0):
            # The stock module keeps quorum when the tie-breaker goes after the other copy, not when it goes first.
            lost = [member.node_name for member in await stories.members(system) if member.type == "TieBreaker"]
        for node in lost:
            await system.cluster.crash_node(node)
            await acknowledging(writer, 10)
        everybody = [member.node_name for member in await stories.members(system)]
        one_more = next(node for node in everybody if node not in (home, *lost))
        await system.cluster.crash_node(one_more)
        await stalled(writer)
        for node in (*lost, one_more):
            system.cluster.restart_node(node)
        await acknowledging(writer, 10, seconds=300)
        report = await writer.stop()
        assert report.failed == 0
        await stories.healthy_again(system)
        await system.clock.sleep(120)
        await system.quiet()

    run_system(story, THIN)


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout[0]], ids=layout_id)
def test_attachment_moves_when_the_writers_node_is_lost(layout: tuple[int, int]) -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=layout[0], gmdr=layout[1])
        await system.create_volume(max_attachments=2)
        await system.formed()
        home, other, *_ = await stories.diskful_nodes(system)
        attachment = await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        await system.cluster.crash_node(home)
        writer.abandon()
        await system.delete(ReplicatedVolumeAttachment, attachment)
        moved = await system.attach("vol", other, seconds=900)
        second = await stories.start_writer(system, other)
        await acknowledging(second, 10)
        system.cluster.restart_node(home)
        await stories.healthy_again(system)
        await second.stop()
        await system.detach(moved)
        await stories.healthy_again(system)

    run_system(story, THIN)
