"""The traps of facts/agent 10, one by one (T3, T4, T10 and T11 also in the tests of parsers, plan and broker)."""

from __future__ import annotations

import asyncio

import pytest

from quorate.agent.intended import Settings
from quorate.agent.plan import compute_plan
from quorate.api.drbd_resource import DRBDResource
from quorate.api.lvm_volume_group import LVMVolumeGroup
from quorate.api.value import SharedSecret
from quorate.api.value import replace as with_fields
from quorate.simulator.states import Link
from tests.agent.builders import drbdr, peer
from tests.agent.mesh import KERNEL_NAME, configured, first_data, form, promote
from tests.agent.single import NAME, becomes, create, held, one, sh
from tests.agent.test_plan import actual, actual_peer, intended, lines, seen, verbs
from tests.agent.world import World, run_world


def test_t1_role_and_remote_read_of_peers_are_filled() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        reported = {entry.node_id: entry for entry in (await world.drbdr(1)).status.peers}
        assert (reported[0].role, reported[2].role) == ("Primary", "Secondary")
        assert all(entry.allow_remote_read for entry in reported.values())

    run_world(story)


def test_t2_a_paused_resync_is_acted_on() -> None:
    wanted = with_fields(peer(1), pause_sync=True)
    mesh = drbdr(0, peers=[wanted], quorum=2, redundancy=1)
    plan = compute_plan(seen(actual(actual_peer(1), quorum="2", redundancy="1")), intended(mesh))
    assert verbs(plan) == ["pause-sync"]
    paused = actual_peer(1, resync_suspended="user")
    back = drbdr(0, peers=[peer(1)], quorum=2, redundancy=1)
    assert verbs(compute_plan(seen(actual(paused, quorum="2", redundancy="1")), intended(back))) == ["resume-sync"]


def test_t3_a_disconnected_diskless_peer_is_not_reported_as_diskful() -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1), tie_breakers=(2,))
        await world.crash("n2")
        await asyncio.sleep(60)
        reported = {entry.node_id: entry.type for entry in (await world.drbdr(0)).status.peers}
        assert reported == {1: "Diskful", 2: "Diskless"}

    run_world(story)


def test_t5_a_changed_backing_disk_is_detached_and_attached_without_another_push() -> None:
    async def story(world: World) -> None:
        await create(world, quorum=1, redundancy=1)
        await world.client.create(world.volume("n0", "other-disk"))
        await world.edit(0, lvm_logical_volume_name="other-disk")

        async def swapped() -> bool:
            volume = world.cluster.node("n0").kernel.resource(NAME).volumes[0]
            return volume.backing is not None and volume.backing.path == "/dev/vg/other-disk"

        await world.eventually(swapped, "the other disk is attached")

    one(story)


def test_t6_a_voter_beside_a_tie_breaker_leaves_a_stock_kernel() -> None:
    """With a number the leave is refused (-10, -25); `majority` is what the agent writes there."""

    async def story(world: World) -> None:
        await form(world, diskful=(0, 1), tie_breakers=(2,))
        await first_data(world, 0, 0, 1)
        await promote(world, 0)
        await world.edit(1, state="Down")

        async def gone() -> bool:
            return not world.cluster.node("n1").kernel.resources

        await world.eventually(gone, "the voter has left")
        assert world.cluster.node("n0").kernel.resource(KERNEL_NAME.format(0)).volumes[0].quorum

    run_world(story)


@pytest.mark.parametrize(("wanted", "expected"), [(False, []), (True, ["disk-options 3 --non-voting=yes"])])
def test_t7_an_option_of_the_patched_module_is_passed_only_where_it_differs(wanted: bool, expected: list[str]) -> None:
    mesh = drbdr(0, quorum=1, redundancy=1)
    mesh = with_fields(mesh, spec=with_fields(mesh.spec, non_voting=wanted))
    plan = compute_plan(seen(actual(quorum="1", redundancy="1")), intended(mesh))
    assert [line.removeprefix("drbdsetup ") for line in lines(plan)] == expected


def test_t7_a_stock_module_says_that_it_lacks_the_option() -> None:
    async def story(world: World) -> None:
        await create(world, quorum=1, redundancy=1)
        await world.edit(0, non_voting=True)
        await becomes(world, "False", "DiskOptionsFailed")

    one(story)


def test_t8_two_specs_that_disagree_for_a_moment_settle_when_they_agree() -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1))
        await world.edit(0, allow_two_primaries=True)
        await asyncio.sleep(5)
        await world.edit(1, allow_two_primaries=True)

        async def both() -> bool:
            return await configured(world, 0) and await configured(world, 1)

        await world.eventually(both, "both configured")
        ends = [world.cluster.node(f"n{i}").kernel.resource(KERNEL_NAME.format(i)).connections[1 - i] for i in (0, 1)]
        assert [(end.link, end.two_primaries) for end in ends] == [(Link.CONNECTED, True), (Link.CONNECTED, True)]

    run_world(story)


def test_t9_the_verification_algorithm_is_configurable() -> None:
    mesh = drbdr(0, peers=[peer(1)], quorum=2, redundancy=1)
    found = seen(actual(quorum="2", redundancy="1"))
    assert (
        "--verify-alg=crc32c" in lines(compute_plan(found, intended(mesh, settings=Settings(verify_alg="crc32c"))))[0]
    )


@pytest.mark.parametrize(
    ("mesh", "reason", "text"),
    [
        pytest.param(
            drbdr(0, peers=[with_fields(peer(1), shared_secret=SharedSecret("x" * 64))]),
            "NewPeerFailed",
            "the shared secret of peer-1 has 64 characters, DRBD takes 63",
            id="secret",
        ),
        pytest.param(
            with_fields(drbdr(0), metadata=with_fields(drbdr(0).metadata, name="x" * 122)),
            "NewResourceFailed",
            "the resource name has 128 characters, DRBD takes 127",
            id="name",
        ),
    ],
)
def test_t12_what_the_api_takes_and_drbd_does_not_is_said_before_any_command(
    mesh: DRBDResource, reason: str, text: str
) -> None:
    plan = compute_plan(seen(None), intended(mesh))
    assert (plan.steps, [(each.reason, each.message) for each in plan.problems]) == ((), [(reason, text)])


def test_t13_an_established_path_is_not_deleted_before_another_stands() -> None:
    moved = with_fields(peer(1), paths=(with_fields(peer(1).paths[0], address=peer(3).paths[0].address),))
    mesh = drbdr(0, peers=[moved], quorum=2, redundancy=1)
    plan = compute_plan(seen(actual(actual_peer(1), quorum="2", redundancy="1")), intended(mesh))
    assert verbs(plan) == ["new-path"]


def test_t14_a_disk_nobody_can_name_keeps_every_finalizer() -> None:
    """The group of the attached disk cannot be looked up, and the spec names another volume already."""

    async def story(world: World) -> None:
        await create(world, quorum=1, redundancy=1)
        assert await held(world)
        await world.edit(0, maintenance="NoResourceReconciliation")
        group = await world.client.get(LVMVolumeGroup, "vg-n0")
        await world.client.delete(group)
        await world.edit(0, lvm_logical_volume_name="other-disk")
        await asyncio.sleep(30)
        assert await held(world)

    one(story)


def test_t15_a_port_that_the_kernel_refuses_is_replaced() -> None:
    """The check by binding is racy by nature; (102) is what counts."""

    async def story(world: World) -> None:
        for line in ("new-resource theirs 5", "new-minor theirs 900 0", "new-peer theirs 6 --_name=x"):
            assert sh(world, f"drbdsetup {line}").exit_code == 0
        assert sh(world, "drbdsetup new-path theirs 6 10.0.0.1:7000 10.0.0.9:7000").exit_code == 0
        await create(world, quorum=1, redundancy=1)
        ports = [entry.address.port for entry in (await world.drbdr(0)).status.addresses]
        assert ports
        assert 7000 not in ports

    one(story)
