"""A stateful model for hypothesis: a volume, its replicas, and everything that may happen to them in any order.

Every pass is followed by all checks of `invariants`, by a second pass that must change nothing (E5), and by the same pass on
the volume as it comes back from the wire (E10). Replicas answer late, partly or not at all; nodes die, come back and are
fenced; objects are deleted or vanish; requests, types, volume groups, configuration and attachments change.
"""

from __future__ import annotations

from dataclasses import replace as replace_cluster

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from quorate.api.replicated_volume import Datamesh, MembershipRequest
from quorate.api.replicated_volume_replica import ReplicaAttachment
from quorate.api.value import replace
from quorate.datamesh.contract import PassResult
from quorate.datamesh.layout import ALL_LAYOUTS, Layout
from quorate.datamesh.members import id_of
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import (
    delete_replica,
    form,
    perform,
    retype_replica,
    with_attachment,
    with_configuration,
    with_replica,
    without_attachment,
)
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import (
    MODES,
    deleting_volume,
    edit_replica,
    one_pass,
    staged,
    through_json,
    with_status,
    without_object,
)
from tests.datamesh.invariants import check_all
from tests.datamesh.observation import Observation

NODES = 6
MAX_DEAD = 2
nodes = st.integers(0, NODES - 1).map(lambda number: f"node-{number}")
picks = st.integers(0, 31)
subsets = st.integers(0, (1 << 12) - 1)


class DatameshMachine(RuleBasedStateMachine):
    """The environment of the engine."""

    cluster: Cluster
    history: dict[int, Datamesh]
    blank: frozenset[str] = frozenset()
    """Replicas on nodes that were proven down and have not answered since."""
    last: PassResult | None = None

    @initialize(
        layout=st.sampled_from(ALL_LAYOUTS),
        mode=st.sampled_from(MODES),
        slots=st.integers(1, 2),
        zones=st.sampled_from(["", "abcabc"]),
    )
    def start(self, layout: Layout, mode: str, slots: int, zones: str) -> None:
        topology = "TransZonal" if zones and layout.ftt else "Ignored"
        formed = form(layout, nodes=NODES, zones=tuple(zones) or None, topology=topology, max_attachments=slots)
        self.cluster = staged(formed, mode)
        self.history = {self.cluster.volume.status.datamesh_revision: self.cluster.volume.status.datamesh}

    def ids(self) -> list[int]:
        return [id_of(rvr.metadata.name) for rvr in self.cluster.replicas]

    def answer(self, only: tuple[int, ...] | None = None) -> None:
        """Replicas do their round; whoever answers is configured again."""
        self.cluster = react(self.cluster, only)
        answered = frozenset(
            rvr.metadata.name
            for rvr in self.cluster.replicas
            if rvr.spec.node_name not in self.cluster.dead and (only is None or id_of(rvr.metadata.name) in only)
        )
        self.blank -= answered

    def pick(self, number: int) -> int | None:
        found = self.ids()
        return found[number % len(found)] if found else None

    @rule()
    def engine_pass(self) -> None:
        before = self.cluster
        result = one_pass(before)
        self.history[result.status.datamesh_revision] = result.status.datamesh
        check_all(Observation(before, result, self.history, self.blank))
        written = with_status(before, result.status)
        again = one_pass(written)
        assert again.status is result.status, "E5: the second pass changes nothing"
        assert one_pass(through_json(before)).status == result.status, "E10: a restart resumes identically"
        for action in result.actions:
            written = perform(written, action)
        self.cluster = replace_cluster(written, now=before.now + 1)
        self.last = result

    @rule()
    def all_replicas_answer(self) -> None:
        self.answer()

    # Progress must be as likely as trouble, or no change is ever seen half-way: the same in larger portions.

    @rule(rounds=st.integers(1, 4))
    def volume_goes_on(self, rounds: int) -> None:
        for _ in range(rounds):
            self.engine_pass()
            self.answer()

    @rule(rounds=st.integers(1, 3), chosen=subsets)
    def volume_goes_on_with_some(self, rounds: int, chosen: int) -> None:
        for _ in range(rounds):
            self.engine_pass()
            self.some_replicas_answer(chosen)

    @rule(rounds=st.integers(2, 6))
    def volume_goes_on_for_long(self, rounds: int) -> None:
        self.volume_goes_on(rounds)

    @rule(chosen=subsets)
    def some_replicas_answer(self, chosen: int) -> None:
        self.answer(tuple(i for i in self.ids() if chosen >> (i % 12) & 1))

    @rule(layout=st.sampled_from(ALL_LAYOUTS))
    def configuration_changes(self, layout: Layout) -> None:
        self.cluster = with_configuration(self.cluster, layout)

    @precondition(lambda self: len(self.cluster.dead) < MAX_DEAD)
    @rule(node=nodes)
    def node_dies(self, node: str) -> None:
        if node not in self.cluster.dead:
            self.cluster = replace_cluster(self.cluster, dead=(*self.cluster.dead, node))
            self.answer()

    @rule()
    def nodes_come_back(self) -> None:
        self.cluster = replace_cluster(self.cluster, dead=(), fenced=())

    @rule()
    def dead_nodes_are_fenced(self) -> None:
        self.cluster = replace_cluster(self.cluster, fenced=self.cluster.dead)
        self.blank |= frozenset(
            rvr.metadata.name for rvr in self.cluster.replicas if rvr.spec.node_name in self.cluster.dead
        )

    @rule()
    def evidence_is_withdrawn(self) -> None:
        self.cluster = replace_cluster(self.cluster, fenced=())

    @rule(number=picks)
    def replica_is_deleted(self, number: int) -> None:
        chosen = self.pick(number)
        if chosen is not None:
            self.cluster = delete_replica(self.cluster, chosen)

    @rule(number=picks, replica_type=st.sampled_from(["Diskful", "TieBreaker", "Access"]))
    def replica_is_retyped(self, number: int, replica_type: str) -> None:
        chosen = self.pick(number)
        if chosen is not None:
            self.cluster = retype_replica(self.cluster, chosen, replica_type)

    @rule(number=picks)
    def object_of_a_dead_replica_vanishes(self, number: int) -> None:
        chosen = self.pick(number)
        rvr = self.cluster.replica(chosen) if chosen is not None else None
        if chosen is not None and rvr is not None and rvr.spec.node_name in self.cluster.dead:
            self.cluster = without_object(self.cluster, chosen)

    @rule(number=picks, operation=st.sampled_from(["ForceLeave", "ForceDetach"]))
    def administrator_asks_for_force(self, number: int, operation: str) -> None:
        chosen = self.pick(number)
        rvr = self.cluster.replica(chosen) if chosen is not None else None
        if chosen is not None and rvr is not None and rvr.spec.node_name in self.cluster.dead:
            request = MembershipRequest(operation=operation, type=rvr.spec.type)
            self.cluster = edit_replica(self.cluster, chosen, datamesh_request=request)

    @rule(number=picks)
    def replica_moves_to_another_group(self, number: int) -> None:
        chosen = self.pick(number)
        rvr = self.cluster.replica(chosen) if chosen is not None else None
        if rvr is not None and rvr.spec.type == "Diskful" and rvr.spec.lvm_volume_group_name:
            group = "vg" if rvr.spec.lvm_volume_group_name == "vg-2" else "vg-2"
            moved = replace(rvr, spec=replace(rvr.spec, lvm_volume_group_name=group))
            replicas = tuple(moved if r is rvr else r for r in self.cluster.replicas)
            self.cluster = replace_cluster(self.cluster, replicas=replicas)

    @rule(node=nodes)
    def volume_is_wanted(self, node: str) -> None:
        if not any(rva.spec.node_name == node for rva in self.cluster.attachments):
            self.cluster = with_attachment(self.cluster, node)
            if not any(rvr.spec.node_name == node for rvr in self.cluster.replicas):
                self.cluster = with_replica(self.cluster, "Access", node)

    @rule(node=nodes)
    def volume_is_not_wanted(self, node: str) -> None:
        self.cluster = without_attachment(self.cluster, node)

    @rule(number=picks, busy=st.booleans())
    def device_is_opened_or_closed(self, number: int, busy: bool) -> None:
        chosen = self.pick(number)
        rvr = self.cluster.replica(chosen) if chosen is not None else None
        if chosen is not None and rvr is not None and rvr.status.attachment is not None:
            attachment = ReplicaAttachment(device_path=rvr.status.attachment.device_path, in_use=busy)
            self.cluster = edit_replica(self.cluster, chosen, attachment=attachment)

    @rule()
    @precondition(lambda self: len(self.history) > 8)
    def volume_is_deleted(self) -> None:
        self.cluster = deleting_volume(self.cluster)
