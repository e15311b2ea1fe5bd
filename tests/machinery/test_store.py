"""The cached objects of one kind: stale messages, missing objects, tombstones, quarantine, indexes."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.api.indexes import POD_BY_NODE, Index
from quorate.api.meta import ObjectMeta
from quorate.api.pod import Pod, PodSpec
from quorate.api.wire import Quarantined
from quorate.machinery.client import Listing
from quorate.machinery.reader import FixedReader
from quorate.machinery.store import Change, KindStore, Origin, QuarantinedError

BY_NODE = POD_BY_NODE.name


def pod(name: str, version: int, uid: str = "u1", node: str = "n1") -> Pod:
    meta = ObjectMeta(name=name, namespace="ns", uid=uid, resource_version=str(version))
    return Pod(metadata=meta, spec=PodSpec(node_name=node))


class Told:
    """A store and what its listener was told."""

    def __init__(self) -> None:
        index: Index[Pod] = POD_BY_NODE
        self.store: KindStore[Pod] = KindStore(Pod, {index.name: index})  # pyright: ignore[reportArgumentType]
        self.changes: list[Change[Pod]] = []
        self.store.subscribe(self.changes.append)

    def versions(self) -> list[tuple[str, str]]:
        return [(version(change.old), version(change.new)) for change in self.changes]


def version(obj: Pod | None) -> str:
    return obj.metadata.resource_version if obj else "-"


def test_only_newer_versions_are_adopted_and_told_once() -> None:
    told = Told()
    assert told.store.apply(pod("a", 5))
    assert not told.store.apply(pod("a", 5))
    assert not told.store.apply(pod("a", 4))
    assert told.store.apply(pod("a", 7))
    assert told.versions() == [("-", "5"), ("5", "7")]


def test_an_own_write_is_visible_before_its_event_and_the_event_is_no_news() -> None:
    told = Told()
    told.store.apply(pod("a", 5))
    told.store.apply(pod("a", 8))  # the answer to our patch
    assert not told.store.apply(pod("a", 6))  # late events from before it
    assert not told.store.apply(pod("a", 8))  # its own event
    found = told.store.get("a", "ns")
    assert found is not None
    assert found.metadata.resource_version == "8"


def test_our_own_delete_outlives_late_events_of_the_same_incarnation() -> None:
    told = Told()
    told.store.apply(pod("a", 5))
    assert told.store.gone(("ns", "a"), "u1")
    assert not told.store.apply(pod("a", 9))
    assert told.store.get("a", "ns") is None
    assert told.store.apply(pod("a", 10, uid="u2"))


def test_a_recreated_name_is_not_confused_with_the_old_object() -> None:
    told = Told()
    told.store.apply(pod("a", 5))
    told.store.apply(pod("a", 9, uid="u2"))  # we created it again and have the answer
    assert not told.store.remove(pod("a", 8))  # the old one's deletion arrives late
    assert not told.store.apply(pod("a", 7))
    found = told.store.get("a", "ns")
    assert found is not None
    assert found.metadata.uid == "u2"


def test_an_answer_that_arrives_after_the_deletion_event_does_not_raise_the_dead() -> None:
    told = Told()
    told.store.apply(pod("a", 5))
    told.store.remove(pod("a", 9))
    assert not told.store.apply(pod("a", 7))  # the answer to a live read made before the deletion
    assert told.store.get("a", "ns") is None


def test_an_object_that_left_a_selector_may_come_back() -> None:
    told = Told()
    told.store.apply(pod("a", 5))
    told.store.remove(pod("a", 6))
    assert told.store.apply(pod("a", 8))


def test_a_complete_list_notices_deletions_but_keeps_what_is_newer_than_it() -> None:
    told = Told()
    told.store.apply(pod("deleted", 3, uid="d"))
    told.store.apply(pod("ours", 12, uid="o"))
    told.store.apply(pod("newer", 11, uid="n"))
    listing = Listing((pod("newer", 8, uid="n"), pod("fresh", 9, uid="f")), "10")
    told.store.replace(listing, Origin.LIVE)
    assert [obj.metadata.name for obj in told.store.list()] == ["fresh", "newer", "ours"]
    newer = told.store.get("newer", "ns")
    assert newer is not None
    assert newer.metadata.resource_version == "11"


def test_the_last_good_value_survives_an_undecodable_version() -> None:
    told = Told()
    told.store.apply(pod("a", 5))
    told.store.quarantine(Quarantined("ns", "a", "no"))
    told.store.quarantine(Quarantined("ns", "never", "no"))
    assert told.store.quarantined == 2
    assert told.store.get("a", "ns") is not None
    with pytest.raises(QuarantinedError):
        told.store.get("never", "ns")
    told.store.replace(Listing((), "9", (Quarantined("ns", "a", "no"),)), Origin.LIVE)
    assert told.store.get("a", "ns") is not None
    assert told.store.get("never", "ns") is None
    told.store.apply(pod("a", 12))
    assert told.store.quarantined == 0
    told.store.quarantine(Quarantined("ns", "a", "no"))
    told.store.release(Quarantined("ns", "a", "no"), 20)
    assert told.store.get("a", "ns") is None


def test_a_late_listener_is_told_about_everything_there_is() -> None:
    told = Told()
    told.store.apply(pod("b", 5, uid="b"))
    told.store.apply(pod("a", 6, uid="a"))
    late: list[Change[Pod]] = []
    told.store.subscribe(late.append)
    assert [change.new.metadata.name for change in late if change.new] == ["a", "b"]
    assert {change.origin for change in late} == {Origin.INITIAL}
    told.store.resync()
    assert [change.origin for change in late[2:]] == [Origin.RESYNC, Origin.RESYNC]


def history(lives: list[int]) -> list[tuple[str, Pod]]:
    """What really happened to one name: lives of so many versions, each ended by a deletion but the last."""
    events: list[tuple[str, Pod]] = []
    version = 0
    for life, changes in enumerate(lives):
        for change in range(changes):
            version += 1
            events.append(("seen", pod("a", version, uid=f"u{life}", node=f"n{change % 3}")))
        if life + 1 < len(lives):
            version += 1
            events.append(("deleted", pod("a", version, uid=f"u{life}")))
    return events


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_messages_in_any_order_end_in_the_truth(data: st.DataObject) -> None:
    """Watch events arrive in order; answers of our own requests arrive at any time, repeatedly."""
    lives = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=4))
    events = history(lives)
    told = Told()
    answers = [obj for kind, obj in events if kind == "seen"]
    for position, (kind, obj) in enumerate(events):
        # An answer may be ahead of the watch, or long behind it.
        for answer in data.draw(st.lists(st.sampled_from(answers), max_size=3)):
            if int(answer.metadata.resource_version) <= len(events):
                told.store.apply(answer)
        shown = told.store.get("a", "ns")
        if kind == "seen":
            told.store.apply(obj)
        else:
            told.store.remove(obj)
        now = told.store.get("a", "ns")
        if shown is not None and now is not None:
            assert int(now.metadata.resource_version) >= int(shown.metadata.resource_version), position
    for answer in data.draw(st.lists(st.sampled_from(answers), max_size=5)):
        told.store.apply(answer)
    assert told.store.get("a", "ns") == events[-1][1]
    last = told.changes[-1]
    assert last.new == events[-1][1]
    for earlier, later in pairwise(told.changes):
        assert earlier.new == later.old


@settings(max_examples=200, deadline=None)
@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["n1", "n2", ""]), st.booleans()), max_size=30))
def test_indexes_agree_with_a_full_scan(steps: list[tuple[str, str, bool]]) -> None:
    told = Told()
    for number, (name, node, delete) in enumerate(steps, start=1):
        if delete:
            present = told.store.get(name, "ns")
            if present is not None:
                told.store.remove(pod(name, number, uid=present.metadata.uid))
        else:
            present = told.store.get(name, "ns")
            uid = present.metadata.uid if present else f"u{number}"
            told.store.apply(pod(name, number, uid=uid, node=node))
        fixed = FixedReader(told.store.list())
        for node_name in ("n1", "n2", ""):
            assert told.store.by_index(BY_NODE, node_name) == fixed.by_index(Pod, POD_BY_NODE, node_name)
