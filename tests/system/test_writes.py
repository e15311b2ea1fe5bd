"""Few writes: the number of API writes per operation is a tracked figure; a test fails when a count rises."""

from __future__ import annotations

from statistics import median

import pytest

from quorate.verification.system.measure import WriteCounts, count_writes
from tests.system.stories import layout_id

SEEDS = (1, 2, 3)
FORMATION = {(0, 0): 16, (1, 0): 33, (1, 1): 34}
"""Writes of the controller process from creating the volume to its rest; the goals are 22, 44 and 48."""
ATTACH = 9


@pytest.mark.parametrize("layout", list(FORMATION), ids=layout_id)
def test_formation_and_attach_cost_few_writes(layout: tuple[int, int]) -> None:
    found = [count_writes(*layout, seed) for seed in SEEDS]
    formation = [WriteCounts.of(counts.formation, "controller") for counts in found]
    attach = [WriteCounts.of(counts.attach, "controller") for counts in found]
    assert median(formation) <= FORMATION[layout], formation
    assert median(attach) <= ATTACH, attach
