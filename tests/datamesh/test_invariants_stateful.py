"""All invariants of a single pass (S1-S43, E1-E15) over generated histories of faults and wishes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

from tests.datamesh.machine import DatameshMachine

DatameshMachine.TestCase.settings = settings(
    max_examples=200,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestInvariants = DatameshMachine.TestCase
