"""What patches send: pure functions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api import wire
from quorate.api.meta import Condition
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.value import replace
from quorate.machinery import patches
from quorate.machinery.effects import Half
from tests.machinery.toy import FINALIZER, new_volume, with_condition, with_finalizer

BASE = new_volume("v")


def conditions(*pairs: tuple[str, str]) -> tuple[Condition, ...]:
    return tuple(
        Condition(type=type_, status=status, reason="R", last_transition_time="2026-01-01T00:00:00Z")
        for type_, status in pairs
    )


def volume(*pairs: tuple[str, str]) -> ReplicatedVolume:
    return replace(BASE, status=replace(BASE.status, conditions=conditions(*pairs)))


def test_each_half_is_sent_alone() -> None:
    after = with_finalizer(with_condition(BASE, "A", True, 0))
    assert list(patches.half_patch(BASE, after, Half.STATUS)) == ["status"]
    assert list(patches.half_patch(BASE, after, Half.MAIN)) == ["metadata"]
    assert patches.half_patch(BASE, BASE, Half.MAIN) == {}


def test_the_lock_joins_the_metadata_of_the_patch() -> None:
    patch = patches.half_patch(BASE, with_finalizer(BASE), Half.MAIN)
    locked = patches.locked(patch, "7", "uid")
    assert locked == {"metadata": {"finalizers": [FINALIZER], "resourceVersion": "7", "uid": "uid"}}


def test_a_report_touches_its_own_condition_types_only() -> None:
    before = volume(("Mine", "False"), ("Theirs", "False"))
    after = volume(("Mine", "True"), ("Theirs", "False"))
    newest = volume(("Theirs", "True"), ("Mine", "False"), ("New", "True"))
    patch = patches.rebase(before, after, newest, Half.STATUS)
    rebased = _apply(newest, patch)
    assert rebased.status.conditions == conditions(("Theirs", "True"), ("Mine", "True"), ("New", "True"))


def test_a_report_decided_before_the_first_status_does_not_reset_what_was_written_since() -> None:
    written = replace(BASE, status=replace(BASE.status, datamesh_revision=7))
    after = replace(BASE, status=replace(BASE.status, conditions=conditions(("Mine", "True"))))
    patch = patches.rebase(BASE, after, written, Half.STATUS)
    rebased = _apply(written, patch)
    assert rebased.status.datamesh_revision == 7
    assert rebased.status.conditions == conditions(("Mine", "True"))
    first = patches.rebase(BASE, after, BASE, Half.STATUS)["status"]
    assert isinstance(first, dict)
    assert first["datameshRevision"] == 0


def test_a_report_that_is_known_already_is_not_sent() -> None:
    before, after = volume(("Mine", "False")), volume(("Mine", "True"))
    assert patches.rebase(before, after, after, Half.STATUS) == {}


def test_a_status_that_did_not_change_again_keeps_its_time() -> None:
    before, newest = volume(("Mine", "False")), volume(("Mine", "True"))
    later = replace(newest.status.conditions[0], last_transition_time="2027-01-01T00:00:00Z")
    after = replace(newest, status=replace(newest.status, conditions=(later,)))
    assert patches.rebase(before, after, newest, Half.STATUS) == {}


def test_finalizers_are_rebased_one_by_one() -> None:
    before = replace(BASE, metadata=replace(BASE.metadata, finalizers=("mine",)))
    after = BASE
    newest = replace(BASE, metadata=replace(BASE.metadata, finalizers=("theirs", "mine")))
    assert patches.rebase(before, after, newest, Half.MAIN) == {"metadata": {"finalizers": ["theirs"]}}
    assert patches.removed_finalizers(before, after) == ("mine",)


def test_lists_are_found_anywhere_in_a_patch() -> None:
    assert patches.contains_list({"a": {"b": [1]}})
    assert not patches.contains_list({"a": {"b": "c", "d": None}})


def _apply(obj: ReplicatedVolume, patch: patches.JsonObject) -> ReplicatedVolume:
    return wire.from_builtins(ReplicatedVolume, _merge(wire.to_builtins(obj), patch))


def _merge(base: patches.JsonObject, patch: patches.JsonObject) -> patches.JsonObject:
    result = dict(base)
    for key, value in patch.items():
        present = result.get(key)
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            result[key] = _merge(present if isinstance(present, dict) else {}, value)
        else:
            result[key] = value
    return result


TYPES = ["A", "B", "C", "D"]
statuses = st.dictionaries(st.sampled_from(TYPES), st.sampled_from(["True", "False"]), max_size=4)


@settings(max_examples=300, deadline=None)
@given(statuses, statuses, statuses)
def test_a_rebased_report_says_what_it_meant_and_leaves_the_rest(
    old: dict[str, str], mine: dict[str, str], newest: dict[str, str]
) -> None:
    before, after, base = (volume(*state.items()) for state in (old, mine, newest))
    result = _apply(base, patches.rebase(before, after, base, Half.STATUS))
    found = {condition.type: condition.status for condition in result.status.conditions}
    for type_ in TYPES:
        ours = old.get(type_) != mine.get(type_)
        assert found.get(type_) == (mine if ours else newest).get(type_)
