"""The whole system under faults: crashes after every few effects, lost answers, stale watches; same seed, same history."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from quorate.api.replicated_volume import ReplicatedVolume
from quorate.local.shape import Shape
from quorate.machinery.faults import CALM, FaultPlan
from quorate.verification.system.crashes import CrashEvery, supervised
from quorate.verification.system.system import System, SystemOptions, run_system
from quorate.verification.system.writer import acknowledging
from tests.system import stories

STORM = FaultPlan(
    latency=(0.001, 0.05), fail_before=0.05, fail_after=0.05, hang=0.005, watch_lag=(0.0, 1.0), drop_watch=0.02
)


@pytest.mark.parametrize("limit", [1, 2, 3, 5, 8])
def test_controllers_that_die_after_every_few_effects_get_everything_done(limit: int) -> None:
    gate = CrashEvery(limit)

    async def story(system: System) -> None:
        gate.follow(system.writes)
        supervisor = supervised(system)
        await system.create_class(ftt=1, gmdr=0, ready=False)
        await system.create_volume()
        await system.formed(seconds=1800)
        home, *_ = await stories.diskful_nodes(system)
        attachment = await system.attach("vol", home, seconds=600)
        writer = await stories.start_writer(system, home)
        await stories.set_promise(system, 1, 1)
        await stories.reached(system, 1, 1, seconds=1800)
        await acknowledging(writer)
        report = await writer.stop()
        assert report.failed == 0
        await system.detach(attachment, seconds=600)
        await stories.healthy_again(system)
        await system.delete(ReplicatedVolume, "vol")
        await system.gone(ReplicatedVolume, "vol", seconds=600)
        await system.clock.sleep(120)
        await system.check_no_orphans()
        supervisor.cancel()

    run_system(story, SystemOptions(shape=Shape(nodes=5), gate=gate, seed=limit))
    assert gate.crashes > 3


@pytest.mark.parametrize("seed", [11, 12, 13])
def test_lost_answers_stale_views_and_node_crashes_lose_nothing(seed: int) -> None:
    async def story(system: System) -> None:
        await system.create_class(ftt=1, gmdr=1)
        await system.create_volume()
        await system.formed()
        home, victim, *_ = await stories.diskful_nodes(system)
        await system.attach("vol", home)
        writer = await stories.start_writer(system, home)
        system.agents_and_controllers.plan = STORM
        await system.cluster.crash_node(victim)
        await system.clock.sleep(30)
        system.cluster.restart_node(victim)
        await system.clock.sleep(120)
        system.agents_and_controllers.plan = CALM
        await acknowledging(writer, 10)
        await stories.healthy_again(system)
        report = await writer.stop()
        assert report.failed == 0
        await system.clock.sleep(120)
        await system.quiet()

    run_system(story, SystemOptions(shape=Shape(nodes=5), seed=seed))


HISTORY = """
import hashlib, sys
from quorate.verification.system.system import SystemOptions, run_system
async def story(system):
    await system.create_class(ftt=1, gmdr=0)
    await system.create_volume()
    await system.formed()
    await system.attach("vol", "node-2")
    await system.cluster.crash_node("node-1")
    await system.clock.sleep(120)
    return repr(system.writes.log) + await system.describe()
print(hashlib.sha256(run_system(story, SystemOptions(seed=int(sys.argv[1]))).encode()).hexdigest())
"""


def test_same_seed_same_history_in_any_process() -> None:
    def history(seed: int, hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        done = subprocess.run(
            [sys.executable, "-c", HISTORY, str(seed)],
            env=environment,
            cwd=Path(__file__).resolve().parents[2],
            capture_output=True,
            text=True,
            check=True,
        )
        return done.stdout

    assert history(5, "1") == history(5, "4242")
    assert len(history(5, "1").strip()) == hashlib.sha256().digest_size * 2
