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
from quorate.api.scheduler_extender import VolumeGroupRef


class Place(NamedTuple):
    """A volume group, or a thin pool of it: what the extender scores. Empty names where no disk is needed."""

    volume_group: str
    thin_pool: str


class Candidate(NamedTuple):
    """One possible placement; `volume_group` is None where no disk is needed."""

    node: EligibleNode
    volume_group: EligibleNodeLVMVolumeGroup | None
    node_name: str
    zone_name: str
    place: Place
    ref: VolumeGroupRef
    """The place as the extender is asked about it."""


class Exclusion(NamedTuple):
    """How many candidates a step dropped."""

    dropped: int
    label: str


@dataclass(frozen=True)
class Pipeline:
    """Candidates that survived so far with their scores, and why the others did not.

    Candidates stay in the order of their source (node name, volume group, thin pool), so that of equal scores the first wins.
    """

    source: str
    candidates: tuple[Candidate, ...]
    scores: tuple[int, ...]
    exclusions: tuple[Exclusion, ...] = ()

    def with_predicate(self, label: str, keep: Callable[[Candidate], bool]) -> Pipeline:
        """Drop the candidates that do not satisfy `keep`."""
        kept = [keep(candidate) for candidate in self.candidates]
        if all(kept):
            return self
        return self._surviving(
            label,
            tuple(candidate for candidate, stays in zip(self.candidates, kept, strict=True) if stays),
            tuple(score for score, stays in zip(self.scores, kept, strict=True) if stays),
        )

    def with_extender_scores(self, scores: Mapping[tuple[str, str], int]) -> Pipeline:
        """Set the extender's score; a place that is unscored or not positive has no capacity."""
        found = [scores.get(candidate.place, 0) for candidate in self.candidates]
        return self._surviving(
            "scoring (no capacity)",
            tuple(candidate for candidate, score in zip(self.candidates, found, strict=True) if score > 0),
            tuple(score for score in found if score > 0),
        )

    def with_score(self, score: Callable[[Candidate], int]) -> Pipeline:
        """Add a score to every candidate by itself."""
        return self._scored([score(candidate) for candidate in self.candidates])

    def with_node_score(self, score: Callable[[Sequence[Candidate]], int]) -> Pipeline:
        """Add the score of a node's candidates to each of them."""
        return self._scored_by_group([candidate.node_name for candidate in self.candidates], score)

    def with_zone_score(self, score: Callable[[Sequence[Candidate]], int]) -> Pipeline:
        """Add the score of a zone's candidates to each of them."""
        return self._scored_by_group([candidate.zone_name for candidate in self.candidates], score)

    def select_best(self) -> Candidate | None:
        """Highest score, then node name, then volume group name: the same input always gives the same answer."""
        return self.candidates[self.scores.index(max(self.scores))] if self.candidates else None

    @property
    def summary(self) -> str:
        """What happened, for the condition message."""
        dropped = (f"{exclusion.dropped} excluded: {exclusion.label}" for exclusion in self.exclusions)
        return "; ".join((self.source, *dropped))

    def _surviving(self, label: str, survivors: tuple[Candidate, ...], scores: tuple[int, ...]) -> Pipeline:
        dropped = len(self.candidates) - len(survivors)
        exclusions = (*self.exclusions, Exclusion(dropped, label)) if dropped else self.exclusions
        return Pipeline(self.source, survivors, scores, exclusions)

    def _scored(self, additions: Sequence[int]) -> Pipeline:
        if not any(additions):
            return self
        scores = tuple(score + addition for score, addition in zip(self.scores, additions, strict=True))
        return Pipeline(self.source, self.candidates, scores, self.exclusions)

    def _scored_by_group(self, keys: Sequence[str], score: Callable[[Sequence[Candidate]], int]) -> Pipeline:
        groups: dict[str, list[Candidate]] = {}
        for key, candidate in zip(keys, self.candidates, strict=True):
            members = groups.get(key)
            if members is None:
                groups[key] = [candidate]
            else:
                members.append(candidate)
        additions = {key: score(members) for key, members in groups.items()}
        return self._scored([additions[key] for key in keys])


def take_volume_groups_from_eligible_nodes(nodes: Sequence[EligibleNode]) -> Pipeline:
    """One candidate per node and volume group: where a replica with a disk can live. Nodes are sorted by name."""
    candidates = tuple(
        _candidate(node, group)
        for node in nodes
        for group in sorted(node.lvm_volume_groups, key=lambda group: (group.name, group.thin_pool_name))
    )
    source = f"{len(candidates)} candidates (node×LVG) from {len(nodes)} eligible nodes"
    return Pipeline(source, candidates, (0,) * len(candidates))


def take_only_nodes_from_eligible_nodes(nodes: Sequence[EligibleNode]) -> Pipeline:
    """One candidate per node: where a replica without a disk can live. Nodes are sorted by name."""
    candidates = tuple(_candidate(node, None) for node in nodes)
    return Pipeline(
        f"{len(candidates)} candidates from {len(nodes)} eligible nodes", candidates, (0,) * len(candidates)
    )


def _candidate(node: EligibleNode, group: EligibleNodeLVMVolumeGroup | None) -> Candidate:
    place = Place("", "") if group is None else Place(group.name, group.thin_pool_name)
    ref = VolumeGroupRef(name=place.volume_group, thin_pool_name=place.thin_pool)
    return Candidate(node, group, node.node_name, node.zone_name, place, ref)
