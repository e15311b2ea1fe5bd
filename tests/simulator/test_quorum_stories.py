"""Stories of facts/kernel-quorum that come without a recording: the simulator tells them as the kernel did.

n0, n1 diskful, n2 tie-breaker, n3 new or leaving voter; the headings are those of the document.
"""

from __future__ import annotations

import pytest

from quorate.simulator.states import Disk, Link, Role
from tests.simulator.lab import Lab

NO_QUORUM = "(-25) No quorum"


# --- 1: a number beside a tie-breaker -----------------------------------------------------------------------------


def test_x0b_a_lost_primary_has_no_successor_with_a_number() -> None:
    lab = Lab(quorum="2")
    lab.must(0, "drbdsetup primary r0")
    lab.part((0,), (1, 2))
    assert (lab.quorum(1), lab.disk(1), lab.link(1, 2)) == (False, Disk.UP_TO_DATE, Link.CONNECTED)
    refused = lab.promote(1)
    assert refused.exit_code == 11
    assert (
        "1 of 2 nodes visible, need 2 for quorum" in refused.stderr or "1 of 1 nodes visible, need 2" in refused.stderr
    )
    lab.set_quorum("1", 1)
    assert lab.promote(1).exit_code == 0
    assert lab.writes(1)


def test_x8b_a_lost_primary_has_a_successor_with_majority() -> None:
    lab = Lab(quorum="majority")
    lab.must(0, "drbdsetup primary r0")
    lab.part((0,), (1, 2))
    assert lab.promote(1).exit_code == 0
    assert lab.writes(1)
    assert not lab.writes(0, 1)


# --- 2: X1, a voter that only some know ---------------------------------------------------------------------------


def test_x1b_the_side_without_the_primary_is_refused_by_the_defect_of_section_1() -> None:
    lab = Lab(quorum="2")
    lab.must(1, "drbdsetup primary r0")
    lab.add(3, (1, 2), (0, 1, 2))
    lab.part((0, 2), (1, 3))
    assert lab.writes(1)
    assert lab.promote(0).exit_code == 11


def test_x1c_an_attached_newcomer_makes_two_writable_sides() -> None:
    lab = Lab(quorum="2")
    lab.must(0, "drbdsetup primary r0")
    lab.add(3, (1, 2), (0, 1, 2), attach=True)
    assert lab.disk(3) is Disk.INCONSISTENT  # synced from a Secondary, but not from the Primary it does not know
    lab.part((0, 2), (1, 3))
    assert lab.disk(3) is Disk.UP_TO_DATE
    assert lab.writes(0)
    assert lab.promote(1).exit_code == 0
    assert lab.writes(1, 1)


def test_x9a_majority_makes_two_writable_sides_as_well() -> None:
    lab = Lab(quorum="majority")
    lab.must(1, "drbdsetup primary r0")
    lab.add(3, (1, 2), (0, 1, 2))
    lab.part((0, 2), (1, 3))
    assert lab.writes(1)
    assert lab.promote(0).exit_code == 0
    assert lab.writes(0, 1)


# --- 3: X2, q+1 first ---------------------------------------------------------------------------------------------


def stage_1() -> Lab:
    """n1, n2 and n3 have the new configuration with q=3; n0 has the old one."""
    lab = Lab(quorum="2")
    lab.must(0, "drbdsetup primary r0")
    lab.set_quorum("3", 1, 2)
    lab.options = lab.options.replace("--quorum=2", "--quorum=3")
    lab.add(3, (1, 2), (0, 1, 2))
    return lab


def stage_2() -> Lab:
    lab = stage_1()
    lab.set_quorum("3", 0)
    lab.new_peer(0, 3)
    lab.must(0, "drbdsetup connect r0 3")
    lab.wait(5)
    return lab


def test_x2_stage_1_has_one_writable_side() -> None:
    lab = stage_1()
    lab.part((0, 2), (1, 3))
    assert lab.writes(0)
    refused = lab.promote(1)
    assert refused.exit_code == 11
    assert NO_QUORUM in refused.stderr


def test_x2_stage_1_the_loss_of_the_tie_breaker_is_survived() -> None:
    lab = stage_1()
    lab.part((2,), (0, 1, 3))
    assert lab.writes(0)


def test_x2_stage_1_the_loss_of_the_primary_leaves_nobody() -> None:
    lab = stage_1()
    lab.part((0,), (1, 2, 3))
    assert lab.promote(1).exit_code == 11


def test_x2_stage_1b_a_raised_q_does_not_stop_a_running_primary() -> None:
    lab = stage_1()
    lab.set_quorum("3", 0)
    assert lab.writes(0)


def test_x2_stage_2_a_partition_leaves_nobody() -> None:
    lab = stage_2()
    lab.part((0, 2), (1, 3))
    assert not lab.writes(0)
    assert lab.promote(1).exit_code == 11
    lab.heal()
    assert lab.writes(0, 1)  # by itself


@pytest.mark.parametrize(("lost", "goes_on"), [(2, True), (3, False)])
def test_x2_stage_2_any_lost_voter_stops_the_primary(lost: int, goes_on: bool) -> None:
    lab = stage_2()
    lab.part((lost,), tuple(other for other in range(4) if other != lost))
    assert lab.writes(0) is goes_on


def test_x2_stage_3_has_one_writable_side() -> None:
    lab = stage_2()
    lab.set_quorum("2", 0, 1, 2, 3)
    lab.part((0, 2), (1, 3))
    assert not lab.writes(0)
    assert lab.promote(1).exit_code == 0
    assert lab.writes(1, 1)
    lab.heal()
    assert lab.link(0, 1) is Link.STAND_ALONE  # rule of on-suspended-primary-outdated


def test_x8m_without_the_tie_breakers_vote_there_is_one_writable_side() -> None:
    lab = Lab(quorum="2")
    lab.must(0, "drbdsetup primary r0")
    for index in (0, 1):
        lab.must(index, "drbdsetup peer-device-options r0 2 0 --peer-tiebreaker=no")
    lab.add(3, (1, 2), (0, 1, 2))
    lab.must(3, "drbdsetup peer-device-options r0 2 0 --peer-tiebreaker=no")
    lab.part((0, 2), (1, 3))
    assert not lab.writes(0)
    assert lab.promote(1).exit_code == 0
    assert lab.writes(1, 1)


# --- 4: X4, removing a voter on some nodes only -------------------------------------------------------------------


def removed_on_n1_and_n2(primary: int, quorum: str = "2") -> Lab:
    lab = Lab(quorum=quorum, disks=(0, 1, 3))
    lab.must(primary, "drbdsetup primary r0")
    for index in (1, 2):
        for verb in ("disconnect", "del-peer", "forget-peer"):
            lab.must(index, f"drbdsetup {verb} r0 3")
    lab.wait(2)
    return lab


def test_x4b_a_forgotten_voter_still_votes_where_it_is_known() -> None:
    lab = removed_on_n1_and_n2(primary=1)
    assert lab.disk(3) is Disk.OUTDATED
    lab.part((0, 3), (1, 2))
    assert lab.writes(1)
    assert lab.promote(0).exit_code == 0
    assert lab.writes(0, 1)
    assert lab.promote(3).exit_code == 11  # (-1): n0 is Primary


def test_x4a_only_the_defect_of_section_1_stops_the_other_side() -> None:
    lab = removed_on_n1_and_n2(primary=0)
    lab.part((0, 3), (1, 2))
    assert lab.writes(0)
    refused = lab.promote(1)
    assert (refused.exit_code, NO_QUORUM in refused.stderr) == (11, True)


def test_x9b_majority_has_two_writable_sides() -> None:
    lab = removed_on_n1_and_n2(primary=0, quorum="majority")
    lab.part((0, 3), (1, 2))
    assert lab.writes(0)
    assert lab.promote(1).exit_code == 0
    assert lab.writes(1, 1)


# --- 6: X6, allow-two-primaries on one end ------------------------------------------------------------------------


def two_primaries(lab: Lab, index: int) -> bool:
    return lab.connection(index, 1 - index).two_primaries


def test_x6_the_option_is_copied_to_the_other_end_of_a_live_link() -> None:
    lab = Lab(quorum="2")
    lab.must(0, "drbdsetup primary r0")
    lab.must(0, "drbdsetup net-options r0 1 --allow-two-primaries=yes")
    assert two_primaries(lab, 1)
    assert lab.promote(1).exit_code == 0
    kept = lab.run(0, "drbdsetup net-options r0 1 --allow-two-primaries=no")
    assert (kept.exit_code, "(164)" in kept.stderr) == (10, True)
    lab.must(1, "drbdsetup secondary r0")
    lab.must(1, "drbdsetup net-options r0 0 --allow-two-primaries=no")
    assert not two_primaries(lab, 0)
    assert lab.promote(1).exit_code == 11


def test_x6_two_idle_primaries_meet_again() -> None:
    lab = Lab(quorum="2")
    lab.must(0, "drbdsetup net-options r0 1 --allow-two-primaries=yes")
    for index in (0, 1):
        lab.must(index, "drbdsetup primary r0")
    lab.part((0,), (1,))
    assert lab.quorum(0)
    assert lab.quorum(1)
    lab.heal()
    assert (lab.link(0, 1), lab.role(0), lab.role(1)) == (Link.CONNECTED, Role.PRIMARY, Role.PRIMARY)


def test_x6b_an_option_written_while_the_link_is_down_splits_it() -> None:
    lab = Lab(quorum="2")
    lab.must(0, "drbdsetup primary r0")
    lab.part((0,), (1,))
    lab.must(0, "drbdsetup net-options r0 1 --allow-two-primaries=yes")
    lab.heal()
    assert (lab.link(0, 1), lab.link(1, 0)) == (Link.STAND_ALONE, Link.STAND_ALONE)
    lab.must(1, "drbdsetup net-options r0 0 --allow-two-primaries=yes")
    for index in (0, 1):
        lab.must(index, f"drbdsetup connect r0 {1 - index}")
    lab.wait(10)
    assert lab.link(0, 1) is Link.CONNECTED


def test_x6b_a_forced_leave_is_the_way_out_of_a_drain() -> None:
    lab = Lab(quorum="2")
    lab.must(0, "drbdsetup primary r0")
    assert lab.run(1, "drbdsetup disconnect r0 0").exit_code == 11
    lab.must(1, "drbdsetup disconnect r0 0 --force")
    lab.wait(5)
    assert lab.disk(1) is Disk.OUTDATED
    assert lab.quorum(0)
    assert lab.writes(0)
    lab.must(1, "drbdsetup down r0")


# --- 9: X10, q+1 first while the partition already exists ---------------------------------------------------------


def test_x10_a_raised_q_does_not_bite_on_an_isolated_primary() -> None:
    lab = Lab(quorum="2")
    lab.must(0, "drbdsetup primary r0")
    lab.part((0, 2), (1, 3))
    assert lab.writes(0)
    lab.set_quorum("3", 1, 2, 0)
    assert lab.writes(0, 1)
    lab.options = lab.options.replace("--quorum=2", "--quorum=3")
    lab.add(3, (1, 2), (0, 1, 2))
    lab.new_peer(0, 3)
    refused = lab.run(0, "drbdsetup connect r0 3")
    assert (refused.exit_code, NO_QUORUM in refused.stderr) == (11, True)
    assert lab.link(0, 3) is Link.STAND_ALONE
    assert lab.writes(0, 2)
    lab.set_quorum("2", 1, 3)
    assert lab.promote(1).exit_code == 0
    assert lab.writes(1, 3)
    assert lab.writes(0, 4)
