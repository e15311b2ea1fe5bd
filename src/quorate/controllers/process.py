"""The controller process: all controllers together, as one list of specs."""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api.value import EMPTY_MAP, FrozenMap
from quorate.controllers.node import controller as node
from quorate.controllers.replica import controller as replica
from quorate.controllers.scheduling import controller as scheduling
from quorate.controllers.storage_class import controller as storage_class
from quorate.controllers.storage_pool import controller as storage_pool
from quorate.controllers.storage_pool.snapshot import Settings as PoolSettings
from quorate.controllers.volume import controller as volume
from quorate.machinery.client import Client
from quorate.machinery.clock import Clock
from quorate.machinery.controller import AnySpec
from quorate.machinery.extender import Extender


@dataclass(frozen=True)
class ProcessSettings:
    """What the deployment says to all controllers."""

    namespace: str
    """Own namespace, which is also the agents'."""
    data_node_selector: FrozenMap = EMPTY_MAP
    """Labels that data nodes must have; empty means all nodes."""
    enabled: tuple[str, ...] = ()
    """Names of the controllers to run; empty means all."""


def controller_specs(
    settings: ProcessSettings, clock: Clock, extender: Extender, client: Client | None = None
) -> tuple[AnySpec, ...]:
    """The controllers to run; ValueError names an unknown one.

    With `client`, what the API server refuses about a backing volume is explained in its condition.
    """
    specs: tuple[AnySpec, ...] = (
        volume.spec(),
        replica.spec(clock, agent_namespace=settings.namespace, client=client),
        scheduling.spec(extender),
        storage_class.spec(),
        storage_pool.spec(PoolSettings(settings.namespace, settings.data_node_selector)),
        node.spec(),
    )
    known = tuple(spec.name for spec in specs)
    unknown = [name for name in settings.enabled if name not in known]
    if unknown:
        raise ValueError(f"unknown controllers: {', '.join(unknown)}; known: {', '.join(known)}")
    return tuple(spec for spec in specs if not settings.enabled or spec.name in settings.enabled)
