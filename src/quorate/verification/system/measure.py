"""Measured stories: how many API writes an operation costs, and how formation scales."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from quorate.api.replicated_volume import ReplicatedVolume
from quorate.local.shape import Shape
from quorate.machinery.faults import FaultPlan
from quorate.verification.system.counting import Write
from quorate.verification.system.system import System, SystemOptions, run_system

API_LATENCY = FaultPlan(latency=(0.004, 0.004))
"""8 ms for a request there and back."""
COMMAND_LATENCY = 0.05
"""Seconds that a command on a node takes."""
REST = 60.0
"""Seconds after which everything that follows from an operation is written."""


@dataclass(frozen=True)
class WriteCounts:
    """Writes of one formation and one attach."""

    formation: Counter[Write]
    attach: Counter[Write]

    @staticmethod
    def of(counts: Counter[Write], writer: str) -> int:
        """All writes of one writer."""
        return sum(count for write, count in counts.items() if write.writer == writer)


def count_writes(ftt: int, gmdr: int, seed: int) -> WriteCounts:
    """Form a volume on a thin pool, then attach it on an existing replica; everything else is at rest."""

    async def story(system: System) -> WriteCounts:
        for node in system.cluster.nodes:
            system.cluster.simulator.host(node).latency = COMMAND_LATENCY
        await system.create_class(ftt=ftt, gmdr=gmdr)
        await system.clock.sleep(REST)
        system.writes.reset()
        await system.create_volume()
        await system.formed()
        await system.clock.sleep(REST)
        formation = Counter(system.writes.counts)
        system.writes.reset()
        found = await system.get(ReplicatedVolume, "vol")
        home = next(m.node_name for m in found.status.datamesh.members if m.type == "Diskful")
        await system.attach("vol", home)
        await system.clock.sleep(REST)
        attach = Counter(system.writes.counts)
        await system.quiet()
        return WriteCounts(formation, attach)

    return run_system(story, SystemOptions(shape=Shape(nodes=5), seed=seed, faults=API_LATENCY))


def form_many(count: int, *, nodes: int = 10, ftt: int = 1, gmdr: int = 1) -> float:
    """Form many volumes at once; the answer is how many simulated seconds it took."""

    async def story(system: System) -> float:
        await system.create_class(ftt=ftt, gmdr=gmdr)
        began = system.clock.monotonic()
        for number in range(count):
            await system.create_volume(f"vol-{number}", size="16Mi")

        async def formed() -> bool:
            volumes = await system.list(ReplicatedVolume)
            return all(v.status.datamesh_revision > 1 and not v.status.datamesh_transitions for v in volumes)

        await system.until(formed, 3600, f"{count} volumes are formed")
        return system.clock.monotonic() - began

    return run_system(story, SystemOptions(shape=Shape(nodes=nodes)))
