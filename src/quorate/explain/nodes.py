"""Explaining nodes: is it up, does its agent report, and may it be stopped now?"""

from __future__ import annotations

from quorate.api import conditions
from quorate.api.common import ConnectionState, ReplicationState
from quorate.api.node import Node, ReadyCondition
from quorate.api.replicated_volume import DatameshMember, ReplicatedVolume, StepStatus
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.datamesh import members
from quorate.explain.causes import BLOCKED, DEGRADED, HEALTHY, Cause, Explanation, Impact, listed
from quorate.explain.survival import is_formed, protection_without, serves_io
from quorate.explain.view import ClusterView, agent_ready, fencing_evidence, is_ready, zone_of

FENCE = (
    "bring the node back; if it is certainly off for good: "
    "kubectl taint node {name} node.kubernetes.io/out-of-service=nodeshutdown:NoExecute"
)


def node_cause(view: ClusterView, name: str) -> Cause | None:
    """Why a node cannot do its part; None when it can, as far as the API knows."""
    node = view.node(name)
    if node is None:
        return Cause(
            f"node {name}",
            "the Node object does not exist; that alone is no proof that the machine is off",
            reason="NodeNotFound",
            actor="somebody who can reach the machine",
            remedy=f"bring node {name} back under the same name, or prove that it is off (docs/concepts.md, fencing)",
        )
    if not is_ready(node):
        return _down(node)
    if agent_ready(view, name) is False:
        return Cause(
            f"node {name}",
            "the node runs, but its agent does not report",
            reason="AgentNotReady",
            actor=f"the agent on {name}",
            remedy=f"look at the agent's pod on {name}: kubectl get pods -A -l app=agent --field-selector spec.nodeName={name}",
        )
    return None


def _down(node: Node) -> Cause:
    name = node.metadata.name
    found = conditions.get(node.status.conditions, ReadyCondition.TYPE)
    proof = fencing_evidence(node)
    return Cause(
        f"node {name}",
        "the node is not ready" + (f"; it is fenced ({proof}), its replicas are being replaced" if proof else ""),
        reason=f"Ready={found.status}/{found.reason}" if found else "Ready=Unknown",
        since=found.last_transition_time if found else "",
        actor="the controllers" if proof else f"node {name}, or somebody who proves that it is off",
        remedy="" if proof else FENCE.format(name=name),
    )


def explain_node(view: ClusterView, name: str) -> Explanation:
    """Whether the node is fine, and what stopping it now would do."""
    cause = node_cause(view, name)
    impacts = tuple(
        impact
        for volume in view.volumes
        for member in volume.status.datamesh.members
        if member.node_name == name and (impact := _impact(view, volume, member)) is not None
    )
    safe = not any(impact.fatal for impact in impacts)
    hosts = _hosts(view, name)
    node = view.node(name)
    facts = [f"hosts {hosts}" if hosts else "hosts no replicas"]
    if node is not None and zone_of(node):
        facts.append(f"is in zone {zone_of(node)}")
    if node is not None and node.spec.unschedulable:
        facts.append("is cordoned: new replicas go elsewhere")
    if not view.eligible(name):
        facts.append("is in no pool's eligible nodes: no replicas are placed on it")
    blocking = tuple(impact.volume for impact in impacts if impact.fatal)
    if cause is not None:
        summary = f"{cause.text}; {facts[0]}"
        verdict = BLOCKED if blocking else DEGRADED
    elif safe:
        summary, verdict = "the node works; it may be stopped now", HEALTHY
    else:
        summary, verdict = f"the node works; stopping it now would hurt {listed(blocking)}", HEALTHY
    return Explanation(
        kind="node",
        name=name,
        verdict=verdict,
        summary=summary,
        causes=(cause,) if cause else (),
        keeps_healthy=tuple(f"it {fact}" for fact in facts),
        safe_to_stop=safe,
        impacts=impacts,
    )


def _hosts(view: ClusterView, name: str) -> str:
    counts: dict[str, int] = {}
    attached = 0
    for volume in view.volumes:
        for member in volume.status.datamesh.members:
            if member.node_name == name:
                counts[member.type] = counts.get(member.type, 0) + 1
                attached += member.attached
    texts = [f"{count} {kind}" for kind, count in sorted(counts.items())]
    return ", ".join(texts) + (f" ({attached} attached)" if attached else "")


def _impact(view: ClusterView, volume: ReplicatedVolume, member: DatameshMember) -> Impact | None:
    """What the loss of a member's node would mean for a volume, by the quorum arithmetic."""
    name = volume.metadata.name
    if not is_formed(volume):
        return Impact(name, False, "is being formed; its formation would wait or start again elsewhere")
    elsewhere = tuple(m.node_name for m in volume.status.datamesh.members if m.attached and m is not member)
    after = protection_without(view, volume, (member.node_name,))
    before = protection_without(view, volume, ())
    if not serves_io(before):
        return Impact(name, True, "does not serve I/O even now; every member is needed to bring it back")
    if not serves_io(after):
        return _stopped(name, member, elsewhere, after.message)
    if members.is_voter(member.type) and after.up_to_date_voters == 0:
        return Impact(name, True, f"{member.node_name} has the only current copy")
    source = _synchronising(view, volume, member)
    if source and after.up_to_date_voters == 1:
        return Impact(name, True, f"{source} is being synchronised; wait until it is UpToDate")
    texts: list[str] = []
    if member.attached:
        texts.append(f"is attached on {member.node_name}: drain its workload first")
    waiting = _waits_for(volume, member)
    if waiting:
        texts.append(f"{waiting} waits for this node's confirmation")
    left = after.failures_to_tolerate
    texts.append(f"goes on, {left if left else 'no'} further failure{'s' if (left or 0) > 1 else ''} tolerated then")
    return Impact(name, False, "; ".join(texts))


def _stopped(name: str, member: DatameshMember, elsewhere: tuple[str, ...], why: str) -> Impact:
    if elsewhere:
        return Impact(name, True, f"I/O on {listed(elsewhere)} would stop ({why})")
    if member.attached:
        text = f"is attached only here and would be unavailable while {member.node_name} is down ({why})"
        return Impact(name, True, text)
    return Impact(name, False, f"is not attached, and could not be while {member.node_name} is down ({why})")


def _synchronising(view: ClusterView, volume: ReplicatedVolume, member: DatameshMember) -> str:
    """A replica that copies from this member right now."""
    for replica in view.replicas_of(volume.metadata.name):
        if replica.metadata.name != member.name and sync_source(replica) == member.name:
            return replica.metadata.name
    return ""


def sync_source(replica: ReplicatedVolumeReplica) -> str:
    """The peer that a replica is being synchronised from; empty = none."""
    targets = (ReplicationState.SYNC_TARGET, ReplicationState.WF_BIT_MAP_T, ReplicationState.PAUSED_SYNC_T)
    for peer in replica.status.peers:
        if peer.connection_state == ConnectionState.CONNECTED and peer.replication_state in targets:
            return peer.name
    return ""


def _waits_for(volume: ReplicatedVolume, member: DatameshMember) -> str:
    """A running transition whose active step this member has not confirmed yet."""
    number = f"#{members.member_id(member)}"
    for transition in volume.status.datamesh_transitions:
        for step in transition.steps:
            if step.status == StepStatus.ACTIVE and number in step.message.partition("Waiting: [")[2].partition("]")[0]:
                return f"{transition.type} (step {step.name})"
    return ""
