"""Runs recorded scenarios against the simulator and compares what both did.

Compared: every exit code of a DRBD, LVM or dd command; the full state of all nodes at the last snapshot of each
group and at the end; in between, each node's recorded states must occur in that order. From the recording the replay
takes *when* an environment event was noticed (a lost link, a new connection), never what came of it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final, cast

from quorate.simulator.cluster import Cluster
from quorate.simulator.deliberate_differences import DELIBERATE
from quorate.simulator.metadata import compute_usable_blocks
from quorate.simulator.model import PeerVolume
from quorate.simulator.replay_compare import Passed, Progress, comparable, find_passed, in_passing, nearest
from quorate.simulator.replay_shell import Shell, Skipped
from quorate.simulator.replay_timing import RecordedTiming, last_signs_of_life, recorded_moments, recorded_openings
from quorate.simulator.scheduler import SimulatedTime
from quorate.simulator.status import status_json
from quorate.simulator.timing import DefaultTiming
from quorate.simulator.transcript import Command, Json, LabAction, Observation, Transcript, read_transcript

_EXTENT: Final = 4 << 20
_STARTED: Final = re.compile(r"change peer-device .*peer-node-id:(\d+) .*replication:(?:SyncTarget|PausedSyncT)")
_SYNCED: Final = re.compile(r"change peer-device .*peer-node-id:(\d+) .*replication:Established")
_BACKING: Final = re.compile(r"/dev/(?!mapper/|drbd)([\w.+-]+)/([\w.+-]+)")
_CREATE: Final = re.compile(r"drbdmeta .*create-md (\d+)")


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
        elif any(entry.covers(self.scenario, step, what) for entry in DELIBERATE):
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
        self.shell = Shell(self.cluster, openings=recorded_openings(transcript))
        self.report = Report(transcript.scenario)
        self.seen: dict[str, list[Passed]] = {}
        self.passed: dict[str, list[Passed]] = {}  # what the nodes went through in the group just closed
        self.expected: dict[str, list[tuple[int, str, Json]]] = {}
        self.progress = Progress()
        self.cluster.witnesses.append(self._witness)
        volumes, size = _given_volumes(transcript), f"{_volume_bytes(transcript)}b"
        for node in transcript.nodes:
            machine = self.cluster.add_node(node.name, node.addresses)
            for group, names in volumes.items():
                machine.lvm.add_group(group, 1 << 30)
                for name in names:
                    machine.lvm.execute(["lvcreate", "-y", "-n", name, "-L", size, group])

    def run(self) -> Report:
        doomed = last_signs_of_life(self.transcript)
        for step in self.transcript.steps:
            self._advance(step.time)
            self.progress.follow(step.status)
            match step:
                case Command():
                    self._command(step)
                    self._expect(step.index, "after a command", step.status)
                case LabAction():
                    self._lab(step)
                    self._expect(step.index, "after an action of the lab", step.status)
                case Observation():
                    self._observe(step)
            for name in doomed.get(step.index, ()):
                if self.cluster.nodes[name].running:
                    self.cluster.crash(name)
        if self.transcript.steps:
            last = self.transcript.steps[-1]
            self._remember()
            self._compare_order()
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
            self._witness(name)

    def _witness(self, name: str) -> None:
        state = self._state(name)
        history = self.seen.setdefault(name, [])
        if not history or history[-1].state != state:
            history.append(Passed(self.time.time(), state))

    def _state(self, name: str) -> Json:
        node = self.cluster.nodes[name]
        if not node.running:
            return "node-down"
        return [
            comparable(cast("Json", status_json(r)), settled=False) for _, r in sorted(node.kernel.resources.items())
        ]

    def _command(self, step: Command) -> None:
        running = self.cluster.nodes[step.node].running
        outcome = self.shell.run(step.node, step.line) if running else None
        if isinstance(outcome, Skipped):
            self.report.skipped.append({"step": step.index, "command": step.line[:120], "reason": outcome.reason})
            return
        simulated = outcome.exit_code if outcome is not None else None
        detail: Json = simulated if outcome is None else f"{simulated} {outcome.stderr[:200]}"
        recorded: Json = f"{step.exit_code} {step.stderr[:200]}"
        self.report.note(step.index, step.line[:120], recorded, detail, equal=simulated == step.exit_code)

    def _lab(self, step: LabAction) -> None:
        action = step.action
        named = [name for name in re.findall(r"[\w.-]+", action.partition("(")[0]) if name in self.cluster.nodes]
        if action.startswith("kill "):
            for name in named:
                self.cluster.crash(name)
        elif action.startswith("boot "):
            for name in named:
                self.cluster.restart(name)
        elif action.startswith("restore all links"):
            self._heal_all()
        elif "drop all frames" in action or "restore all frames" in action:
            self._frames(action, cut="drop all frames" in action)
        elif not action.startswith("---") and action != "end of scenario":
            self.report.skipped.append({"step": step.index, "command": action[:120], "reason": "a remark of the lab"})

    def _heal_all(self) -> None:
        names = sorted(self.cluster.nodes)
        for one in names:
            for other in names:
                if one < other:
                    self.cluster.heal(one, other)

    def _frames(self, action: str, *, cut: bool) -> None:
        """`between n0 and n1`, `between n0-n1, n1-n2` both ways, `from n0 to n1` one way; ` on net_a` one network."""
        found = re.search(r" on (net_\w+)", action)
        network = found.group(1) if found is not None else None
        name = "|".join(re.escape(each) for each in sorted(self.cluster.nodes))
        for one, other in re.findall(rf"from ({name}) to ({name})", action):
            self.cluster.cut(one, other, network, one_way=True) if cut else self.cluster.heal(one, other, network)
        _, _, pairs = action.partition("between")
        for one, other in re.findall(rf"\b({name})(?:-| and )({name})\b", pairs):
            self.cluster.cut(one, other, network) if cut else self.cluster.heal(one, other, network)

    def _observe(self, step: Observation) -> None:
        if not step.closes_group:
            self._expect(step.index, step.note, step.status)
            return
        self._remember()
        self._compare_order()
        self._compare_states(step.index, step.note, step.status, settled=True)

    def _expect(self, index: int, note: str, status: Mapping[str, Json]) -> None:
        """A snapshot taken while things move: each node must pass through what it shows."""
        for name, recorded in status.items():
            if isinstance(recorded, list):
                wanted: Json = [comparable(resource, settled=False) for resource in recorded]
                self.expected.setdefault(name, []).append((index, note, wanted))

    def _compare_order(self) -> None:
        """Each node's recorded states of a group must occur in that order among the states it went through."""
        for name, wanted_states in self.expected.items():
            history, position = self.seen.get(name, []), 0
            for index, note, wanted in wanted_states:
                found = find_passed(history, position, wanted)
                position = position if found is None else found
                closest: Json = nearest(history[position:], wanted) if found is None else wanted
                self.report.note(index, f"{note}: {name} on the way", wanted, closest, equal=found is not None)
        self.expected.clear()
        self.passed = self.seen
        self.seen = {name: states[-1:] for name, states in self.seen.items()}

    def _compare_states(self, index: int, note: str, status: Mapping[str, Json], *, settled: bool) -> None:
        for name, recorded in status.items():
            node = self.cluster.nodes[name]
            if isinstance(recorded, str):
                self.report.note(index, f"{note}: {name}", recorded, self._state(name), equal=not node.running)
                continue
            if isinstance(recorded, dict):  # `drbdsetup status` itself did not end well
                code = node.execute(["drbdsetup", "status", "--json"]).exit_code
                self.report.note(index, f"{note}: {name}", recorded, code, equal=code == recorded.get("rc"))
                continue
            resources = [r for _, r in sorted(node.kernel.resources.items())] if node.running else []
            shown = partial(
                comparable,
                settled=settled,
                unfinished=self.progress.unfinished(name),
                looping=self.shell.writes_in_background(name),
            )
            wanted: Json = [shown(resource) for resource in cast("list[Json]", recorded)]
            got: Json = [shown(cast("Json", status_json(resource))) for resource in resources]
            equal = got == wanted or self._went_through(name, cast("list[Json]", recorded))
            self.report.note(index, f"{note}: {name}", wanted, got, equal=equal)

    def _went_through(self, name: str, recorded: list[Json]) -> bool:
        """A closing snapshot of a connection between two tries; see `PASSING`."""
        wanted: Json = [comparable(resource, settled=False) for resource in recorded]
        return in_passing(recorded) and find_passed(self.passed.get(name, []), 0, wanted) is not None


def _given_volumes(transcript: Transcript) -> dict[str, list[str]]:
    """The logical volumes the lab's machines came with: those that are used and not made by the scenario itself."""
    found: dict[str, list[str]] = {"vg": ["r0"]}
    made = {
        match.group(1)
        for step in transcript.steps
        if isinstance(step, Command) and "lvcreate" in step.line
        for match in re.finditer(r"(?:-n|--name)[ =]?(\S+)", step.line)
    }
    for step in transcript.steps:
        line = step.line if isinstance(step, Command) and step.exit_code == 0 else ""
        for group, name in _BACKING.findall(line) if line.startswith(("drbdmeta", "drbdsetup attach")) else ():
            if name not in made and f"{group}/{name}" not in made and name not in found.setdefault(group, []):
                found[group].append(name)
    return found


def _volume_bytes(transcript: Transcript) -> int:
    """The size of the lab's volume: from the first recorded device size and the bitmap slots of its metadata."""
    slots = 7
    for step in transcript.steps:
        made = _CREATE.search(step.line) if isinstance(step, Command) and step.exit_code == 0 else None
        slots = int(made.group(1)) if made is not None else slots
        for status in step.status.values():
            for resource in status if isinstance(status, list) else ():
                for device in cast("list[dict[str, int]]", cast("dict[str, Json]", resource)["devices"]):
                    if device["size"]:
                        return _smallest_volume(device["size"] * 1024 // 4096, slots)
    return 40 << 20


def _smallest_volume(blocks: int, slots: int) -> int:
    """Volumes are made of whole extents."""
    size = _EXTENT
    while compute_usable_blocks(size, slots) < blocks:
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
