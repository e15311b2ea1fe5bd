"""Extracts quorum cases from the recordings of a real DRBD cluster.

Usage: python -m tests.simulator.extract_quorum_cases RECORDINGS

Writes one `quorum_cases/<scenario>.json` per recording. A case is one state change of one node, taken from its
`events2` stream, or one successful option command: what the node saw afterwards, the options in force and the quorum
flag the kernel reported. Nothing about quorum is computed here; the test applies the rule and compares.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

SCENARIOS = (
    "S5",
    "S5c",
    "S6",
    "S6b",
    "S6c",
    "S6d",
    "S6e",
    "S6g",
    "S7",
    "S9",
    "S12",
    "S12b",
    "S13",
    "S17",
    "S17b",
    "S18",
    "X0a",
    "X1a",
    "X3",
    "X5",
    "X7",
    "X8a",
)
COLUMNS = ("t", "primary", "disk", "client", "quorum", "minimum_redundancy", "lost", "disk_lost", "flag", "peers")
PEER_COLUMNS = ("id", "connected", "disk", "bitmap", "tiebreaker", "remembered", "quorate", "dropped")
CASES = Path(__file__).parent / "quorum_cases"
COMMIT_SECONDS = 1.5
"""How long after a loss the cluster-wide change that drops the peer from the member set may still be under way."""

EVENT, COMMAND, SETTLED = 0, 1, 2
CLOCK_SECONDS = 0.5

_WITHOUT_DISK = ("Diskless", "Attaching")
_KINDS = {"resource": 0, "connection": 1, "device": 2, "peer-device": 3}


class Peer:
    """One peer of a node as its events describe it."""

    def __init__(self) -> None:
        self.connected = False
        self.configured = False
        self.disk = "DUnknown"
        self.bitmap = True
        self.tiebreaker = True
        self.remembered = False
        self.lost_at = float("-inf")


class Node:
    """What one node sees and is told, folded over its events and commands."""

    def __init__(self, flag_times: tuple[float, ...]) -> None:
        self.flag_times = flag_times
        self.reset()

    def reset(self) -> None:
        self.present = False
        self.primary = False
        self.disk = "Diskless"
        self.disk_lost = False
        self.client = False
        self.flag = False
        self.options = ["off", "off"]
        self.peers: dict[int, Peer] = {}

    def command(self, argv: list[str]) -> None:
        """Fold a successful command in."""
        argv = argv[2:] if argv[0] == "timeout" else argv
        if argv[0] != "drbdsetup" or len(argv) < 3:
            return
        words = dict(word.split("=", 1) for word in argv[3:] if "=" in word)
        match argv[1]:
            case "new-resource" | "resource-options":
                if argv[1] == "new-resource" or "--set-defaults" in argv:
                    self.options = ["off", "off"]
                self.options[0] = words.get("--quorum", self.options[0])
                self.options[1] = words.get("--quorum-minimum-redundancy", self.options[1])
            case "peer-device-options":
                peer = self.peers.setdefault(int(argv[3]), Peer())
                peer.bitmap = words.get("--bitmap", "yes" if peer.bitmap else "no") == "yes"
                peer.tiebreaker = words.get("--peer-tiebreaker", "yes" if peer.tiebreaker else "no") == "yes"
            case "forget-peer":
                self.peers.pop(int(argv[3]), None)
            case _:
                pass

    def reports(self, t: float) -> str:
        """Its quorum flag as a peer knows it; around a change the streams of two nodes are not ordered."""
        if any(abs(t - at) < CLOCK_SECONDS for at in self.flag_times):
            return "maybe"
        return "yes" if self.flag else "no"

    def event(self, verb: str, kind: str, values: dict[str, str], t: float) -> list[int]:
        """Fold one event line in; returns the peer whose connection it ended, if any."""
        if kind == "resource":
            if verb == "destroy":
                options, peers = self.options, self.peers
                self.reset()
                self.options = options
                for peer_id, peer in peers.items():
                    # The metadata of a disk remembers its peers across `down` and reboot (S9, S13).
                    peer.connected, peer.configured, peer.disk = False, False, "DUnknown"
                    self.peers[peer_id] = peer
                return []
            self.primary = values.get("role", "Primary" if self.primary else "Secondary") == "Primary"
        elif kind == "device":
            self.present = True
            self.disk_lost = self.disk not in _WITHOUT_DISK and values.get("disk") in _WITHOUT_DISK
            self.disk = values.get("disk", self.disk)
            self.client = values.get("client", "yes" if self.client else "no") == "yes"
            self.flag = values.get("quorum", "yes" if self.flag else "no") == "yes"
        elif kind == "connection" and verb != "destroy":
            peer = self.peers.setdefault(int(values["peer-node-id"]), Peer())
            peer.configured = True
            connected = values.get("connection", "Connected" if peer.connected else "") == "Connected"
            lost = peer.connected and not connected
            peer.connected, peer.remembered = connected, peer.remembered or connected
            if lost:
                peer.lost_at = t
                return [int(values["peer-node-id"])]
        elif kind == "peer-device" and verb != "destroy":
            peer = self.peers.setdefault(int(values["peer-node-id"]), Peer())
            peer.disk = values.get("peer-disk", peer.disk)
        return []


def parse_groups(lines: list[list[Any]]) -> list[tuple[float, list[tuple[str, str, dict[str, str]]]]]:
    """State changes: consecutive lines in the kernel's order (resource, connection, device, peer device)."""
    groups: list[tuple[float, list[tuple[str, str, dict[str, str]]]]] = []
    last = (float("-inf"), 9)
    for t, line in lines:
        if line.startswith("#lab"):
            groups.append((t, [("destroy", "resource", {})]))
            last = (t, 9)
            continue
        words = line.split()
        if len(words) < 3 or words[2] not in _KINDS:
            continue
        verb, kind = words[1], words[2]
        values = dict(word.split(":", 1) for word in words[3:] if ":" in word)
        if t - last[0] > 0.004 or _KINDS[kind] < last[1]:
            groups.append((t, []))
        groups[-1][1].append((verb, kind, values))
        last = (t, _KINDS[kind])
    return groups


def flag_times(lines: list[list[Any]]) -> tuple[float, ...]:
    """When a node's quorum flag changed."""
    flags = [(t, line.rpartition("quorum:")[2][:2]) for t, line in lines if " device " in line and "quorum:" in line]
    return tuple(t for (t, flag), before in zip(flags, [(0.0, "no"), *flags], strict=False) if flag != before[1])


def reachable(nodes: dict[int, Node], start: int) -> set[int]:
    """Nodes the member set of `start` may still hold: connected through any chain."""
    found, todo = {start}, [start]
    while todo:
        node = nodes[todo.pop()]
        for peer_id, peer in node.peers.items():
            if peer.connected and peer_id not in found and peer_id in nodes:
                found.add(peer_id)
                todo.append(peer_id)
    return found


def describe(nodes: dict[int, Node], node_id: int, t: float, lost: list[int]) -> list[Any]:
    """One row in the order of `COLUMNS`, its peers in the order of `PEER_COLUMNS`."""
    node = nodes[node_id]
    near = reachable(nodes, node_id)
    peers: list[list[Any]] = []
    for peer_id, peer in sorted(node.peers.items()):
        if not peer.configured and node.disk in _WITHOUT_DISK:
            continue
        dropped = "maybe" if t - peer.lost_at < COMMIT_SECONDS else "yes"
        peers.append([
            peer_id, peer.connected, peer.disk, peer.bitmap, peer.tiebreaker, peer.remembered,
            nodes[peer_id].reports(t) if peer_id in nodes else "no",
            "no" if peer.connected or peer_id in near else dropped,
        ])  # fmt: skip
    return [t, node.primary, node.disk, node.client, *node.options, lost, node.disk_lost, node.flag, peers]


def key_of(row: list[Any]) -> object:
    """What makes a state change of this node: its own view, not the time or what others report elsewhere."""
    return row[1:-1], [peer[:-2] for peer in row[-1]]


def extract(path: Path) -> dict[str, list[list[Any]]]:
    records = [json.loads(line) for line in path.read_text().splitlines()]
    names: dict[str, int] = {name: value["node_id"] for name, value in records[0]["nodes"].items()}
    times = {record["node"]: flag_times(record["lines"]) for record in records if record["kind"] == "events2"}
    nodes = {node_id: Node(times[name]) for name, node_id in names.items()}
    timeline: list[tuple[float, int, int, Any]] = []
    for record in records[1:]:
        if record["kind"] == "cmd" and record["rc"] == 0:
            argv = record["cmd"].split()
            # The kernel applies the command somewhere between its start and its end.
            timeline.append((record["t"], COMMAND, names[record["node"]], argv))
            if "options" in record["cmd"]:
                timeline.append((record["t"] + record["duration"], SETTLED, names[record["node"]], argv))
        if record["kind"] == "events2":
            timeline.extend((t, EVENT, names[record["node"]], group) for t, group in parse_groups(record["lines"]))
    cases: dict[str, list[list[Any]]] = {name: [] for name in names}
    by_id = {value: key for key, value in names.items()}
    for t, source, node_id, what in sorted(timeline, key=lambda entry: entry[:3]):
        node = nodes[node_id]
        lost: list[int] = []
        if source == COMMAND:
            node.command(what)
            continue
        node.disk_lost = False
        if source == EVENT:
            for verb, kind, values in what:
                lost += node.event(verb, kind, values, t)
        case = describe(nodes, node_id, round(t, 3), lost)
        if node.present and (not cases[by_id[node_id]] or key_of(cases[by_id[node_id]][-1]) != key_of(case)):
            cases[by_id[node_id]].append(case)
    return cases


def main() -> None:
    CASES.mkdir(exist_ok=True)
    for scenario in SCENARIOS:
        nodes = extract(Path(sys.argv[1]) / f"{scenario}.jsonl")
        table = {name: [json.dumps(row, separators=(",", ":")) for row in rows] for name, rows in nodes.items()}
        text = ",\n".join(f'"{name}":[\n' + ",\n".join(rows) + "\n]" for name, rows in table.items())
        (CASES / f"{scenario}.json").write_text("{\n" + text + "\n}\n")


if __name__ == "__main__":
    main()
