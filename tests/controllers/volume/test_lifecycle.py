"""Durations of a volume's life: observed behind the patch that completes them, with the labels of the facts."""

from __future__ import annotations

from quorate.api import labels, times
from quorate.api.replicated_volume import DatameshTransition, DatameshTransitionStep, ReplicatedVolume
from quorate.api.resources import AnyObject
from quorate.api.value import replace
from quorate.controllers.volume import lifecycle
from quorate.controllers.volume.controller import spec
from quorate.controllers.volume.decide import decide
from quorate.controllers.volume.snapshot import gather
from quorate.machinery.effects import Decision, Effect, Half, Observe, Patch
from quorate.machinery.lifecycle_metrics import LIFECYCLE
from tests.controllers.volume.builders import (
    NO_ANSWERS,
    NOW,
    POOL,
    World,
    attachment,
    configuration,
    storage_class,
    volume,
)

CLASS = {"storage_class": "fast"}


def seen(effects: tuple[Effect, ...]) -> list[tuple[str, float, dict[str, str]]]:
    return [(e.metric, e.value, dict(e.labels)) for e in effects if isinstance(e, Observe)]


def patched(before: ReplicatedVolume, after: ReplicatedVolume, *, half: Half = Half.STATUS) -> Patch:
    return Patch(before=before, after=after, half=half, cause="test")


def with_transitions(*found: DatameshTransition) -> ReplicatedVolume:
    base = volume()
    return replace(base, status=replace(base.status, datamesh_revision=3, datamesh_transitions=found))


def running(*statuses: str, started: float) -> DatameshTransition:
    """An Attach whose steps began one after the other, ten seconds apart."""
    steps = tuple(
        DatameshTransitionStep(
            name=f"step {index}",
            status=status,
            started_at=times.format(started + 10 * index) if status != "Pending" else "",
            completed_at=times.format(started + 10 * (index + 1)) if status == "Completed" else "",
        )
        for index, status in enumerate(statuses)
    )
    return DatameshTransition(
        type="Attach", group="Attachment", plan_id="attach/v1", replica_name="vol-0", node_name="node-a", steps=steps
    )


class SlowWorld(World):
    """Every step takes four seconds; what its patches complete is kept."""

    def __init__(self, *objects: AnyObject) -> None:
        super().__init__(*objects)
        self.found: list[tuple[str, float, dict[str, str]]] = []

    def step(self) -> Decision:
        self.now += 4
        decision = super().step()
        for effect in decision.effects:
            if isinstance(effect, Patch):
                self.found.extend(seen(lifecycle.observations(effect, self.now)))
        return decision


def test_formation_is_measured_from_the_creation_of_the_volume_with_its_steps() -> None:
    world = SlowWorld(volume(), storage_class(configuration(1, 1)), POOL)
    world.form()
    marks = {**CLASS, "node": "global", "type": "Formation"}
    assert [entry for entry in world.found if entry[0] == lifecycle.FORMATION] == [(lifecycle.FORMATION, 16.0, CLASS)]
    assert [(value, labels["step"]) for metric, value, labels in world.found if metric == lifecycle.STEP] == [
        (4.0, "Preconfigure"),
        (4.0, "Establish connectivity"),
        (4.0, "Bootstrap data"),
    ]
    assert (lifecycle.TRANSITION, 12.0, marks) in world.found
    assert [entry for entry in world.found if entry[0] == lifecycle.TRANSITIONS] == [
        (lifecycle.TRANSITIONS, 1.0, marks)
    ]


def test_a_completed_step_is_measured_by_its_own_times() -> None:
    before = with_transitions(running("Active", "Pending", started=NOW - 10))
    after = with_transitions(running("Completed", "Active", started=NOW - 10))
    marks = {**CLASS, "node": "node-a", "type": "Attach"}
    assert seen(lifecycle.observations(patched(before, after), NOW + 0.5)) == [
        (lifecycle.STEP, 10.0, {**marks, "step": "step 0"})
    ]


def test_a_transition_that_is_gone_is_measured_with_its_last_step() -> None:
    before = with_transitions(running("Completed", "Active", started=NOW - 30))
    marks = {**CLASS, "node": "node-a", "type": "Attach"}
    assert seen(lifecycle.observations(patched(before, with_transitions()), NOW)) == [
        (lifecycle.STEP, 20.0, {**marks, "step": "step 1"}),
        (lifecycle.TRANSITION, 30.0, marks),
        (lifecycle.TRANSITIONS, 1.0, marks),
    ]


def test_a_transition_that_goes_on_is_not_measured() -> None:
    before = with_transitions(running("Active", started=NOW - 30))
    assert lifecycle.observations(patched(before, before), NOW) == ()


def test_the_deletion_of_a_volume_is_measured_when_its_finalizer_goes() -> None:
    meta = replace(
        volume().metadata, deletion_timestamp=times.format(NOW - 8), finalizers=(labels.FINALIZER_VOLUME, "other")
    )
    before = replace(volume(), metadata=meta)
    after = replace(before, metadata=replace(meta, finalizers=("other",)))
    assert seen(lifecycle.observations(patched(before, after, half=Half.MAIN), NOW)) == [
        (lifecycle.VOLUME_DELETION, 8.0, CLASS)
    ]


def test_an_attachment_is_measured_once_and_its_detach_when_its_finalizer_goes() -> None:
    before = attachment("node-a", age=6)
    attached = replace(before, status=replace(before.status, phase="Attached"))
    first = Patch(before=before, after=attached, half=Half.STATUS, cause="test")
    assert seen(lifecycle.observations(first, NOW)) == [(lifecycle.ATTACHMENT_READY, 6.0, {"node": "node-a"})]
    again = Patch(before=attached, after=attached, half=Half.STATUS, cause="test")
    assert lifecycle.observations(again, NOW) == ()
    leaving = attachment("node-a", deleting=True)
    released = replace(leaving, metadata=replace(leaving.metadata, finalizers=()))
    last = Patch(before=leaving, after=released, half=Half.MAIN, cause="test")
    assert seen(lifecycle.observations(last, NOW + 3)) == [(lifecycle.ATTACHMENT_DETACH, 3.0, {"node": "node-a"})]


def test_an_observation_stands_behind_its_patch_and_nothing_else_changes() -> None:
    world = World(volume(), storage_class(configuration(1, 1)), POOL, attachment("node-a", deleting=True))
    world.form()
    snapshot = gather(world.reader(), "vol")
    plain = decide(snapshot, NO_ANSWERS, NOW)
    observed = spec().decide(snapshot, NO_ANSWERS, NOW)
    assert tuple(e for e in observed.effects if not isinstance(e, Observe)) == plain.effects
    assert observed.wake_after == plain.wake_after
    for position, effect in enumerate(observed.effects):
        if isinstance(effect, Observe):
            assert isinstance(observed.effects[position - 1], Patch | Observe)


def test_every_observed_metric_is_declared_with_the_labels_it_gets() -> None:
    declared = {spec.name: spec for spec in LIFECYCLE}
    before = with_transitions(running("Active", started=NOW - 30))
    for metric, _, marks in seen(lifecycle.observations(patched(before, with_transitions()), NOW)):
        assert sorted(declared[metric].labels) == sorted(marks)
    for name in (lifecycle.FORMATION, lifecycle.VOLUME_DELETION):
        assert declared[name].labels == ("storage_class",)
    for name in (lifecycle.ATTACHMENT_READY, lifecycle.ATTACHMENT_DETACH):
        assert declared[name].labels == ("node",)
