"""Layout changes while attached, zones, rollouts with a budget, deletion with attachments present."""

from __future__ import annotations

import pytest

from quorate.api import conditions
from quorate.api.replicated_storage_class import ConfigurationRolloutStrategy, MaxParallel, ReplicatedStorageClass
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.value import replace
from quorate.local.shape import Shape
from quorate.verification.system.data import check_contents
from quorate.verification.system.system import System, SystemOptions, run_system
from quorate.verification.system.writer import acknowledging
from tests.system import stories

SEVEN = SystemOptions(shape=Shape(nodes=7))
WALK = (
    (0, 1),
    (1, 1),
    (1, 2),
    (2, 2),
    (2, 1),
    (1, 1),
    (1, 0),
    (0, 0),
    (1, 0),
    (1, 1),
    (2, 1),
    (2, 2),
    (1, 2),
    (1, 1),
    (0, 1),
    (0, 0),
)
"""Every edge between neighbouring layouts, up and down."""


@pytest.mark.parametrize("voter_mode", ["dynamic", "static"])
def test_every_neighbouring_layout_is_reached_while_writing(voter_mode: str) -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=0, gmdr=0)
        await system.create_volume()
        await system.formed()
        (home,) = await stories.diskful_nodes(system)
        attachment = await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        for ftt, gmdr in WALK:
            await stories.set_promise(system, ftt, gmdr)
            await stories.reached(system, ftt, gmdr)
            await acknowledging(writer)
            await check_contents(system)
        report = await writer.stop()
        assert report.failed == 0
        assert report.pauses == 0
        await system.detach(attachment)
        await stories.end_of_story(system)

    run_system(story, SystemOptions(shape=Shape(nodes=7, voter_mode=voter_mode)))


@pytest.mark.parametrize("seconds", [0.3, 1.0, 2.0, 4.0])
@pytest.mark.parametrize(("start", "detour"), [((1, 1), (2, 2)), ((2, 1), (1, 0)), ((1, 0), (1, 1)), ((0, 1), (0, 0))])
def test_changing_back_in_the_middle(start: tuple[int, int], detour: tuple[int, int], seconds: float) -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=start[0], gmdr=start[1])
        await system.create_volume()
        await system.formed()
        home, *_ = await stories.diskful_nodes(system)
        await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        await stories.set_promise(system, *detour)
        await system.clock.sleep(seconds)
        await stories.set_promise(system, *start)
        await stories.reached(system, *start)
        await acknowledging(writer)
        report = await writer.stop()
        assert report.failed == 0
        await stories.healthy_again(system)

    run_system(story, SEVEN)


@pytest.mark.parametrize(
    ("layout", "zones"), [((1, 0), 3), ((1, 1), 3), ((0, 1), 2), ((1, 2), 4), ((2, 1), 3), ((2, 1), 5), ((2, 2), 3)]
)
def test_transzonal_placement_spreads_over_the_zones(layout: tuple[int, int], zones: int) -> None:
    names = tuple(f"zone-{letter}" for letter in "abcde"[:zones])

    async def story(system: System) -> None:
        await system.create_class(ftt=layout[0], gmdr=layout[1], topology="TransZonal", zones=names)
        await system.create_volume()
        await system.formed()
        members = await stories.members(system)
        diskful = [member.zone for member in members if member.type == "Diskful"]
        limit = len(diskful) - (layout[1] + 1) if layout[0] else 1
        assert all(diskful.count(zone) <= max(limit, 1) for zone in names)
        assert {member.zone for member in members} <= set(names)

    run_system(story, SystemOptions(shape=Shape(nodes=10, zones=zones)))


def test_zonal_placement_stays_in_one_zone() -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=1, gmdr=1, topology="Zonal")
        await system.create_volume()
        await system.formed()
        assert len({member.zone for member in await stories.members(system)}) == 1

    run_system(story, SystemOptions(shape=Shape(nodes=9, zones=3)))


def test_class_edit_is_rolled_out_within_its_budget() -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=0, gmdr=0)

        def careful(found: ReplicatedStorageClass) -> ReplicatedStorageClass:
            strategy = ConfigurationRolloutStrategy(type="RollingUpdate", rolling_update=MaxParallel(max_parallel=2))
            return replace(found, spec=replace(found.spec, configuration_rollout_strategy=strategy))

        await system.edit(ReplicatedStorageClass, "fast", careful)
        names = [f"vol-{letter}" for letter in "abcdef"]
        for name in names:
            await system.create_volume(name)
        for name in names:
            await system.formed(name)
        await stories.set_promise(system, 1, 1)
        most = 0
        ours: list[ReplicatedVolume] = []
        for _ in range(2000):
            found = [await system.get(ReplicatedVolume, name) for name in names]
            ours = [v for v in found if v.status.configuration and v.status.configuration.failures_to_tolerate == 1]
            busy = [
                v
                for v in ours
                if not conditions.is_true(v.status.conditions, "MembershipLayoutConverged", v.metadata.generation)
            ]
            most = max(most, len(busy))
            if len(ours) == len(names) and not busy:
                break
            await system.clock.sleep(0.25)
        assert len(ours) == len(names), await system.describe()
        assert 1 <= most <= 2

    run_system(story, SEVEN)


def test_deletion_with_attachments_present_waits_for_the_device_and_leaves_nothing() -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=1, gmdr=1)
        await system.create_volume()
        await system.formed()
        home, *_ = await stories.diskful_nodes(system)
        attachment = await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        await system.delete(ReplicatedVolume, "vol")
        late = await system.create_attachment("vol", "node-7")
        await system.clock.sleep(20)
        await acknowledging(writer)
        assert (await stories.condition_of(system, late, "Attached"))[1] == "ReplicatedVolumeDeleting"
        await writer.stop()
        await system.delete(ReplicatedVolumeAttachment, attachment)
        await system.gone(ReplicatedVolume, "vol")
        await system.delete(ReplicatedVolumeAttachment, late)
        await system.gone(ReplicatedVolumeAttachment, late)
        await system.clock.sleep(60)
        await system.check_no_orphans()
        await system.quiet()

    run_system(story, SEVEN)
