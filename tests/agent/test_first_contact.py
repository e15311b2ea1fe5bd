"""A promotion right after bring-up waits a bounded moment for the links that are being made (P6)."""

from __future__ import annotations

import asyncio

from quorate.agent.patience import FIRST_CONTACT
from quorate.api import conditions
from quorate.simulator.states import Role
from tests.agent.mesh import KERNEL_NAME, first_data, form
from tests.agent.world import World, run_world

CLIENT = 2


async def attach_client(world: World) -> None:
    """A diskless node is told its peers and its role in one step, as an attachment does."""
    await world.client.create(world.resource(CLIENT, diskful=False))

    async def addressed() -> bool:
        return bool((await world.drbdr(CLIENT)).status.addresses)

    await world.eventually(addressed, "the client has an address")
    for each in (0, 1):
        known = (await world.drbdr(each)).spec.peers
        await world.edit(each, peers=(*known, await world.peer(CLIENT, diskful=False)))
    peers = tuple([await world.peer(each) for each in (0, 1)])
    await world.edit(CLIENT, peers=peers, quorum=32, quorum_minimum_redundancy=1, role="Primary")


def role(world: World) -> Role:
    return world.cluster.node("n2").kernel.resource(KERNEL_NAME.format(CLIENT)).role


async def promoted(world: World) -> None:
    async def primary() -> bool:
        return role(world) is Role.PRIMARY

    await world.eventually(primary, "the client is Primary", within=60)


def disks(world: World) -> list[str]:
    return [str(world.cluster.node(f"n{i}").kernel.resource(KERNEL_NAME.format(i)).volumes[0].disk) for i in (0, 1)]


def test_a_client_that_is_promoted_at_once_outdates_nobody() -> None:
    """One link is slower than the other; without the wait the promotion goes out over the first and outdates n1."""

    async def story(world: World) -> None:
        await form(world, diskful=(0, 1))
        await first_data(world, 0, 0, 1)
        world.cluster.cut("n1", "n2")
        await attach_client(world)
        await asyncio.sleep(2)
        found = await world.drbdr(CLIENT)
        condition = conditions.get(found.status.conditions, "Configured")
        assert condition is not None
        assert (condition.reason, role(world)) == ("PrimaryFailed", Role.SECONDARY)
        assert "waits for the first contact with peer-1, for " in condition.message
        world.cluster.heal("n1", "n2")
        await promoted(world)
        assert disks(world) == ["UpToDate", "UpToDate"]

    run_world(story)


def test_a_dead_peer_is_not_waited_for_longer_than_stated() -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1))
        await first_data(world, 0, 0, 1)
        world.cluster.cut("n1", "n2")
        before = asyncio.get_running_loop().time()
        await attach_client(world)
        await promoted(world)
        assert FIRST_CONTACT <= asyncio.get_running_loop().time() - before < FIRST_CONTACT + 10

    run_world(story)
