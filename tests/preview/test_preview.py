"""Previews say what the change then does: steps, confirmations, protection, bytes, nodes; and change nothing."""

from __future__ import annotations

from dataclasses import replace as replace_view
from functools import cache

import pytest

from quorate.api import wire
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.value import replace
from quorate.datamesh.layout import layout_of
from quorate.explain.view import ClusterView
from quorate.local.shape import Shape
from quorate.preview.copy import original_of
from quorate.preview.results import Edit, Level, Preview
from quorate.preview.run import preview
from quorate.verification.perfect_cluster import VOLUME
from quorate.verification.perfect_drive import form
from quorate.verification.system.system import System
from tests.datamesh.builders import without_object
from tests.explain.builders import view_of_cluster
from tests.preview.builders import state_of

NOW = 1_700_001_000.0
SIZE = 64 << 20


@cache
def attached_pair() -> ClusterView:
    """2D+1TB on four thick nodes, attached where its first copy is."""

    async def story(system: System) -> None:
        await system.create_class(ftt=1, gmdr=0)
        await system.create_volume()
        await system.formed()
        found = await system.get(ReplicatedVolume, "vol")
        await system.attach("vol", found.status.datamesh.members[0].node_name)

    return state_of(story, Shape(nodes=4, zones=0, thin=False))


def one_copy(count: int) -> bool:
    """One copy of the device, which LVM rounds up to whole extents."""
    return abs(count - SIZE) < 8 << 20


def plan(edit: Edit) -> Preview:
    return preview(attached_pair(), "vol", edit, NOW)


def test_more_copies_show_every_step_who_confirms_and_the_lowest_protection() -> None:
    before = [wire.encode(volume) for volume in attached_pair().volumes]
    found = plan(Edit(ftt=1, gmdr=1))
    assert found.possible
    assert found.reason == ""
    whats = [step.what for step in found.steps]
    assert whats[0] == "create replica vol-3 (Diskful)"
    assert "AddReplica vol-3" in whats
    assert whats.index("AddReplica vol-3") < whats.index("RemoveReplica vol-2")
    transitions = [step for step in found.steps if step.kind == "transition"]
    assert all(step.confirmed_by for step in transitions)
    assert any(guard.name == "G3" and guard.text for step in transitions for guard in step.guards)
    assert [step.number for step in found.steps] == list(range(1, len(found.steps) + 1))
    # Decision 4: a voter change beside a tie-breaker costs one unit of FTT meanwhile.
    assert found.lowest_protection == Level(0, 0)
    assert (found.promised_before, found.promised_after) == (Level(1, 0), Level(1, 1))
    assert one_copy(found.bytes_to_copy)
    assert {place.change for place in found.nodes} == {"kept", "added", "removed"}
    assert sorted(place.node for place in found.nodes if place.change != "removed") != []
    assert [wire.encode(volume) for volume in attached_pair().volumes] == before


def test_a_replica_is_moved_to_the_free_node_and_its_replacement_joins_first() -> None:
    view = attached_pair()
    used = {member.node_name for member in view.volumes[0].status.datamesh.members}
    free = next(node.metadata.name for node in view.nodes if node.metadata.name not in used)
    leaving = next(m for m in view.volumes[0].status.datamesh.members if m.type == "Diskful" and not m.attached)
    found = plan(Edit(replace_node=leaving.node_name))
    assert found.possible
    assert {(place.node, place.change) for place in found.nodes} >= {(free, "added"), (leaving.node_name, "removed")}
    order = [step.what for step in found.steps if step.kind == "transition"]
    assert order.index("AddReplica vol-3") < order.index(f"RemoveReplica {leaving.name}")
    assert one_copy(found.bytes_to_copy)


def test_growing_needs_one_transition() -> None:
    found = plan(Edit(size=2 * SIZE))
    assert found.possible
    assert [step.what for step in found.steps] == ["ResizeVolume"]
    # DRBD copies the new part: until then the other copy is not current.
    assert found.lowest_protection == Level(0, 0)
    assert one_copy(found.bytes_to_copy)


def test_a_layout_for_which_nodes_are_missing_is_impossible_and_says_how_far_it_comes() -> None:
    found = plan(Edit(ftt=2, gmdr=2))
    assert not found.possible
    assert "no eligible node is free for a Diskful replica" in found.reason
    assert found.steps[0].what == "create replica vol-3 (Diskful)"


def test_a_size_that_no_volume_group_holds_is_impossible() -> None:
    found = plan(Edit(size=1 << 40))
    assert not found.possible
    assert found.reason


@pytest.mark.parametrize(
    ("edit", "reason"),
    [
        (Edit(size=1 << 20), "never shrink"),
        (Edit(ftt=2, gmdr=0), "has no layout"),
        (Edit(replace_node="node-9"), "no diskful replica or tie-breaker on node-9"),
    ],
)
def test_what_cannot_be_is_said_without_running_anything(edit: Edit, reason: str) -> None:
    found = plan(edit)
    assert not found.possible
    assert reason in found.reason


def test_an_unknown_volume_is_named() -> None:
    assert preview(attached_pair(), "nope", Edit(ftt=1), NOW).reason == "there is no volume nope"


def test_a_node_that_is_down_is_down_in_the_preview() -> None:
    """A diskful member is away: no voter can be added, as not everybody can confirm."""
    view = attached_pair()
    away = next(m for m in view.volumes[0].status.datamesh.members if m.type == "Diskful" and not m.attached)
    nodes = tuple(
        replace(
            node,
            status=replace(node.status, conditions=tuple(replace(c, status="Unknown") for c in node.status.conditions)),
        )
        if node.metadata.name == away.node_name
        else node
        for node in view.nodes
    )
    found = preview(replace_view(view, nodes=nodes), "vol", Edit(ftt=1, gmdr=1), NOW)
    assert not found.possible
    assert found.lowest_protection is not None
    assert found.lowest_protection.ftt is not None
    assert found.lowest_protection.ftt <= 0


def test_what_is_missing_or_surplus_is_noted() -> None:
    cluster = form(layout_of(1, 1))
    notes = original_of(view_of_cluster(without_object(cluster, 2)), VOLUME).notes
    assert notes == ("1 Diskful of 3D missing: the copy starts with the full layout",)
