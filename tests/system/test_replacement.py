"""Lost nodes are replaced by themselves; where that is not provably safe the volume waits, and says for what."""

from __future__ import annotations

import pytest

from quorate.api.drbd_resource import DRBDResource
from quorate.api.lvm_logical_volume import LVMLogicalVolume
from quorate.api.node import Node, Taint
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.local.shape import Shape
from quorate.verification.system.system import System, SystemOptions, run_system
from quorate.verification.system.writer import acknowledging
from tests.system import stories
from tests.system.stories import LAYOUTS, layout_id

OPTIONS = SystemOptions(shape=Shape(nodes=7))
PATIENCE = 1800.0
"""Longer than the grace period of a node that is not ready, which is ten minutes."""


async def replaced(system: System, node: str) -> None:
    """Wait until no member is left on a node and the layout is complete again."""

    async def done() -> bool:
        members = await stories.members(system)
        return all(member.node_name != node for member in members) and await system.is_converged()

    await system.until(done, PATIENCE, f"the member on {node} is replaced")


@pytest.mark.parametrize("layout", [layout for layout in LAYOUTS if layout[0]], ids=layout_id)
def test_lost_node_is_replaced_while_io_goes_on(layout: tuple[int, int]) -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=layout[0], gmdr=layout[1])
        await system.create_volume()
        await system.formed()
        home, victim, *_ = await stories.diskful_nodes(system)
        attachment = await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        await system.cluster.crash_node(victim)
        await replaced(system, victim)
        found = await system.get(ReplicatedVolume, "vol")
        assert found.status.membership_layout == layout_id(layout)
        await acknowledging(writer)
        report = await writer.stop()
        assert report.failed == 0
        await system.detach(attachment)
        await stories.healthy_again(system)
        system.cluster.restart_node(victim)
        await system.clock.sleep(300)
        await stories.end_of_story(system)

    run_system(story, OPTIONS)


def test_lost_tie_breaker_is_replaced() -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=1, gmdr=0)
        await system.create_volume()
        await system.formed()
        (victim,) = [m.node_name for m in await stories.members(system) if m.type == "TieBreaker"]
        await system.cluster.crash_node(victim)
        await replaced(system, victim)
        assert (await system.get(ReplicatedVolume, "vol")).status.membership_layout == "2D+1TB"

    run_system(story, OPTIONS)


def test_second_silent_member_makes_the_removal_wait_for_the_taint() -> None:
    """5D: one node dead, another silent. Nobody knows whether the silent one still runs the old configuration."""

    async def story(system: System) -> None:
        await system.create_class(ftt=2, gmdr=2)
        await system.create_volume()
        await system.formed()
        home, victim, silent, *_ = await stories.diskful_nodes(system)
        await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        await system.cluster.stop_agent(silent)
        await system.cluster.crash_node(victim)
        await system.clock.sleep(900)
        assert (
            any(member.node_name == victim for member in await stories.members(system))
            or (await system.get(ReplicatedVolume, "vol")).status.datamesh_transitions
        ), "nothing is forgotten before everybody confirmed"
        texts = await system.describe()
        assert "Waiting" in texts or "waits" in texts, texts
        await acknowledging(writer)

        def tainted(node: Node) -> Node:
            taint = Taint(key="node.kubernetes.io/out-of-service", effect="NoExecute")
            return replace(node, spec=replace(node.spec, taints=(*node.spec.taints, taint)))

        await system.cluster.crash_node(silent)
        await system.edit(Node, silent, tainted)
        await system.edit(Node, victim, tainted)
        await replaced(system, victim)
        await replaced(system, silent)
        await acknowledging(writer)
        report = await writer.stop()
        assert report.failed == 0

    run_system(story, OPTIONS)


def test_what_a_removed_node_leaves_behind_is_let_go() -> None:
    """The machine never comes back: nobody can take its devices down, so its objects must not wait for that for ever."""

    async def story(system: System) -> None:
        await system.create_class(ftt=1, gmdr=1)
        await system.create_volume()
        await system.formed()
        _, victim, *_ = await stories.diskful_nodes(system)
        await system.cluster.crash_node(victim)
        await replaced(system, victim)

        async def left() -> list[str]:
            resources = [r.metadata.name for r in await system.list(DRBDResource) if r.spec.node_name == victim]
            replicas = [
                r.metadata.name for r in await system.list(ReplicatedVolumeReplica) if r.spec.node_name == victim
            ]
            volumes = [v.metadata.name for v in await system.list(LVMLogicalVolume) if v.metadata.deleting]
            return [*resources, *replicas, *volumes]

        await system.clock.sleep(1200)
        assert await left(), "while the Node exists its agent may come back and clean up"
        await system.delete(Node, victim)

        async def nothing_is_left() -> bool:
            return not await left()

        await system.until(nothing_is_left, 60, f"the objects of {victim} are gone")
        await system.delete(ReplicatedVolume, "vol")
        await system.gone(ReplicatedVolume, "vol")

    run_system(story, OPTIONS)
