"""Layout convergence: from whatever the members are to what the configuration asks for, one safe action at a time.

Any of the seven layouts leads to any other (L5) through the edges of facts/datamesh 1.9: diskful replicas are added before a
tie-breaker, a tie-breaker that helps nobody goes before the voters change, the last surplus diskful replica becomes the
missing tie-breaker. A replica object that is being deleted means "replace it": it does not count, its replacement is created
first, and the guards keep it until the replacement carries its weight (decision 8). A lost replica is replaced by itself.

Guarantees: at most one action per pass, none whose first step a guard would block, and none while the effect of the last one
is under way, except that the object of a replica that is certainly lost goes at once. The configuration may change at any
moment; the next action is computed from what is there.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import conditions
from quorate.api.replicated_volume import (
    DatameshReplicaRequest,
    MembershipLayoutConvergedCondition,
    MemberType,
    TransitionType,
)
from quorate.api.replicated_volume_replica import ScheduledCondition
from quorate.datamesh import ids, members
from quorate.datamesh.context import Replica
from quorate.datamesh.contract import Convergence, CreateReplica, DeleteReplica, ReplicaAction, RetypeReplica
from quorate.datamesh.create import first_block, record_for
from quorate.datamesh.dsl import Block, Plan
from quorate.datamesh.guards.emergency import WAITING_FOR_FENCING
from quorate.datamesh.layout import layout_name
from quorate.datamesh.planners import selection
from quorate.datamesh.state import Report, State
from quorate.datamesh.tracker import BUSY, changes_tie_breaker

D, TB = MemberType.DISKFUL, MemberType.TIE_BREAKER
_MEMBERSHIP = (
    TransitionType.ADD_REPLICA,
    TransitionType.REMOVE_REPLICA,
    TransitionType.FORCE_REMOVE_REPLICA,
    TransitionType.CHANGE_REPLICA_TYPE,
)
_PASSING = (BUSY, WAITING_FOR_FENCING, "WaitingForConnection")
"""Reasons of blocks that end by themselves or with evidence, not by another layout."""


@dataclass(frozen=True, slots=True)
class Census:
    """The layout replicas that stay, by what their spec says."""

    diskful: tuple[Replica, ...]
    breakers: tuple[Replica, ...]

    def __str__(self) -> str:
        return layout_name(len(self.diskful), len(self.breakers))


def _outcome(reason: str, message: str = "") -> Convergence:
    status = "True" if reason == MembershipLayoutConvergedCondition.CONVERGED else "False"
    return Convergence(status=status, reason=reason, message=message)


def _converging(message: str) -> Convergence:
    return _outcome(MembershipLayoutConvergedCondition.CONVERGING, message)


def _stuck(message: str) -> Convergence:
    return _outcome(MembershipLayoutConvergedCondition.CANNOT_CONVERGE, message)


def compute_convergence(
    state: State, requests: tuple[DatameshReplicaRequest, ...], report: Report
) -> tuple[Convergence, tuple[ReplicaAction, ...]]:
    """Where the layout stands, and the next action on the replica objects."""
    if state.world.deleting:
        reason = MembershipLayoutConvergedCondition.VOLUME_DELETING
        return Convergence(status="Unknown", reason=reason, message="Volume is being deleted"), ()
    lost = _lost(state)
    if isinstance(lost, DeleteReplica):
        return _converging(lost.reason), (lost,)
    census = _census(state)
    outcome = lost or _under_way(state, census, report)
    if outcome is not None:
        return outcome, ()
    result = _next_action(state, census, report)
    if isinstance(result, Convergence):
        return result, ()
    return _converging(result.reason), (result,)


def _census(state: State) -> Census:
    """Replicas that count: their object exists and is not being deleted, and they are not lost."""
    staying = [
        replica
        for replica in state.world.replicas.values()
        if replica.rvr is not None and not replica.deleting and not state.world.fenced >> replica.id & 1
    ]

    def of(replica_type: str) -> tuple[Replica, ...]:
        return tuple(r for r in staying if r.rvr is not None and r.rvr.spec.type == replica_type)

    return Census(of(D), of(TB))


def _under_way(state: State, census: Census, report: Report) -> Convergence | None:
    """The effect of the last action is not complete: wait for it, and say so if it cannot complete."""
    for replica in (*census.diskful, *census.breakers):
        rvr = replica.rvr
        member = state.mesh.by_id.get(replica.id)
        if rvr is None or (member is not None and member.type == rvr.spec.type):
            continue
        scheduled = conditions.get(rvr.status.conditions, ScheduledCondition.TYPE)
        if scheduled is not None and scheduled.status == "False" and not _is_placed(rvr.spec.type, replica):
            return _stuck(f"replica {replica.name} cannot be scheduled: {scheduled.message or scheduled.reason}")
        text = report.membership.get(replica.id, "")
        block = report.blocked.get(replica.id)
        if block is not None and block.protective:
            continue  # it gives up what the layout needs: the replacement comes first (decision 8)
        if block is not None and block.reason not in _PASSING and not block.text.startswith("Waiting"):
            return _stuck(f"replica {replica.name}: {text or block.text}")
        return _converging(f"replica {replica.name} is becoming {rvr.spec.type}" + (f": {text}" if text else ""))
    for transition in state.transitions:
        if transition.type in _MEMBERSHIP and (
            D in (transition.replica_type, transition.from_replica_type, transition.to_replica_type)
            or changes_tie_breaker(transition)
        ):
            text = report.membership.get(_id(transition.replica_name), "")
            return _converging(f"{transition.type} of {transition.replica_name}" + (f": {text}" if text else ""))
    return None


def _is_placed(replica_type: str, replica: Replica) -> bool:
    spec = replica.rvr.spec if replica.rvr is not None else None
    return spec is not None and bool(spec.node_name) and (replica_type != D or bool(spec.lvm_volume_group_name))


def _id(name: str) -> int:
    return int(name[name.rindex("-") + 1 :])


def _next_action(state: State, census: Census, report: Report) -> ReplicaAction | Convergence:
    """The next edge of the layout graph, or why there is none."""
    layout = state.world.layout
    missing = layout.diskful - len(census.diskful)
    missing_breakers = layout.tie_breakers - len(census.breakers)
    if missing_breakers < 0 and (missing <= 0 or state.mesh.voter_count % 2):
        return _remove_tie_breaker(state, census)
    if missing > 0:
        return _add_diskful(state, census, retype=missing_breakers < 0)
    if missing < 0 and missing_breakers > 0 and missing == -1:
        return _retype_to_tie_breaker(state, census)
    if missing < 0:
        return _remove_diskful(state, census)
    if missing_breakers > 0:
        return _create(state, TB, f"{census} needs a tie-breaker to become {layout}")
    return _settled(state, census, report)


def _settled(state: State, census: Census, report: Report) -> Convergence:
    """The numbers are right; what is still leaving or synchronising is on its way."""
    staying = {replica.id for replica in (*census.diskful, *census.breakers)}
    leaving = ids.mask_of(i for i in ids.iterate(state.mesh.voters | state.mesh.tie_breakers) if i not in staying)
    if leaving:
        texts = [report.membership[i] for i in ids.iterate(leaving) if i in report.membership]
        return _converging(f"[{ids.text(leaving)}] is leaving" + (f": {'; '.join(texts)}" if texts else ""))
    return _outcome(MembershipLayoutConvergedCondition.CONVERGED, f"members are {census}")


def _lost(state: State) -> DeleteReplica | Convergence | None:
    """A member on a fenced node that nobody reaches: its object goes, so that it is replaced."""
    copies = state.context().up_to_date
    for replica_id in ids.iterate(state.world.fenced):
        replica = state.world.replicas[replica_id]
        if replica.rvr is None or replica.deleting or replica.rvr.spec.type not in (D, TB):
            continue
        if state.mesh.voters >> replica_id & 1 and not copies & ~(1 << replica_id):
            return _stuck(f"replica {replica.name} on fenced node {replica.node_name} may hold the only current copy")
        reason = f"node {replica.node_name} is fenced and nobody reaches replica {replica.name}"
        return DeleteReplica(name=replica.name, reason=reason)
    return None


def _free_nodes(state: State, *, disk: bool) -> bool:
    """Whether some eligible node could take another replica."""
    taken = [replica.node_name for replica in state.world.replicas.values()]
    for node in state.world.eligible_nodes.values():
        if node.node_name in taken or node.unschedulable or not (node.node_ready and node.agent_ready):
            continue
        if not disk or any(group.ready and not group.unschedulable for group in node.lvm_volume_groups):
            return True
    return False


def _create(state: State, replica_type: str, reason: str) -> ReplicaAction | Convergence:
    if state.world.pool is None:
        return _converging("Waiting for ReplicatedStoragePool to be available")
    if not _free_nodes(state, disk=replica_type == D):
        return _stuck(f"{reason}, but no eligible node is free for a {replica_type} replica")
    if free_replica_id(state) is None:
        return _stuck(f"{reason}, but all replica ids are taken")
    return CreateReplica(type=D if replica_type == D else TB, reason=reason)


def free_replica_id(state: State) -> int | None:
    """The lowest id that no object, member, request or transition names (S41, decision 13)."""
    return next((i for i in range(32) if i not in state.world.replicas), None)


def _add_diskful(state: State, census: Census, *, retype: bool) -> ReplicaAction | Convergence:
    """One more diskful replica; a tie-breaker that is not wanted any more turns into it if no node is free."""
    syncing = _synchronising(state, census)
    if syncing:
        return _converging(f"[{ids.text(syncing)}] is synchronising")
    reason = f"{census} needs a diskful replica to become {state.world.layout}"
    if not retype or _free_nodes(state, disk=True):
        return _create(state, D, reason)
    for replica in reversed(census.breakers):
        node = state.world.eligible_nodes.get(replica.node_name)
        if node is not None and any(group.ready and not group.unschedulable for group in node.lvm_volume_groups):
            return RetypeReplica(name=replica.name, type=D, reason=reason)
    return _create(state, D, reason)


def _synchronising(state: State, census: Census) -> int:
    """Diskful members that are being brought up to date: the next one waits for them."""
    copies = state.context().up_to_date
    return ids.mask_of(
        replica.id
        for replica in census.diskful
        if state.mesh.disks >> replica.id & 1 and not copies >> replica.id & 1 and replica.connected & copies
    )


def _permitted(state: State, replica: Replica, plan: Plan | None, **types: str) -> Block | None:
    """Why the engine would not do it now."""
    if plan is None:
        return Block("there is no plan for it")
    record = record_for(plan, replica.name, **types)
    return first_block(state.context(record), plan.guards)


def _candidates(state: State, replicas: tuple[Replica, ...]) -> list[Replica]:
    """Whom to give up first: what is no current copy, then what is on a node that is not eligible, then the highest id."""
    copies = state.context().up_to_date
    eligible = state.world.eligible_nodes
    return sorted(replicas, key=lambda r: (bool(copies >> r.id & 1), not eligible or r.node_name in eligible, -r.id))


def _refused(state: State, what: str, blocks: list[Block]) -> Convergence:
    """Nobody may be given up: passing when qmr has still to come down or something runs, else stuck."""
    text = "; ".join(dict.fromkeys(block.text for block in blocks))
    qmr = state.mesh.datamesh.quorum_minimum_redundancy
    passing = qmr > state.world.layout.qmr or all(block.reason in _PASSING for block in blocks)
    return (_converging if passing else _stuck)(f"{what}: {text}")


def _remove_tie_breaker(state: State, census: Census) -> ReplicaAction | Convergence:
    blocks: list[Block] = []
    for replica in _candidates(state, census.breakers):
        plan = selection.leaving(state.context(subject=replica.id), TB)
        block = _permitted(state, replica, plan, replica_type=TB)
        if block is None:
            return DeleteReplica(name=replica.name, reason=f"{census} has a tie-breaker more than {state.world.layout}")
        blocks.append(block)
    return _refused(state, "no tie-breaker can be removed", blocks)


def _remove_diskful(state: State, census: Census) -> ReplicaAction | Convergence:
    blocks: list[Block] = []
    for replica in _candidates(state, census.diskful):
        plan = selection.leaving(state.context(subject=replica.id), D)
        block = _permitted(state, replica, plan, replica_type=D)
        if block is None:
            reason = f"{census} has a diskful replica more than {state.world.layout}"
            return DeleteReplica(name=replica.name, reason=reason)
        blocks.append(block)
    return _refused(state, "no diskful replica can be removed", blocks)


def _retype_to_tie_breaker(state: State, census: Census) -> ReplicaAction | Convergence:
    """The last surplus diskful replica becomes the missing tie-breaker; an attached one keeps its disk."""
    blocks: list[Block] = []
    for replica in _candidates(state, census.diskful):
        member = state.mesh.by_id.get(replica.id)
        if member is None or member.attached or members.is_liminal(member.type):
            blocks.append(Block(f"#{replica.id} is attached or not a steady member"))
            continue
        plan = selection.changing(state.context(subject=replica.id), D, TB)
        block = _permitted(state, replica, plan, from_replica_type=D, to_replica_type=TB)
        if block is None:
            reason = f"{census} needs a tie-breaker instead of a diskful replica to become {state.world.layout}"
            return RetypeReplica(name=replica.name, type=TB, reason=reason)
        blocks.append(block)
    return _refused(state, "no diskful replica can become a tie-breaker", blocks)
