"""Liveness (facts/datamesh 6.7): after any history, a volume whose replicas answer again comes to rest where it should.

L5, L6 are in `test_convergence`, L7 and L8 in `test_attachments`, L3 in `test_emergency`; L9 and L10 concern the volume
controller, which deletes replicas and drives formation; the engine's part of L9 is here.
"""

from __future__ import annotations

from dataclasses import replace as replace_cluster
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from quorate.api.replicated_volume import MemberType
from quorate.datamesh.contract import PassResult
from quorate.datamesh.guards.emergency import WAITING_FOR_FENCING
from quorate.datamesh.layout import ALL_LAYOUTS, majority
from quorate.datamesh.members import id_of
from quorate.verification.perfect_cluster import Cluster
from quorate.verification.perfect_drive import delete_replica, form, run, with_attachment
from quorate.verification.perfect_replicas import react
from tests.datamesh.builders import MODES, THREE, context_of, datamesh, deleting_volume
from tests.datamesh.machine import NODES, DatameshMachine

RELAXED = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    # Shrinking a history takes minutes; the printed seed replays it.
    phases=(Phase.explicit, Phase.reuse, Phase.generate),
)


def history(random: Random, length: int = 40) -> Cluster:
    """A volume after a random history of faults and wishes; it is not deleted."""
    machine = DatameshMachine()
    machine.start(random.choice(ALL_LAYOUTS), random.choice(MODES), random.randint(1, 2), random.choice(["", "abcabc"]))
    for _ in range(length):
        node, number = f"node-{random.randrange(NODES)}", random.randrange(32)
        match random.randrange(16):
            case 0 | 1 | 2 | 3:
                machine.volume_goes_on(random.randint(1, 4))
            case 4 | 5:
                machine.volume_goes_on_with_some(random.randint(1, 3), random.getrandbits(12))
            case 6:
                machine.configuration_changes(random.choice(ALL_LAYOUTS))
            case 7:
                if len(machine.cluster.dead) < 2:
                    machine.node_dies(node)
            case 8:
                machine.nodes_come_back()
            case 9:
                machine.dead_nodes_are_fenced()
            case 10:
                machine.replica_is_deleted(number)
            case 11:
                machine.replica_is_retyped(number, random.choice(["Diskful", "TieBreaker", "Access"]))
            case 12:
                machine.volume_is_wanted(node)
            case 13:
                machine.volume_is_not_wanted(node)
            case 14:
                machine.replica_moves_to_another_group(number)
            case _:
                machine.object_of_a_dead_replica_vanishes(number)
    return machine.cluster


def tidied(cluster: Cluster) -> Cluster:
    """What the volume controller does meanwhile: Access replicas that nobody needs are deleted; nobody wants dead nodes."""
    kept = tuple(rva for rva in cluster.attachments if rva.spec.node_name not in cluster.dead)
    cluster = replace_cluster(cluster, attachments=kept)
    wanted = [rva.spec.node_name for rva in kept]
    for rvr in cluster.replicas:
        if rvr.spec.type == MemberType.ACCESS and rvr.spec.node_name not in wanted:
            cluster = delete_replica(cluster, id_of(rvr.metadata.name))
    return cluster


def has_copy(cluster: Cluster) -> bool:
    """Whether somebody that lives still has current data."""
    return context_of(cluster).up_to_date != 0


def assert_at_rest(cluster: Cluster, result: PassResult) -> None:
    """L1, L4: nothing runs except what needs evidence, and the values are right."""
    running = [t for t in cluster.volume.status.datamesh_transitions if t.reason != WAITING_FOR_FENCING]
    if len(running) != len(cluster.volume.status.datamesh_transitions):
        return
    if result.convergence.reason == "CannotConverge" and all(t.reason for t in running):
        return  # a guard holds it, and the volume says so
    assert running == [], f"L1: {[(t.plan_id, t.replica_name, t.message) for t in running]}"
    mesh = datamesh(cluster)
    voters = sum(member.type == MemberType.DISKFUL for member in mesh.members)
    assert mesh.quorum == majority(voters), "L4"
    assert not mesh.tie_breakers_suspended, "L4"
    assert result.convergence.reason in ("Converged", "CannotConverge", "Converging")


@RELAXED
@given(st.randoms(use_true_random=False))
def test_l1_l4_when_all_replicas_answer_every_change_completes(random: Random) -> None:
    cluster = history(random)
    cluster = tidied(replace_cluster(cluster, dead=(), fenced=()))
    cluster = react(react(cluster))
    if not has_copy(cluster):
        return
    done, result = run(cluster)
    assert_at_rest(done, result)


@RELAXED
@given(st.randoms(use_true_random=False))
def test_l2_dead_fenced_members_are_removed_whatever_they_were_doing(random: Random) -> None:
    cluster = history(random)
    cluster = tidied(replace_cluster(cluster, fenced=cluster.dead))
    cluster = react(react(cluster))
    if not has_copy(cluster):
        return
    done, result = run(cluster)
    assert_at_rest(done, result)
    if done.volume.status.datamesh_transitions:
        return
    left = [member.node_name for member in datamesh(done).members if member.node_name in done.dead]
    assert left == [], f"L2: {left} {result.convergence}"


@pytest.mark.parametrize("attached", [False, True])
def test_l9_a_deleting_volume_comes_to_rest_without_attachments(attached: bool) -> None:
    cluster = form(THREE)
    if attached:
        cluster = run(with_attachment(cluster, "node-0"))[0]
    cluster = deleting_volume(replace_cluster(cluster, attachments=()))
    cluster, result = run(cluster)
    assert not any(member.attached for member in datamesh(cluster).members)
    assert cluster.volume.status.datamesh_transitions == ()
    assert result.actions == ()
