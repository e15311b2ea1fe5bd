"""Several agents: quorum that is in force, voters that come and go, tie-breakers, faults."""

from __future__ import annotations

import asyncio

import pytest

from quorate.api import conditions
from quorate.api.drbd_resource import Peer
from quorate.api.quantity import Quantity
from quorate.api.value import replace
from tests.agent.mesh import KERNEL_NAME, Writer, configured, contents, first_data, form, join, promote, stands
from tests.agent.world import SIZE, World, run_world


async def reason(world: World, node_id: int) -> str:
    found = await world.drbdr(node_id)
    current = conditions.get(found.status.conditions, "Configured")
    return current.reason if current and current.observed_generation == found.metadata.generation else ""


def option(world: World, node_id: int, name: str = "quorum") -> str:
    resource = world.cluster.node(world.nodes[node_id]).kernel.resources[KERNEL_NAME.format(node_id)]
    return str(resource.options[name])


async def without(world: World, node_id: int, gone: int, *, quorum: int) -> None:
    found = await world.drbdr(node_id)
    peers = tuple(peer for peer in found.spec.peers if peer.node_id != gone)
    await world.edit(node_id, peers=peers, quorum=quorum)


def test_a_raise_that_a_primary_ignores_is_not_reported_as_configured() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        await world.crash("n2")

        async def lost() -> bool:
            return (await world.drbdr(0)).status.peers[1].connection_state != "Connected"

        await world.eventually(lost, "the loss is noticed")
        await world.edit(0, quorum=3)

        async def told() -> bool:
            return await reason(world, 0) == "QuorumNotEnforced"

        await world.eventually(told, "the agent tells that q=3 is stored and not in force")
        status = (await world.drbdr(0)).status
        assert status.quorum is True
        assert status.voter_facts is not None
        assert status.voter_facts.expected_quorum is False
        assert option(world, 0) == "3"
        world.boot("n2")
        await world.eventually(lambda: configured(world, 0), "with three voters the flag and the rule agree")

    run_world(story)


def test_majority_is_written_where_q_is_the_majority_and_a_number_elsewhere() -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1), tie_breakers=(2,))
        assert [option(world, each) for each in range(3)] == ["majority", "majority", "32"]
        await world.edit(0, quorum=1)
        await world.eventually(lambda: configured(world, 0), "configured")
        assert option(world, 0) == "1"

    run_world(story)


def test_two_diskful_and_a_tie_breaker_fail_over() -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1), tie_breakers=(2,))
        await first_data(world, 0, 0, 1)
        await promote(world, 0)
        writer = Writer(world, 0)
        for block in range(8):
            writer.write(block)
        await world.crash("n0")

        async def survives() -> bool:
            status = (await world.drbdr(1)).status
            return status.peers[0].connection_state != "Connected" and status.quorum is True

        await world.eventually(survives, "the survivor keeps quorum by the tie-breaker")
        await promote(world, 1)
        second = Writer(world, 1)
        second.write(100)
        assert second.acknowledged
        await world.edit(0, role="Secondary")
        world.boot("n0")

        async def back() -> bool:
            peers = {peer.node_id: peer for peer in (await world.drbdr(1)).status.peers}
            return peers[0].disk_state == "UpToDate"

        await world.eventually(back, "the old primary is synchronised")
        everything = {**writer.acknowledged, **second.acknowledged}
        assert contents(world, 0, everything) == everything
        assert contents(world, 1, everything) == everything

    run_world(story)


def test_tie_breakers_lose_and_regain_their_vote() -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1), tie_breakers=(2,))
        for votes in (False, True):
            for each in (0, 1):
                found = await world.drbdr(each)
                peers: tuple[Peer, ...] = tuple(
                    replace(peer, tie_breaker=votes) if peer.node_id == 2 else peer for peer in found.spec.peers
                )
                await world.edit(each, peers=peers)

            async def told(votes: bool = votes) -> bool:
                told = [(await world.drbdr(each)).status.peers[1].tie_breaker for each in (0, 1)]
                return told == [votes, votes] and await configured(world, 0) and await configured(world, 1)

            await world.eventually(told, f"vote {votes}")

    run_world(story)


def test_a_voter_leaves_and_is_forgotten_while_the_primary_writes() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        writer = Writer(world, 0)
        await world.edit(2, peers=(), quorum=32, quorum_minimum_redundancy=32)
        await without(world, 1, 2, quorum=2)
        await without(world, 0, 2, quorum=2)

        async def gone() -> bool:
            return all(
                [len((await world.drbdr(each)).status.peers) == 1 and await configured(world, each) for each in (0, 1)]
            )

        await world.eventually(gone, "n2 left")
        facts = (await world.drbdr(0)).status.voter_facts
        assert facts is not None
        assert facts.voters == 2
        # From two voters to one: the Primary refuses the plain disconnect while q is 2, so it is forced.
        await world.edit(1, peers=(), quorum=32, quorum_minimum_redundancy=32)
        await without(world, 0, 1, quorum=1)

        async def alone() -> bool:
            status = (await world.drbdr(0)).status
            return not status.peers and status.quorum is True and await configured(world, 0)

        await world.eventually(alone, "n0 is alone and quorate")
        writer.write(5)
        assert writer.acknowledged == {5: writer.acknowledged[5]}

    run_world(story)


def test_a_voter_removed_while_a_node_was_down_does_not_count_when_it_returns() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await world.crash("n1")
        await world.edit(2, peers=(), quorum=32, quorum_minimum_redundancy=32)
        await without(world, 0, 2, quorum=2)
        await without(world, 1, 2, quorum=2)
        world.boot("n1")

        async def two() -> bool:
            facts = [(await world.drbdr(each)).status.voter_facts for each in (0, 1)]
            return all(each is not None and each.voters == 2 for each in facts) and await stands(world, 1)

        await world.eventually(two, "two voters on both nodes")
        metadata = world.cluster.node("n1").execute(["drbdsetup", "status", "--json", KERNEL_NAME.format(1)]).stdout
        assert '"quorum": true' in metadata

    run_world(story)


def test_peers_can_be_taken_away_and_given_back() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        for each in range(3):
            await world.edit(each, peers=(), quorum=32)

        async def empty() -> bool:
            return all(
                [not (await world.drbdr(each)).status.peers and await configured(world, each) for each in range(3)]
            )

        await world.eventually(empty, "no peers")
        await join(world, (0, 1, 2))

        async def again() -> bool:
            return all([(await world.drbdr(each)).status.disk_state == "UpToDate" for each in range(3)])

        await world.eventually(again, "UpToDate again")

    run_world(story)


def test_two_primaries_are_allowed_on_both_ends_and_withdrawn() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        for each in range(3):
            await world.edit(each, allow_two_primaries=True)
        await promote(world, 1)
        await world.edit(1, role="Secondary")
        for each in range(3):
            await world.edit(each, allow_two_primaries=False)

        async def withdrawn() -> bool:
            active = [(await world.drbdr(each)).status.active_configuration for each in range(3)]
            return all(each is not None and each.allow_two_primaries is False for each in active)

        await world.eventually(withdrawn, "withdrawn")
        for each in range(3):
            await world.eventually(lambda each=each: stands(world, each), "connected")

    run_world(story)


def test_an_online_resize_of_three_replicas() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        for each in range(3):
            node = world.cluster.node(world.nodes[each])
            assert node.execute(["lvextend", "-L", "40M", f"vg/rv-{each}-disk"]).exit_code == 0
        for each in range(3):
            await world.edit(each, size=Quantity.of(2 * SIZE))

        async def grown() -> bool:
            sizes = [(await world.drbdr(each)).status.size for each in range(3)]
            return all(size is not None and size.value >= 2 * SIZE for size in sizes)

        await world.eventually(grown, "all grew")

    run_world(story)


def test_a_failed_disk_goes_and_comes_back() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        writer = Writer(world, 0)
        world.cluster.fail_disk("n0", "/dev/vg/rv-0-disk")
        writer.write(1)

        async def diskless() -> bool:
            return (await world.drbdr(0)).status.disk_state == "Diskless"

        await world.eventually(diskless, "the disk is gone")
        assert writer.acknowledged
        assert await reason(world, 0) != "Configured"
        writer.write(2)
        world.cluster.fail_disk("n0", "/dev/vg/rv-0-disk", failed=False)

        async def healed() -> bool:
            return (await world.drbdr(0)).status.disk_state == "UpToDate" and await configured(world, 0)

        await world.eventually(healed, "attached and synchronised again", within=300)
        assert contents(world, 0, writer.acknowledged) == writer.acknowledged

    run_world(story)


@pytest.mark.parametrize("restarts", [1, 3])
def test_an_agent_that_restarts_changes_nothing_in_the_kernel(restarts: int) -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        writer = Writer(world, 0)
        before = [(await world.drbdr(each)).status for each in range(3)]
        for _ in range(restarts):
            await world.stop_task("n0")
            world.start_agent("n0")
            await asyncio.sleep(20)
        assert [replace((await world.drbdr(each)).status, device_open=None) for each in range(3)] == [
            replace(each, device_open=None) for each in before
        ]
        writer.write(3)
        assert writer.acknowledged

    run_world(story)


def test_a_wrong_secret_ends_in_patience_and_heals() -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1))
        found = await world.drbdr(0)
        kernel = world.cluster.node("n1")
        kernel.execute(["drbdsetup", "disconnect", KERNEL_NAME.format(1), "0"])
        await world.edit(0, peers=tuple(replace(peer, shared_secret_alg="SHA1") for peer in found.spec.peers))
        await asyncio.sleep(120)
        started = world.agents["n0"].broker.state().started
        await asyncio.sleep(60)
        # Tries grow apart: at most a few commands per minute, not one per event.
        assert world.agents["n0"].broker.state().started - started < 60
        await world.edit(0, peers=found.spec.peers)
        await world.eventually(lambda: stands(world, 0), "connected again", within=300)

    run_world(story)


def test_a_stale_loss_of_quorum_is_woken_after_forgetting_a_peer() -> None:
    """S9: the flag stays false after forget-peer until the next state change; the agent makes the kernel look again."""

    async def story(world: World) -> None:
        await form(world, diskful=(0, 1))
        await first_data(world, 0, 0, 1)
        await world.crash("n1")

        async def lost() -> bool:
            return (await world.drbdr(0)).status.quorum is False

        await world.eventually(lost, "quorum is lost")
        await without(world, 0, 1, quorum=1)

        async def regained() -> bool:
            return (await world.drbdr(0)).status.quorum is True and await configured(world, 0)

        await world.eventually(regained, "quorum of one")

    run_world(story)


def test_a_wrong_path_is_replaced() -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1))
        await first_data(world, 0, 0, 1)
        name = KERNEL_NAME.format(0)
        node = world.cluster.node("n0")
        for words in (
            f"disconnect {name} 1",
            f"del-path {name} 1 10.0.0.1:7000 10.0.0.2:7000",
            f"new-path {name} 1 10.0.0.1:7000 10.0.0.2:7777",
            f"connect {name} 1",
        ):
            node.execute(["drbdsetup", *words.split()])
        await world.eventually(lambda: stands(world, 0), "connected over the right path")

        async def one_path() -> bool:
            paths = [path.remote for path in node.kernel.resources[name].connections[1].paths]
            return len(paths) == 1 and paths[0].endswith(":7000")

        await world.eventually(one_path, "exactly one path")

    run_world(story)


def test_a_local_port_in_use_is_replaced_and_told() -> None:
    async def story(world: World) -> None:
        node = world.cluster.node("n0")
        for words in (
            "new-resource theirs 5",
            "new-minor theirs 900 0",
            "new-peer theirs 6 --_name=x",
            "new-path theirs 6 10.0.0.1:7000 10.0.0.9:7000",
        ):
            assert node.execute(["drbdsetup", *words.split()]).exit_code == 0
        await form(world, diskful=(0, 1))
        ports = [each.address.port for each in (await world.drbdr(0)).status.addresses]
        assert ports == [7001]
        assert "theirs" in node.kernel.resources

    run_world(story)


def test_invalidate_fetches_everything_from_a_peer_again() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        writer = Writer(world, 0)
        for block in range(5):
            writer.write(block)
        world.cluster.node("n2").lvm.disk("/dev/vg/rv-2-disk").write(3, 12345)
        ended = await world.operate("again", 2, "Invalidate")
        assert ended.status.phase == "Succeeded", ended.status.message

        async def healed() -> bool:
            return contents(world, 2, writer.acknowledged) == writer.acknowledged

        await world.eventually(healed, "the copy is right again", within=300)

    run_world(story)


@pytest.mark.parametrize("after", range(1, 40, 3))
def test_an_agent_killed_after_any_number_of_commands_finishes_its_work(after: int) -> None:
    async def story(world: World) -> None:
        await form(world, diskful=(0, 1))
        await first_data(world, 0, 0, 1)
        await world.client.create(world.volume("n2", "rv-2-disk"))
        killed = world.agents["n2"]
        before = killed.broker.state().started
        await world.client.create(world.resource(2))
        for _ in range(2000):
            if killed.broker.state().started >= before + after:
                break
            await asyncio.sleep(0.004)
        await world.stop_task("n2")
        await asyncio.sleep(3)
        world.start_agent("n2")

        async def addressed() -> bool:
            return bool((await world.drbdr(2)).status.addresses)

        await world.eventually(addressed, "addresses")
        await join(world, (0, 1, 2))

        async def synchronised() -> bool:
            return (await world.drbdr(2)).status.disk_state == "UpToDate"

        await world.eventually(synchronised, "the third replica is UpToDate")

    run_world(story)


def test_a_refused_promotion_is_told_repeated_patiently_and_succeeds_with_quorum() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await world.crash("n1")
        await world.crash("n2")

        async def lost() -> bool:
            return (await world.drbdr(0)).status.quorum is False

        await world.eventually(lost, "quorum is lost")
        await world.edit(0, role="Primary")

        async def told() -> bool:
            return await reason(world, 0) == "PrimaryFailed"

        await world.eventually(told, "the refusal is told")
        started = world.agents["n0"].broker.state().started
        await asyncio.sleep(60)
        assert world.agents["n0"].broker.state().started - started < 40
        world.boot("n1")

        async def promoted() -> bool:
            active = (await world.drbdr(0)).status.active_configuration
            return active is not None and active.role == "Primary" and await configured(world, 0)

        await world.eventually(promoted, "promoted with quorum")

    run_world(story)


def test_a_device_that_is_open_is_demoted_once_it_is_closed() -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        await promote(world, 0)
        writer = Writer(world, 0)
        await world.edit(0, role="Secondary")

        async def told() -> bool:
            return await reason(world, 0) == "SecondaryFailed"

        await world.eventually(told, "the refusal is told")
        await asyncio.sleep(100)
        writer.close()

        async def demoted() -> bool:
            active = (await world.drbdr(0)).status.active_configuration
            return active is not None and active.role == "Secondary" and await configured(world, 0)

        await world.eventually(demoted, "demoted at once when closed", within=5)

    run_world(story)


@pytest.mark.parametrize(
    ("differs", "message"), [(None, "2 peers compared, no difference"), (2, "out of sync: peer-2: 4096 bytes")]
)
def test_verify_compares_with_every_peer_and_tells_what_differs(differs: int | None, message: str) -> None:
    async def story(world: World) -> None:
        await form(world)
        await first_data(world, 0, 0, 1, 2)
        if differs is not None:
            name = f"/dev/vg/rv-{differs}-disk"
            world.cluster.node(world.nodes[differs]).lvm.disk(name).write(3, 99)
        ended = await world.operate("compare", 0, "Verify")
        assert ended.status.phase == "Succeeded", ended.status.message
        assert ended.status.message == message

    run_world(story)
