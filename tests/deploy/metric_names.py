"""What the components' registries declare, and which metrics and labels a PromQL text names."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from random import Random

from quorate.agent.agent import Agent, AgentOptions
from quorate.api.crd import all_crds
from quorate.controllers.process import ProcessSettings, controller_specs
from quorate.extender.book import CapacityBook
from quorate.extender.client import InProcessExtender
from quorate.local.api_server import ApiServer
from quorate.machinery.clock import SystemClock
from quorate.machinery.leader import Election
from quorate.machinery.logs import Logger, discard
from quorate.machinery.manager import Manager, ManagerOptions
from quorate.machinery.metrics import MetricSpec
from quorate.simulator.cluster import Cluster

TARGET_LABELS = ("instance", "job", "node", "pod", "namespace", "le")
"""Labels that scraping adds (the PodMonitor adds `node`), and the one of histograms."""
_NAME = re.compile(r"\b(?:sds|quorate|workqueue|controller_runtime|rest_client|leader_election|drbd)_[a-z0-9_]+\b")
_RULE = re.compile(r"\bsds:[a-z0-9_:]+\b")
_SELECTOR = re.compile(r"\b([a-z_]+)\{([^}]*)\}")
_MATCHER = re.compile(r"([a-z_]+)\s*(?:=~|!~|!=|=)")
_BY = re.compile(r"\bby \(([^)]*)\) ?\(")


def names(expression: str) -> tuple[str, ...]:
    """The metrics that an expression names, labels of `name` matchers and the like left out."""
    return tuple(dict.fromkeys(_NAME.findall(expression)))


def recorded(expression: str) -> tuple[str, ...]:
    """The recording rules that an expression names."""
    return tuple(dict.fromkeys(_RULE.findall(expression)))


def selected_labels(expression: str) -> Mapping[str, tuple[str, ...]]:
    """Labels that are matched, by metric."""
    return {found[1]: tuple(_MATCHER.findall(found[2])) for found in _SELECTOR.finditer(expression)}


def grouped_labels(expression: str) -> tuple[str, ...]:
    """Labels of all `by (...)` clauses."""
    return tuple(label.strip() for found in _BY.finditer(expression) for label in found[1].split(",") if label.strip())


def base_name(name: str, declared: Mapping[str, MetricSpec]) -> str:
    """The declared metric behind a name: histograms have three suffixes."""
    if name in declared:
        return name
    for suffix in ("_bucket", "_sum", "_count"):
        base = name.removesuffix(suffix)
        if base != name and base in declared and declared[base].kind == "histogram":
            return base
    return ""


async def _declared() -> dict[str, MetricSpec]:
    clock, log = SystemClock(), Logger(discard, SystemClock())
    server = ApiServer(all_crds(), clock=clock)
    extender = InProcessExtender(CapacityBook(), clock)
    specs = controller_specs(ProcessSettings(namespace="quorate-system"), clock, extender)
    options = ManagerOptions(identity="controller", election=Election("lease", "quorate-system", "me"))

    def entropy(size: int) -> bytes:
        return bytes(size)

    manager = Manager(server.transport(), specs, options, clock=clock, random=Random(1), entropy=entropy, log=log)
    host = Cluster(asyncio.get_running_loop(), 1, ("n0",)).host("n0")
    agent = Agent(host, server.transport(), AgentOptions(), clock=clock, random=Random(1), log=log, entropy=entropy)
    agent._build(None, AgentOptions().settings)
    found = {spec.name: spec for spec in (*manager.registry.declared(), *agent.registry.declared())}
    await server.close()
    return found


def declared() -> dict[str, MetricSpec]:
    """Every metric of the controller and the agent by name; the extender's are among them (the machinery's)."""
    return asyncio.run(_declared())
