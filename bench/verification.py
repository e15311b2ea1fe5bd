"""How fast the model checker searches: states per second, and how much its memories save.

Two complete searches of one core, in processor time: a small one and one where interchangeable nodes are reduced.
"""

from __future__ import annotations

from time import process_time

from bench.figure import Figure
from quorate.verification import scenarios
from quorate.verification.search import explore
from quorate.verification.volume import Scenario, VolumeModel

_SEARCHES = (
    ("2D+1TB", "a diskful replica is replaced, nobody attached", 1),
    ("4D", "a diskful replica is replaced", 1),
)


def _scenario(layout: str, name: str, faults: int) -> Scenario:
    found = scenarios.complete(scenarios.LAYOUTS[layout], "dynamic", faults)
    return next(scenario for scenario in found if scenario.name == name)


def figures() -> list[Figure]:
    """States per second, engine passes per state, and the share of passes that were remembered."""
    found: list[Figure] = []
    for layout, name, faults in _SEARCHES:
        model = VolumeModel(_scenario(layout, name, faults))
        outcome = explore(model, clock=process_time)
        if not outcome.complete or outcome.violations:
            raise AssertionError("the benchmark does not measure what it says")
        what = f"checker, {layout}, {faults} fault"
        note = f"{name}: {outcome.states:,} states, {outcome.transitions:,} transitions"
        asked = model.engine.asked
        found += [
            Figure(f"{what}, states per second", outcome.states / outcome.seconds, "1/s", note),
            Figure(f"{what}, engine passes", float(model.passes), "passes", "computed, not remembered"),
            Figure(
                f"{what}, passes remembered", 1 - model.passes / asked, "ratio", f"of {asked:,} that were asked for"
            ),
        ]
    return found
