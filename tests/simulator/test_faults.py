"""Every fault of the simulator does what it says, and nothing else."""

from __future__ import annotations

import asyncio

import pytest

from quorate.simulator.cluster import Cluster
from quorate.simulator.scheduler import SimulatedTime
from quorate.simulator.states import Disk, Link
from tests.simulator.lab import Lab


def write_takes(lab: Lab, index: int) -> float:
    """Simulated seconds until a write is acknowledged."""
    device = lab.cluster.device(f"n{index}", "r0")
    device.open(write=True)
    answered: list[float] = []
    before = lab.time.time()
    device.write(
        0, lab.cluster.fresh_value(), lambda error: answered.append(lab.time.time()) if error is None else None
    )
    lab.wait(5)
    device.close()
    (moment,) = answered
    return moment - before


# --- network ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("sender", "receiver"), [("n0", "n1"), ("n1", "n0")])
def test_a_delay_counts_in_its_direction_only(sender: str, receiver: str) -> None:
    lab = Lab(ties=())
    lab.must(0, "drbdsetup primary r0")
    assert write_takes(lab, 0) == 0
    lab.cluster.delay(sender, receiver, 0.25)
    assert write_takes(lab, 0) == pytest.approx(0.25)
    lab.cluster.delay(receiver, sender, 0.5)
    assert write_takes(lab, 0) == pytest.approx(0.75)


def test_a_delay_to_a_node_without_a_disk_holds_nobody_up() -> None:
    lab = Lab()
    lab.must(0, "drbdsetup primary r0")
    lab.cluster.delay("n0", "n2", 0.5)
    assert write_takes(lab, 0) == 0


def test_a_delay_beyond_the_ping_timeout_is_a_lost_link() -> None:
    lab = Lab(ties=())
    lab.cluster.delay("n0", "n1", 1.5)  # --ping-timeout=10: one second
    lab.wait(10)
    assert (lab.link(0, 1), lab.link(1, 0)) == (Link.CONNECTING, Link.CONNECTING)
    lab.cluster.delay("n0", "n1", 0.0)
    lab.wait(10)
    assert lab.link(0, 1) is Link.CONNECTED


@pytest.mark.parametrize(("sender", "receiver"), [("n0", "n1"), ("n1", "n0")])
def test_a_link_that_is_cut_in_one_direction_is_lost_at_both_ends(sender: str, receiver: str) -> None:
    lab = Lab(ties=())
    lab.cluster.cut(sender, receiver, one_way=True)
    assert lab.cluster.network.passes(receiver, sender, "net_a")
    lab.wait(10)
    assert (lab.link(0, 1), lab.link(1, 0)) == (Link.CONNECTING, Link.CONNECTING)
    lab.cluster.heal(sender, receiver)
    lab.wait(10)
    assert (lab.link(0, 1), lab.disk(1)) == (Link.CONNECTED, Disk.UP_TO_DATE)


def two_networks() -> tuple[Cluster, SimulatedTime]:
    time = SimulatedTime(0.0)
    cluster = Cluster(time, seed=1)
    for index in range(2):
        cluster.add_node(f"n{index}", {"net_a": f"10.1.0.1{index}", "net_b": f"10.2.0.1{index}"})
    for index in range(2):
        lines = [f"drbdsetup new-resource r0 {index}", "drbdsetup new-minor r0 1000 0"]
        lines += [f"drbdsetup new-peer r0 {1 - index} --_name=n{1 - index} --ping-int=3 --ping-timeout=10"]
        lines += [
            f"drbdsetup new-path r0 {1 - index} 10.{n}.0.1{index}:7000 10.{n}.0.1{1 - index}:7000" for n in (1, 2)
        ]
        for line in (*lines, f"drbdsetup connect r0 {1 - index}"):
            assert cluster.node(f"n{index}").execute(line.split()).exit_code == 0, line
    time.advance(10)
    return cluster, time


def established(cluster: Cluster) -> list[str]:
    connection = cluster.node("n0").kernel.resource("r0").connections[1]
    return [path.local for path in connection.paths if path.established]


def test_a_cut_on_one_network_moves_the_traffic_to_the_other() -> None:
    cluster, time = two_networks()
    (first,) = established(cluster)
    network = "net_a" if "10.1." in first else "net_b"
    cluster.cut("n0", "n1", network)
    time.advance(15)
    (second,) = established(cluster)
    assert second != first
    assert cluster.node("n0").kernel.resource("r0").connections[1].link is Link.CONNECTED


def test_a_cut_on_the_idle_network_changes_nothing() -> None:
    cluster, time = two_networks()
    (first,) = established(cluster)
    cluster.cut("n0", "n1", "net_b" if "10.1." in first else "net_a")
    time.advance(15)
    assert established(cluster) == [first]


# --- machines -----------------------------------------------------------------------------------------------------


def test_a_slow_disk_is_waited_for_by_writers_and_resyncs() -> None:
    lab = Lab(ties=())
    lab.must(0, "drbdsetup primary r0")
    lab.cluster.slow_disk("n1", "/dev/vg/r0", 0.3)
    assert write_takes(lab, 0) == pytest.approx(0.3)
    lab.part((0,), (1,))
    device = lab.cluster.device("n0", "r0")
    lab.set_quorum("off", 0)
    device.open(write=True)
    for block in range(20):
        device.write(block, lab.cluster.fresh_value())
    device.close()
    lab.heal(3)
    assert lab.disk(1) is Disk.INCONSISTENT  # 20 blocks of 0.3 s are not through yet
    lab.wait(10)
    assert lab.disk(1) is Disk.UP_TO_DATE
    assert lab.cluster.truth("r0").missing_from(lab.volume(1)) == []


def test_a_full_pool_fails_the_disk_and_the_write_goes_on_elsewhere() -> None:
    """Facts/agent 9: as a disk error. The Primary continues through its peer and nothing acknowledged is lost."""
    lab = Lab(ties=())
    thin = lab.cluster.node("n0")
    for line in ("lvcreate -y -L 8M -T vg/pool", "lvcreate -y -V 16M -T vg/pool -n thin"):
        assert thin.execute(line.split()).exit_code == 0
    lab.must(0, "drbdsetup detach 1000")
    lab.must(0, "drbdmeta --force 1000 v09 /dev/vg/thin internal create-md 7")
    lab.must(0, "drbdsetup attach 1000 /dev/vg/thin /dev/vg/thin internal")
    lab.wait(10)
    assert lab.disk(0) is Disk.UP_TO_DATE
    lab.must(0, "drbdsetup primary r0")
    device = lab.cluster.device("n0", "r0")
    device.open(write=True)
    answers: list[int | None] = []
    for block in range(0, 4000, 8):
        device.write(block, lab.cluster.fresh_value(), answers.append)
    lab.wait(5)
    assert lab.disk(0) is Disk.DISKLESS
    assert answers == [None] * 500
    assert lab.cluster.truth("r0").missing_from(lab.volume(1)) == []


def test_a_clock_that_is_off_stamps_wrongly_and_waits_rightly() -> None:
    lab = Lab(ties=())
    lab.cluster.skew_clock("n1", 3600.0)
    stamps = [lab.run(index, "drbdsetup events2 --now --timestamps").stdout[:13] for index in (0, 1)]
    assert stamps == ["1970-01-01T00", "1970-01-01T01"]
    lab.part((0,), (1,))
    assert lab.link(1, 0) is Link.CONNECTING
    lab.heal()
    assert lab.link(1, 0) is Link.CONNECTED


def test_a_hung_command_hangs_one_host_only() -> None:
    async def main() -> tuple[int, bool]:
        cluster = Cluster(asyncio.get_running_loop(), seed=1, nodes=("a", "b"))
        cluster.host("a").hang.add("drbdsetup")
        hung = False
        try:
            await cluster.host("a").run(["drbdsetup", "status"], timeout=0.01)
        except TimeoutError:
            hung = True
        return (await cluster.host("b").run(["drbdsetup", "status"], timeout=5)).exit_code, hung

    assert asyncio.run(main()) == (0, True)


def test_faults_are_a_function_of_the_seed() -> None:
    def history(seed: int) -> list[tuple[str, ...]]:
        time = SimulatedTime(0.0)
        cluster = Cluster(time, seed=seed, nodes=("a", "b"))
        seen: list[tuple[str, ...]] = []
        for index, name in enumerate(("a", "b")):
            other = 1 - index
            for line in (
                f"drbdsetup new-resource r0 {index}",
                f"drbdsetup new-peer r0 {other} --_name=peer",
                f"drbdsetup new-path r0 {other} 10.0.0.{index + 1}:7000 10.0.0.{other + 1}:7000",
                f"drbdsetup connect r0 {other}",
            ):
                cluster.node(name).execute(line.split())
        for moment in range(200):
            if moment == 50:
                cluster.cut("a", "b")
            if moment == 150:
                cluster.heal("a", "b")
            time.advance(0.2)
            seen.append(
                tuple(str(cluster.node(n).kernel.resource("r0").connections[1 - i].link) for i, n in enumerate("ab"))
            )
        return seen

    assert history(1) == history(1)
    assert any(history(1) != history(seed) for seed in range(2, 6))
