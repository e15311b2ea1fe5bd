"""The quorum rule gives the flag the real kernel reported, for every state change of the pinned recordings.

`quorum_cases/` is produced by `extract_quorum_cases.py`. A peer's member-set exclusion and its own flag are not
visible in a node's `events2`; where a change of theirs is too recent to be ordered ("maybe"), either value may
explain the flag.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path
from typing import NamedTuple

import pytest

from quorate.simulator.quorum import (
    ALL,
    MAJORITY,
    OFF,
    OwnView,
    PeerView,
    QuorumOptions,
    Tally,
    compute_tally,
    compute_verdict,
    flag_after,
    have_quorum,
)

FILES = tuple(sorted((Path(__file__).parent / "quorum_cases").glob("*.json")))

Rule = Callable[[OwnView, tuple[PeerView, ...], QuorumOptions, bool], bool]


class Case(NamedTuple):
    name: str
    own: OwnView
    peers: tuple[tuple[PeerView, ...], ...]
    options: QuorumOptions
    had_quorum: bool
    primary: bool
    forced: bool
    flag: bool


def setting(text: str) -> int:
    return int(text) if text.isdigit() else {"off": OFF, "majority": MAJORITY, "all": ALL}[text]


def read_peers(rows: list[list[object]]) -> tuple[tuple[PeerView, ...], ...]:
    """Every reading of the peers that the recording allows."""
    readings: list[tuple[PeerView, ...]] = []
    for quorate_guess, dropped_guess in product((False, True), repeat=2):
        readings.append(
            tuple(
                PeerView(
                    connected=bool(connected),
                    disk=str(disk),
                    has_bitmap=bool(bitmap),
                    tiebreaker=bool(tiebreaker),
                    remembered=bool(remembered),
                    quorate=quorate == "yes" or (quorate == "maybe" and quorate_guess),
                    quorumless=dropped == "yes" or (dropped == "maybe" and dropped_guess),
                )
                for _, connected, disk, bitmap, tiebreaker, remembered, quorate, dropped in rows
            )
        )
    return tuple(dict.fromkeys(readings))


def read_cases(path: Path) -> Iterator[Case]:
    for node, rows in json.loads(path.read_text()).items():
        had_quorum, disk_before = False, "Diskless"
        for t, primary, disk, client, quorum, redundancy, lost, disk_lost, flag, peers in rows:
            # The kernel turns UpToDate into Consistent after it evaluated the quorum of the same change.
            seen = "UpToDate" if disk == "Consistent" and disk_before == "UpToDate" else disk
            yield Case(
                name=f"{path.stem} {node} t={t}",
                own=OwnView(seen, client),
                peers=read_peers(peers),
                options=QuorumOptions(setting(quorum), setting(redundancy)),
                had_quorum=had_quorum,
                primary=primary,
                forced=bool(lost) or disk_lost,
                flag=flag,
            )
            had_quorum, disk_before = flag, disk


def explained(case: Case, rule: Rule) -> bool:
    for peers in case.peers:
        computed = rule(case.own, peers, case.options, case.had_quorum)
        if case.flag == flag_after(
            computed=computed, had_quorum=case.had_quorum, primary=case.primary, forced=case.forced
        ):
            return True
    return False


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_rule_gives_the_recorded_flag(path: Path) -> None:
    cases = list(read_cases(path))
    assert cases
    assert [case.name for case in cases if not explained(case, have_quorum)] == []


def test_hardly_any_recorded_change_is_ambiguous() -> None:
    cases = [case for path in FILES for case in read_cases(path)]
    ambiguous = [
        case
        for case in cases
        if len({have_quorum(case.own, peers, case.options, case.had_quorum) for peers in case.peers}) > 1
    ]
    assert len(cases) > 1000
    assert len(ambiguous) * 25 < len(cases)


def static_voters(own: OwnView, peers: tuple[PeerView, ...], options: QuorumOptions, had: bool) -> bool:
    return have_quorum(own, peers, options._replace(dynamic_voters=False), had)


def number_follows_striking(own: OwnView, peers: tuple[PeerView, ...], options: QuorumOptions, had: bool) -> bool:
    quorum = MAJORITY if options.quorum > 0 else options.quorum
    return have_quorum(own, peers, options._replace(quorum=quorum), had)


def tie_break_needs_redundancy(own: OwnView, peers: tuple[PeerView, ...], options: QuorumOptions, had: bool) -> bool:
    verdict = compute_verdict(compute_tally(own, peers, had_quorum=had), options, had_quorum=had)
    return verdict.have_quorum and (not verdict.by_tie_break or verdict.up_to_date >= verdict.minimum_redundancy_at)


def tie_break_is_not_sticky(own: OwnView, peers: tuple[PeerView, ...], options: QuorumOptions, had: bool) -> bool:
    return compute_verdict(compute_tally(own, peers, had_quorum=had), options, had_quorum=True).have_quorum


def every_diskless_peer_breaks_ties(
    own: OwnView, peers: tuple[PeerView, ...], options: QuorumOptions, had: bool
) -> bool:
    return have_quorum(own, tuple(peer._replace(tiebreaker=True) for peer in peers), options, had)


def diskless_nodes_ask_nobody(own: OwnView, peers: tuple[PeerView, ...], options: QuorumOptions, had: bool) -> bool:
    return have_quorum(own, tuple(peer._replace(quorate=False) for peer in peers), options, had)


def lost_peers_stay_unknown(own: OwnView, peers: tuple[PeerView, ...], options: QuorumOptions, had: bool) -> bool:
    return have_quorum(own, tuple(peer._replace(quorumless=False) for peer in peers), options, had)


@pytest.mark.parametrize(
    "wrong_rule",
    [
        static_voters,
        number_follows_striking,
        tie_break_needs_redundancy,
        tie_break_is_not_sticky,
        every_diskless_peer_breaks_ties,
        diskless_nodes_ask_nobody,
        lost_peers_stay_unknown,
    ],
)
def test_recordings_contradict_a_wrong_rule(wrong_rule: Rule) -> None:
    assert any(not explained(case, wrong_rule) for path in FILES for case in read_cases(path))


def test_recordings_contradict_a_primary_that_loses_quorum_by_an_option() -> None:
    refused = [
        case
        for path in FILES
        for case in read_cases(path)
        if case.primary and case.flag and not any(have_quorum(case.own, p, case.options, True) for p in case.peers)
    ]
    assert {case.name.split()[0] for case in refused} >= {"S12", "S12b", "X1a", "X7"}


LAYOUTS: dict[str, tuple[int, int, int, int, list[tuple[int, int]], list[tuple[int, int]]]] = {
    # layout: (diskful, tie-breakers, q, qmr, losses that keep I/O, losses that stop I/O); facts/datamesh 1.7
    "1D": (1, 0, 1, 1, [], []),
    "2D+1TB": (2, 1, 2, 1, [(1, 0), (0, 1)], [(1, 1)]),
    "2D": (2, 0, 2, 2, [], [(1, 0)]),
    "3D": (3, 0, 2, 2, [(1, 0)], [(2, 0)]),
    "4D+1TB": (4, 1, 3, 2, [(1, 0), (2, 0), (1, 1)], [(2, 1), (3, 0)]),
    "4D": (4, 0, 3, 3, [(1, 0)], [(2, 0)]),
    "5D": (5, 0, 3, 3, [(1, 0), (2, 0)], [(3, 0)]),
}


def losses() -> Iterator[tuple[str, int, int, bool]]:
    for layout, (*_, keeps, stops) in LAYOUTS.items():
        yield from ((layout, diskful, tie_breakers, True) for diskful, tie_breakers in keeps)
        yield from ((layout, diskful, tie_breakers, False) for diskful, tie_breakers in stops)


@pytest.mark.parametrize(("layout", "lost_diskful", "lost_tie_breakers", "keeps_io"), list(losses()))
def test_layout_keeps_or_stops_io_after_a_simultaneous_loss(
    layout: str, lost_diskful: int, lost_tie_breakers: int, keeps_io: bool
) -> None:
    diskful, tie_breakers, q, qmr, _, _ = LAYOUTS[layout]
    voters = (PeerView(connected=False, disk="DUnknown"),) * lost_diskful
    voters += (PeerView(connected=True),) * (diskful - 1 - lost_diskful)
    diskless = PeerView(connected=True, disk="Diskless", has_bitmap=False)
    arbiters = (diskless._replace(connected=False),) * lost_tie_breakers
    arbiters += (diskless,) * (tie_breakers - lost_tie_breakers)
    options = QuorumOptions(q, qmr, dynamic_voters=False)
    assert have_quorum(OwnView(), voters + arbiters, options, True) is keeps_io


def test_static_majority_equals_the_number() -> None:
    for voters in range(1, 8):
        for present in range(1, voters + 1):
            for tie_breaker in (False, True):
                peers = (PeerView(connected=True),) * (present - 1)
                peers += (PeerView(connected=False, disk="DUnknown"),) * (voters - present)
                peers += (PeerView(connected=True, disk="Diskless", has_bitmap=False),) * tie_breaker
                number = QuorumOptions(voters // 2 + 1, 1, dynamic_voters=False)
                majority = number._replace(quorum=MAJORITY)
                assert have_quorum(OwnView(), peers, number, True) == have_quorum(OwnView(), peers, majority, True)


def test_missing_voters_that_could_be_the_quorate_side_are_not_struck() -> None:
    """Read in the kernel's source, not pinned by a recording: 2 of 5 must not shrink to "2 of 2"."""
    quorumless = Tally(up_to_date=2, quorumless=3)
    assert not compute_verdict(quorumless, QuorumOptions(MAJORITY, 1), had_quorum=True).have_quorum
    struck = Tally(up_to_date=3, quorumless=2)
    assert compute_verdict(struck, QuorumOptions(MAJORITY, 1), had_quorum=True).voters == 3
