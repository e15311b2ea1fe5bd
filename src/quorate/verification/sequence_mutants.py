"""Mutants that are sequences or agents, played against the kernels without the engine (`sequences`).

The engine no longer publishes the sequences in question, so these hazards can only be shown by hand-written revisions.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from quorate.verification.assertions import STALE_SIDE, TWO_SIDES
from quorate.verification.sequences import Sequence, SequenceModel, joining, removing


class SequenceMutant(NamedTuple):
    """A sequence that must be found unsafe."""

    name: str
    hazard: str
    expected: tuple[str, ...]
    sequence: Sequence
    voters: str
    faults: int = 2

    def model(self) -> SequenceModel:
        """The model in which it is caught; n0 is attached."""
        return SequenceModel(self.sequence, dynamic=self.voters == "dynamic", faults=self.faults, primaries=(0,))


SEQUENCE_MUTANTS: Final = (
    SequenceMutant(
        "majority",
        "the agent leaves quorum at `majority` while peers go, so it sinks below the q that is published",
        (TWO_SIDES, STALE_SIDE),
        removing(2, 1, 1, "q + 1")._replace(quorate=True, order="unpinned"),
        "dynamic",
    ),
    SequenceMutant(
        "joined-apart",
        "a voter joins by M1 while not all voters and tie-breakers are connected",
        (TWO_SIDES, STALE_SIDE),
        joining(2, 1, 1, "M1"),
        "dynamic",
    ),
)
