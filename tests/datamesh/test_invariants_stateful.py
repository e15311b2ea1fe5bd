"""All invariants of a single pass (S1-S43, E1-E15) over generated histories of faults and wishes."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings

from tests.datamesh.machine import DatameshMachine

DatameshMachine.TestCase.settings = settings(
    max_examples=120,
    stateful_step_count=40,
    deadline=None,
    # Shrinking a history takes minutes; the printed steps are already replayable.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestInvariants = DatameshMachine.TestCase
