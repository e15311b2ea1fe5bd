"""Explaining replicas: which of their conditions is not as wished, what stands behind it, who must act.

The table `ADVICE` has a row for every reason of a replica's conditions that keeps it from being healthy; a test holds it
complete against the API's vocabularies.
"""

from __future__ import annotations

from typing import NamedTuple

from quorate.api import conditions
from quorate.api.common import ConnectionState
from quorate.api.meta import Condition
from quorate.api.replicated_volume import ReplicatedVolume
from quorate.api.replicated_volume_replica import (
    AttachedCondition,
    BackingVolumeReadyCondition,
    BackingVolumeUpToDateCondition,
    ConfiguredCondition,
    DRBDConfiguredCondition,
    FullyConnectedCondition,
    ReadyCondition,
    ReplicatedVolumeReplica,
    SatisfyEligibleNodesCondition,
    ScheduledCondition,
)
from quorate.datamesh.context import agent_is_ready
from quorate.explain.causes import BLOCKED, DEGRADED, DELETING, HEALTHY, WORKING, Cause, Explanation, listed
from quorate.explain.nodes import node_cause, sync_source
from quorate.explain.view import ClusterView

SCHEDULED, CONFIGURED, BACKING = ScheduledCondition, ConfiguredCondition, BackingVolumeReadyCondition
DRBD, LINKS, DATA = DRBDConfiguredCondition, FullyConnectedCondition, BackingVolumeUpToDateCondition
READY, ATTACHED, PLACE = ReadyCondition, AttachedCondition, SatisfyEligibleNodesCondition


class Advice(NamedTuple):
    """What a reason means for a person."""

    text: str
    """What is the matter, when the condition has no message of its own."""
    actor: str
    """Who must act; `{node}` and `{name}` are filled in."""
    verdict: str
    remedy: str = ""


_PLACE = "give the pool room or nodes (`quorate status` shows both), or ask for a layout with fewer copies"
_VOLUME = Advice("waits for the volume", "the volume controller", WORKING)

ADVICE: dict[tuple[str, str], Advice] = {
    (SCHEDULED.TYPE, SCHEDULED.SCHEDULING_FAILED): Advice(
        "no node can take it", "somebody who adds capacity", BLOCKED, _PLACE
    ),
    (SCHEDULED.TYPE, SCHEDULED.EXTENDER_UNAVAILABLE): Advice(
        "the scheduler extender does not answer", "the extender", BLOCKED, "check `quorate extender` and its URL"
    ),
    (SCHEDULED.TYPE, SCHEDULED.WAITING_FOR_REPLICATED_VOLUME): _VOLUME,
    (BACKING.TYPE, BACKING.NOT_READY): Advice("its logical volume is not ready", "the agent on {node}", WORKING),
    (BACKING.TYPE, BACKING.PENDING_SCHEDULING): Advice("it has no place yet", "the scheduling controller", WORKING),
    (BACKING.TYPE, BACKING.PROVISIONING): Advice("its logical volume is being made", "the agent on {node}", WORKING),
    (BACKING.TYPE, BACKING.PROVISIONING_FAILED): Advice(
        "its logical volume cannot be made",
        "the volume group on {node}",
        BLOCKED,
        "free space in the volume group on {node}, or delete the replica so that it is placed elsewhere",
    ),
    (BACKING.TYPE, BACKING.REPROVISIONING): Advice("its logical volume is replaced", "the agent on {node}", WORKING),
    (BACKING.TYPE, BACKING.RESIZE_FAILED): Advice(
        "its logical volume cannot grow",
        "the volume group on {node}",
        BLOCKED,
        "free space in the volume group on {node}",
    ),
    (BACKING.TYPE, BACKING.RESIZING): Advice("its logical volume is growing", "the agent on {node}", WORKING),
    (BACKING.TYPE, BACKING.WAITING_FOR_REPLICATED_VOLUME): _VOLUME,
    (DRBD.TYPE, DRBD.AGENT_NOT_READY): Advice(
        "its agent does not report", "the agent on {node}", BLOCKED, "`quorate explain node {node}`"
    ),
    (DRBD.TYPE, DRBD.CONFIGURATION_FAILED): Advice(
        "DRBD refuses its configuration",
        "the agent on {node}",
        BLOCKED,
        "kubectl describe drbdr {name}; `quorate agent --check` on {node}",
    ),
    (DRBD.TYPE, DRBD.PENDING_DATAMESH_JOIN): Advice("it is ready to join", "the volume controller", WORKING),
    (DRBD.TYPE, DRBD.PENDING_SCHEDULING): Advice("it has no place yet", "the scheduling controller", WORKING),
    (DRBD.TYPE, DRBD.WAITING_FOR_BACKING_VOLUME): Advice("it waits for its disk", "the agent on {node}", WORKING),
    (DRBD.TYPE, DRBD.IN_MAINTENANCE): Advice(
        "somebody put it into maintenance",
        "whoever did that",
        BLOCKED,
        'end it: kubectl patch drbdr {name} --type=merge -p \'{{"spec":{{"maintenance":null}}}}\'',
    ),
    (DRBD.TYPE, DRBD.WAITING_FOR_DRBD_RESIZE): Advice("DRBD has not grown yet", "the agent on {node}", WORKING),
    (DRBD.TYPE, DRBD.QUORUM_NOT_ENFORCED): Advice(
        "the kernel has stored the new quorum but does not enforce it yet", "the kernel on {node}", WORKING
    ),
    (DRBD.TYPE, DRBD.APPLYING_CONFIGURATION): Advice("its configuration is applied", "the agent on {node}", WORKING),
    (DRBD.TYPE, DRBD.WAITING_FOR_REPLICATED_VOLUME): _VOLUME,
    (LINKS.TYPE, LINKS.NO_PEERS): Advice("it has no peers yet", "the agent on {node}", WORKING),
    (LINKS.TYPE, LINKS.NOT_CONNECTED): Advice(
        "it reaches no peer",
        "the network of {node}",
        DEGRADED,
        "check the network between {node} and the peers (ports 7000-7999)",
    ),
    (LINKS.TYPE, LINKS.PARTIALLY_CONNECTED): Advice(
        "it does not reach all peers",
        "the peers, or the network between them",
        DEGRADED,
        "check the nodes of the missing peers and the network to them",
    ),
    (LINKS.TYPE, LINKS.AGENT_NOT_READY): Advice("its agent does not report", "the agent on {node}", BLOCKED),
    (DATA.TYPE, DATA.ABSENT): Advice("DRBD runs without its disk", "the agent on {node}", WORKING),
    (DATA.TYPE, DATA.FAILED): Advice(
        "its disk failed with I/O errors",
        "somebody who replaces the disk",
        DEGRADED,
        "replace the disk, then delete the replica: kubectl delete rvr {name} (a replacement is made first)",
    ),
    (DATA.TYPE, DATA.REQUIRES_SYNCHRONIZATION): Advice(
        "its data is old and no peer with current data is connected",
        "the peers",
        DEGRADED,
        "bring a peer with current data back",
    ),
    (DATA.TYPE, DATA.SYNCHRONIZING): Advice("its data is being synchronised", "DRBD", WORKING),
    (DATA.TYPE, DATA.UNKNOWN): Advice("the state of its data is not known", "the agent on {node}", WORKING),
    (DATA.TYPE, DATA.AGENT_NOT_READY): Advice("its agent does not report", "the agent on {node}", BLOCKED),
    (DATA.TYPE, DATA.APPLYING_CONFIGURATION): Advice("its configuration is applied", "the agent on {node}", WORKING),
    (ATTACHED.TYPE, ATTACHED.DETACHMENT_FAILED): Advice(
        "it shall be detached but is still Primary",
        "whoever has the device open on {node}",
        BLOCKED,
        "unmount the device on {node}",
    ),
    (ATTACHED.TYPE, ATTACHED.ATTACHMENT_FAILED): Advice(
        "it shall be attached but is not Primary", "the kernel on {node}", BLOCKED, "kubectl describe drbdr {name}"
    ),
    (ATTACHED.TYPE, ATTACHED.IO_SUSPENDED): Advice(
        "I/O is suspended to protect data", "the missing members", BLOCKED, "bring the missing members back"
    ),
    (ATTACHED.TYPE, ATTACHED.AGENT_NOT_READY): Advice("its agent does not report", "the agent on {node}", BLOCKED),
    (ATTACHED.TYPE, ATTACHED.APPLYING_CONFIGURATION): Advice("it is being attached", "the agent on {node}", WORKING),
    (READY.TYPE, READY.QUORUM_VIA_PEERS): Advice("its peers provide no quorum", "the diskful members", BLOCKED),
    (READY.TYPE, READY.DELETING): Advice("it is being deleted", "the controllers", DELETING),
    (READY.TYPE, READY.TERMINATING): Advice("it is being deleted", "the controllers", DELETING),
    (READY.TYPE, READY.PENDING_DATAMESH_JOIN): Advice("it is not a member yet", "the volume controller", WORKING),
    (READY.TYPE, READY.PENDING_SCHEDULING): Advice("it has no place yet", "the scheduling controller", WORKING),
    (READY.TYPE, READY.QUORUM_LOST): Advice(
        "it has no quorum: too few members see each other",
        "the missing members",
        BLOCKED,
        "bring the missing members back",
    ),
    (READY.TYPE, READY.AGENT_NOT_READY): Advice("its agent does not report", "the agent on {node}", BLOCKED),
    (READY.TYPE, READY.APPLYING_CONFIGURATION): Advice("its configuration is applied", "the agent on {node}", WORKING),
    (READY.TYPE, READY.WAITING_FOR_REPLICATED_VOLUME): _VOLUME,
    (CONFIGURED.TYPE, CONFIGURED.NODE_NOT_ELIGIBLE): Advice(
        "its node is not in the pool",
        "the pool, or a replacement",
        BLOCKED,
        "make {node} eligible again, or delete the replica to replace it",
    ),
    (CONFIGURED.TYPE, CONFIGURED.PENDING_BACKING_VOLUME_CHANGE): Advice(
        "its disk moves", "the volume controller", WORKING
    ),
    (CONFIGURED.TYPE, CONFIGURED.PENDING_JOIN): Advice("it waits to join", "the volume controller", WORKING),
    (CONFIGURED.TYPE, CONFIGURED.PENDING_LEAVE): Advice("it waits to leave", "the volume controller", WORKING),
    (CONFIGURED.TYPE, CONFIGURED.PENDING_ROLE_CHANGE): Advice(
        "it waits to change its role", "the volume controller", WORKING
    ),
    (CONFIGURED.TYPE, CONFIGURED.PENDING_SCHEDULING): Advice(
        "it has no place yet", "the scheduling controller", WORKING
    ),
    (CONFIGURED.TYPE, CONFIGURED.STORAGE_NOT_ELIGIBLE): Advice(
        "its volume group is not in the pool",
        "the pool, or a replacement",
        BLOCKED,
        "make the volume group eligible again, or delete the replica to replace it",
    ),
    (CONFIGURED.TYPE, CONFIGURED.WAITING_FOR_REPLICATED_VOLUME): _VOLUME,
    (PLACE.TYPE, PLACE.NODE_MISMATCH): Advice(
        "its node is no longer eligible",
        "the volume controller, or somebody",
        DEGRADED,
        "make {node} eligible again, or delete the replica to replace it",
    ),
    (PLACE.TYPE, PLACE.LVM_VOLUME_GROUP_MISMATCH): Advice(
        "its volume group is no longer eligible",
        "the volume controller, or somebody",
        DEGRADED,
        "delete the replica to replace it",
    ),
    (PLACE.TYPE, PLACE.THIN_POOL_MISMATCH): Advice(
        "its thin pool is no longer eligible",
        "the volume controller, or somebody",
        DEGRADED,
        "delete the replica to replace it",
    ),
    (PLACE.TYPE, PLACE.WAITING_FOR_REPLICATED_VOLUME): _VOLUME,
}
"""By condition type and reason. Reasons that are fine, or say that the condition does not apply, have no row."""

ORDER = (
    SCHEDULED.TYPE,
    BACKING.TYPE,
    DRBD.TYPE,
    READY.TYPE,
    ATTACHED.TYPE,
    DATA.TYPE,
    LINKS.TYPE,
    CONFIGURED.TYPE,
    PLACE.TYPE,
)
"""The first of these that is not as wished is where a replica is held up; later ones follow from it, or are milder."""

FOLLOWS = {
    SCHEDULED.TYPE: (BACKING.TYPE, DRBD.TYPE, READY.TYPE, DATA.TYPE, LINKS.TYPE, CONFIGURED.TYPE, PLACE.TYPE),
    BACKING.TYPE: (DRBD.TYPE, READY.TYPE, DATA.TYPE, CONFIGURED.TYPE),
    DRBD.TYPE: (READY.TYPE, DATA.TYPE, LINKS.TYPE, CONFIGURED.TYPE, ATTACHED.TYPE),
    READY.TYPE: (ATTACHED.TYPE,),
}
"""Conditions that say nothing new once an earlier one is reported."""


def _is_fine(condition: Condition) -> bool:
    """True is fine, except that it reports a failed detach."""
    if (condition.type, condition.reason) == (ATTACHED.TYPE, ATTACHED.DETACHMENT_FAILED):
        return False
    return condition.status == conditions.TRUE


def replica_causes(view: ClusterView, replica: ReplicatedVolumeReplica) -> tuple[tuple[str, Cause], ...]:
    """What keeps a replica from being healthy, most fundamental first, each with its verdict."""
    node = replica.spec.node_name
    below = node_cause(view, node) if node else None
    found: list[tuple[str, Cause]] = []
    silenced: tuple[str, ...] = ()
    for type_ in ORDER:
        condition = conditions.get(replica.status.conditions, type_)
        advice = ADVICE.get((type_, condition.reason)) if condition is not None else None
        if condition is None or advice is None or _is_fine(condition) or type_ in silenced:
            continue
        silenced += FOLLOWS.get(type_, ())
        because = () if below is None else (below,)
        if not because:
            because = _peers_behind(view, replica, condition)
        found.append((advice.verdict, _cause(replica, condition, advice, because)))
    if below is not None and not found:
        text = f"its node {node} does not answer"
        found.append((BLOCKED, Cause(f"replica {replica.metadata.name}", text, because=(below,))))
    return tuple(found)


def _cause(replica: ReplicatedVolumeReplica, condition: Condition, advice: Advice, because: tuple[Cause, ...]) -> Cause:
    names = {"node": replica.spec.node_name or "its node", "name": replica.metadata.name}
    text = advice.text.format(**names)
    progress = sync_progress(replica) if condition.type == DATA.TYPE else ""
    detail = progress or condition.message
    return Cause(
        f"replica {replica.metadata.name}",
        f"{text}: {detail}" if detail and detail != text else text,
        reason=f"{condition.type}={condition.status}/{condition.reason}",
        since=condition.last_transition_time,
        actor=advice.actor.format(**names),
        remedy=advice.remedy.format(**names) if not because else "",
        because=because,
    )


def sync_progress(replica: ReplicatedVolumeReplica) -> str:
    """`42.1 % done from vol-0`; empty when nothing is being copied."""
    source = sync_source(replica)
    peer = next((peer for peer in replica.status.peers if peer.name == source), None)
    if peer is None:
        return ""
    return f"{peer.sync_progress} % done, from {source}" if peer.sync_progress else f"from {source}"


_ABOUT_PEERS = (
    (LINKS.TYPE, LINKS.NOT_CONNECTED),
    (LINKS.TYPE, LINKS.PARTIALLY_CONNECTED),
    (READY.TYPE, READY.QUORUM_LOST),
    (READY.TYPE, READY.QUORUM_VIA_PEERS),
    (ATTACHED.TYPE, ATTACHED.IO_SUSPENDED),
)


def _peers_behind(view: ClusterView, replica: ReplicatedVolumeReplica, condition: Condition) -> tuple[Cause, ...]:
    """The peers that a lost connection or a lost quorum comes from."""
    if (condition.type, condition.reason) not in _ABOUT_PEERS:
        return ()
    volume = view.volume(replica.spec.replicated_volume_name)
    return () if volume is None else missing_members(view, volume, replica)


def missing_members(
    view: ClusterView, volume: ReplicatedVolume, seen_by: ReplicatedVolumeReplica | None = None
) -> tuple[Cause, ...]:
    """Members that are not there: their node is down, their agent silent, or `seen_by` (else: nobody) reaches them."""
    reporting = tuple(r for r in view.replicas_of(volume.metadata.name) if agent_is_ready(r))
    reporters = reporting if seen_by is None else (seen_by,)
    found: list[Cause] = []
    for member in volume.status.datamesh.members:
        if seen_by is not None and member.name == seen_by.metadata.name:
            continue
        cause = node_cause(view, member.node_name)
        if cause is not None:
            text = f"{member.type} member on {member.node_name} is missing"
            found.append(Cause(f"replica {member.name}", text, because=(cause,)))
            continue
        states = tuple(
            (reporter.spec.node_name, peer.connection_state)
            for reporter in reporters
            if reporter.metadata.name != member.name
            for peer in reporter.status.peers
            if peer.name == member.name
        )
        if states and all(state != ConnectionState.CONNECTED for _, state in states):
            found.append(_cut(member.name, member.node_name, states))
    return tuple(found)


def _cut(name: str, node: str, states: tuple[tuple[str, str], ...]) -> Cause:
    nodes = listed(tuple(reporter for reporter, _ in states))
    return Cause(
        f"replica {name}",
        f"{node} is up as far as the cluster knows, but {nodes} {'has' if len(states) == 1 else 'have'} no connection to it",
        reason=f"connection {states[0][1] or 'unknown'}",
        actor=f"{node}, or the network between {node} and {nodes}",
        remedy=f"check whether {node} runs, and the network to it (ports 7000-7999)",
    )


def explain_replica(view: ClusterView, replica: ReplicatedVolumeReplica) -> Explanation:
    """Why a replica is not as wished, or what keeps it healthy."""
    name = replica.metadata.name
    found = replica_causes(view, replica)
    volume = view.volume(replica.spec.replicated_volume_name)
    requests = _request_causes(volume, replica)
    order = (BLOCKED, DEGRADED, WORKING)
    verdicts = tuple(verdict for verdict, _ in found) + ((WORKING,) if requests else ())
    verdict = next((candidate for candidate in order if candidate in verdicts), HEALTHY)
    if replica.metadata.deleting:
        verdict = DELETING
    causes = (*(cause for _, cause in found), *requests)
    where = f"{replica.spec.type} on {replica.spec.node_name or 'no node yet'}"
    if verdict == HEALTHY:
        summary = f"{where}: healthy"
    else:
        summary = f"{where}: {causes[0].text if causes else replica.status.message or verdict}"
    return Explanation(
        kind="replica",
        name=name,
        verdict=verdict,
        summary=summary,
        causes=causes,
        keeps_healthy=_keeps_healthy(replica) if verdict == HEALTHY else (),
    )


def _request_causes(volume: ReplicatedVolume | None, replica: ReplicatedVolumeReplica) -> tuple[Cause, ...]:
    """What the volume answers to the replica's request."""
    if volume is None:
        return ()
    name = replica.metadata.name
    return tuple(
        Cause(
            f"volume {volume.metadata.name}",
            entry.message or f"{entry.request.operation} of {name} was asked for",
            reason=f"request {entry.request.operation}",
            since=entry.first_observed_at,
            actor="the volume controller",
        )
        for entry in volume.status.datamesh_replica_requests
        if entry.name == name
    )


def _keeps_healthy(replica: ReplicatedVolumeReplica) -> tuple[str, ...]:
    status = replica.status
    lines: list[str] = []
    connected = tuple(peer.name for peer in status.peers if peer.connection_state == ConnectionState.CONNECTED)
    if connected:
        lines.append(f"it is connected to {', '.join(connected)}")
    if status.backing_volume is not None:
        lines.append(f"its disk is {status.backing_volume.state}")
    if status.quorum:
        lines.append("it has quorum")
    return tuple(lines)
