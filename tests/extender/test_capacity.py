"""Capacity, scores and reservations of the extender (facts/controllers 6.3)."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.api.scheduler_extender import format_go_duration, parse_go_duration
from quorate.extender.book import BadRequest, CapacityBook
from quorate.extender.capacity import Capacity, compute_capacities
from quorate.extender.reservations import Place, Reservations
from quorate.extender.scoring import compute_free_percent_after, compute_score
from tests.extender.builders import GIB, ask, group, keep, pool, volume

NOW = 1000.0


class TestCapacity:
    def test_empty_group(self) -> None:
        assert compute_capacities(group(), ())[Place("vg")] == Capacity(100 * GIB, 100 * GIB)

    def test_volume_counts_before_the_node_has_made_it(self) -> None:
        found = compute_capacities(group(free=100), (volume("a", 30),))
        assert found[Place("vg")].available == 70 * GIB

    def test_volume_that_exists_counts_once(self) -> None:
        found = compute_capacities(group(free=70), (volume("a", 30, actual=30),))
        assert found[Place("vg")].available == 70 * GIB

    def test_growing_volume_counts_with_what_it_will_be(self) -> None:
        found = compute_capacities(group(free=70), (volume("a", 50, actual=30),))
        assert found[Place("vg")].available == 50 * GIB

    def test_foreign_volumes_are_unaccounted_use(self) -> None:
        found = compute_capacities(group(free=60), (volume("a", 30, actual=30), volume("b", 5)))
        assert found[Place("vg")].available == 55 * GIB

    def test_reported_free_is_an_upper_bound(self) -> None:
        assert compute_capacities(group(size=100, free=10), ())[Place("vg")].available == 10 * GIB

    def test_thin_pools_take_room_in_the_group(self) -> None:
        found = compute_capacities(group("vg", 100, 40, pool(size=60)), ())
        assert found[Place("vg")].available == 40 * GIB

    def test_thin_pool_may_be_overcommitted(self) -> None:
        found = compute_capacities(group("vg", 100, 0, pool(size=100)), (volume("a", 50, thin="thin"),))
        assert found[Place("vg", "thin")] == Capacity(150 * GIB, 100 * GIB)

    def test_thin_pool_without_limit_has_the_default(self) -> None:
        found = compute_capacities(group("vg", 100, 0, pool(size=10, limit="")), ())
        assert found[Place("vg", "thin")].total == 15 * GIB

    def test_thin_volumes_of_others_count(self) -> None:
        found = compute_capacities(group("vg", 100, 0, pool(size=100, allocated=40)), ())
        assert found[Place("vg", "thin")].available == 110 * GIB

    def test_reported_space_of_a_thin_pool_is_an_upper_bound(self) -> None:
        found = compute_capacities(group("vg", 100, 0, pool(size=100, available=7)), ())
        assert found[Place("vg", "thin")].available == 7 * GIB

    @pytest.mark.parametrize("unknown", [group(size=None), group(free=None)])
    def test_unreported_sizes_mean_no_known_capacity(self, unknown: object) -> None:
        assert Place("vg") not in compute_capacities(unknown, ())  # pyright: ignore[reportArgumentType]

    def test_unreported_thin_pool_means_no_known_capacity(self) -> None:
        assert Place("vg", "thin") not in compute_capacities(group("vg", 100, 0, pool(size=None)), ())


class TestScores:
    @pytest.mark.parametrize(
        ("percent", "score"), [(0, 1), (1, 1), (2, 1), (3, 2), (10, 3), (30, 5), (50, 6), (90, 6), (91, 7), (100, 7)]
    )
    def test_logarithm_of_the_percentage(self, percent: int, score: int) -> None:
        assert compute_score(percent) == score

    def test_divisor_shifts_and_limits_hold(self) -> None:
        assert compute_score(100, 0.01) == 10
        assert compute_score(100, 1000) == 1

    def test_percentage_is_whole_and_bounded(self) -> None:
        assert compute_free_percent_after(1000, 1000, 5) == 99
        assert compute_free_percent_after(1000, 10, 500) == 0
        assert compute_free_percent_after(0, 10, 5) == 0


class TestBook:
    def book(self, *sizes: float) -> CapacityBook:
        book = CapacityBook()
        for number, size in enumerate(sizes or (100,)):
            book.apply_group(None, group("vg" if not sizes else f"vg{number}", size, size))
        return book

    def names(self, book: CapacityBook, id: str, size: float, *groups: str, now: float = NOW) -> list[str]:
        return [item.name for item in book.filter_and_score(ask(id, size, *groups), now).lvgs]

    def test_places_without_room_and_unknown_places_are_left_out(self) -> None:
        assert self.names(self.book(100, 10), "a", 50, "vg0", "vg1", "nowhere") == ["vg0"]

    def test_nothing_fits_reserves_nothing(self) -> None:
        book = self.book(10)
        assert self.names(book, "a", 50, "vg0") == []
        assert len(book.reservations) == 0

    def test_reserved_in_every_returned_place(self) -> None:
        book = self.book(100, 100)
        self.names(book, "a", 60, "vg0", "vg1")
        assert self.names(book, "b", 60, "vg0", "vg1") == []

    def test_same_id_replaces_its_reservation(self) -> None:
        book = self.book(100)
        self.names(book, "a", 60, "vg0")
        assert self.names(book, "a", 90, "vg0") == ["vg0"]
        assert book.reservations.reserved(Place("vg0")) == 90 * GIB

    def test_expires(self) -> None:
        book = self.book(100)
        self.names(book, "a", 60, "vg0")
        assert self.names(book, "b", 60, "vg0", now=NOW + 1.999) == []
        assert self.names(book, "b", 60, "vg0", now=NOW + 2.0) == ["vg0"]

    def test_narrow_frees_the_others_and_lasts_longer(self) -> None:
        book = self.book(100, 100)
        self.names(book, "a", 60, "vg0", "vg1")
        assert book.narrow(keep("a", "vg0"), NOW + 1) == ""
        assert self.names(book, "b", 60, "vg0", "vg1", now=NOW + 60) == ["vg1"]
        assert self.names(book, "c", 60, "vg0", now=NOW + 61) == ["vg0"]

    def test_narrow_can_rename(self) -> None:
        book = self.book(100)
        self.names(book, "provisional", 60, "vg0")
        assert book.narrow(keep("provisional", "vg0", rename="pvc-1-0-abc"), NOW) == ""
        assert [item.id for item in book.reservations.all()] == ["pvc-1-0-abc"]

    @pytest.mark.parametrize("request_", [keep("unknown", "vg0"), keep("a", "vg9"), keep("a", "vg0", thin="thin")])
    def test_narrow_of_what_is_not_held_says_so(self, request_: object) -> None:
        book = self.book(100)
        self.names(book, "a", 60, "vg0")
        assert "no live reservation" in book.narrow(request_, NOW)  # pyright: ignore[reportArgumentType]

    def test_narrow_after_expiry_does_not_pretend(self) -> None:
        book = self.book(100)
        self.names(book, "a", 60, "vg0")
        assert "no live reservation" in book.narrow(keep("a", "vg0"), NOW + 3)

    def test_reservation_ends_when_its_volume_appears_and_the_room_stays_taken(self) -> None:
        book = self.book(100)
        self.names(book, "lv", 60, "vg0")
        book.narrow(keep("lv", "vg0"), NOW)
        book.apply_volume(None, volume("lv", 60, group="vg0"))
        assert len(book.reservations) == 0
        assert self.names(book, "b", 60, "vg0") == []
        assert self.names(book, "c", 40, "vg0") == ["vg0"]

    def test_deleted_volume_frees_its_room(self) -> None:
        book = self.book(100)
        taken = volume("lv", 60, group="vg0")
        book.apply_volume(None, taken)
        assert self.names(book, "a", 60, "vg0") == []
        book.apply_volume(taken, None)
        assert self.names(book, "a", 60, "vg0") == ["vg0"]

    def test_changed_group_is_noticed(self) -> None:
        book = self.book(10)
        assert self.names(book, "a", 60, "vg0") == []
        book.apply_group(group("vg0", 10, 10), group("vg0", 100, 100))
        assert self.names(book, "a", 60, "vg0") == ["vg0"]
        book.apply_group(group("vg0", 100, 100), None)
        assert self.names(book, "a", 60, "vg0") == []

    @pytest.mark.parametrize(
        ("bad", "text"),
        [
            (ask("", 1), "reservationID"),
            (ask("a", 0), "size"),
            (ask("a", 1, ttl="soon"), "reservationTTL"),
            (ask("a", 1, ttl="0s"), "reservationTTL"),
            (ask("a", 1, ""), "name"),
        ],
    )
    def test_questions_that_make_no_sense(self, bad: object, text: str) -> None:
        with pytest.raises(BadRequest, match=text):
            self.book().filter_and_score(bad, NOW)  # pyright: ignore[reportArgumentType]


class Claim(NamedTuple):
    id: str
    size: int
    places: list[str]
    ttl: int


class Narrow(NamedTuple):
    id: str
    place: str
    rename: str
    ttl: int


class Wait(NamedTuple):
    seconds: int


class Release(NamedTuple):
    id: str


ids, names, sizes, times = st.sampled_from("abc"), st.sampled_from("xyz"), st.integers(1, 5), st.integers(1, 4)
claims = st.builds(Claim, ids, sizes, st.lists(names, max_size=3, unique=True), times)
narrows = st.builds(Narrow, ids, names, st.sampled_from(["", "d"]), times)
steps_ = st.lists(st.one_of(claims, narrows, st.builds(Wait, times), st.builds(Release, ids)), max_size=30)


@given(steps_)
def test_sums_always_equal_the_live_reservations(steps: list[Claim | Narrow | Wait | Release]) -> None:
    book, now = Reservations(), 0.0
    for step in steps:
        match step:
            case Claim(id, size, places, ttl):
                book.claim(id, size, [Place(name) for name in places], now + ttl)
            case Narrow(id, place, rename, ttl):
                book.narrow(id, Place(place), now + ttl, rename=rename)
            case Wait(seconds):
                now += seconds
                book.advance(now)
            case Release(id):
                book.release(id)
        for name in "xyz":
            place = Place(name)
            assert book.reserved(place) == sum(item.size for item in book.all() if place in item.places)
        assert all(item.expires_at > now for item in book.all())


@given(st.integers(1, 20), st.integers(1, 10))
def test_of_k_claims_for_n_slots_exactly_n_win(claimants: int, slots: int) -> None:
    book = CapacityBook()
    book.apply_group(None, group("vg", slots, slots))
    winners = [id for id in range(claimants) if book.filter_and_score(ask(f"r{id}", 1), NOW).lvgs]
    assert len(winners) == min(claimants, slots)
    assert all(book.narrow(keep(f"r{id}"), NOW) == "" for id in winners)
    assert book.filter_and_score(ask("late", slots - len(winners) + 1), NOW).lvgs == ()


@pytest.mark.parametrize(
    ("text", "seconds"), [("2s", 2.0), ("1m0s", 60.0), ("1h2m3s", 3723.0), ("300ms", 0.3), ("1.5s", 1.5)]
)
def test_go_durations(text: str, seconds: float) -> None:
    assert parse_go_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize("seconds", [2, 60, 61, 3600, 3723])
def test_go_durations_round_trip(seconds: int) -> None:
    assert parse_go_duration(format_go_duration(seconds)) == seconds


@pytest.mark.parametrize("text", ["", "2", "s", "-2s", "2s3", "2 s"])
def test_not_a_go_duration(text: str) -> None:
    with pytest.raises(ValueError, match="not a duration"):
        parse_go_duration(text)
