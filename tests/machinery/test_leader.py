"""Leader election: who holds the lease, and who must stop."""

from __future__ import annotations

import asyncio

import pytest

from quorate.api.lease import Lease
from quorate.machinery.client import Client
from quorate.machinery.faults import FaultPlan, FaultTransport
from quorate.machinery.leader import Election, LeaderElector, LeadershipLost
from quorate.machinery.machinery_metrics import MachineryMetrics
from quorate.machinery.metrics import Registry
from tests.machinery.world import World, virtually


class Candidate:
    """One process of the election."""

    def __init__(self, world: World, name: str) -> None:
        self.transport: FaultTransport = world.transport()
        self.metrics = MachineryMetrics(Registry())
        client = Client(self.transport, world.clock, self.metrics)
        self.elector = LeaderElector(
            Election("lease", "kube-system", name), client, world.clock, self.metrics, world.log
        )
        self.acquired_at: float | None = None
        self.lost_at: float | None = None
        self._world = world

    async def run(self) -> None:
        await self.elector.acquire()
        self.acquired_at = self._world.clock.now()
        try:
            await self.elector.hold()
        except LeadershipLost:
            self.lost_at = self._world.clock.now()
            raise


async def holder(world: World) -> str:
    return (await world.client.get(Lease, "lease", "kube-system")).spec.holder_identity


def test_the_first_takes_it_and_keeps_it_the_second_waits() -> None:
    async def main(world: World) -> None:
        first, second = Candidate(world, "first"), Candidate(world, "second")
        tasks = [asyncio.create_task(first.run()), asyncio.create_task(second.run())]
        await world.clock.sleep(300)
        assert await holder(world) == "first"
        assert first.elector.leading()
        assert not second.elector.leading()
        assert (first.metrics.leader.value("lease"), second.metrics.leader.value("lease")) == (1, 0)
        for task in tasks:
            task.cancel()
            await asyncio.wait((task,))

    virtually(main)


def test_a_leader_that_cannot_renew_stops_after_ten_seconds_and_is_followed_after_fifteen() -> None:
    async def main(world: World) -> None:
        first, second = Candidate(world, "first"), Candidate(world, "second")
        tasks = [asyncio.create_task(first.run()), asyncio.create_task(second.run())]
        await world.clock.sleep(30)
        cut_at = world.clock.now()
        first.transport.plan = FaultPlan(fail_before=1.0)
        await world.until(lambda: not first.elector.leading(), within=30)
        stopped = world.clock.now() - cut_at
        assert 7 < stopped <= 10.2
        with pytest.raises(LeadershipLost):
            await tasks[0]
        await world.until(lambda: second.acquired_at is not None, within=60)
        assert second.acquired_at is not None
        assert 13 <= second.acquired_at - cut_at <= 20
        assert (await world.client.get(Lease, "lease", "kube-system")).spec.lease_transitions == 1
        tasks[1].cancel()
        await asyncio.wait((tasks[1],))

    virtually(main)


def test_the_deadline_counts_from_sending_not_from_the_answer() -> None:
    """Others see a renewal when it arrives, which may be long before its answer is back."""

    async def main(world: World) -> None:
        first = Candidate(world, "first")
        first.transport.plan = FaultPlan(latency=(1.0, 1.0))
        task = asyncio.create_task(first.run())
        await world.until(first.elector.leading, within=60)
        await world.clock.sleep(60)
        first.transport.plan = FaultPlan(fail_before=1.0)
        await world.until(lambda: not first.elector.leading(), within=30)
        arrived = [exchange.time for exchange in world.history if exchange.method == "PATCH"][-1]
        assert world.clock.now() - arrived < 10 - 1 + 0.2
        with pytest.raises(LeadershipLost):
            await task

    virtually(main)


def test_answers_that_never_come_do_not_prolong_leadership() -> None:
    async def main(world: World) -> None:
        first = Candidate(world, "first")
        task = asyncio.create_task(first.run())
        await world.clock.sleep(30)
        first.transport.plan = FaultPlan(hang=1.0)
        started = world.clock.now()
        with pytest.raises(LeadershipLost):
            await task
        assert world.clock.now() - started < 15

    virtually(main)


def test_a_renewal_whose_answer_was_lost_is_found_by_reading() -> None:
    async def main(world: World) -> None:
        first = Candidate(world, "first")
        task = asyncio.create_task(first.run())
        await world.clock.sleep(30)
        first.transport.plan = FaultPlan(fail_after=1.0)
        await world.clock.sleep(5)
        first.transport.plan = FaultPlan()
        await world.clock.sleep(60)
        assert first.elector.leading()
        task.cancel()
        await asyncio.wait((task,))

    virtually(main)


def test_release_lets_the_next_one_in_without_waiting() -> None:
    async def main(world: World) -> None:
        first, second = Candidate(world, "first"), Candidate(world, "second")
        one = asyncio.create_task(first.run())
        await world.clock.sleep(10)
        two = asyncio.create_task(second.run())
        await world.clock.sleep(10)
        one.cancel()
        await asyncio.wait((one,))
        await first.elector.release()
        assert not first.elector.leading()
        await world.clock.sleep(4)
        assert second.elector.leading()
        await first.elector.release()  # not ours any more: no effect
        assert await holder(world) == "second"
        two.cancel()
        await asyncio.wait((two,))

    virtually(main)


def test_a_lease_taken_by_force_is_lost_at_once() -> None:
    async def main(world: World) -> None:
        first = Candidate(world, "first")
        task = asyncio.create_task(first.run())
        await world.clock.sleep(10)
        lease = await world.client.get(Lease, "lease", "kube-system")
        await world.client.patch(lease, {"spec": {"holderIdentity": "usurper"}})
        with pytest.raises(LeadershipLost, match="usurper"):
            await task
        assert not first.elector.leading()

    virtually(main)


@pytest.mark.parametrize("seed", range(5))
def test_at_most_one_leads_at_any_moment_whatever_breaks(seed: int) -> None:
    async def main(world: World) -> None:
        leaders = 0

        async def candidate(name: str) -> None:
            while True:
                one = Candidate(world, name)
                electors.append(one)
                one.transport.plan = FaultPlan(
                    latency=(0, 1), fail_before=0.2, fail_after=0.2, hang=world.random.choice((0.0, 0.3))
                )
                try:
                    await one.run()
                except LeadershipLost:
                    electors.remove(one)
                    await world.clock.sleep(1)

        electors: list[Candidate] = []
        tasks = [asyncio.create_task(candidate(name)) for name in ("a", "b", "c")]
        for _ in range(4000):
            await world.clock.sleep(0.25)
            now = sum(one.elector.leading() for one in electors)
            assert now <= 1
            leaders += now
        assert leaders > 1000
        for task in tasks:
            task.cancel()
            await asyncio.wait((task,))

    virtually(main, seed=seed)


def test_times_that_cannot_work_are_refused() -> None:
    with pytest.raises(ValueError, match="retry < renew < duration"):
        Election("lease", "ns", "me", duration=10, renew=10)
