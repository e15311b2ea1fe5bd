"""Figures of the simulated kernel: commands per second, forming many volumes, and time on a loaded cluster."""

from __future__ import annotations

import time

from bench.figure import Figure, seconds_per_call
from quorate.simulator.cluster import Cluster
from quorate.simulator.scheduler import SimulatedTime

NODES = 5
VOLUMES = 100
FEW, MANY = 25, 400
SIMULATED_SECONDS = 60.0


def _cluster(nodes: int, volumes: int) -> tuple[SimulatedTime, Cluster]:
    """Every volume is diskful on three neighbouring nodes, connected and UpToDate, with a Primary."""
    clock = SimulatedTime(1000.0)
    cluster = Cluster(clock, seed=1)
    for index in range(nodes):
        node = cluster.add_node(f"n{index}", {"net": f"10.0.0.{index + 1}"})
        node.lvm.add_group("vg", (volumes + 1) * (32 << 20))
    for volume in range(volumes):
        _volume(cluster, volume, [(volume + offset) % nodes for offset in range(3)])
    clock.advance(15)
    for volume in range(volumes):
        first = cluster.node(f"n{volume % nodes}")
        first.execute(["drbdsetup", "new-current-uuid", str(volume), "--clear-bitmap"])
        first.execute(["drbdsetup", "primary", f"r{volume}"])
    clock.advance(1)
    return clock, cluster


def _volume(cluster: Cluster, volume: int, members: list[int]) -> None:
    name, path = f"r{volume}", f"/dev/vg/r{volume}"
    for index in members:
        lines = [
            f"lvcreate -y -n r{volume} -L 16M vg",
            f"drbdmeta --force {volume} v09 {path} internal create-md 7",
            f"drbdsetup new-resource {name} {index} --quorum=majority --auto-promote=no",
            f"drbdsetup new-minor {name} {volume} 0",
            f"drbdsetup attach {volume} {path} {path} internal",
        ]
        for other in members:
            if other != index:
                ends = f"10.0.0.{index + 1}:{7000 + volume} 10.0.0.{other + 1}:{7000 + volume}"
                lines.append(f"drbdsetup new-peer {name} {other} --_name=n{other}")
                lines.append(f"drbdsetup new-path {name} {other} {ends}")
                lines.append(f"drbdsetup connect {name} {other}")
        for line in lines:
            answer = cluster.node(f"n{index}").execute(line.split())
            assert answer.exit_code == 0, (line, answer)


def _speed() -> float:
    """Simulated seconds per processor second with faults going on: every ten seconds a link fails and heals."""
    clock, cluster = _cluster(NODES, VOLUMES)
    started, until, turn = time.process_time(), clock.time() + SIMULATED_SECONDS, 0
    while clock.time() < until:
        pair = (f"n{turn % NODES}", f"n{(turn + 1) % NODES}")
        cluster.cut(*pair)
        clock.advance(5)
        cluster.heal(*pair)
        clock.advance(5)
        turn += 1
    return SIMULATED_SECONDS / (time.process_time() - started)


def _forming(volumes: int) -> float:
    """Processor seconds per volume that is configured on three nodes, connected and promoted."""
    return seconds_per_call(lambda: _cluster(NODES, volumes), calls=1) / volumes


def figures() -> list[Figure]:
    _, cluster = _cluster(3, 1)
    node = cluster.node("n0")
    status = seconds_per_call(lambda: node.execute(["drbdsetup", "status", "--json", "r0"]), calls=300)
    option = ["drbdsetup", "resource-options", "r0", "--quorum=majority"]
    change = seconds_per_call(lambda: node.execute(option), calls=300)
    few, many = _forming(FEW), _forming(MANY)
    return [
        Figure("simulated status commands", 1 / status, "1/s", "drbdsetup status --json of one resource, two peers"),
        Figure("simulated option commands", 1 / change, "1/s", "drbdsetup resource-options without a change"),
        Figure("simulated forming", many * 1000, "CPU ms", f"one of {MANY} volumes of 3 replicas on {NODES} nodes"),
        Figure("simulated forming growth", many / few, "ratio", f"{MANY} against {FEW} volumes"),
        Figure(
            "simulated time",
            _speed(),
            "s/CPU s",
            f"{NODES} nodes, {VOLUMES} volumes of 3 replicas, a link fault per 10 s",
        ),
    ]
