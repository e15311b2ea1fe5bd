"""Network planner (facts/datamesh 3.12): repair addresses first, then bring the system networks to the pool's.

A change of networks that the pool does not want any more is turned round: the new one starts from what is published.
"""

from __future__ import annotations

from quorate.api.replicated_volume import DatameshMember, DatameshTransition, TransitionType
from quorate.datamesh.create import Proposal, record_for
from quorate.datamesh.dsl import Plan
from quorate.datamesh.members import member_id
from quorate.datamesh.planners.common import create_global
from quorate.datamesh.plans import network
from quorate.datamesh.state import Report, State
from quorate.datamesh.steps import addresses_on


def dispatch(state: State, report: Report) -> State:
    """Create the network change that is due."""
    running = next((t for t in state.transitions if t.type == TransitionType.CHANGE_SYSTEM_NETWORKS), None)
    if running is None and _repair_needed(state):
        plan = state.registry.find(network.REPAIR.type, network.REPAIR.plan_id)
        return state if plan is None else create_global(state, Proposal(plan, record_for(plan)), report)
    return _change_networks(state, running, report)


def _repair_needed(state: State) -> bool:
    networks = state.mesh.datamesh.system_network_names
    return any(_needs_repair(state, member, networks) for member in state.mesh.datamesh.members)


def _needs_repair(state: State, member: DatameshMember, networks: tuple[str, ...]) -> bool:
    rvr = state.world.replicas[member_id(member)].rvr
    if rvr is None or not rvr.status.addresses:
        return False
    reported = addresses_on(networks, rvr.status.addresses)
    return bool(reported) and reported != member.addresses


def _change_networks(state: State, running: DatameshTransition | None, report: Report) -> State:
    pool = state.world.pool
    if pool is None:
        return state
    current = state.mesh.datamesh.system_network_names
    to = tuple(pool.spec.system_network_names)
    if not to or (running is None and sorted(current) == sorted(to)):
        return state
    if running is not None and sorted(running.to_system_network_names or ()) == sorted(to):
        return state
    chosen = _choose(current, to)
    plan = state.registry.find(chosen.type, chosen.plan_id)
    if plan is None:
        return state
    record = record_for(plan, from_system_network_names=current, to_system_network_names=to)
    return create_global(state, Proposal(plan, record, replaces=running), report)


def _choose(current: tuple[str, ...], to: tuple[str, ...]) -> Plan:
    added = any(name not in current for name in to)
    removed = any(name not in to for name in current)
    remaining = any(name in to for name in current)
    if not removed:
        return network.ADD
    if not added:
        return network.REMOVE
    return network.UPDATE if remaining else network.MIGRATE
