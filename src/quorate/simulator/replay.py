"""Runs recorded scenarios against the simulator and compares what both did.

Compared: every exit code of a DRBD, LVM or dd command; the full state of all nodes at the last snapshot of each
group and at the end; in between, each node's recorded states must occur in that order. From the recording the replay
takes *when* an environment event was noticed (a lost link, a new connection), never what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, cast

from quorate.simulator.cluster import Cluster
from quorate.simulator.deliberate_differences import DELIBERATE, UNCOMPARED, WHILE_SYNCING
from quorate.simulator.links import DefaultTiming
from quorate.simulator.metadata import compute_usable_blocks
from quorate.simulator.model import Connection, PeerVolume
from quorate.simulator.replay_shell import Shell, Skipped
from quorate.simulator.scheduler import SimulatedTime
from quorate.simulator.status import status_json
from quorate.simulator.transcript import Command, Json, LabAction, Observation, Transcript, read_transcript

_EXTENT: Final = 4 << 20
_STARTED: Final = re.compile(r"change peer-device .*peer-node-id:(\d+) .*replication:(?:SyncTarget|PausedSyncT)")
_SYNCED: Final = re.compile(r"change peer-device .*peer-node-id:(\d+) .*replication:Established")
_CHANGE: Final = re.compile(r"change connection .*peer-node-id:(\d+) .*connection:(\w+)")
_PAIR: Final = re.compile(r"n\d+-n\d+|n\d+ and n\d+")
_STATES_OF_LOSS: Final = frozenset({"NetworkFailure", "BrokenPipe", "Timeout", "ProtocolError"})
_WINDOW: Final = 15.0


@dataclass(frozen=True, slots=True)
class Mismatch:
    step: int
    what: str
    recorded: Json
    simulated: Json

    def to_json(self) -> dict[str, Json]:
        return {"step": self.step, "what": self.what, "recorded": self.recorded, "simulated": self.simulated}


@dataclass(slots=True)
class Report:
    """The outcome for one file."""

    scenario: str
    compared: int = 0
    matched: int = 0
    skipped: list[dict[str, Json]] = field(default_factory=list[dict[str, Json]])
    mismatches: list[Mismatch] = field(default_factory=list[Mismatch])
    deliberate: int = 0

    def note(self, step: int, what: str, recorded: Json, simulated: Json, *, equal: bool) -> None:
        self.compared += 1
        if equal:
            self.matched += 1
        elif any(entry.scenario == self.scenario and entry.step == step for entry in DELIBERATE):
            self.deliberate += 1
        else:
            self.mismatches.append(Mismatch(step, what, recorded, simulated))

    def to_json(self) -> dict[str, Json]:
        return {
            "compared": self.compared,
            "matched": self.matched,
            "deliberate": self.deliberate,
            "skipped": cast("Json", self.skipped),
            "mismatches": [mismatch.to_json() for mismatch in self.mismatches],
        }


@dataclass(slots=True)
class RecordedTiming:
    """When the recorded nodes noticed things; the default where the recording says nothing."""

    fallback: DefaultTiming
    moments: Mapping[str, tuple[tuple[float, int, str], ...]]
    clock: SimulatedTime

    def notice_loss(self, node: str, connection: Connection) -> float:
        return self._next(node, connection.peer_id, _STATES_OF_LOSS) or self.fallback.notice_loss(node, connection)

    def dial(self, node: str, connection: Connection) -> float:
        return self._next(node, connection.peer_id, frozenset({"Connected"})) or self.fallback.dial(node, connection)

    def _next(self, node: str, peer_id: int, states: frozenset[str]) -> float | None:
        now = self.clock.time()
        for moment, peer, state in self.moments.get(node, ()):
            if moment > now and peer == peer_id and state in states:
                return moment - now if moment - now < _WINDOW else None
        return None


def recorded_moments(transcript: Transcript) -> dict[str, tuple[tuple[float, int, str], ...]]:
    found: dict[str, tuple[tuple[float, int, str], ...]] = {}
    for node, lines in transcript.events.items():
        moments: list[tuple[float, int, str]] = []
        for time, line in lines:
            match = _CHANGE.search(line)
            if match is not None:
                moments.append((time, int(match.group(1)), match.group(2)))
        found[node] = tuple(moments)
    return found


def replay(path: Path) -> Report:
    return Replay(read_transcript(path)).run()


class Replay:
    """One scenario on a fresh cluster."""

    def __init__(self, transcript: Transcript) -> None:
        self.transcript = transcript
        self.time = SimulatedTime()
        timing = RecordedTiming(DefaultTiming(lambda: 0.5), recorded_moments(transcript), self.time)
        self.cluster = Cluster(self.time, seed=1, timing=timing)
        self.cluster.resync.planned = self._recorded_duration
        self.cluster.resync.planned_exchange = self._recorded_exchange
        self.shell = Shell(self.cluster)
        self.report = Report(transcript.scenario)
        self.seen: dict[str, list[Json]] = {}
        self.expected: dict[str, list[tuple[int, str, Json]]] = {}
        for node in transcript.nodes:
            machine = self.cluster.add_node(node.name, node.addresses)
            machine.lvm.add_group("vg", 1 << 30)
            machine.lvm.execute(["lvcreate", "-y", "-n", "r0", "-L", f"{_volume_bytes(transcript)}b", "vg"])

    def run(self) -> Report:
        for step in self.transcript.steps:
            match step:
                case Command():
                    self._advance(step.time)
                    self._command(step)
                case LabAction():
                    self._advance(step.time)
                    self._lab(step)
                case Observation():
                    self._advance(step.time)
                    self._observe(step)
        if self.transcript.steps:
            last = self.transcript.steps[-1]
            self._compare_states(last.index, "end", last.status, settled=True)
        return self.report

    def _recorded_duration(self, target: PeerVolume) -> float | None:
        """Until the recorded target left its resync with this peer; None when the recording does not say."""
        return self._until(target, _SYNCED, 60.0)

    def _recorded_exchange(self, target: PeerVolume) -> float | None:
        """Until the recorded target had the bitmaps of this peer."""
        return self._until(target, _STARTED, 5.0)

    def _until(self, target: PeerVolume, pattern: re.Pattern[str], window: float) -> float | None:
        node, now = self.cluster.node_of(target.connection.resource), self.time.time()
        for moment, line in self.transcript.events.get(node, ()):
            match = pattern.search(line) if now < moment < now + window else None
            if match is not None and int(match.group(1)) == target.connection.peer_id:
                return moment - now
        return None

    def _advance(self, until: float) -> None:
        """Lets time pass and remembers every state that occurs on the way."""
        self._remember()
        while self.time.step(until):
            self._remember()

    def _remember(self) -> None:
        for name in self.cluster.nodes:
            state = self._state(name)
            history = self.seen.setdefault(name, [])
            if not history or history[-1] != state:
                history.append(state)

    def _state(self, name: str) -> Json:
        node = self.cluster.nodes[name]
        if not node.running:
            return "node-down"
        return [
            comparable(cast("Json", status_json(r)), settled=False) for _, r in sorted(node.kernel.resources.items())
        ]

    def _command(self, step: Command) -> None:
        outcome = self.shell.run(step.node, step.line)
        if isinstance(outcome, Skipped):
            self.report.skipped.append({"step": step.index, "command": step.line[:120], "reason": outcome.reason})
            return
        simulated = outcome.exit_code if outcome is not None else None
        detail: Json = simulated if outcome is None else f"{simulated} {outcome.stderr[:200]}"
        recorded: Json = f"{step.exit_code} {step.stderr[:200]}"
        self.report.note(step.index, step.line[:120], recorded, detail, equal=simulated == step.exit_code)

    def _lab(self, step: LabAction) -> None:
        action = step.action
        if action.startswith("kill "):
            self.cluster.crash(action.split()[1])
        elif action.startswith("boot "):
            self.cluster.restart(action.split()[1])
        elif action.startswith("restore all links"):
            names = sorted(self.cluster.nodes)
            for one in names:
                for other in names:
                    if one < other:
                        self.cluster.heal(one, other)
        elif "drop all frames between" in action or action.startswith("restore all frames between"):
            self._frames(action, cut="drop all frames" in action)
        elif not action.startswith("---") and action != "end of scenario":
            self.report.skipped.append({"step": step.index, "command": action[:120], "reason": "a remark of the lab"})

    def _frames(self, action: str, *, cut: bool) -> None:
        found = re.search(r" on (net_\w+)", action)
        network = found.group(1) if found is not None else None
        for pair in _PAIR.findall(action[action.index("between") :]):
            one, other = re.split(r"-| and ", pair)
            if cut:
                self.cluster.cut(one, other, network)
            else:
                self.cluster.heal(one, other, network)

    def _observe(self, step: Observation) -> None:
        if not step.closes_group:
            for name, recorded in step.status.items():
                if not isinstance(recorded, str):
                    wanted = [comparable(resource, settled=False) for resource in cast("list[Json]", recorded)]
                    self.expected.setdefault(name, []).append((step.index, step.note, wanted))
            return
        self._remember()
        self._compare_order()
        self._compare_states(step.index, step.note, step.status, settled=True)

    def _compare_order(self) -> None:
        """Each node's recorded states of a group must occur in that order among the states it went through."""
        for name, wanted_states in self.expected.items():
            history, position = self.seen.get(name, []), 0
            for index, note, wanted in wanted_states:
                found = next((at for at in range(position, len(history)) if history[at] == wanted), None)
                position = position if found is None else found
                last: Json = history[-1] if history else None
                self.report.note(index, f"{note}: {name} on the way", wanted, last, equal=found is not None)
        self.expected.clear()
        self.seen = {name: states[-1:] for name, states in self.seen.items()}

    def _compare_states(self, index: int, note: str, status: Mapping[str, Json], *, settled: bool) -> None:
        for name, recorded in status.items():
            node = self.cluster.nodes[name]
            if isinstance(recorded, str):
                if recorded == "node-down":
                    self.report.note(index, f"{note}: {name}", recorded, self._state(name), equal=not node.running)
                continue
            wanted = [comparable(resource, settled=settled) for resource in cast("list[Json]", recorded)]
            resources = [r for _, r in sorted(node.kernel.resources.items())] if node.running else []
            got: Json = [comparable(cast("Json", status_json(r)), settled=settled) for r in resources]
            self.report.note(index, f"{note}: {name}", wanted, got, equal=got == wanted)


def comparable(value: Json, *, settled: bool) -> Json:
    """A status without the fields that are not compared."""
    if isinstance(value, dict):
        hidden = UNCOMPARED if settled else {**UNCOMPARED, **WHILE_SYNCING}
        return {key: comparable(item, settled=settled) for key, item in value.items() if key not in hidden}
    if isinstance(value, list):
        return [comparable(item, settled=settled) for item in value]
    return value


def _volume_bytes(transcript: Transcript) -> int:
    """The size of the lab's volume, from the first device size in the recording (seven peers, whole extents)."""
    for step in transcript.steps:
        for status in step.status.values():
            for resource in status if isinstance(status, list) else ():
                for device in cast("list[dict[str, int]]", cast("dict[str, Json]", resource)["devices"]):
                    if device["size"]:
                        return _smallest_volume(device["size"] * 1024 // 4096)
    return 40 << 20


def _smallest_volume(blocks: int) -> int:
    size = _EXTENT
    while compute_usable_blocks(size, 7) < blocks:
        size += _EXTENT
    return size


def summarize(reports: Mapping[str, Report]) -> dict[str, Json]:
    """What `quorate replay --json` prints."""
    values = reports.values()
    total: dict[str, Json] = {
        "compared": sum(report.compared for report in values),
        "matched": sum(report.matched for report in values),
        "deliberate": sum(report.deliberate for report in values),
        "skipped": sum(len(report.skipped) for report in values),
        "mismatches": sum(len(report.mismatches) for report in values),
    }
    return {"files": {name: report.to_json() for name, report in reports.items()}, "total": total}
