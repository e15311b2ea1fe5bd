"""Attachment planner: who is attached, in the order and with the words of seed 000 (ensureDatameshAttachments).

One run: forced detaches, intents for all nodes (slots, FIFO, eligibility), multiattach toggle, detaches, attaches. Every
node with attachments ends with a reason and a message (E11). A node that is attached and wanted never loses its slot (S37).
"""

from __future__ import annotations

from dataclasses import dataclass

from quorate.api import conditions
from quorate.api.replicated_volume import DatameshTransition, MemberType, Operation, TransitionType
from quorate.api.replicated_volume_attachment import AttachedCondition
from quorate.api.replicated_volume_replica import ReadyCondition
from quorate.datamesh import ids, messages
from quorate.datamesh.create import Proposal, create, record_for
from quorate.datamesh.dsl import Block, Plan, Slot
from quorate.datamesh.guards.attachment import locality_text
from quorate.datamesh.planners.nodes import Node, compute_nodes
from quorate.datamesh.plans import attachment, multiattach
from quorate.datamesh.records import active_step
from quorate.datamesh.state import Report, State
from quorate.datamesh.tracker import occupant, potentially_attached

PENDING = AttachedCondition.PENDING
WAITING_FOR_REPLICA = AttachedCondition.WAITING_FOR_REPLICA


@dataclass(frozen=True, slots=True)
class Intents:
    """The outcome of computeDatameshAttachmentIntents."""

    attach: tuple[Node, ...]
    """Nodes that hold a slot, in FIFO order."""
    detach: tuple[Node, ...]
    """Nodes that shall not be attached."""
    pending: tuple[tuple[Node, Block], ...]
    """Nodes that wait for a slot, with the reason."""


def dispatch(state: State, report: Report) -> State:
    """Create the attachment changes that are due and tell every node where it stands."""
    state = _force_detach(state, report)
    intents = compute_intents(state, compute_nodes(state))
    for node, block in intents.pending:
        report.attachment[node.name] = (block.reason, messages.limited(block.text))
    state = _toggle_multiattach(state, intents, report)
    for node in intents.detach:
        state = _detach(state, node, report)
    return _attach_all(state, intents.attach, report)


def compute_attach_block(state: State) -> Block | None:
    """The global block (computeDatameshAttachBlocked): the volume goes away, or no voter has quorum."""
    if state.world.deleting:
        return Block("Volume is being deleted", AttachedCondition.REPLICATED_VOLUME_DELETING)
    without_quorum = not_ready = asked = 0
    for replica_id in ids.iterate(state.mesh.voters):
        replica = state.world.replicas[replica_id]
        if replica.rvr is None:
            continue
        asked |= 1 << replica_id
        if not replica.agent_ready:
            not_ready |= 1 << replica_id
        elif replica.quorum:
            return None
        else:
            without_quorum |= 1 << replica_id
    details: list[str] = []
    if without_quorum:
        details.append(f"no quorum on [{ids.text(without_quorum)}]")
    if not_ready:
        details.append(f"agent not ready on [{ids.text(not_ready)}]")
    return Block(f"Quorum not satisfied: {'; '.join(details) if asked else 'no voter members'}", PENDING)


def compute_intents(state: State, nodes: tuple[Node, ...]) -> Intents:
    """computeDatameshAttachmentIntents: slots for those that are attached, then FIFO for those that may be."""
    occupied = potentially_attached(state)
    attach: list[Node] = []
    detach: list[Node] = []
    waiting: list[Node] = []
    for node in nodes:
        if node.replica is not None and occupied >> node.replica.id & 1 and node.member is not None:
            (attach if node.wanted else detach).append(node)
        elif node.wanted:
            waiting.append(node)
        else:
            detach.append(node)
    pending: list[tuple[Node, Block]] = []
    limit = state.world.volume.spec.max_attachments
    free = limit - ids.count(occupied)
    slot = Block(f"Waiting for attachment slot (slots occupied {ids.count(occupied)}/{limit})", PENDING)
    block = compute_attach_block(state) if waiting else None
    for node in waiting:
        reason = block or (slot if limit <= ids.count(occupied) else _candidate_block(state, node))
        if reason is None and free <= 0:
            reason = slot
        if reason is not None:
            pending.append((node, reason))
        else:
            free -= 1
            attach.append(node)
    return Intents(tuple(attach), tuple(detach), tuple(pending))


def _candidate_block(state: State, node: Node) -> Block | None:
    """Step 4 of the intents: why a node is no candidate for a free slot."""
    world = state.world
    if world.pool is None:
        return Block("Waiting for ReplicatedStoragePool to be available", PENDING)
    eligible = world.eligible_nodes.get(node.name)
    if eligible is None:
        spec, pool = world.volume.spec, world.configuration.replicated_storage_pool_name
        if spec.configuration_mode == "Auto":
            text = f"Node is not eligible for storage class {spec.replicated_storage_class_name} (pool {pool})"
        else:
            text = f"Node is not eligible for pool {pool}"
        return Block(text, AttachedCondition.NODE_NOT_ELIGIBLE)
    if not eligible.node_ready:
        return Block("Node is not ready", PENDING)
    if not eligible.agent_ready:
        return Block("Agent is not ready on node", PENDING)
    if node.member is not None:
        return None
    rvr = node.replica.rvr if node.replica is not None else None
    if world.configuration.volume_access == "Local" and (rvr is None or rvr.spec.type != MemberType.DISKFUL):
        return Block(locality_text(state.context()), AttachedCondition.VOLUME_ACCESS_LOCALITY_NOT_SATISFIED)
    return Block(_joining_text(state, node), WAITING_FOR_REPLICA)


def _joining_text(state: State, node: Node) -> str:
    replica = node.replica
    if replica is None or replica.rvr is None:
        return "Waiting for replica on node"
    detail = ""
    for request in state.world.volume.status.datamesh_replica_requests:
        if request.name == replica.name:
            detail = request.message
    if not detail:
        ready = conditions.get(replica.rvr.status.conditions, ReadyCondition.TYPE)
        detail = ready.message or ready.reason if ready is not None else ""
    text = f"Waiting for replica [#{replica.id}] to join datamesh"
    return f"{text}: {detail}" if detail else text


def _propose(state: State, plan: Plan, node: Node) -> Proposal | None:
    found = state.registry.find(plan.type, plan.plan_id)
    if found is None or node.replica is None:
        return None
    return Proposal(found, record_for(found, node.replica.name, node_name=node.name))


def _create(state: State, plan: Plan, node: Node, report: Report) -> State:
    """Create an attachment transition, or tell the node what blocks it."""
    proposal = _propose(state, plan, node)
    if proposal is None:
        return state
    result = create(state, proposal)
    if isinstance(result, Block):
        report.attachment[node.name] = (result.reason or PENDING, messages.blocked_text(plan, result))
        return state
    return result


def _force_detach(state: State, report: Report) -> State:
    """ForceDetach: asked for, or the replica is gone, or it cannot cooperate and nobody wants it there (hazard H14).

    On a fenced node the wish of an attachment does not hold back the removal of a replica that is being deleted.
    """
    occupied = potentially_attached(state) & state.mesh.all
    for replica_id in ids.iterate(occupied):
        replica = state.world.replicas[replica_id]
        asked = replica.request is not None and replica.request.operation == Operation.FORCE_DETACH
        node_name = state.mesh.by_id[replica_id].node_name
        wanted = any(not rva.metadata.deletion_timestamp for rva in state.world.attachments.get(node_name, ()))
        fenced = bool(state.world.fenced >> replica_id & 1)
        silent = bool(state.world.silent >> replica_id & 1)
        stopped = (silent and not wanted) or (fenced and replica.deleting)
        plan = state.registry.find(attachment.FORCE_DETACH.type, attachment.FORCE_DETACH.plan_id)
        if plan is None or not (asked or replica.rvr is None or stopped):
            continue
        running = occupant(state, replica.name, Slot.ATTACHMENT)
        record = record_for(plan, replica.name, node_name=node_name)
        result = create(state, Proposal(plan, record, replaces=running))
        if isinstance(result, Block):
            report.membership[replica_id] = messages.blocked_text(plan, result)
        else:
            state = result
    return state


def _toggle_multiattach(state: State, intents: Intents, report: Report) -> State:
    """ensureDatameshMultiattachToggle: on for more than one intended attachment, off when one is left and possible."""
    if _toggle(state) is not None:
        return state
    intended = sum(node.member is not None for node in intents.attach)
    enabled = state.mesh.datamesh.multiattach
    if intended > 1 and not enabled:
        wanted = multiattach.ENABLE
    elif intended <= 1 and enabled and ids.count(potentially_attached(state)) <= 1:
        wanted = multiattach.DISABLE
    else:
        return state
    plan = state.registry.find(wanted.type, wanted.plan_id)
    if plan is None:
        return state
    result = create(state, Proposal(plan, record_for(plan)))
    if isinstance(result, Block):
        report.volume[plan.type] = messages.blocked_text(plan, result)
        return state
    return result


def _toggle(state: State) -> DatameshTransition | None:
    """The multiattach transition under way; there is at most one (S30)."""
    for transition in state.transitions:
        if transition.type in (TransitionType.ENABLE_MULTIATTACH, TransitionType.DISABLE_MULTIATTACH):
            return transition
    return None


def _detach(state: State, node: Node, report: Report) -> State:
    """ensureDatameshDetachTransitions for one node."""
    if node.detaching:
        return state
    if not node.attached and not node.attaching:
        report.attachment[node.name] = (AttachedCondition.DETACHED, messages.DETACHED)
        return state
    return _create(state, attachment.DETACH, node, report)


def _attach_all(state: State, nodes: tuple[Node, ...], report: Report) -> State:
    """ensureDatameshAttachTransitions: guards 1-8 per node; the multiattach guards 9 and 10 stop everybody that is left."""
    stopped: Block | None = None
    for node in nodes:
        if node.attached and not node.attaching and not node.detaching:
            text = messages.ATTACHED_DELETING if state.world.deleting else messages.ATTACHED
            report.attachment[node.name] = (AttachedCondition.ATTACHED, text)
            continue
        if node.attaching:
            continue
        own = None if node.replica is None else 1 << node.replica.id
        others = potentially_attached(state) & ~(own or 0)
        stopped = stopped or (_multiattach_block(state) if others else None)
        if stopped is None:
            state = _create(state, attachment.ATTACH, node, report)
        else:
            _tell_stopped(state, node, stopped, report)
    return state


def _tell_stopped(state: State, node: Node, stopped: Block, report: Report) -> None:
    """A node's own guards speak first, then the multiattach guard."""
    proposal = _propose(state, attachment.ATTACH, node)
    block = None
    if proposal is not None:
        context = state.context(proposal.record)
        block = next((b for guard in proposal.plan.guards if (b := guard.check(context)) is not None), None)
    block = block or stopped
    report.attachment[node.name] = (block.reason, messages.limited(block.text))


def _multiattach_block(state: State) -> Block | None:
    """Attach guards 9 and 10: somebody else is or may be attached."""
    toggle = _toggle(state)
    if toggle is not None and toggle.type == TransitionType.DISABLE_MULTIATTACH:
        return Block("Waiting for multiattach to be enabled, but disable is in progress", PENDING)
    if state.mesh.datamesh.multiattach and toggle is None:
        return None
    progress = active_step(toggle).message if toggle is not None else ""
    text = "Waiting for multiattach to be enabled"
    return Block(f"{text}, {progress}" if progress else text, PENDING)
