"""The pool's candidates with their readiness already checked; shared by all volumes of a pool.

Readiness depends on the pool alone, so it is checked once per version of its eligible nodes and not once per replica. The
memo goes by the identity of the immutable list: the same list gives the same view, and nothing is ever changed in place.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api.replicated_storage_pool import EligibleNode
from quorate.controllers.scheduling.pipeline import (
    Candidate,
    Pipeline,
    take_only_nodes_from_eligible_nodes,
    take_volume_groups_from_eligible_nodes,
)
from quorate.controllers.scheduling.zones import ZoneCount

MEMORY = 16
"""Pools whose view is remembered."""


@dataclass(frozen=True)
class PoolView:
    """Candidates of a pool after the readiness filters, and the zone of every eligible node."""

    eligible_nodes: tuple[EligibleNode, ...]
    with_disk: Pipeline
    without_disk: Pipeline
    zone_by_node: dict[str, str]
    zones: dict[str, ZoneCount]
    """Every zone of the pool, with nothing in it."""
    has_nodes_with_several_groups: bool


_views: dict[int, PoolView] = {}


def view_of(eligible_nodes: tuple[EligibleNode, ...]) -> PoolView:
    """The view of a pool's eligible nodes."""
    known = _views.get(id(eligible_nodes))
    if known is not None and known.eligible_nodes is eligible_nodes:
        return known
    view = _build(eligible_nodes)
    if len(_views) >= MEMORY:
        del _views[next(iter(_views))]
    _views[id(eligible_nodes)] = view
    return view


def _build(eligible_nodes: tuple[EligibleNode, ...]) -> PoolView:
    nodes = sorted(eligible_nodes, key=lambda node: node.node_name)
    return PoolView(
        eligible_nodes=eligible_nodes,
        with_disk=take_volume_groups_from_eligible_nodes(nodes)
        .with_predicate("node not ready", is_node_ready)
        .with_predicate("LVG not ready", is_volume_group_ready),
        without_disk=take_only_nodes_from_eligible_nodes(nodes).with_predicate("node not ready", is_node_ready),
        zone_by_node={node.node_name: node.zone_name for node in nodes},
        zones={node.zone_name: ZoneCount() for node in nodes},
        has_nodes_with_several_groups=any(len(node.lvm_volume_groups) > 1 for node in nodes),
    )


def is_node_ready(candidate: Candidate) -> bool:
    """Schedulable, Ready, and its agent works."""
    node = candidate.node
    return not node.unschedulable and node.node_ready and node.agent_ready


def is_volume_group_ready(candidate: Candidate) -> bool:
    """Schedulable and ready."""
    group = candidate.volume_group
    return group is not None and not group.unschedulable and group.ready
