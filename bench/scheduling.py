"""Placements: 1,000 single placements, and 3-replica volumes, over a pool of 1,000 nodes with the extender in process."""

from __future__ import annotations

import time

from bench.figure import Figure
from quorate.api.lvm_volume_group import Local, LVMVolumeGroup, LVMVolumeGroupSpec, LVMVolumeGroupStatus
from quorate.api.meta import ObjectMeta
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_class import LVMVolumeGroupRef
from quorate.api.replicated_storage_pool import (
    EligibleNode,
    EligibleNodeLVMVolumeGroup,
    ReplicatedStoragePool,
    ReplicatedStoragePoolSpec,
    ReplicatedStoragePoolStatus,
)
from quorate.api.replicated_volume import (
    ReplicatedVolume,
    ReplicatedVolumeSpec,
    ReplicatedVolumeStatus,
    VolumeConfiguration,
)
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica, ReplicatedVolumeReplicaSpec
from quorate.api.scheduler_extender import FilterAndScore, NarrowReservation
from quorate.controllers.scheduling.decide import decide
from quorate.controllers.scheduling.snapshot import Snapshot
from quorate.extender.book import CapacityBook
from quorate.machinery.effects import Answer, Decision, Half, Patch, Request

NODES = 1000
PLACEMENTS = 1000
NOW = 1_800_000_000.0


def _pool() -> ReplicatedStoragePool:
    nodes = tuple(
        EligibleNode(
            node_name=f"node-{number:04}",
            zone_name=f"zone-{number % 3}",
            lvm_volume_groups=(EligibleNodeLVMVolumeGroup(name=f"vg-{number:04}", ready=True),),
            node_ready=True,
            agent_ready=True,
        )
        for number in range(NODES)
    )
    return ReplicatedStoragePool(
        metadata=ObjectMeta(name="pool"),
        spec=ReplicatedStoragePoolSpec(
            type="LVM", lvm_volume_groups=tuple(LVMVolumeGroupRef(name=f"vg-{number:04}") for number in range(NODES))
        ),
        status=ReplicatedStoragePoolStatus(eligible_nodes_revision=1, eligible_nodes=nodes),
    )


def _book() -> CapacityBook:
    book = CapacityBook()
    size = Quantity.parse("10Ti")
    for number in range(NODES):
        group = LVMVolumeGroup(
            metadata=ObjectMeta(name=f"vg-{number:04}"),
            spec=LVMVolumeGroupSpec(actual_vg_name_on_the_node="vg", local=Local(node_name=f"node-{number:04}")),
            status=LVMVolumeGroupStatus(vg_size=size, vg_free=size),
        )
        book.apply_group(None, group)
    return book


def _snapshot(number: int, replicas: int, pool: ReplicatedStoragePool, topology: str) -> Snapshot:
    name = f"pvc-{number}"
    configuration = VolumeConfiguration(
        replicated_storage_pool_name="pool",
        topology=topology,
        failures_to_tolerate=1 if replicas > 1 else 0,
        guaranteed_minimum_data_redundancy=1 if replicas > 1 else 0,
        volume_access="PreferablyLocal",
    )
    volume = ReplicatedVolume(
        metadata=ObjectMeta(name=name, uid=name),
        spec=ReplicatedVolumeSpec(size=Quantity.parse("1Gi"), replicated_storage_class_name="fast"),
        status=ReplicatedVolumeStatus(configuration=configuration),
    )
    made = tuple(
        ReplicatedVolumeReplica(
            metadata=ObjectMeta(name=f"{name}-{id}", uid=f"{name}-{id}", generation=1),
            spec=ReplicatedVolumeReplicaSpec(replicated_volume_name=name, type="Diskful"),
        )
        for id in range(replicas)
    )
    return Snapshot(name, volume, made, pool)


def _answer(book: CapacityBook, request: Request) -> Answer:
    match request:
        case FilterAndScore():
            return book.filter_and_score(request, NOW)
        case NarrowReservation():
            assert book.narrow(request, NOW) == ""
            return None
        case _:
            raise TypeError(type(request).__name__)


def _place(snapshot: Snapshot, book: CapacityBook) -> Decision:
    answers: dict[Request, Answer] = {}
    while True:
        decision = decide(snapshot, answers, NOW)
        if not decision.ask:
            return decision
        answers.update({request: _answer(book, request) for request in decision.ask})


def _measure(volumes: int, replicas: int, topology: str) -> float:
    """Processor seconds for all placements of that many volumes."""
    pool, book = _pool(), _book()
    snapshots = [_snapshot(number, replicas, pool, topology) for number in range(volumes)]
    started = time.process_time()
    placed = 0
    for snapshot in snapshots:
        effects = _place(snapshot, book).effects
        placed += sum(isinstance(effect, Patch) and effect.half is Half.MAIN for effect in effects)
    elapsed = time.process_time() - started
    assert placed == volumes * replicas, "every replica must find its place"
    return elapsed


def figures() -> list[Figure]:
    """Cost of placements in a large pool."""
    single = _measure(PLACEMENTS, 1, "Ignored")
    spread = _measure(PLACEMENTS // 3, 3, "TransZonal")
    return [
        Figure(
            "1,000 placements over 1,000 nodes",
            single,
            "CPU s",
            "one diskful replica each, extender in process, all asks included",
        ),
        Figure("one placement", single / PLACEMENTS * 1000, "CPU ms", "the same, per placement"),
        Figure(
            "one placement of three, TransZonal",
            spread / (PLACEMENTS // 3 * 3) * 1000,
            "CPU ms",
            "volumes of three diskful replicas in three zones, per placement",
        ),
    ]
