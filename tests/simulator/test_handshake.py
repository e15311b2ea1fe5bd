"""The handshake table against every decision the real kernel logged, and its symmetry."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorate.simulator.handshake import Side, Strategy, compute_replication, decide
from quorate.simulator.metadata import JUST_CREATED
from quorate.simulator.model import Generations
from quorate.simulator.states import MIRROR, Replication, Role
from tests.simulator.recordings import FILES, needs_recordings

_UUIDS = r"([0-9A-F]{16}):([0-9A-F]{16}):([0-9A-F]{16}):([0-9A-F]{16}) bits:(\d+) flags:([0-9A-F]+)"
_SELF = re.compile(rf"self {_UUIDS}")
_PEER = re.compile(rf"peer {_UUIDS}")
_DECISION = re.compile(r"uuid_compare\(\)=(\S+) by rule=(\S+)")

OWN, PEER = 0, 1


class Logged(NamedTuple):
    place: str
    own: Generations
    peer: Generations
    strategy: str
    rule: str


def _generations(match: re.Match[str], addressee: int) -> Generations:
    """The four UUIDs a log line shows: current, bitmap towards the other side, and the two youngest of the history."""
    current, bitmap, first, second = (int(match.group(index), 16) for index in range(1, 5))
    flags = int(match.group(6), 16)
    return Generations(
        current=current,
        bitmap_uuids=((addressee, bitmap),) if bitmap else (),
        history=tuple(uuid for uuid in (first, second) if uuid),
        dirty_blocks=int(match.group(5)),
        discard_my_data=bool(flags & 0x1),
        crashed_primary=bool(flags & 0x2),
        inconsistent=bool(flags & 0x4),
        stable=bool(flags & 0x20),
        reconnecting=bool(flags & 0x100),
    )


def logged_handshakes(path: Path) -> Iterator[Logged]:
    for text in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(text)
        if record["kind"] != "kernel_log":
            continue
        own = peer = None
        for line in cast("list[str]", record["lines"]):
            if (match := _SELF.search(line)) is not None:
                own = _generations(match, PEER)
            elif (match := _PEER.search(line)) is not None:
                peer = _generations(match, OWN)
            elif (match := _DECISION.search(line)) is not None and own is not None and peer is not None:
                yield Logged(f"{path.stem} {record['node']}", own, peer, match.group(1), match.group(2))


@needs_recordings
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_logged_handshake_is_decided_as_the_kernel_did(path: Path) -> None:
    wrong: list[str] = []
    for logged in logged_handshakes(path):
        decision = decide(Side(OWN, logged.own), Side(PEER, logged.peer))
        if (decision.strategy.value, decision.rule) != (logged.strategy, logged.rule):
            wrong.append(f"{logged.place}: {logged.strategy}/{logged.rule}, not {decision}")
    assert not wrong, "\n".join(wrong)


@needs_recordings
def test_the_recordings_contain_handshakes() -> None:
    assert sum(1 for path in FILES for _ in logged_handshakes(path)) > 300


_uuids = st.sampled_from([JUST_CREATED, *(value << 8 for value in range(1, 6))])
_generations_of = st.builds(
    Generations,
    current=_uuids,
    history=st.lists(_uuids, max_size=3).map(tuple),
    crashed_primary=st.booleans(),
    lost_quorum=st.booleans(),
    reconnecting=st.booleans(),
)


def _with_slot(generations: Generations, addressee: int, uuid: int) -> Generations:
    from dataclasses import replace

    return replace(generations, bitmap_uuids=((addressee, uuid),))


@given(_generations_of, _generations_of, _uuids, _uuids, st.booleans())
def test_both_ends_agree_on_the_direction(
    own: Generations, peer: Generations, own_slot: int, peer_slot: int, tie: bool
) -> None:
    here = Side(OWN, _with_slot(own, PEER, own_slot))
    there = Side(PEER, _with_slot(peer, OWN, peer_slot))
    mine = decide(here, there, prefers_source=tie).strategy
    theirs = decide(there, here, prefers_source=not tie).strategy
    state = compute_replication(mine, Role.SECONDARY, Role.SECONDARY)
    if {here.generations.current, there.generations.current} == {own_slot, peer_slot} and own_slot != peer_slot:
        return  # each keeps a bitmap since the other's generation: no pair of disks gets there
    assert compute_replication(theirs, Role.SECONDARY, Role.SECONDARY) is MIRROR[state]


@pytest.mark.parametrize(
    ("strategy", "own", "peer", "expected"),
    [
        (Strategy.TARGET_IF_BOTH_FAILED, Role.PRIMARY, Role.SECONDARY, Replication.WF_BITMAP_S),
        (Strategy.SOURCE_IF_BOTH_FAILED, Role.SECONDARY, Role.PRIMARY, Replication.WF_BITMAP_T),
        (Strategy.SOURCE_IF_BOTH_FAILED, Role.PRIMARY, Role.PRIMARY, Replication.ESTABLISHED),
        (Strategy.SOURCE_IF_BOTH_FAILED, Role.SECONDARY, Role.SECONDARY, Replication.WF_BITMAP_S),
        (Strategy.TARGET_USE_BITMAP, Role.PRIMARY, Role.SECONDARY, Replication.WF_BITMAP_T),
    ],
)
def test_a_present_primary_overrides_only_soft_preferences(
    strategy: Strategy, own: Role, peer: Role, expected: Replication
) -> None:
    assert compute_replication(strategy, own, peer) is expected
