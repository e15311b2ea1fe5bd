"""Nothing acknowledged is lost: an UpToDate disk of a quorate node holds every acknowledged write."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from quorate.simulator.cluster import Cluster
from quorate.simulator.scheduler import SimulatedTime
from quorate.simulator.states import Disk, Role

NODES = 3
OPTIONS = "--quorum=majority --quorum-minimum-redundancy=1 --on-no-data-accessible=suspend-io --auto-promote=no"


class Lab:
    """Three diskful nodes, one volume."""

    def __init__(self, seed: int) -> None:
        self.time = SimulatedTime(1000.0)
        self.cluster = Cluster(self.time, seed=seed)
        for index in range(NODES):
            node = self.cluster.add_node(f"n{index}", {"net_a": f"10.1.0.1{index}"})
            node.lvm.add_group("vg", 1 << 28)
            self.run(index, "lvcreate -y -n r0 -L 16M vg")
            self.run(index, "drbdmeta --force 1000 v09 /dev/vg/r0 internal create-md 7")
        for index in range(NODES):
            self.configure(index)
        self.time.advance(10)
        self.run(0, "drbdsetup new-current-uuid 1000 --clear-bitmap")
        self.time.advance(1)

    def run(self, index: int, line: str) -> int:
        return self.cluster.node(f"n{index}").execute(line.split()).exit_code

    def configure(self, index: int) -> None:
        self.run(index, f"drbdsetup new-resource r0 {index} {OPTIONS}")
        self.run(index, "drbdsetup new-minor r0 1000 0")
        others = [other for other in range(NODES) if other != index]
        for other in others:
            self.run(index, f"drbdsetup new-peer r0 {other} --_name=n{other} --ping-int=3 --ping-timeout=10")
            self.run(index, f"drbdsetup new-path r0 {other} 10.1.0.1{index}:7000 10.1.0.1{other}:7000")
        self.run(index, "drbdsetup attach 1000 /dev/vg/r0 /dev/vg/r0 internal")
        for other in others:
            self.run(index, f"drbdsetup connect r0 {other}")

    def write(self, index: int, block: int) -> None:
        node = self.cluster.node(f"n{index}")
        volume = node.kernel.minors.get(1000)
        if node.running and volume is not None and volume.resource.role is Role.PRIMARY:
            self.cluster.device(f"n{index}", "r0").write(block, self.cluster.fresh_value())

    def reboot(self, index: int) -> None:
        if self.cluster.node(f"n{index}").running:
            self.cluster.crash(f"n{index}")
            return
        self.cluster.restart(f"n{index}")
        self.run(index, "drbdmeta --force 1000 v09 /dev/vg/r0 internal apply-al")
        self.configure(index)

    def lost_blocks(self) -> dict[str, list[int]]:
        """Per node that could serve data now: the acknowledged blocks its disk does not have."""
        lost: dict[str, list[int]] = {}
        for name, node in self.cluster.nodes.items():
            volume = node.kernel.minors.get(1000)
            if node.running and volume is not None and volume.disk is Disk.UP_TO_DATE and volume.quorum:
                lost[name] = self.cluster.truth("r0").missing_from(volume)
        return lost


def test_a_write_over_a_cut_link_is_not_acknowledged_before_the_loss_is_noticed() -> None:
    lab = Lab(1)
    assert lab.run(0, "drbdsetup primary r0") == 0
    answers: list[int | None] = []
    lab.cluster.cut("n0", "n1")
    lab.cluster.cut("n0", "n2")
    lab.cluster.device("n0", "r0").write(3, lab.cluster.fresh_value(), answers.append)
    assert answers == []
    lab.time.advance(10)
    assert answers == [], "without quorum it waits"
    lab.cluster.heal("n0", "n1")
    lab.cluster.heal("n0", "n2")
    lab.time.advance(15)
    assert answers == [None]
    assert all(not blocks for blocks in lab.lost_blocks().values())


_links = st.sampled_from([("n0", "n1"), ("n0", "n2"), ("n1", "n2")])
_actions = st.one_of(
    st.tuples(st.just("write"), st.integers(0, 2), st.integers(0, 40)),
    st.tuples(st.just("primary"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("secondary"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("cut"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("heal"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("reboot"), st.integers(0, 2), st.just(0)),
    st.tuples(st.just("wait"), st.integers(1, 12), st.just(0)),
)
_PAIRS = (("n0", "n1"), ("n0", "n2"), ("n1", "n2"))


def perform(lab: Lab, action: tuple[str, int, int]) -> None:
    word, number, block = action
    match word:
        case "write":
            lab.write(number, block)
        case "primary" | "secondary":
            lab.run(number, f"drbdsetup {word} r0")
        case "cut":
            lab.cluster.cut(*_PAIRS[number])
        case "heal":
            lab.cluster.heal(*_PAIRS[number])
        case "reboot":
            lab.reboot(number)
        case _:
            lab.time.advance(number)


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 3), st.lists(_actions, max_size=25))
def test_a_quorate_current_disk_has_every_acknowledged_write(seed: int, actions: list[tuple[str, int, int]]) -> None:
    lab = Lab(seed)
    for action in actions:
        perform(lab, action)
    for pair in _PAIRS:
        lab.cluster.heal(*pair)
    lab.time.advance(60)
    assert {name: blocks for name, blocks in lab.lost_blocks().items() if blocks} == {}


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 1000), st.lists(_actions, max_size=12))
def test_a_run_is_a_function_of_seed_and_calls(seed: int, actions: list[tuple[str, int, int]]) -> None:
    answers: list[str] = []
    for _ in range(2):
        lab = Lab(seed)
        for action in actions:
            perform(lab, action)
        lab.time.advance(20)
        nodes = [node for _, node in sorted(lab.cluster.nodes.items()) if node.running]
        answers.append("".join(node.execute(["drbdsetup", "status", "--json"]).stdout for node in nodes))
    assert answers[0] == answers[1]
