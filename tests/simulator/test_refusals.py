"""A refused command changes nothing, on no node: checked on every refusal the recordings contain."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorate.simulator.replay import Replay
from quorate.simulator.result import Result
from quorate.simulator.status import status_json
from quorate.simulator.transcript import Command, LabAction, read_transcript
from tests.simulator.recordings import FILES, needs_recordings

_MAY_DO_HALF = ("down", "attach")
"""`down` stops at the first refusal with what it did so far (N8); a failed attach may leave the write ordering."""


def states(replay: Replay) -> dict[str, str]:
    nodes = replay.cluster.nodes.items()
    return {
        name: json.dumps([status_json(resource) for resource in node.kernel.resources.values()], default=str)
        for name, node in nodes
    }


@needs_recordings
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_refused_command_leaves_every_node_as_it_was(path: Path) -> None:
    replay = Replay(read_transcript(path))
    for step in replay.transcript.steps:
        replay._advance(step.time)
        if isinstance(step, LabAction):
            replay._lab(step)
        if not isinstance(step, Command):
            continue
        words = step.line.split()
        replay.cluster.operations_notice(step.node)
        before = states(replay)
        outcome = replay.shell.run(step.node, step.line)
        refused = isinstance(outcome, Result) and outcome.exit_code in (10, 11, 17)
        # A failed promotion may outdate another node; the kernel does that too (X3, X5).
        exempt = any(word in words for word in (*_MAY_DO_HALF, "primary"))
        if refused and "drbdsetup" in words and not exempt:
            assert states(replay) == before, f"step {step.index}: {step.line}"
