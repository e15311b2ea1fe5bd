"""What the decision asks of its host: frozen requests, and their answers (rule 1 of the design)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from quorate.agent.addresses import Place
from quorate.agent.intended import Intended
from quorate.agent.plan import Problem
from quorate.api.common import Address


@dataclass(frozen=True, slots=True)
class Converge:
    """Bring the resource to what is intended; the answer is an `Outcome`."""

    intended: Intended


@dataclass(frozen=True, slots=True)
class Look:
    """Only observe; the answer is an `Outcome`."""

    name: str


@dataclass(frozen=True, slots=True)
class Rename:
    """Give an adopted resource its standard name; the answer is a `Problem`, or None when it has it."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class ClearOrphan:
    """A name without an object on this node: take down what is left of it; the answer is a `Problem` or None."""

    object_name: str


@dataclass(frozen=True, slots=True)
class AllocatePorts:
    """Ports for addresses; the answer is `PortsAnswer`."""

    resource: str
    kernel_name: str
    places: tuple[Place, ...]
    taken: tuple[tuple[str, int], ...]
    refused: tuple[tuple[str, int], ...] = ()
    """Addresses the kernel said are in use (102)."""


@dataclass(frozen=True, slots=True)
class PortsAnswer:
    """Addresses with ports, and what could not be had."""

    addresses: tuple[Address, ...]
    problem: Problem | None = None


AgentRequest: TypeAlias = Converge | Look | Rename | ClearOrphan | AllocatePorts
