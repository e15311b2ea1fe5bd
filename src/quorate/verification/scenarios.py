"""What is searched for each layout: where it starts, what people do, how many faults strike.

*Complete* scenarios are searched to the last state. With up to three voters beside a tie-breaker two faults strike, with more
voters one; a partition is one fault, repairs are free and happen at any moment. Scenarios about several requests of people
(an object that is gone, a forced leave, a move of the attachment) have one fault everywhere. *Walks* go beyond: more faults,
silent agents, several intents, at random with a stated seed, number and depth.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from quorate.datamesh.layout import Layout
from quorate.verification.volume import Intent, Scenario
from quorate.verification.world import AGENT, CRASH, DISK, LINK, PARTITION

LAYOUTS: Final = {
    str(layout): layout
    for layout in (
        Layout(0, 0),
        Layout(0, 1),
        Layout(1, 0),
        Layout(1, 1),
        Layout(1, 2),
        Layout(2, 1),
        Layout(2, 2),
    )
}
VOTER_MODES: Final = ("dynamic", "static")

EDGES: Final = (
    ("1D", "2D"),
    ("1D", "2D+1TB"),
    ("2D", "3D"),
    ("2D+1TB", "3D"),
    ("3D", "4D"),
    ("3D", "4D+1TB"),
    ("4D", "5D"),
    ("4D+1TB", "5D"),
)
"""The layout graph of facts/datamesh 1.9; each edge is searched in both directions."""


class Walks(NamedTuple):
    """Random walks: how many, how deep, from which seed."""

    walks: int
    depth: int
    seed: int


def neighbours(layout: Layout) -> Iterator[Layout]:
    """Layouts one edge away."""
    name = str(layout)
    for one, other in EDGES:
        if name == one:
            yield LAYOUTS[other]
        if name == other:
            yield LAYOUTS[one]


def default_faults(layout: Layout) -> int:
    """How many faults a complete search of this layout has."""
    return 2 if layout.diskful <= 2 or str(layout) == "3D" else 1


def complete(layout: Layout, voters: str, faults: int) -> Iterator[Scenario]:
    """The scenarios that are searched completely."""
    last = layout.diskful - 1
    base = Scenario(layout, voters, faults=faults)
    yield base._replace(name="a node fails", attached=0, in_doubt=True)
    yield base._replace(name="a diskful replica is replaced", intents=(Intent("delete", last),), attached=0)
    if layout.tie_breakers:
        yield base._replace(name="the tie-breaker is replaced", intents=(Intent("delete", layout.diskful),), attached=0)
        # Two faults in every layout: how few copies a side has that is quorate by tie-break only.
        yield base._replace(
            name="a side lives on the tie-break", attached=0, faults=2, kinds=(PARTITION, CRASH), spares=0
        )
    for other in neighbours(layout):
        grown = other.diskful + other.tie_breakers - layout.diskful - layout.tie_breakers
        spares = max(1, grown)
        yield base._replace(
            name=f"the layout becomes {other}",
            intents=(Intent("layout", 0, other),),
            attached=0,
            spares=spares,
            # Four voters beside a tie-breaker are more than two faults can be searched for.
            faults=faults if other.diskful + other.tie_breakers <= 4 else min(faults, 1),
        )
    single = base._replace(faults=min(faults, 1))
    yield single._replace(name="a diskful replica is replaced, nobody attached", intents=(Intent("delete", last),))
    if layout.diskful > 1:
        yield single._replace(
            name="the attachment moves", intents=(Intent("detach", 0), Intent("attach", 1)), attached=0, spares=0
        )
        yield single._replace(
            name="a replica object is gone", intents=(Intent("vanish", last),), attached=0, in_doubt=True
        )
        yield single._replace(
            name="a replica is forced out", intents=(Intent("force-leave", last),), attached=0, in_doubt=True
        )


def wandering(layout: Layout, voters: str) -> Iterator[Scenario]:
    """The scenarios of random walks."""
    last = layout.diskful - 1
    kinds = (PARTITION, LINK, CRASH, AGENT, DISK)
    base = Scenario(layout, voters, faults=5, kinds=kinds, in_doubt=True, spares=2)
    replace_and_move = (Intent("delete", last), Intent("detach", 0), Intent("attach", 0))
    yield base._replace(name="walk: replacement and attachment", intents=replace_and_move, attached=0)
    yield base._replace(
        name="walk: a client attached", intents=(Intent("delete", last),), attached=0, client=True, spares=1
    )
    for other in neighbours(layout):
        there_and_back = (Intent("layout", 0, other), Intent("layout", 0, layout))
        yield base._replace(name=f"walk: {other} and back", intents=there_and_back, attached=0, spares=3)
