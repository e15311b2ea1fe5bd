"""The screen stays readable and quick with many nodes and volumes, and shows the worst first."""

from __future__ import annotations

import time
from dataclasses import replace as replace_view

from quorate.api.meta import ObjectMeta
from quorate.api.replicated_volume import DatameshTransition, DatameshTransitionStep
from quorate.api.value import replace
from quorate.cli.status import MAX_ROWS, STATES, WORST_FIRST, render
from quorate.datamesh.layout import layout_of
from quorate.explain.overview import compute_overview
from quorate.explain.view import ClusterView
from quorate.verification.perfect_drive import form
from tests.explain.builders import edit_volume_status, the_volume, view_of_cluster, with_volume_condition

COUNT = 500


def many() -> ClusterView:
    """500 volumes of three copies on 20 nodes."""
    view = view_of_cluster(form(layout_of(1, 1), nodes=20))
    volume = the_volume(view)
    volumes = [volume]
    replicas = list(view.replicas)
    for number in range(1, COUNT):
        name = f"vol{number:03}"
        members = tuple(replace(m, name=m.name.replace("vol-", f"{name}-")) for m in volume.status.datamesh.members)
        status = replace(volume.status, datamesh=replace(volume.status.datamesh, members=members))
        volumes.append(replace(volume, metadata=ObjectMeta(name=name, generation=1), status=status))
        replicas.extend(
            replace(
                r,
                metadata=ObjectMeta(name=r.metadata.name.replace("vol-", f"{name}-"), generation=1),
                spec=replace(r.spec, replicated_volume_name=name),
            )
            for r in view.replicas
        )
    return replace_view(view, volumes=tuple(volumes), replicas=tuple(replicas))


def test_500_volumes_on_20_nodes_stay_usable() -> None:
    view = many()
    began = time.process_time()
    overview = compute_overview(view)
    lines = list(render(overview, 0.0))
    assert time.process_time() - began < 2.0
    assert len(overview.volumes) == COUNT
    assert len(lines) < 60
    assert f"  … and {COUNT - MAX_ROWS} more (--all)" in lines
    assert sum(" 3D " in line for line in render(overview, 0.0, COUNT)) == COUNT


def test_the_worst_volumes_come_first() -> None:
    view = many()
    broken = with_volume_condition(replace_view(view, volumes=(view.volumes[-1],)), "IOReady", "False", "NoQuorum")
    view = replace_view(view, volumes=(*view.volumes[:-1], broken.volumes[0]))
    lines = list(render(compute_overview(view), 0.0))
    first = lines[lines.index("\x1b[1mVOLUMES\x1b[0m") + 2]
    assert "NoQuorum" in first


def test_every_state_has_a_colour_and_a_rank() -> None:
    assert sorted(STATES) == sorted(WORST_FIRST)


def test_a_running_transition_shows_step_progress_and_what_it_waits_for() -> None:
    view = view_of_cluster(form(layout_of(1, 1)))
    message = "1/2 replicas confirmed revision 7. Waiting: [#1]"
    steps = (
        DatameshTransitionStep(name="✦ → A", status="Completed"),
        DatameshTransitionStep(name="A → D∅", status="Active", started_at="1970-01-01T00:00:00Z", message=message),
    )
    moving = DatameshTransition(
        type="AddReplica",
        group="VotingMembership",
        plan_id="x/v1",
        replica_name="vol-3",
        replica_type="Diskful",
        steps=steps,
    )
    overview = compute_overview(edit_volume_status(view, datamesh_transitions=(moving,)))
    (line,) = overview.transitions
    assert (line.position, line.steps, line.progress) == (2, 2, 0.75)
    (shown,) = [text for text in render(overview, 65.0) if "AddReplica vol-3" in text]
    assert "2/2 A → D∅" in shown
    assert "75%" in shown
    assert "65s" in shown
    assert message in shown
