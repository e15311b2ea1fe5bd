"""The scheduling pipeline: source, filters, scores, selection, and the story of what was excluded.

Composable and immutable: every step returns a new `Pipeline`. A filter remembers how many candidates it excluded, so
that a failure explains itself (`4 candidates (node×LVG) from 2 eligible nodes; 4 excluded: node not ready`). Scores
never exclude, except the extender's: a place without a positive score has no capacity.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from quorate.api.replicated_storage_pool import EligibleNode, EligibleNodeLVMVolumeGroup


class Place(NamedTuple):
    """A volume group, or a thin pool of it: what the extender scores."""

    volume_group: str
    thin_pool: str


class Candidate(NamedTuple):
    """One possible placement; `volume_group` is None where no disk is needed."""

    node: EligibleNode
    volume_group: EligibleNodeLVMVolumeGroup | None
    score: int = 0

    @property
    def place(self) -> Place:
        """The place of the disk; empty names without one."""
        group = self.volume_group
        return Place("", "") if group is None else Place(group.name, group.thin_pool_name)


class Exclusion(NamedTuple):
    """How many candidates a step dropped."""

    dropped: int
    label: str


@dataclass(frozen=True)
class Pipeline:
    """Candidates that survived so far, and why the others did not."""

    source: str
    candidates: tuple[Candidate, ...]
    exclusions: tuple[Exclusion, ...] = ()

    def with_predicate(self, label: str, keep: Callable[[Candidate], bool]) -> Pipeline:
        """Drop the candidates that do not satisfy `keep`."""
        return self._surviving(label, tuple(candidate for candidate in self.candidates if keep(candidate)))

    def with_extender_scores(self, scores: Mapping[Place, int]) -> Pipeline:
        """Set the extender's score; a place that is unscored or not positive has no capacity."""
        scored: list[Candidate] = []
        for candidate in self.candidates:
            score = scores.get(candidate.place, 0)
            if score > 0:
                scored.append(Candidate(candidate.node, candidate.volume_group, score))
        return self._surviving("scoring (no capacity)", tuple(scored))

    def with_score(self, score: Callable[[Candidate], int]) -> Pipeline:
        """Add a score to every candidate by itself."""
        return self._scored(tuple(score(candidate) for candidate in self.candidates))

    def with_node_score(self, score: Callable[[Sequence[Candidate]], int]) -> Pipeline:
        """Add the score of a node's candidates to each of them."""
        return self._scored_by_group(lambda candidate: candidate.node.node_name, score)

    def with_zone_score(self, score: Callable[[Sequence[Candidate]], int]) -> Pipeline:
        """Add the score of a zone's candidates to each of them."""
        return self._scored_by_group(lambda candidate: candidate.node.zone_name, score)

    def select_best(self) -> Candidate | None:
        """Highest score, then node name, then volume group name: the same input always gives the same answer."""
        if not self.candidates:
            return None
        return min(
            self.candidates,
            key=lambda candidate: (-candidate.score, candidate.node.node_name, *candidate.place),
        )

    @property
    def summary(self) -> str:
        """What happened, for the condition message."""
        dropped = (f"{exclusion.dropped} excluded: {exclusion.label}" for exclusion in self.exclusions)
        return "; ".join((self.source, *dropped))

    def _surviving(self, label: str, survivors: tuple[Candidate, ...]) -> Pipeline:
        dropped = len(self.candidates) - len(survivors)
        exclusions = (*self.exclusions, Exclusion(dropped, label)) if dropped else self.exclusions
        return Pipeline(self.source, survivors, exclusions)

    def _scored(self, additions: Sequence[int]) -> Pipeline:
        if not any(additions):
            return self
        candidates = tuple(
            Candidate(candidate.node, candidate.volume_group, candidate.score + addition)
            for candidate, addition in zip(self.candidates, additions, strict=True)
        )
        return Pipeline(self.source, candidates, self.exclusions)

    def _scored_by_group(
        self, key: Callable[[Candidate], str], score: Callable[[Sequence[Candidate]], int]
    ) -> Pipeline:
        groups: dict[str, list[Candidate]] = {}
        for candidate in self.candidates:
            groups.setdefault(key(candidate), []).append(candidate)
        additions = {name: score(members) for name, members in groups.items()}
        return self._scored([additions[key(candidate)] for candidate in self.candidates])


def take_volume_groups_from_eligible_nodes(nodes: Sequence[EligibleNode]) -> Pipeline:
    """One candidate per node and volume group: where a replica with a disk can live."""
    candidates = tuple(Candidate(node, group) for node in nodes for group in node.lvm_volume_groups)
    return Pipeline(f"{len(candidates)} candidates (node×LVG) from {len(nodes)} eligible nodes", candidates)


def take_only_nodes_from_eligible_nodes(nodes: Sequence[EligibleNode]) -> Pipeline:
    """One candidate per node: where a replica without a disk can live."""
    candidates = tuple(Candidate(node, None) for node in nodes)
    return Pipeline(f"{len(candidates)} candidates from {len(nodes)} eligible nodes", candidates)
