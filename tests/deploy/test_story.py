"""The metrics and Events of a whole small life, on a simulated cluster: what is shipped is also fed."""

from __future__ import annotations

import re

from quorate.api.event import Event
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.local.shape import Shape
from quorate.verification.system.system import System, SystemOptions, run_system


def counts(text: str) -> dict[str, float]:
    """Samples of histograms and values of counters, summed over their labels."""
    found: dict[str, float] = {}
    for name, value in re.findall(r"^(sds_\w+?(?:_count|_total))(?:\{[^}]*\})? (\S+)$", text, re.MULTILINE):
        found[name] = found.get(name, 0.0) + float(value)
    return found


def test_a_life_is_measured_and_told() -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=0, gmdr=1)
        await system.create_volume()
        await system.formed()
        manager = system.cluster.manager
        assert manager is not None
        home = (await system.get(ReplicatedVolume, "vol")).status.datamesh.members[0].node_name
        attachment = await system.attach("vol", home)
        text = manager.registry.text()
        assert 'sds_rv_count{storage_class="fast",phase="Active"} 1' in text
        assert 'sds_rv_quorum{name="vol",reason="QuorumReached"} 1' in text
        assert 'sds_rv_membership_layout_converged{name="vol",reason="Converged"} 1' in text
        assert f'sds_rva_count{{node="{home}",storage_class="fast",phase="Attached"}} 1' in text
        assert 'sds_rv_promised_minimum_data_redundancy{name="vol",storage_class="fast"} 1' in text
        agent = system.cluster.nodes[home].agent
        assert agent is not None
        said = agent.registry.text()
        assert 'sds_drbdr_quorum{name="vol-0"} 1' in said or 'sds_drbdr_quorum{name="vol-1"} 1' in said
        assert 'sds_agent_event_stream{what="following"} 1' in said
        await system.detach(attachment)
        await system.delete(ReplicatedVolume, "vol")
        await system.gone(ReplicatedVolume, "vol")
        await system.clock.sleep(5)
        text = manager.registry.text()
        seen = counts(text)
        for name in (
            "sds_rv_initial_formation_duration_seconds_count",
            "sds_rva_ready_duration_seconds_count",
            "sds_rva_detach_duration_seconds_count",
            "sds_rv_deletion_duration_seconds_count",
        ):
            assert seen[name] == 1, name
        for name in ("rvr_ready_transition", "rvr_backing_volume", "rvr_deletion"):
            assert seen[f"sds_{name}_duration_seconds_count"] >= 2, name
        # Formation, Attach and Detach at least, and every transition has steps.
        assert seen["sds_rv_datamesh_transitions_completed_total"] >= 3
        assert seen["sds_rv_datamesh_step_duration_seconds_count"] >= 5
        assert 'sds_rv_count{storage_class="fast",phase="Active"} 0' in text
        assert "sds_rv_quorum{" not in text
        assert "\nsds_metrics_collector_collect_errors_total 0\n" in text
        told = [
            e.reason
            for e in (await system.cluster.client.list(Event)).items
            if e.involved_object.kind == "ReplicatedVolume"
        ]
        assert sorted(told) == ["FinalizerRemoved", "Formed"]  # the second is the trace of a destructive write (rule 9)

    run_system(story, SystemOptions(shape=Shape(nodes=2)))
