"""Symmetry: states that differ only in the names of interchangeable nodes are one state.

Nodes are interchangeable when they start equal and nobody names them: diskful nodes that are neither attached nor the object
of an intent, and spare nodes. The permutations of these nodes form a group; `canonical` picks one state of each orbit.

Why this is sound: kernels, agents, network and faults know no names, so whatever can happen to a state can happen to its
images. The engine does use names, but only to choose among equals (the lowest free id, the highest id to give up). The model
therefore lets the engine choose as it would under any naming of the interchangeable nodes (`VolumeModel.engines` runs it on
every image), which makes the whole relation closed under the group. That is a superset of what one naming can do, so nothing
is missed. Liveness follows one naming only, the representative's. A test compares searches with and without the reduction.
"""

from __future__ import annotations

from itertools import islice, permutations, product
from typing import Final, TypeVar

from quorate.verification.cluster import Cluster, Node
from quorate.verification.published import PublishedTable
from quorate.verification.volume_state import Scenario, VolumeState
from quorate.verification.world import World, Worlds

T = TypeVar("T")

MAX_CLASS: Final = 3
"""Larger classes are reduced by the permutations of their first three nodes: any subgroup is sound."""


def classes_of(scenario: Scenario, size: int) -> tuple[tuple[int, ...], ...]:
    """Sets of interchangeable nodes."""
    named = {intent.node for intent in scenario.intents if intent.layout is None}
    if scenario.attached is not None:
        named.add(size - 1 if scenario.client else scenario.attached)
    diskful = scenario.layout.diskful
    first_spare = diskful + scenario.layout.tie_breakers
    ranges = (range(diskful), range(first_spare, size))
    return tuple(tuple(islice((i for i in nodes if i not in named), MAX_CLASS)) for nodes in ranges)


class Symmetry:
    """The group of one scenario and the images of what a state consists of."""

    def __init__(self, classes: tuple[tuple[int, ...], ...], size: int, worlds: Worlds, table: PublishedTable) -> None:
        self.group = tuple(_permutations(classes, size))
        """Each as places: node i goes to `places[i]`; the first is the identity."""
        self._worlds = worlds
        self._table = table
        self._masks = [[_moved(mask, places) for mask in range(1 << size)] for places in self.group]
        self._inverse = [self.group.index(_inverted(places)) for places in self.group]
        numbers = {masks: number for number, (_, masks, _, _) in enumerate(worlds.cuts)}
        self._cuts = [
            [numbers[self._image_of_links(g, masks)] for _, masks, _, _ in worlds.cuts] for g in range(len(self.group))
        ]
        self._clusters: dict[int, tuple[int, ...]] = {}
        self._best: dict[int, tuple[int, ...]] = {}
        self._published: dict[tuple[int, int], int] = {}

    @property
    def trivial(self) -> bool:
        """Whether no two nodes are interchangeable."""
        return len(self.group) == 1

    def canonical(self, state: VolumeState) -> VolumeState:
        """The representative of a state's orbit: the least image, by the number of its cluster first."""
        best = self._best.get(state.world.cluster)
        if best is None:
            images = self._images_of(state.world.cluster)
            best = self._best[state.world.cluster] = tuple(g for g, n in enumerate(images) if n == min(images))
        if len(best) == 1:
            return self.image(best[0], state)
        return min((self.image(g, state) for g in best), key=_order)

    def image(self, g: int, state: VolumeState) -> VolumeState:
        """The state with its nodes renamed."""
        if g == 0:
            return state
        places, masks, world = self.group[g], self._masks[g], state.world
        number = self._published.get((g, state.published))
        if number is None:
            number = self._published[g, state.published] = self._table.image(state.published, places)
        cuts = self._cuts[g]
        return state._replace(
            published=number,
            world=World(
                self._images_of(world.cluster)[g],
                tuple(sorted(cuts[cut] for cut in world.cuts)),
                masks[world.silent],
                masks[world.fenced],
            ),
            revisions=_spread(state.revisions, places),
            objects=_spread(state.objects, places),
            wanted=masks[state.wanted],
        )

    def back(self, g: int, state: VolumeState) -> VolumeState:
        """Take an image back."""
        return self.image(self._inverse[g], state)

    def _images_of(self, number: int) -> tuple[int, ...]:
        found = self._clusters.get(number)
        if found is None:
            cluster = self._worlds.clusters[number]
            found = tuple(self._worlds.number(self._moved(g, cluster)) for g in range(len(self.group)))
            self._clusters[number] = found
        return found

    def _moved(self, g: int, cluster: Cluster) -> Cluster:
        masks, places = self._masks[g], self.group[g]

        def moved(node: Node) -> Node:
            held = node.configuration
            configuration = held._replace(voters=masks[held.voters], ties=masks[held.ties], silent=masks[held.silent])
            return node._replace(configuration=configuration, outdated_peers=masks[node.outdated_peers])

        return Cluster(_spread(tuple(map(moved, cluster.nodes)), places), self._image_of_links(g, cluster.links))

    def _image_of_links(self, g: int, links: tuple[int, ...]) -> tuple[int, ...]:
        return _spread(tuple(self._masks[g][mask] for mask in links), self.group[g])


def _order(state: VolumeState) -> tuple[object, ...]:
    """A total order of images that have the same cluster."""
    objects = tuple(() if obj is None else tuple(obj) for obj in state.objects)
    return state.published, state.world, state.revisions, objects


def _permutations(classes: tuple[tuple[int, ...], ...], size: int) -> list[tuple[int, ...]]:
    found: list[tuple[int, ...]] = []
    for choice in product(*(permutations(nodes) for nodes in classes)):
        places = list(range(size))
        for nodes, moved in zip(classes, choice, strict=True):
            for node, place in zip(nodes, moved, strict=True):
                places[node] = place
        found.append(tuple(places))
    return found


def _moved(mask: int, places: tuple[int, ...]) -> int:
    return sum(1 << place for node, place in enumerate(places) if mask >> node & 1)


def _inverted(places: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(places.index(node) for node in range(len(places)))


def _spread(values: tuple[T, ...], places: tuple[int, ...]) -> tuple[T, ...]:
    return tuple(values[places.index(node)] for node in range(len(places)))
