"""From any actual state to any intended state the agent converges on the simulator, in bounded passes and legal order."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from quorate.agent.intended import Settings, majority
from quorate.api.drbd_resource import DRBDResource
from quorate.machinery.virtual_loop import run_virtual
from quorate.simulator.cluster import Cluster
from tests.agent.builders import NODES, Machine, drbdr, machine, peer

PASSES = 12
"""Passes of one node until everything stands, others converging beside it."""


@dataclass(frozen=True)
class Member:
    """What one node shall be."""

    present: bool = True
    diskful: bool = True
    primary: bool = False


@dataclass(frozen=True)
class Mesh:
    """A consistent configuration of all nodes."""

    members: tuple[Member, ...]
    two_primaries: bool = False
    tie_break: bool = True

    def resource(self, node_id: int) -> DRBDResource:
        own = self.members[node_id]
        if not own.present:
            return drbdr(node_id, state="Down", diskful=own.diskful)
        voters = sum(1 for each in self.members if each.present and each.diskful)
        peers = [
            peer(other, diskful=each.diskful, tie_breaker=self.tie_break)
            for other, each in enumerate(self.members)
            if other != node_id and each.present and (own.diskful or each.diskful)
        ]
        return drbdr(
            node_id,
            peers=peers,
            diskful=own.diskful,
            quorum=majority(voters) if own.diskful else 32,
            redundancy=1,
            primary=own.primary and voters > 0,
            two_primaries=self.two_primaries,
        )


def meshes() -> st.SearchStrategy[Mesh]:
    member = st.builds(Member, present=st.booleans(), diskful=st.booleans())
    return st.builds(
        Mesh,
        members=st.lists(member, min_size=4, max_size=4).map(tuple),
        two_primaries=st.booleans(),
        tie_break=st.booleans(),
    )


def disturbances() -> st.SearchStrategy[tuple[int, str]]:
    """What somebody else, or bad luck, does to a node between two configurations."""
    lines = [
        "crash",
        "drbdsetup disconnect {name} {peer}",
        "drbdsetup del-peer {name} {peer}",
        "drbdsetup detach {minor}",
        "drbdsetup detach {minor} --diskless",
        "drbdsetup resource-options {name} --quorum=off",
        "drbdsetup net-options {name} {peer} --allow-remote-read=no",
        "drbdsetup peer-device-options {name} {peer} 0 --c-max-rate=100k",
        "drbdsetup down {name}",
        "drbdsetup secondary {name}",
    ]
    return st.tuples(st.integers(0, 3), st.sampled_from(lines))


class Playground:
    """Four machines and the passes of their agents."""

    def __init__(self, config: Settings) -> None:
        self.cluster = Cluster(asyncio.get_running_loop(), 7, NODES, voter_mode=config.voter_mode)
        self.config = config
        self.machines: list[Machine] = [machine(self.cluster, name, settings=config) for name in NODES]

    async def passes(self, mesh: Mesh, count: int) -> None:
        for _ in range(count):
            for node_id, each in enumerate(self.machines):
                await each.converge(mesh.resource(node_id), self.config)
            await asyncio.sleep(3)

    async def stands(self, mesh: Mesh) -> list[str]:
        """What is not as intended."""
        wrong: list[str] = []
        for node_id, each in enumerate(self.machines):
            before = len(each.host.changes())
            outcome = await each.converge(mesh.resource(node_id), self.config)
            wrong += [f"{node_id}: {problem.reason} {problem.message}" for problem in outcome.problems]
            wrong += [f"{node_id}: still runs {argv}" for argv in each.host.changes()[before:]]
        return wrong

    async def settle(self, mesh: Mesh) -> None:
        wrong = [""]
        for _ in range(PASSES):
            await self.passes(mesh, 1)
            wrong = await self.stands(mesh)
            if not wrong:
                return
        raise AssertionError(f"not as intended after {PASSES} passes: {wrong}")

    async def disturb(self, node_id: int, line: str) -> None:
        name = NODES[node_id]
        if line == "crash":
            self.cluster.crash(name)
            await asyncio.sleep(20)
            self.cluster.restart(name)
            return
        resource = f"sdsrv-rv-{node_id}"
        words = line.format(name=resource, peer=(node_id + 1) % 4, minor=0).split()
        self.cluster.node(name).execute(words)
        await asyncio.sleep(0.5)


TWO_DISKS = Mesh(tuple(Member(present=each > 1) for each in range(4)), tie_break=False)
ONE_DISK = replace(TWO_DISKS, members=(*TWO_DISKS.members[:3], Member(diskful=False)))


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@example(first=TWO_DISKS, second=ONE_DISK, noise=[(2, "crash")], between=1)  # remembers the other's disk as Outdated
@given(first=meshes(), second=meshes(), noise=st.lists(disturbances(), max_size=4), between=st.integers(0, 2))
def test_any_mesh_is_reached_from_any_other(
    first: Mesh, second: Mesh, noise: list[tuple[int, str]], between: int
) -> None:
    async def main() -> None:
        ground = Playground(Settings())
        await ground.passes(first, between)
        for node_id, line in noise:
            await ground.disturb(node_id, line)
        await ground.settle(second)

    run_virtual(main)


def formed(primary: int | None = None) -> Mesh:
    return Mesh(tuple(Member(present=each < 3, primary=each == primary) for each in range(4)))


async def give_data(ground: Playground) -> None:
    minor = next(iter(ground.cluster.node("n0").kernel.minors))
    ground.cluster.node("n0").execute(["drbdsetup", "new-current-uuid", str(minor), "--clear-bitmap"])
    await asyncio.sleep(1)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(primary=st.integers(0, 2), noise=st.lists(disturbances(), min_size=1, max_size=5))
def test_a_mesh_with_data_and_a_primary_heals_after_disturbances(primary: int, noise: list[tuple[int, str]]) -> None:
    async def main() -> None:
        ground = Playground(Settings())
        await ground.settle(formed())
        await give_data(ground)
        await ground.settle(formed(primary))
        for node_id, line in noise:
            await ground.disturb(node_id, line)
        await ground.settle(formed(primary))
        for node_id in range(3):
            outcome = await ground.machines[node_id].converge(formed(primary).resource(node_id))
            assert outcome.actual is not None
            assert outcome.actual.role == ("Primary" if node_id == primary else "Secondary")

    run_virtual(main)
