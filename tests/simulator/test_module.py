"""The patched module: told by its version and its options, and its static voters (facts/agent 5.1, column FX)."""

from __future__ import annotations

import json

import pytest

from quorate.simulator.cluster import Cluster
from quorate.simulator.scheduler import SimulatedTime
from quorate.simulator.states import Disk
from quorate.simulator.voting import evaluate
from tests.simulator.lab import Lab


def cluster(mode: str) -> Cluster:
    return Cluster(SimulatedTime(0.0), seed=1, nodes=("a",), voter_mode=mode)


@pytest.mark.parametrize(
    ("mode", "version", "option", "known"),
    [
        ("dynamic", "version: 9.3.2 ", "--quorum-dynamic-voters=no", False),
        ("dynamic", "version: 9.3.2 ", "--quorum=2", True),
        ("static", "version: 9.2.18-flant.10 ", "--quorum-dynamic-voters=no", True),
    ],
)
def test_version_and_options_belong_together(mode: str, version: str, option: str, known: bool) -> None:
    simulated = cluster(mode)
    assert (simulated.host("a").read_text("/proc/drbd") or "").startswith(version)
    result = simulated.node("a").execute(["drbdsetup", "new-resource", "r0", "0", option])
    assert result.exit_code == (0 if known else 20)
    assert ("unrecognized option" in result.stderr) is not known


@pytest.mark.parametrize(("mode", "shown"), [("dynamic", None), ("static", True)])
def test_show_prints_only_what_the_module_knows(mode: str, shown: bool | None) -> None:
    simulated = cluster(mode)
    simulated.node("a").execute(["drbdsetup", "new-resource", "r0", "0"])
    text = simulated.node("a").execute(["drbdsetup", "show", "--json"]).stdout
    assert json.loads(text)[0]["options"].get("quorum-dynamic-voters") is shown


def static_lab(option: str) -> Lab:
    return Lab(quorum="2", voter_mode="static", options=option)


def test_static_voters_keep_the_tie_break_of_a_lost_primary() -> None:
    """2D+1T, q=2: what the stock module cannot do (X0a)."""
    lab = static_lab("--quorum-dynamic-voters=no")
    lab.must(0, "drbdsetup primary r0")
    lab.part((0,), (1, 2))
    assert lab.quorum(1)
    assert lab.promote(1).exit_code == 0
    assert lab.writes(1)
    assert not lab.writes(0, 1)


def test_the_patched_module_is_dynamic_until_it_is_told() -> None:
    lab = static_lab("")
    lab.must(0, "drbdsetup primary r0")
    lab.part((0,), (1, 2))
    assert lab.promote(1).exit_code == 11


def test_a_non_voting_disk_does_not_count_itself() -> None:
    lab = static_lab("--quorum-dynamic-voters=no")
    assert lab.run(0, "drbdsetup disk-options 1000 --non-voting=yes").exit_code == 0
    verdict = evaluate(lab.volume(0), had_quorum=True)
    assert (lab.disk(0), verdict.visible) == (Disk.UP_TO_DATE, 1)
