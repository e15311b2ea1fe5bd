"""Few writes: the number of API writes per operation is a tracked figure; a test fails when a count rises."""

from __future__ import annotations

from statistics import median

import pytest

from quorate.local.shape import Shape
from quorate.machinery.faults import FaultPlan
from quorate.verification.system.system import System, SystemOptions, run_system
from tests.system import stories
from tests.system.stories import layout_id

SEEDS = (1, 2, 3)
LATENCY = FaultPlan(latency=(0.004, 0.004))
"""8 ms for a request there and back."""

FORMATION = {(0, 0): 16, (1, 0): 33, (1, 1): 34}
"""Writes of the controller process from creating the volume to its rest; the goals are 22, 44 and 48."""
ATTACH = 9


def measure(layout: tuple[int, int], seed: int) -> tuple[int, int]:
    """Writes of the controller process for a formation and for an attach on an existing replica."""

    async def story(system: System) -> tuple[int, int]:
        for node in system.cluster.nodes:
            system.cluster.simulator.host(node).latency = 0.05
        await system.create_class(ftt=layout[0], gmdr=layout[1])
        await system.clock.sleep(60)
        system.writes.reset()
        await system.create_volume()
        await system.formed()
        await system.clock.sleep(60)
        formation = system.writes.of("controller")
        system.writes.reset()
        home, *_ = await stories.diskful_nodes(system)
        await system.attach("vol", home)
        await system.clock.sleep(60)
        attach = system.writes.of("controller")
        await system.quiet()
        return formation, attach

    return run_system(story, SystemOptions(shape=Shape(nodes=5), seed=seed, faults=LATENCY))


@pytest.mark.parametrize("layout", list(FORMATION), ids=layout_id)
def test_formation_and_attach_cost_few_writes(layout: tuple[int, int]) -> None:
    found = [measure(layout, seed) for seed in SEEDS]
    assert median(formation for formation, _ in found) <= FORMATION[layout], found
    assert median(attach for _, attach in found) <= ATTACH, found
