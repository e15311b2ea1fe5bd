"""The values of the volume model: what people do, a state, a scenario, an event."""

from __future__ import annotations

from typing import NamedTuple

from quorate.datamesh.layout import Layout
from quorate.verification.agent import Order
from quorate.verification.reports import ReplicaObject
from quorate.verification.world import CRASH, LINK, PARTITION, World


class Intent(NamedTuple):
    """Something a person does: `delete`, `vanish`, `force-leave` a replica; `attach`, `detach` a node; `layout`."""

    verb: str
    node: int = 0
    layout: Layout | None = None

    def __str__(self) -> str:
        return f"{self.verb} {self.layout}" if self.layout is not None else f"{self.verb} n{self.node}"


class VolumeState(NamedTuple):
    """See the module's docstring. `objects[i]` is the replica object on node i, None = none."""

    published: int
    world: World
    revisions: tuple[int, ...]
    objects: tuple[ReplicaObject | None, ...]
    wanted: int
    intents: tuple[Intent, ...]
    broken: str = ""
    """An assertion about an event, broken by the event that led here."""


class Scenario(NamedTuple):
    """Where a search starts and what may happen."""

    layout: Layout
    voters: str
    name: str = "rest"
    intents: tuple[Intent, ...] = ()
    attached: int | None = None
    client: bool = False
    """The attached node is an Access member on a node of its own."""
    spares: int = 1
    faults: int = 1
    kinds: tuple[str, ...] = (PARTITION, LINK, CRASH)
    order: Order = "strict"
    check_flag: bool = True
    in_doubt: bool = False
    """Whether nodes that are down may be fenced."""
    hurry: bool = False
    """Directed search: engine and agents move at once and in order, only faults and people come at any moment."""
    strict: bool = False
    """Stale sides that the arithmetic cannot exclude are violations too."""
    rumours: bool = False
    """Mutant: nodes that nobody reaches are taken for fenced."""


def with_object(state: VolumeState, i: int, obj: ReplicaObject | None) -> VolumeState:
    """The state with another replica object on node i."""
    return state._replace(objects=(*state.objects[:i], obj, *state.objects[i + 1 :]))
