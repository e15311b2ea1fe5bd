"""Quorum of a node on a bench: asked to `quorate.simulator.quorum`, remembered by what the node sees."""

from __future__ import annotations

from typing import Final

from quorate.simulator.quorum import OwnView, PeerView, QuorumOptions, compute_tally, compute_verdict
from quorate.verification.cluster import NO_STORE, Bench, Cluster
from quorate.verification.configuration import DISKFUL, NodeConfiguration

NO_QUORUM: Final = 0
BY_VOTES: Final = 1
BY_TIE_BREAK: Final = 2

_DISK_NAMES: Final = ("Diskless", "Inconsistent", "Outdated", "UpToDate", "Diskless")


class Verdicts:
    """The rule for one voter mode, with the memory of verdicts already computed."""

    def __init__(self, *, dynamic: bool) -> None:
        self.dynamic = dynamic
        self._memory: dict[tuple[object, ...], int] = {}

    def of(self, bench: Bench, i: int, members: int, *, had: bool | None = None) -> int:
        """What the rule says for node i. `members`: its member set, the nodes it reached when the set was agreed."""
        node = bench.nodes[i]
        configuration = node.configuration
        disk = bench.disks[i]
        connected = bench.links[i] & (configuration.voters | configuration.ties)
        missing = configuration.voters & ~connected
        up_to_date = bench.up_to_date & connected
        held = node.quorum if had is None else had
        key = (
            configuration,
            disk,
            connected,
            up_to_date,
            bench.bare & connected,
            missing & ~members,
            node.outdated_peers & missing,
            bench.quorate & up_to_date if disk == NO_STORE else 0,
            held,
        )
        verdict = self._memory.get(key)
        if verdict is None:
            verdict = self._memory[key] = self._judge(*key)
        return verdict

    def _judge(
        self,
        configuration: NodeConfiguration,
        disk: int,
        connected: int,
        up_to_date: int,
        bare: int,
        quorumless: int,
        outdated: int,
        quorate: int,
        had: bool,
    ) -> int:
        peers: list[PeerView] = []
        for position in range(configuration.peers.bit_length()):
            bit = 1 << position
            if not bit & (configuration.voters | configuration.ties):
                continue
            linked = bool(bit & connected)
            shown = "UpToDate" if bit & up_to_date else "Diskless" if bit & bare else "Inconsistent"
            peers.append(
                PeerView(
                    connected=linked,
                    disk=shown if linked else "DUnknown",
                    has_bitmap=bool(bit & configuration.voters),
                    quorumless=bool(bit & quorumless),
                    outdated=bool(bit & outdated),
                    quorate=bool(bit & quorate),
                )
            )
        own = OwnView(_DISK_NAMES[disk], intentional_diskless=configuration.kind != DISKFUL)
        options = QuorumOptions(configuration.quorum, configuration.minimum_redundancy, self.dynamic)
        verdict = compute_verdict(compute_tally(own, peers, had_quorum=had), options, had_quorum=had)
        return BY_TIE_BREAK if verdict.by_tie_break else BY_VOTES if verdict.have_quorum else NO_QUORUM

    def enforced(self, cluster: Cluster, i: int) -> bool:
        """Whether the flag is one that the rule allows for the status an agent can read (decision 5).

        The agent sees neither its kernel's member set nor whether the node had quorum until now, so it tries both.
        """
        bench = Bench(cluster.nodes, cluster.links)
        node = cluster.nodes[i]
        missing = node.configuration.voters & ~cluster.links[i]
        members = -1
        while True:
            for had in (True, False):
                if (had or members == -1) and bool(self.of(bench, i, members, had=had)) == node.quorum:
                    return True
            if not missing:
                return False
            low = missing & -missing
            missing ^= low
            members &= ~low
