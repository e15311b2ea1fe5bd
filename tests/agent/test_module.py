"""What the agent makes of the module it finds: nobody tells it which one it has."""

from __future__ import annotations

import json

import pytest

from quorate.agent.intended import Settings
from quorate.agent.plan import compute_plan
from quorate.api.labels import ANNOTATION_DRBD_VERSION, ANNOTATION_PEER_TIEBREAKER, ANNOTATION_VOTER_MODE
from quorate.api.node import Node
from tests.agent.builders import drbdr, peer
from tests.agent.mesh import KERNEL_NAME, first_data, form, promote
from tests.agent.test_plan import actual, actual_peer, intended, lines, seen
from tests.agent.world import World, run_world


def options_of(world: World, node_id: int) -> dict[str, object]:
    shown = world.cluster.node(world.nodes[node_id]).execute(
        ["drbdsetup", "show", "--json", KERNEL_NAME.format(node_id)]
    )
    return json.loads(shown.stdout)[0]["options"]


@pytest.mark.parametrize(
    ("mode", "version", "tiebreaker", "quorum", "voters"),
    [("dynamic", "9.3.2", "true", "majority", None), ("static", "9.2.18-flant.10", "false", "2", False)],
)
def test_mode_and_features_are_found_on_the_machine(
    mode: str, version: str, tiebreaker: str, quorum: str, voters: bool | None
) -> None:
    """2D+1T: `majority` on the stock module (X8a), a number with static voters on the patched one."""

    async def story(world: World) -> None:
        await form(world, diskful=(0, 1), tie_breakers=(2,))
        await first_data(world, 0, 0, 1)
        annotations = (await world.client.get(Node, "n0")).metadata.annotations
        assert annotations[ANNOTATION_DRBD_VERSION] == version
        assert annotations[ANNOTATION_VOTER_MODE] == mode
        assert annotations[ANNOTATION_PEER_TIEBREAKER] == tiebreaker
        for node_id in (0, 1):
            found = options_of(world, node_id)
            assert (found["quorum"], found.get("quorum-dynamic-voters")) == (quorum, voters)
        await promote(world, 0)
        await world.crash("n0")
        await promote(world, 1)

    run_world(story, voter_mode=mode)


def test_without_the_option_a_tie_breaker_loses_its_vote_by_being_hidden() -> None:
    mesh = drbdr(0, peers=[peer(1), peer(2, diskful=False, tie_breaker=False)], quorum=2, redundancy=1)
    votes = actual_peer(2, disk_state="Diskless", device={"bitmap": False, **DEFAULTS})
    found = seen(actual(actual_peer(1), votes, quorum="2", redundancy="1"))
    with_option = compute_plan(found, intended(mesh))
    assert any("--peer-tiebreaker=no" in line for line in lines(with_option))
    without = compute_plan(found, intended(mesh, settings=Settings(peer_tiebreaker=False)))
    assert not any("peer-tiebreaker" in line for line in lines(without))
    assert any(line.endswith("net-options sdsrv-rv-0 2 --allow-remote-read=no") for line in lines(without))


DEFAULTS = {
    "c-plan-ahead": "20",
    "c-delay-target": "1",
    "c-fill-target": "4096s",
    "c-max-rate": "625000k",
    "c-min-rate": "12500k",
}
