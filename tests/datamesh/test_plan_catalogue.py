"""The registry against the catalogue of facts/datamesh 3, in the form of decisions 3-6: plans, steps, groups, mirrors."""

from __future__ import annotations

import pytest

from quorate.api.replicated_volume import TransitionGroup, TransitionType
from quorate.datamesh.dsl import INVERSE, Kind, Plan
from quorate.datamesh.engine import DEFAULT_REGISTRY
from quorate.datamesh.registry import registry_of

ADD, REMOVE = TransitionType.ADD_REPLICA, TransitionType.REMOVE_REPLICA
CHANGE, FORCE = TransitionType.CHANGE_REPLICA_TYPE, TransitionType.FORCE_REMOVE_REPLICA
QUORUM, NETWORKS = TransitionType.CHANGE_QUORUM, TransitionType.CHANGE_SYSTEM_NETWORKS
VOTING, OTHER = TransitionGroup.VOTING_MEMBERSHIP, TransitionGroup.NON_VOTING_MEMBERSHIP
EMERGENCY = TransitionGroup.EMERGENCY

CATALOGUE: dict[tuple[str, str], tuple[str, list[str]]] = {
    (ADD, "access/v1"): (OTHER, ["✦ → A"]),
    (ADD, "tiebreaker/v1"): (OTHER, ["✦ → TB"]),
    (ADD, "diskful/v1"): (VOTING, ["✦ → D∅", "D∅ → D"]),
    (ADD, "diskful-q-up/v1"): (VOTING, ["✦ → A", "A → D∅ + q↑", "D∅ → D"]),
    (ADD, "diskful-vote-off/v1"): (VOTING, ["✦ → A", "TB vote off", "A → D∅ + q", "TB vote on", "D∅ → D"]),
    (ADD, "diskful-q-first/v1"): (VOTING, ["✦ → A", "q↑", "A → D∅ + q", "D∅ → D"]),
    (REMOVE, "access/v1"): (OTHER, ["A → ✕"]),
    (REMOVE, "tiebreaker/v1"): (OTHER, ["TB → ✕"]),
    (REMOVE, "remove-diskful/v1"): (VOTING, ["D → D∅", "D∅ → ✕"]),
    (REMOVE, "remove-diskful-q-down/v1"): (VOTING, ["D → D∅", "D∅ → A + q↓", "A → ✕"]),
    (REMOVE, "remove-diskful-vote-off/v1"): (
        VOTING,
        ["D → D∅", "TB vote off", "D∅ → A + q", "TB vote on", "A → ✕"],
    ),
    (REMOVE, "remove-diskful-q-first/v1"): (VOTING, ["D → D∅", "D∅ → A + q", "q↓", "A → ✕"]),
    (CHANGE, "a-to-tb/v1"): (OTHER, ["A → TB"]),
    (CHANGE, "tb-to-a/v1"): (OTHER, ["TB → A"]),
    (CHANGE, "a-to-d/v1"): (VOTING, ["A → D∅", "D∅ → D"]),
    (CHANGE, "a-to-d-q-up/v1"): (VOTING, ["A → D∅ + q↑", "D∅ → D"]),
    (CHANGE, "a-to-d-vote-off/v1"): (VOTING, ["TB vote off", "A → D∅ + q", "TB vote on", "D∅ → D"]),
    (CHANGE, "a-to-d-q-first/v1"): (VOTING, ["q↑", "A → D∅ + q", "D∅ → D"]),
    (CHANGE, "tb-to-d/v1"): (VOTING, ["TB → D∅", "D∅ → D"]),
    (CHANGE, "tb-to-d-q-up/v1"): (VOTING, ["TB → D∅ + q↑", "D∅ → D"]),
    (CHANGE, "tb-to-d-vote-off/v1"): (VOTING, ["TB vote off", "TB → D∅ + q", "TB vote on", "D∅ → D"]),
    (CHANGE, "tb-to-d-q-first/v1"): (VOTING, ["q↑", "TB → D∅ + q", "D∅ → D"]),
    (CHANGE, "d-to-a/v1"): (VOTING, ["D → D∅", "D∅ → A"]),
    (CHANGE, "d-to-a-q-down/v1"): (VOTING, ["D → D∅", "D∅ → A + q↓"]),
    (CHANGE, "d-to-a-vote-off/v1"): (VOTING, ["D → D∅", "TB vote off", "D∅ → A + q", "TB vote on"]),
    (CHANGE, "d-to-a-q-first/v1"): (VOTING, ["D → D∅", "D∅ → A + q", "q↓"]),
    (CHANGE, "d-to-tb/v1"): (VOTING, ["D → D∅", "D∅ → TB"]),
    (CHANGE, "d-to-tb-q-down/v1"): (VOTING, ["D → D∅", "D∅ → TB + q↓"]),
    (CHANGE, "d-to-tb-vote-off/v1"): (VOTING, ["D → D∅", "TB vote off", "D∅ → TB + q", "TB vote on"]),
    (CHANGE, "d-to-tb-q-first/v1"): (VOTING, ["D → D∅", "D∅ → TB + q", "q↓"]),
    (CHANGE, "resume-diskful/v1"): (VOTING, ["D∅ → D"]),
    (CHANGE, "change-backing-volume/v1"): (VOTING, ["D → D∅", "D∅ → D∅ (new volume)", "D∅ → D"]),
    (FORCE, "access/v1"): (EMERGENCY, ["Force remove"]),
    (FORCE, "tiebreaker/v1"): (EMERGENCY, ["Force remove"]),
    (FORCE, "diskful/v1"): (EMERGENCY, ["Force remove"]),
    (FORCE, "diskful-q-down/v1"): (EMERGENCY, ["Force remove"]),
    (FORCE, "diskful-staged/v1"): (EMERGENCY, ["Force remove + q↑", "q↓"]),
    (FORCE, "diskful-vote-off/v1"): (EMERGENCY, ["TB vote off", "Force remove", "TB vote on"]),
    (FORCE, "diskful-pair/v1"): (EMERGENCY, ["Disconnect tie-breakers", "Force remove + q↓"]),
    (TransitionType.ATTACH, "attach/v1"): (TransitionGroup.ATTACHMENT, ["Attach"]),
    (TransitionType.DETACH, "detach/v1"): (TransitionGroup.ATTACHMENT, ["Detach"]),
    (TransitionType.FORCE_DETACH, "force-detach/v1"): (EMERGENCY, ["Force detach"]),
    (TransitionType.ENABLE_MULTIATTACH, "enable-multiattach/v1"): (
        TransitionGroup.MULTIATTACH,
        ["Enable multiattach"],
    ),
    (TransitionType.DISABLE_MULTIATTACH, "disable-multiattach/v1"): (
        TransitionGroup.MULTIATTACH,
        ["Disable multiattach"],
    ),
    (QUORUM, "lower/v1"): (TransitionGroup.QUORUM, ["qmr↓", "q↓"]),
    (QUORUM, "raise/v1"): (TransitionGroup.QUORUM, ["q↑", "qmr↑"]),
    (QUORUM, "lower-q-raise-qmr/v1"): (TransitionGroup.QUORUM, ["q↓", "qmr↑"]),
    (QUORUM, "raise-q-lower-qmr/v1"): (TransitionGroup.QUORUM, ["q↑", "qmr↓"]),
    (QUORUM, "restore-tie-breakers/v1"): (TransitionGroup.QUORUM, ["TB vote on"]),
    (TransitionType.REPAIR_NETWORK_ADDRESSES, "repair/v1"): (TransitionGroup.NETWORK, ["Repair"]),
    (NETWORKS, "add/v1"): (TransitionGroup.NETWORK, ["Listen", "Connect"]),
    (NETWORKS, "remove/v1"): (TransitionGroup.NETWORK, ["Disconnect"]),
    (NETWORKS, "update/v1"): (TransitionGroup.NETWORK, ["Listen new & Disconnect old", "Connect"]),
    (NETWORKS, "migrate/v1"): (TransitionGroup.NETWORK, ["Listen new", "Connect new", "Disconnect old"]),
    (TransitionType.RESIZE_VOLUME, "resize/v1"): (TransitionGroup.RESIZE, ["resize"]),
}

PLANS = list(DEFAULT_REGISTRY.plans.values())


def test_the_registry_is_the_catalogue() -> None:
    found = {key: (plan.group, [step.name for step in plan.steps]) for key, plan in DEFAULT_REGISTRY.plans.items()}
    assert found == CATALOGUE


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.type}-{plan.plan_id}")
def test_ids_are_versioned_and_names_fit_the_schema(plan: Plan) -> None:
    name, _, version = plan.plan_id.partition("/v")
    assert name
    assert version.isdigit()
    assert 1 <= len(plan.steps) <= 8
    assert all(1 <= len(step.name) <= 64 for step in plan.steps)


@pytest.mark.parametrize(
    "plan", [p for p in PLANS if p.group == VOTING], ids=lambda plan: f"{plan.type}-{plan.plan_id}"
)
def test_steps_that_give_up_a_copy_ask_for_the_other_copies(plan: Plan) -> None:
    lossy = (Kind.DETACH_DISK, Kind.LOSE_VOTE, Kind.LEAVE_VOTER, Kind.CHANGE_VOLUME)
    for step in plan.steps:
        if step.kind in lossy:
            assert "G19" in [gate.name for gate in step.gates], f"S15: {step.name}"


@pytest.mark.parametrize("plan", PLANS, ids=lambda plan: f"{plan.type}-{plan.plan_id}")
def test_steps_that_gain_a_vote_ask_for_its_connection_and_for_enforcement(plan: Plan) -> None:
    for step in plan.steps:
        if step.kind in (Kind.GAIN_VOTE, Kind.RAISE_QUORUM, Kind.VOTE_OFF):
            names = [gate.name for gate in step.gates]
            assert "subject-connected" in names, f"H4: {step.name}"
            assert "staging" in names, f"H31: {step.name}"
            assert step.raises, f"decision 5: {step.name}"


def test_every_membership_step_has_a_way_back() -> None:
    kinds = {step.kind for plan in PLANS if plan.group == VOTING for step in plan.steps}
    final = {Kind.LEAVE, Kind.LEAVE_VOTER, Kind.CHANGE_VOLUME}
    for kind in sorted(kinds - final, key=lambda k: k.value):
        assert INVERSE[kind], kind


def test_a_plan_is_registered_once() -> None:
    plan = PLANS[0]
    with pytest.raises(ValueError, match="registered twice"):
        registry_of((plan, plan), DEFAULT_REGISTRY.rules)


def test_a_registry_can_be_varied_without_touching_the_default() -> None:
    varied = DEFAULT_REGISTRY.without_guard("G19").without_gates()
    names = [g.name for plan in varied.plans.values() for g in plan.guards]
    assert "G19" not in names
    assert not any(step.gates for plan in varied.plans.values() for step in plan.steps)
    assert "G19" in [g.name for plan in PLANS for g in plan.guards]
