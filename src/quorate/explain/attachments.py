"""Explaining attachments: why a node does not have its device, row by row of the `Attached` reasons of seed 000."""

from __future__ import annotations

from typing import NamedTuple

from quorate.api import conditions
from quorate.api.replicated_volume_attachment import (
    AttachedCondition,
    ReadyCondition,
    ReplicatedVolumeAttachment,
)
from quorate.explain.causes import BLOCKED, DEGRADED, DELETING, HEALTHY, WORKING, Cause, Explanation
from quorate.explain.nodes import node_cause
from quorate.explain.replicas import replica_causes
from quorate.explain.view import ClusterView
from quorate.explain.volumes import volume_causes


class Advice(NamedTuple):
    """What a reason of `Attached` means for a person."""

    verdict: str
    actor: str
    remedy: str = ""


ADVICE: dict[str, Advice] = {
    AttachedCondition.ATTACHING: Advice(WORKING, "the agent on {node}"),
    AttachedCondition.DETACHING: Advice(WORKING, "whoever uses the device on {node}"),
    AttachedCondition.DETACHED: Advice(WORKING, "the volume controller"),
    AttachedCondition.PENDING: Advice(WORKING, "what the message names"),
    AttachedCondition.WAITING_FOR_REPLICA: Advice(WORKING, "the replica on {node}"),
    AttachedCondition.WAITING_FOR_REPLICATED_VOLUME: Advice(WORKING, "volume {volume}"),
    AttachedCondition.NODE_NOT_ELIGIBLE: Advice(
        BLOCKED, "whoever owns the pool", "attach on a node of the pool, or add {node} to it (kubectl get rsp -o wide)"
    ),
    AttachedCondition.REPLICATED_VOLUME_DELETING: Advice(
        BLOCKED, "nobody: the volume goes away", "delete this attachment: quorate volume detach {volume} --node {node}"
    ),
    AttachedCondition.REPLICATED_VOLUME_TERMINATING: Advice(
        BLOCKED, "nobody: the volume goes away", "delete this attachment: quorate volume detach {volume} --node {node}"
    ),
    AttachedCondition.VOLUME_ACCESS_LOCALITY_NOT_SATISFIED: Advice(
        BLOCKED, "whoever chooses the node", "attach on a node with a Diskful replica (volumeAccess is Local)"
    ),
}
"""By reason of the condition `Attached`."""

SLOT = "Waiting for attachment slot"
IN_USE = "Device in use"


def explain_attachment(view: ClusterView, attachment: ReplicatedVolumeAttachment) -> Explanation:
    """Why the device is not there, or what keeps it there."""
    spec, status = attachment.spec, attachment.status
    where = f"{spec.replicated_volume_name} on {spec.node_name}"
    ready = conditions.is_true(status.conditions, ReadyCondition.TYPE)
    found = _causes(view, attachment) if not ready or status.io_suspended else ()
    if attachment.metadata.deleting:
        verdict = DELETING
    elif ready and not status.io_suspended:
        verdict = HEALTHY
    else:
        order = (BLOCKED, DEGRADED, WORKING)
        verdict = next((v for v in order if any(each == v for each, _ in found)), WORKING)
    causes = tuple(cause for _, cause in found)
    healthy = (f"device {status.device_path} on {spec.node_name}" + (" (in use)" if status.in_use else ""),)
    summary = f"{where}: {causes[0].text if causes else 'attached, I/O works'}"
    return Explanation(
        kind="attachment",
        name=attachment.metadata.name,
        verdict=verdict,
        summary=summary,
        causes=causes,
        keeps_healthy=healthy if verdict == HEALTHY else (),
    )


def _causes(view: ClusterView, attachment: ReplicatedVolumeAttachment) -> tuple[tuple[str, Cause], ...]:
    spec, name = attachment.spec, attachment.metadata.name
    volume = view.volume(spec.replicated_volume_name)
    if volume is None:
        cause = Cause(
            f"attachment {name}",
            f"volume {spec.replicated_volume_name} does not exist",
            reason="NotFound",
            actor="whoever makes the volume",
            remedy=f"quorate volume create {spec.replicated_volume_name} …, or delete the attachment",
        )
        return ((BLOCKED, cause),)
    condition = conditions.get(attachment.status.conditions, AttachedCondition.TYPE)
    if condition is None:
        actor = "the volume controller"
        remedy = "check that the controllers run"
        return ((BLOCKED, Cause(f"attachment {name}", "nobody has looked at it yet", actor=actor, remedy=remedy)),)
    advice = ADVICE.get(condition.reason, Advice(WORKING, "the volume controller"))
    because = _behind(view, attachment, condition.reason, condition.message)
    names = {"node": spec.node_name, "volume": spec.replicated_volume_name}
    verdict = advice.verdict
    if because and any(v == BLOCKED for v, _ in because):
        verdict = BLOCKED
    text = attachment.status.message if condition.status == conditions.TRUE else condition.message
    actor, remedy = advice.actor.format(**names), advice.remedy.format(**names)
    if condition.message.startswith(SLOT):
        verdict, actor = BLOCKED, "whoever holds the slot"
        remedy = "detach it elsewhere, or raise spec.maxAttachments (the file system must support that)"
    elif condition.message.startswith(IN_USE):
        verdict, actor, remedy = (
            BLOCKED,
            f"whoever has the device open on {spec.node_name}",
            f"unmount it on {spec.node_name}",
        )
    if attachment.status.io_suspended:
        verdict, text = BLOCKED, "the device is there, but I/O is frozen to protect data"
    cause = Cause(
        f"attachment {name}",
        text or condition.reason,
        reason=f"{condition.type}={condition.status}/{condition.reason}",
        since=condition.last_transition_time,
        actor=actor,
        remedy=remedy,
        because=tuple(cause for _, cause in because),
    )
    return ((verdict, cause),)


def _behind(
    view: ClusterView, attachment: ReplicatedVolumeAttachment, reason: str, message: str
) -> tuple[tuple[str, Cause], ...]:
    """The node, the replica or the volume that the attachment waits for."""
    spec = attachment.spec
    node = node_cause(view, spec.node_name)
    if node is not None:
        return ((BLOCKED, node),)
    if message.startswith(SLOT):
        return tuple(
            (BLOCKED, _holder(other))
            for other in view.attachments_of(spec.replicated_volume_name)
            if other is not attachment and conditions.is_true(other.status.conditions, AttachedCondition.TYPE)
        )
    volume = view.volume(spec.replicated_volume_name)
    above = volume_causes(view, volume) if volume is not None else ()
    replica = next(
        (r for r in view.replicas_of(spec.replicated_volume_name) if r.spec.node_name == spec.node_name), None
    )
    if reason in (AttachedCondition.WAITING_FOR_REPLICA, AttachedCondition.ATTACHING) and replica is not None:
        own = replica_causes(view, replica)[:1]
        return own or tuple(entry for entry in above if entry[0] == BLOCKED)[:1]
    relevant = (
        (BLOCKED, DELETING)
        if reason != AttachedCondition.WAITING_FOR_REPLICATED_VOLUME
        else (BLOCKED, WORKING, DELETING)
    )
    return tuple(entry for entry in above if entry[0] in relevant)[:1]


def _holder(other: ReplicatedVolumeAttachment) -> Cause:
    used = " and the device is open there" if other.status.in_use else ""
    return Cause(
        f"attachment {other.metadata.name}",
        f"holds the slot on {other.spec.node_name}{used}",
        actor=f"whoever uses it on {other.spec.node_name}",
        remedy=f"quorate volume detach {other.spec.replicated_volume_name} --node {other.spec.node_name}",
    )
