"""Layout arithmetic (facts/datamesh 1.6-1.8, decision 1)."""

from __future__ import annotations

from itertools import product

import pytest

from quorate.datamesh import layout as arithmetic
from quorate.datamesh.layout import (
    ALL_LAYOUTS,
    TRANSZONAL_ZONES,
    Layout,
    initial_quorum,
    layout_of,
    majority,
    target_qmr,
)

ROWS = [
    # FTT, GMDR, name, D, TB, q, qmr
    (0, 0, "1D", 1, 0, 1, 1),
    (1, 0, "2D+1TB", 2, 1, 2, 1),
    (0, 1, "2D", 2, 0, 2, 2),
    (1, 1, "3D", 3, 0, 2, 2),
    (2, 1, "4D+1TB", 4, 1, 3, 2),
    (1, 2, "4D", 4, 0, 3, 3),
    (2, 2, "5D", 5, 0, 3, 3),
]


@pytest.mark.parametrize(("ftt", "gmdr", "name", "diskful", "breakers", "quorum", "qmr"), ROWS)
def test_row_of_the_table(ftt: int, gmdr: int, name: str, diskful: int, breakers: int, quorum: int, qmr: int) -> None:
    layout = layout_of(ftt, gmdr)
    assert (str(layout), layout.diskful, layout.tie_breakers) == (name, diskful, breakers)
    assert (layout.quorum, layout.qmr) == (quorum, qmr)
    assert initial_quorum(layout, diskful) == (quorum, qmr)


def test_exactly_seven_promises_have_a_layout() -> None:
    assert len(ALL_LAYOUTS) == 7
    for ftt, gmdr in product(range(-1, 4), repeat=2):
        if Layout(ftt, gmdr) in ALL_LAYOUTS:
            continue
        with pytest.raises(ValueError, match="no layout"):
            layout_of(ftt, gmdr)


def test_majority_is_the_smallest_number_two_halves_cannot_both_reach() -> None:
    for voters in range(1, 14):
        assert 2 * majority(voters) > voters
        assert 2 * (majority(voters) - 1) <= voters


@pytest.mark.parametrize(
    ("layout", "current", "copies", "expected"),
    [
        (Layout(0, 0), 2, 1, 1),  # lowering is always right
        (Layout(1, 1), 3, 0, 2),
        (Layout(1, 2), 2, 3, 2),  # H26: three copies must survive one failure, so qmr stays 2
        (Layout(1, 2), 2, 4, 3),
        (Layout(2, 2), 1, 4, 2),  # a partial raise, continued later
        (Layout(2, 2), 2, 5, 3),
        (Layout(0, 1), 1, 2, 2),
        (Layout(0, 1), 1, 1, 1),
        (Layout(1, 1), 0, 0, 1),  # corruption: qmr is never 0
    ],
)
def test_qmr_rises_only_as_far_as_the_copies_carry_it(layout: Layout, current: int, copies: int, expected: int) -> None:
    assert target_qmr(layout, current, copies) == expected


def _survives_any_zone(layout: Layout, zones: tuple[int, ...], tie_breaker_zone: int) -> bool:
    total = sum(zones)
    for lost in range(len(zones)):
        rest = total - zones[lost]
        tie = layout.tie_breakers and lost != tie_breaker_zone and total % 2 == 0 and rest == layout.quorum - 1
        if not ((rest >= layout.quorum or tie) and rest >= layout.qmr):
            return False
    return True


@pytest.mark.parametrize("layout", [layout for layout in ALL_LAYOUTS if layout.ftt > 0], ids=str)
def test_transzonal_zone_counts_are_those_that_survive_the_loss_of_any_zone(layout: Layout) -> None:
    possible: list[int] = []
    for zones in range(2, 6):
        places = [p for p in product(range(layout.diskful + 1), repeat=zones) if sum(p) == layout.diskful]
        found = False
        for place in places:
            for breaker in range(zones) if layout.tie_breakers else (-1,):
                used = all(count or index == breaker for index, count in enumerate(place))
                found = found or (used and _survives_any_zone(layout, place, breaker))
        if found:
            possible.append(zones)
    assert TRANSZONAL_ZONES[layout.ftt, layout.gmdr] == tuple(possible)


def test_names_of_memberships() -> None:
    assert arithmetic.layout_name(4, 1) == "4D+1TB"
    assert arithmetic.layout_name(3, 0) == "3D"
