"""Flows of one node (facts/agent 8), through the API: each starts an agent on a simulated node and edits objects."""

from __future__ import annotations

import asyncio

import pytest

from quorate.api import conditions
from quorate.api.drbd_resource import DRBDResource
from quorate.api.labels import ANNOTATION_DRBD_VERSION, ANNOTATION_VOTER_MODE, FINALIZER_AGENT
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.meta import ObjectMeta
from quorate.api.node import Node
from quorate.api.pod import Pod
from quorate.api.quantity import Quantity
from quorate.api.value import replace
from quorate.api.wire import merge_patch
from tests.agent.single import (
    DISK,
    NAME,
    becomes,
    condition,
    configured,
    create,
    grow_volume,
    held,
    kernel,
    one,
    role,
    sh,
    with_data,
)
from tests.agent.world import LOWER, MIB, NAMESPACE, SIZE, World


def test_diskless_first_and_diskful_later() -> None:
    async def story(world: World) -> None:
        await world.client.create(world.resource(0, diskful=False))
        await configured(world)
        found = await world.drbdr(0)
        assert found.status.addresses
        assert found.status.active_configuration is not None
        assert found.status.active_configuration.type == "Diskless"
        await world.client.create(world.volume("n0", "rv-0-disk"))
        await world.edit(0, type="Diskful", lvm_logical_volume_name="rv-0-disk", size=Quantity.of(SIZE))

        async def sized() -> bool:
            size = (await world.drbdr(0)).status.size
            return size is not None and size.value > 0

        await world.eventually(sized, "the disk is attached")
        await configured(world)
        assert await held(world)

    one(story)


def test_diskful_to_diskless_and_back_keeps_the_disk_and_its_identity() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        identity = (await world.drbdr(0)).status.device_uuid
        await world.edit(0, type="Diskless", lvm_logical_volume_name="", size=None)

        async def detached() -> bool:
            status = (await world.drbdr(0)).status
            active = status.active_configuration
            return active is not None and (active.type, active.llv_finalizers_to_release) == ("Diskless", ())

        await world.eventually(detached, "detached and released")
        status = (await world.drbdr(0)).status
        assert (status.disk_state, status.size) == ("Diskless", None)
        assert not await held(world)
        await world.edit(0, type="Diskful", lvm_logical_volume_name="rv-0-disk", size=Quantity.of(SIZE))

        async def back() -> bool:
            return (await world.drbdr(0)).status.disk_state == "UpToDate"

        await world.eventually(back, "attached again")
        assert (await world.drbdr(0)).status.device_uuid == identity
        assert await held(world)

    one(story)


def test_maintenance_only_observes_and_holds_deletion() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        await world.edit(0, maintenance="NoResourceReconciliation", quorum=3)
        await becomes(world, "False", "InMaintenance")
        status = (await world.drbdr(0)).status
        assert status.disk_state == "UpToDate"
        assert status.active_configuration is not None
        assert (status.active_configuration.quorum_policy, status.active_configuration.quorum) == ("number", 1)
        await world.client.delete(await world.drbdr(0))
        await asyncio.sleep(30)
        assert NAME in kernel(world)
        assert await held(world)
        await world.edit(0, maintenance="")
        await world.eventually(lambda: world.gone(DRBDResource, "rv-0"), "torn down")
        assert kernel(world) == {}
        assert not await held(world)

    one(story)


def test_down_and_up_again() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        for _ in range(2):
            await world.edit(0, state="Down")

            async def down() -> bool:
                found = await world.drbdr(0)
                return FINALIZER_AGENT not in found.metadata.finalizers and not await held(world)

            await world.eventually(down, "down and released")
            found = await world.drbdr(0)
            assert found.status.active_configuration is not None
            assert (found.status.active_configuration.state, found.status.addresses) == ("Down", ())
            assert kernel(world) == {}
            await world.edit(0, state="Up")

            async def up() -> bool:
                found = await world.drbdr(0)
                return found.status.disk_state == "UpToDate" and FINALIZER_AGENT in found.metadata.finalizers

            await world.eventually(up, "up again")
            assert await held(world)

    one(story)


def test_a_backing_volume_that_is_being_deleted_stays_attached() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        await world.client.delete(await world.client.get(LVMLogicalVolume, "rv-0-disk"))
        await asyncio.sleep(30)
        assert await condition(world) == ("True", "Configured")
        assert (await world.drbdr(0)).status.size is not None
        await world.client.delete(await world.drbdr(0))
        await world.eventually(lambda: world.gone(DRBDResource, "rv-0"), "the resource is gone")
        await world.eventually(lambda: world.gone(LVMLogicalVolume, "rv-0-disk"), "the volume is gone")
        assert world.cluster.node("n0").lvm.volume(DISK) is None

    one(story)


def test_resize_grows_after_the_volume() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        await world.edit(0, role="Primary")
        await configured(world)
        before = (await world.drbdr(0)).status.size
        await world.edit(0, size=Quantity.of(2 * SIZE))
        await asyncio.sleep(15)
        # 111: the volume has not grown yet; that is no failure, only not done.
        assert await condition(world) == ("True", "Configured")
        assert (await world.drbdr(0)).status.size == before
        await grow_volume(world, 2 * LOWER)

        async def grown() -> bool:
            size = (await world.drbdr(0)).status.size
            return size is not None and size.value >= 2 * SIZE

        await world.eventually(grown, "grown")
        await configured(world)

    one(story)


def test_an_object_deleted_by_force_and_made_again_takes_over() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        identity, addresses = (await world.drbdr(0)).status.device_uuid, (await world.drbdr(0)).status.addresses
        await world.stop_task("n0")
        found = await world.drbdr(0)
        bare = replace(found, metadata=replace(found.metadata, finalizers=()))
        await world.client.patch(found, merge_patch(found, bare))
        await world.client.delete(await world.drbdr(0))
        await world.client.create(world.resource(0, quorum=1, quorum_minimum_redundancy=1))
        world.start_agent("n0")
        await configured(world)
        status = (await world.drbdr(0)).status
        assert (status.disk_state, status.addresses) == ("UpToDate", addresses)
        assert status.device_uuid in ("", identity)

    one(story)


def test_an_orphan_is_taken_down_and_a_foreign_resource_is_left_alone() -> None:
    async def story(world: World) -> None:
        sh(world, "drbdsetup new-resource theirs 3")
        sh(world, "drbdsetup new-minor theirs 77 0")
        await with_data(world)
        found = await world.drbdr(0)
        bare = replace(found, metadata=replace(found.metadata, finalizers=()))
        await world.client.patch(found, merge_patch(found, bare))
        await world.client.delete(await world.drbdr(0))

        async def cleared() -> bool:
            return NAME not in kernel(world)

        await world.eventually(cleared, "the orphan is gone")
        assert list(kernel(world)) == ["theirs"]
        assert world.cluster.host("n0").read_link("/dev/sdsrv/rv-0") is None

    one(story)


@pytest.mark.parametrize("exists", [True, False])
def test_adoption_renames_and_clears_the_field(exists: bool) -> None:
    async def story(world: World) -> None:
        await with_data(world)
        await world.edit(0, maintenance="NoResourceReconciliation")
        await becomes(world, "False", "InMaintenance")
        if exists:
            assert sh(world, f"drbdsetup rename-resource {NAME} old-name").exit_code == 0
        await world.edit(0, actual_name_on_the_node="old-name")
        await asyncio.sleep(5)
        assert await condition(world) == ("False", "InMaintenance")
        assert ("old-name" in kernel(world)) is exists
        await world.edit(0, maintenance="")
        await configured(world)
        assert (await world.drbdr(0)).spec.actual_name_on_the_node == ""
        assert list(kernel(world)) == [NAME]
        assert (await world.drbdr(0)).status.disk_state == "UpToDate"

    one(story)


def test_a_disk_with_another_identity_is_refused_until_it_is_back() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        identity = (await world.drbdr(0)).status.device_uuid
        await world.edit(0, state="Down")

        async def down() -> bool:
            return kernel(world) == {}

        await world.eventually(down, "down")
        foreign = f"drbdmeta --force 0 v09 {DISK} internal write-dev-uuid 00000000DEADBEEF"
        sh(world, f"drbdmeta --force 0 v09 {DISK} internal apply-al")
        assert sh(world, foreign).exit_code == 0
        await world.edit(0, state="Up")
        await becomes(world, "False", "ForeignDiskDetected")
        assert (await world.drbdr(0)).status.disk_state == "Diskless"
        assert sh(world, foreign.replace("00000000DEADBEEF", identity)).exit_code == 0

        async def healed() -> bool:
            return (await world.drbdr(0)).status.disk_state == "UpToDate"

        await world.eventually(healed, "attached once it is ours again")

    one(story)


def test_ports_are_kept_distinct_and_replaced_when_the_kernel_refuses() -> None:
    async def story(world: World) -> None:
        for number in range(4):
            spec = replace(world.resource(0, diskful=False).spec, node_id=number)
            await world.client.create(DRBDResource(metadata=ObjectMeta(name=f"other-{number}"), spec=spec))

        async def addressed() -> bool:
            found = await world.client.list(DRBDResource)
            return all(each.status.addresses for each in found.items)

        await world.eventually(addressed, "addresses")
        found = await world.client.list(DRBDResource)
        ports = [each.status.addresses[0].address.port for each in found.items]
        assert sorted(ports) == [7000, 7001, 7002, 7003]
        await world.stop_task("n0")
        world.start_agent("n0")
        await asyncio.sleep(10)
        again = await world.client.list(DRBDResource)
        assert [each.status.addresses[0].address.port for each in again.items] == ports

    one(story)


def test_a_hung_command_does_not_stop_other_resources_and_is_not_repeated() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        host = world.cluster.host("n0")
        host.hang.add("resource-options")
        await world.edit(0, quorum=3)

        async def told() -> bool:
            current = conditions.get((await world.drbdr(0)).status.conditions, "Configured")
            return current is not None and current.status == "False" and "resource-options" in current.message

        await world.eventually(told, "the hung command is named")
        spec = replace(world.resource(0, diskful=False).spec, node_id=1)
        host.hang.clear()
        await world.client.create(DRBDResource(metadata=ObjectMeta(name="other"), spec=spec))

        async def fine() -> bool:
            status = (await world.client.get(DRBDResource, "other")).status
            return conditions.is_true(status.conditions, "Configured")

        await world.eventually(fine, "the other resource is configured", within=10)
        assert world.agents["n0"].broker.state().stranded == 1
        await world.eventually(lambda: _is(world, "True"), "recovered after the hang", within=200)

    async def _is(world: World, status: str) -> bool:
        return (await condition(world))[0] == status

    one(story)


def test_a_wedged_node_opens_the_breaker_and_says_so() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        world.cluster.host("n0").hang.update({"drbdsetup", "drbdmeta"})
        await world.edit(0, quorum=3)

        async def said() -> bool:
            current = conditions.get((await world.drbdr(0)).status.conditions, "Configured")
            return current is not None and current.status == "False" and "still running" in current.message

        await world.eventually(said, "the condition says that commands hang")
        started = world.agents["n0"].broker.state().started
        await asyncio.sleep(40)
        assert world.agents["n0"].broker.state().started - started < 12
        world.cluster.host("n0").hang.clear()
        await world.eventually(lambda: _settled(world), "healed", within=300)

    async def _settled(world: World) -> bool:
        return (await condition(world))[0] == "True"

    one(story)


def test_a_lost_event_line_is_found_by_the_rescan() -> None:
    async def story(world: World) -> None:
        await with_data(world)
        await asyncio.sleep(5)
        for feed in world.cluster._feeds["n0"]:
            feed.lose = 3
        sh(world, f"drbdsetup primary {NAME}")
        await asyncio.sleep(5)
        assert role(world) == "Primary"

        async def demoted() -> bool:
            return role(world) == "Secondary"

        await world.eventually(demoted, "the agent noticed a role nobody asked for", within=130)

    one(story)


def test_few_writes_and_none_at_rest() -> None:
    async def story(world: World) -> None:
        await create(world)
        version = int((await world.drbdr(0)).metadata.resource_version)
        found = await world.drbdr(0)
        # Creation, own finalizer, addresses with the write-ahead list, report.
        assert found.metadata.generation == 1
        await asyncio.sleep(10)
        rest = world.server.store.version
        await asyncio.sleep(300)
        assert world.server.store.version == rest
        assert int((await world.drbdr(0)).metadata.resource_version) == version

    one(story)


def test_the_node_tells_version_and_voter_mode_and_the_pod_is_ready() -> None:
    async def story(world: World) -> None:
        async def told() -> bool:
            return ANNOTATION_DRBD_VERSION in (await world.client.get(Node, "n0")).metadata.annotations

        await world.eventually(told, "annotations")
        node = await world.client.get(Node, "n0")
        assert node.metadata.annotations[ANNOTATION_VOTER_MODE] == "dynamic"
        assert node.metadata.labels["topology.kubernetes.io/zone"] == "zone-0"
        assert conditions.is_true(node.status.conditions, "Ready")
        pod = await world.client.get(Pod, "agent-n0", NAMESPACE)
        assert conditions.is_true(pod.status.conditions, "Ready")
        await world.crash("n0")
        await asyncio.sleep(60)
        node = await world.client.get(Node, "n0")
        assert conditions.status_of(node.status.conditions, "Ready") == "Unknown"
        pod = await world.client.get(Pod, "agent-n0", NAMESPACE)
        assert conditions.is_false(pod.status.conditions, "Ready")

    one(story)


def test_a_logical_volume_of_another_incarnation_is_never_touched() -> None:
    async def story(world: World) -> None:
        created = sh(world, "lvcreate -ay -n vg/rv-0-disk -L 20480k -y --addtag quorate.llv-uid=somebody-else")
        assert created.exit_code == 0
        world.cluster.node("n0").lvm.disk(DISK).write(3, 99)
        await world.client.create(world.volume("n0", "rv-0-disk"))

        async def failed() -> bool:
            return (await world.client.get(LVMLogicalVolume, "rv-0-disk")).status.phase == "Failed"

        await world.eventually(failed, "refused")
        await world.client.delete(await world.client.get(LVMLogicalVolume, "rv-0-disk"))
        await world.eventually(lambda: world.gone(LVMLogicalVolume, "rv-0-disk"), "the object goes")
        assert world.cluster.node("n0").lvm.disk(DISK).read(3) == 99

    one(story)


def test_a_volume_that_does_not_fit_fails_with_the_text_of_lvm() -> None:
    async def story(world: World) -> None:
        await world.client.create(world.volume("n0", "rv-0-disk", 500 * MIB))

        async def failed() -> bool:
            status = (await world.client.get(LVMLogicalVolume, "rv-0-disk")).status
            return status.phase == "Failed" and "insufficient free space" in status.reason

        await world.eventually(failed, "the reason is told")

    one(story)
