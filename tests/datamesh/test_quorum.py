"""ChangeQuorum: the one owner of qmr, and the repair of everything that quorum is computed from (facts/datamesh 3.9)."""

from __future__ import annotations

import pytest

from quorate.api.replicated_volume import TransitionType
from quorate.api.replicated_volume_replica import BackingVolume
from quorate.verification.perfect_drive import delete_replica, form, run, with_configuration
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    ONE,
    PAIR,
    PAIR_TB,
    THREE,
    datamesh,
    edit_datamesh,
    edit_member,
    edit_replica,
    passed,
    transition,
)

QUORUM = TransitionType.CHANGE_QUORUM


@pytest.mark.parametrize(
    ("quorum", "qmr", "plan"),
    [
        (18, 5, "lower/v1"),
        (0, 0, "raise/v1"),
        (1, 1, "raise/v1"),
        (3, 1, "lower-q-raise-qmr/v1"),
        (1, 3, "raise-q-lower-qmr/v1"),
        (2, 3, "lower/v1"),
    ],
)
def test_corruption_of_any_size_is_repaired(quorum: int, qmr: int, plan: str) -> None:
    broken = edit_datamesh(form(THREE), quorum=quorum, quorum_minimum_redundancy=qmr)
    first = passed(broken)
    found = transition(first, QUORUM)
    assert found is not None
    assert found.plan_id == plan
    cluster, _ = run(broken)
    assert (datamesh(cluster).quorum, datamesh(cluster).quorum_minimum_redundancy) == (2, 2)


def test_right_values_need_no_change() -> None:
    assert transition(passed(form(THREE)), QUORUM) is None


def test_s13_the_baseline_falls_with_the_publication_and_rises_with_the_confirmation() -> None:
    lowered = passed(with_configuration(form(PAIR), ONE))
    assert lowered.volume.status.baseline_guaranteed_minimum_data_redundancy == 0
    assert lowered.volume.status.effective_layout.guaranteed_minimum_data_redundancy == 0
    low = edit_datamesh(form(PAIR), quorum_minimum_redundancy=1)
    low = passed(edit_replica(low, 1, backing_volume=BackingVolume(state="Inconsistent")))
    assert low.volume.status.baseline_guaranteed_minimum_data_redundancy == 0
    raised = passed(react(low))
    while datamesh(raised).quorum_minimum_redundancy == 1:
        raised = passed(react(raised))
    assert raised.volume.status.baseline_guaranteed_minimum_data_redundancy == 0, "published, not yet confirmed"
    assert run(raised)[0].volume.status.baseline_guaranteed_minimum_data_redundancy == 1


def test_h13_a_blocked_leave_does_not_keep_qmr_wrong() -> None:
    cluster = with_configuration(form(PAIR), ONE)
    cluster = edit_replica(react(delete_replica(cluster, 0)), 1, backing_volume=BackingVolume(state="Outdated"))
    cluster = passed(cluster)
    assert datamesh(cluster).quorum_minimum_redundancy == 1


def test_a_vote_that_was_left_off_comes_back() -> None:
    cluster = passed(edit_datamesh(form(PAIR_TB), tie_breakers_suspended=True))
    found = transition(cluster, QUORUM)
    assert found is not None
    assert found.plan_id == "restore-tie-breakers/v1"
    assert not datamesh(cluster).tie_breakers_suspended


def test_connections_that_were_left_cut_come_back() -> None:
    cluster = passed(edit_member(form(PAIR_TB), 0, tie_breakers_disconnected=True))
    assert not any(member.tie_breakers_disconnected for member in datamesh(cluster).members)


def test_the_tie_break_ignores_qmr_so_a_surplus_tie_breaker_goes_before_qmr_rises() -> None:
    cluster = with_configuration(form(PAIR_TB), PAIR)
    assert datamesh(passed(cluster)).quorum_minimum_redundancy == 1
    cluster, _ = run(cluster)
    assert datamesh(cluster).quorum_minimum_redundancy == 2
    assert [member.type for member in datamesh(cluster).members] == ["Diskful", "Diskful"]
