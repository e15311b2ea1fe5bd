"""Histories that pass through every step of every plan, and the form in which a state inside a step is kept.

`make_snapshots` writes one file per step; `test_snapshots` loads each and lets the present version finish it. Snapshots of
plans that are no longer registered stay: a volume may have been left inside them by an older version.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import replace as replace_cluster

import msgspec

from quorate.api import wire
from quorate.api.quantity import Quantity
from quorate.api.replicated_storage_pool import ReplicatedStoragePool
from quorate.api.replicated_volume import DatameshTransition, ReplicatedVolume, TransitionType
from quorate.api.replicated_volume_attachment import ReplicatedVolumeAttachment
from quorate.api.replicated_volume_replica import BackingVolume, ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.datamesh.layout import Layout
from quorate.datamesh.records import active_index
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import (
    decide,
    delete_replica,
    form,
    retype_replica,
    with_attachment,
    with_configuration,
    with_replica,
    without_attachment,
)
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    FIVE,
    FOUR,
    FOUR_TB,
    ONE,
    PAIR,
    PAIR_TB,
    THREE,
    edit_datamesh,
    edit_replica,
    edit_volume,
    member,
    passed,
    requesting,
    staged,
    without_object,
)
from tests.datamesh.networks import on_networks, reporting, settled_on

M1, M2 = "M1 dynamic", "M2 static"


@dataclass(frozen=True)
class Snapshot:
    """A cluster inside a step."""

    cluster: Cluster
    transition: DatameshTransition
    mode: str
    networks: bool

    @property
    def name(self) -> str:
        """File name: type, plan, number of the step."""
        plan = self.transition.plan_id.replace("/", "-")
        return f"{self.transition.type}-{plan}-{active_index(self.transition) + 1}.json"


def goes_on(cluster: Cluster, networks: bool) -> Cluster:
    """One round of the replicas."""
    if not networks:
        return react(cluster)
    wanted = cluster.pool.spec.system_network_names
    listening = cluster.volume.status.datamesh.system_network_names
    first = [name for name in listening if name in wanted]
    return reporting(cluster, *first, *[name for name in listening if name not in first])


def _retyping(layout: Layout, replica_id: int, wanted: str, mode: str) -> Cluster:
    return react(retype_replica(staged(form(layout), mode), replica_id, wanted))


def _joined(layout: Layout, replica_type: str, mode: str = M1) -> Cluster:
    """A layout with one more member of a type, at rest; convergence has not taken it away yet."""
    cluster = react(with_replica(staged(form(layout), mode), replica_type, "node-6"))
    for _ in range(12):
        cluster = react(passed(cluster))
    return cluster


def _rising(layout: Layout, present: str, mode: str) -> Cluster:
    """A star member beside a layout that becomes Diskful because somebody asks for it."""
    number = layout.diskful + layout.tie_breakers
    return react(retype_replica(_joined(layout, present, mode), number, "Diskful"))


def _dead(layout: Layout, *ids: int, fenced: bool = False, mode: str = M1) -> Cluster:
    cluster = staged(form(layout), mode)
    nodes = tuple(member(cluster, i).node_name for i in ids)
    cluster = react(replace_cluster(cluster, dead=nodes, fenced=nodes if fenced else ()))
    for number in ids:
        cluster = without_object(cluster, number)
    return cluster


def _lost_copy_while_leaving() -> Cluster:
    cluster = edit_datamesh(with_configuration(form(PAIR), ONE), quorum_minimum_redundancy=1)
    cluster = react(decide(react(delete_replica(cluster, 0)))[0])
    return edit_replica(cluster, 1, backing_volume=BackingVolume(state="Outdated"))


def _moved(group: str) -> Cluster:
    cluster = form(THREE)
    rvr = cluster.replicas[1]
    moved = replace(rvr, spec=replace(rvr.spec, lvm_volume_group_name=group))
    return react(replace_cluster(cluster, replicas=(cluster.replicas[0], moved, cluster.replicas[2])))


def _attached(count: int) -> Cluster:
    cluster = form(THREE, max_attachments=2)
    for number in range(count):
        cluster = with_attachment(cluster, f"node-{number}")
    for _ in range(8):
        cluster = react(decide(cluster)[0])
    return cluster


def _gone_attached() -> Cluster:
    cluster = replace_cluster(_attached(1), dead=("node-0",))
    return without_object(react(cluster), 0)


def _grown() -> Cluster:
    cluster = form(PAIR)
    return react(edit_volume(cluster, spec=replace(cluster.volume.spec, size=Quantity.of(3 << 30))))


def _network(before: tuple[str, ...], *after: str) -> Cluster:
    return on_networks(settled_on(form(PAIR_TB), *before), *after)


def _readdressed() -> Cluster:
    cluster = settled_on(form(PAIR), "a")
    return reporting(edit_datamesh(cluster, members=_shifted(cluster)), "a")


def _shifted(cluster: Cluster) -> tuple[object, ...]:
    first, second = cluster.volume.status.datamesh.members
    return (replace(first, addresses=second.addresses), second)


SCENARIOS: tuple[tuple[str, bool, Callable[[], Cluster]], ...] = (
    (M1, False, lambda: with_configuration(form(ONE), FIVE)),
    (M1, False, lambda: with_configuration(form(FIVE), ONE)),
    (M1, False, lambda: with_configuration(form(ONE), PAIR_TB)),
    (M1, False, lambda: with_configuration(form(PAIR_TB), ONE)),
    (M1, False, lambda: with_configuration(form(PAIR_TB), FOUR_TB)),
    (M2, False, lambda: with_configuration(staged(form(PAIR_TB), M2), FOUR_TB)),
    (M1, False, lambda: with_configuration(form(FOUR_TB), PAIR_TB)),
    (M2, False, lambda: with_configuration(staged(form(FOUR_TB), M2), PAIR_TB)),
    (M1, False, lambda: with_configuration(form(PAIR_TB, nodes=3), THREE)),
    (M1, False, lambda: with_configuration(form(THREE, nodes=3), PAIR_TB)),
    (M1, False, lambda: _rising(THREE, "Access", M1)),
    (M1, False, lambda: _rising(PAIR, "Access", M1)),
    (M1, False, lambda: _rising(PAIR_TB, "Access", M1)),
    (M2, False, lambda: _rising(PAIR_TB, "Access", M2)),
    (M1, False, lambda: _rising(THREE, "TieBreaker", M1)),
    (M1, False, lambda: _rising(PAIR, "TieBreaker", M1)),
    (M1, False, lambda: _rising(PAIR_TB, "TieBreaker", M1)),
    (M2, False, lambda: _rising(PAIR_TB, "TieBreaker", M2)),
    (M1, False, lambda: _retyping(THREE, 0, "Access", M1)),
    (M1, False, lambda: _retyping(FOUR, 0, "Access", M1)),
    (M1, False, lambda: _retyping(PAIR_TB, 0, "Access", M1)),
    (M2, False, lambda: _retyping(PAIR_TB, 0, "Access", M2)),
    (M1, False, lambda: _retyping(PAIR, 0, "Access", M1)),
    (M1, False, lambda: _retyping(THREE, 0, "TieBreaker", M1)),
    (M1, False, lambda: _retyping(PAIR, 0, "TieBreaker", M1)),
    (M1, False, lambda: _retyping(PAIR_TB, 0, "TieBreaker", M1)),
    (M2, False, lambda: _retyping(PAIR_TB, 0, "TieBreaker", M2)),
    (M1, False, lambda: _retyping(PAIR_TB, 2, "Access", M1)),
    (M1, False, lambda: react(retype_replica(_joined(ONE, "Access"), 1, "TieBreaker"))),
    (M1, False, lambda: react(delete_replica(_joined(ONE, "Access"), 1))),
    (M1, False, _lost_copy_while_leaving),
    (M1, False, lambda: _moved("vg-2")),
    (M1, False, lambda: _dead(THREE, 0)),
    (M1, False, lambda: _dead(FOUR, 0)),
    (M1, False, lambda: _dead(PAIR_TB, 0)),
    (M1, False, lambda: _dead(FOUR_TB, 0)),
    (M1, False, lambda: _dead(PAIR_TB, 2)),
    (M1, False, lambda: without_object(react(replace_cluster(_joined(ONE, "Access"), dead=("node-6",))), 1)),
    (M1, False, lambda: with_attachment(form(ONE), "node-0")),
    (M1, False, lambda: without_attachment(_attached(2), "node-1")),
    (M1, False, lambda: with_attachment(_attached(1), "node-1")),
    (M1, False, _gone_attached),
    (M1, False, lambda: react(with_replica(form(ONE), "Access", "node-5"))),
    (M1, False, lambda: react(retype_replica(with_configuration(form(PAIR), ONE), 1, "TieBreaker"))),
    (M1, False, lambda: edit_datamesh(form(THREE), quorum=3, quorum_minimum_redundancy=3)),
    (M1, False, lambda: edit_datamesh(form(THREE), quorum=1, quorum_minimum_redundancy=1)),
    (M1, False, lambda: edit_datamesh(form(THREE), quorum=3, quorum_minimum_redundancy=1)),
    (M1, False, lambda: edit_datamesh(form(THREE), quorum=1, quorum_minimum_redundancy=3)),
    (M1, False, lambda: edit_datamesh(form(PAIR_TB), tie_breakers_suspended=True)),
    (M1, False, lambda: requesting(form(ONE), 0, "Leave")),
    (M1, False, _grown),
    (M1, True, lambda: _network(("a",), "a", "b")),
    (M1, True, lambda: _network(("a", "b"), "a")),
    (M1, True, lambda: _network(("a", "b"), "a", "c")),
    (M1, True, lambda: _network(("a",), "b")),
    (M1, True, _readdressed),
)


def snapshots() -> Iterator[Snapshot]:
    """Every state inside a step that the scenarios pass through."""
    for mode, networks, start in SCENARIOS:
        cluster = start()
        for _ in range(80):
            after, result = decide(cluster)
            for transition in after.volume.status.datamesh_transitions:
                yield Snapshot(after, transition, mode, networks)
            following = goes_on(after, networks)
            if not result.changed and not result.actions and following.replicas == after.replicas:
                break
            cluster = following
        else:
            raise AssertionError("a scenario does not come to rest")


def encode(snapshot: Snapshot) -> bytes:
    """A snapshot as one line of JSON."""
    cluster = snapshot.cluster
    parts = {
        "mode": snapshot.mode,
        "networks": snapshot.networks,
        "dead": cluster.dead,
        "fenced": cluster.fenced,
        "volume": msgspec.Raw(wire.encode(cluster.volume)),
        "pool": msgspec.Raw(wire.encode(cluster.pool)),
        "replicas": [msgspec.Raw(wire.encode(rvr)) for rvr in cluster.replicas],
        "attachments": [msgspec.Raw(wire.encode(rva)) for rva in cluster.attachments],
    }
    return msgspec.json.encode(parts) + b"\n"


class _Parts(msgspec.Struct):
    mode: str
    networks: bool
    dead: tuple[str, ...]
    fenced: tuple[str, ...]
    volume: msgspec.Raw
    pool: msgspec.Raw
    replicas: tuple[msgspec.Raw, ...]
    attachments: tuple[msgspec.Raw, ...]


def decode(data: bytes) -> tuple[Cluster, bool]:
    """The cluster of a snapshot, and whether its replicas answer on several networks."""
    parts = msgspec.json.decode(data, type=_Parts)
    cluster = Cluster(
        volume=wire.decode(ReplicatedVolume, bytes(parts.volume)),
        replicas=tuple(wire.decode(ReplicatedVolumeReplica, bytes(raw)) for raw in parts.replicas),
        pool=wire.decode(ReplicatedStoragePool, bytes(parts.pool)),
        attachments=tuple(wire.decode(ReplicatedVolumeAttachment, bytes(raw)) for raw in parts.attachments),
        dead=parts.dead,
        fenced=parts.fenced,
    )
    return staged(cluster, parts.mode), parts.networks


def is_formation(transition: DatameshTransition) -> bool:
    """Formation is driven by the volume controller; its snapshots are kept there."""
    return transition.type == TransitionType.FORMATION
