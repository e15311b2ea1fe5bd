"""The work of a command or an event does not grow with the resources it does not concern."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType

from quorate.simulator.cluster import Cluster
from quorate.simulator.result import Result
from quorate.simulator.scheduler import SimulatedTime

NODES = 2


class Crowd:
    """Two nodes that mirror many volumes to each other."""

    def __init__(self, volumes: int) -> None:
        self.time = SimulatedTime(1000.0)
        self.cluster = Cluster(self.time, seed=1)
        for index in range(NODES):
            self.cluster.add_node(f"n{index}", {"net": f"10.0.0.{index + 1}"}).lvm.add_group("vg", 1 << 32)
        for number in range(volumes):
            self.form(number)

    def run(self, index: int, line: str) -> Result:
        return self.cluster.node(f"n{index}").execute(line.split())

    def must(self, index: int, line: str) -> None:
        answer = self.run(index, line)
        assert answer.exit_code == 0, (index, line, answer)

    def configure(self, index: int, number: int) -> None:
        path, other = f"/dev/vg/r{number}", 1 - index
        ends = f"10.0.0.{index + 1}:{7000 + number} 10.0.0.{other + 1}:{7000 + number}"
        for line in (
            f"lvcreate -y -n r{number} -L 16M vg",
            f"drbdmeta --force {number} v09 {path} internal create-md 7",
            f"drbdsetup new-resource r{number} {index} --quorum=off --auto-promote=no",
            f"drbdsetup new-minor r{number} {number} 0",
            f"drbdsetup new-peer r{number} {other} --_name=n{other}",
            f"drbdsetup new-path r{number} {other} {ends}",
            f"drbdsetup attach {number} {path} {path} internal",
            f"drbdsetup connect r{number} {other}",
            f"drbdsetup status r{number} --json",
            "lvm vgs --reportformat json",
        ):
            self.must(index, line)

    def form(self, number: int) -> None:
        for index in range(NODES):
            self.configure(index, number)
        self.time.advance(10)
        self.must(0, f"drbdsetup new-current-uuid {number} --clear-bitmap")
        self.must(0, f"drbdsetup primary r{number}")
        self.time.advance(1)

    def write(self, number: int) -> list[int | None]:
        """A write through node 0; the answers follow when they come."""
        answers: list[int | None] = []
        device = self.cluster.device("n0", f"r{number}")
        device.open(write=True)
        device.write(0, self.cluster.fresh_value(), answers.append)
        return answers


def steps(action: Callable[[], None]) -> int:
    """How many functions, comprehensions and generators are entered or resumed: time without a clock."""
    count = 0

    def note(_frame: FrameType, event: str, _argument: object) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        action()
    finally:
        sys.setprofile(before)
    return count


def test_forming_a_volume_among_many_takes_as_many_steps_as_among_few() -> None:
    few, many = Crowd(2), Crowd(40)
    assert steps(lambda: many.form(40)) <= 1.01 * steps(lambda: few.form(2))


def test_a_new_link_says_nothing_about_other_resources() -> None:
    crowd = Crowd(3)
    heard: list[str] = []
    crowd.configure(0, 3)
    crowd.time.advance(10)
    for index in range(NODES):
        kernel = crowd.cluster.node(f"n{index}").kernel
        kernel.observers.append(lambda change: heard.append(change.resource.name))
    crowd.configure(1, 3)
    crowd.time.advance(10)
    assert set(heard) == {"r3"}


def test_a_suspended_write_of_one_volume_stays_when_another_goes_on() -> None:
    crowd = Crowd(2)
    for number in range(2):
        crowd.must(0, f"drbdsetup suspend-io {number}")
    first, second = crowd.write(0), crowd.write(1)
    crowd.must(0, "drbdsetup resume-io 1")
    assert (first, second) == ([], [None])
    crowd.must(0, "drbdsetup resume-io 0")
    assert first == [None]


def test_an_address_pair_belongs_to_one_resource_until_its_last_path_goes() -> None:
    crowd = Crowd(0)
    for number in range(2):
        crowd.must(0, f"drbdsetup new-resource r{number} 0")
        crowd.must(0, f"drbdsetup new-peer r{number} 1 --_name=n1")
    crowd.must(0, "drbdsetup new-path r0 1 10.0.0.1:7000 10.0.0.2:7000")
    taken = {
        "10.0.0.1:7000 10.0.0.2:7001": ("r1", "(102)"),
        "10.0.0.1:7001 10.0.0.2:7000": ("r1", "(103)"),
        "10.0.0.1:7000 10.0.0.2:7000": ("r0", "(173)"),
    }
    for ends, (name, code) in taken.items():
        assert code in crowd.run(0, f"drbdsetup new-path {name} 1 {ends}").stderr
    crowd.must(0, "drbdsetup new-path r0 1 10.0.0.1:7002 10.0.0.2:7000")
    crowd.must(0, "drbdsetup del-path r0 1 10.0.0.1:7000 10.0.0.2:7000")
    assert "(103)" in crowd.run(0, "drbdsetup new-path r1 1 10.0.0.1:7000 10.0.0.2:7000").stderr
    crowd.must(0, "drbdsetup del-peer r0 1")
    crowd.must(0, "drbdsetup new-path r1 1 10.0.0.1:7000 10.0.0.2:7000")


def test_a_freed_bitmap_kills_whoever_looks_until_its_minor_is_gone() -> None:
    crowd = Crowd(1)
    crowd.must(0, "drbdsetup secondary r0")
    crowd.run(0, "drbdsetup attach 0 /dev/vg/r0 /dev/vg/r0 internal")
    assert crowd.run(0, "drbdsetup status").exit_code == 137
    assert crowd.run(1, "drbdsetup status").exit_code == 0
    crowd.must(0, "drbdsetup down r0")
    assert crowd.run(0, "drbdsetup status").exit_code == 0


def test_a_report_of_groups_counts_the_volumes_that_are_shown() -> None:
    crowd = Crowd(1)
    crowd.must(0, "lvcreate -y -L 64M -T vg/pool")
    crowd.must(0, "lvcreate -y -V 16M -T vg/pool -n thin")
    crowd.must(0, "lvrename vg thin other")
    count = "vgs --noheadings -o lv_count"
    assert crowd.run(0, count).stdout.strip() == "3"
    crowd.must(0, "lvremove -y vg/pool")
    assert crowd.run(0, count).stdout.strip() == "1"
