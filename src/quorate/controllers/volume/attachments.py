"""Conditions, fields and phase of the attachments, from what the engine says about their node."""

from __future__ import annotations

from collections.abc import Mapping

from quorate.api import conditions
from quorate.api.common import MESSAGE_LIMIT
from quorate.api.messages import cut
from quorate.api.meta import Condition
from quorate.api.replicated_volume_attachment import (
    AttachedCondition,
    Phase,
    ReadyCondition,
    ReplicaReadyCondition,
    ReplicatedVolumeAttachment,
    ReplicatedVolumeAttachmentStatus,
)
from quorate.api.replicated_volume_replica import ReadyCondition as ReplicaCondition
from quorate.api.replicated_volume_replica import ReplicatedVolumeReplica
from quorate.api.value import replace
from quorate.datamesh.contract import NodeAttachment
from quorate.machinery.effects import Effect, Half, Patch


def waiting_effects(
    attachments: tuple[ReplicatedVolumeAttachment, ...], message: str, now: float
) -> tuple[Effect, ...]:
    """reconcileRVAWaiting: the volume is unavailable, so nothing can be said about the replica."""
    effects: list[Effect] = []
    for attachment in attachments:
        status = _set(
            attachment, attachment.status, AttachedCondition.TYPE, conditions.FALSE,
            AttachedCondition.WAITING_FOR_REPLICATED_VOLUME, message, now,
        )  # fmt: skip
        status = replace(status, conditions=conditions.remove(status.conditions, ReplicaReadyCondition.TYPE))
        status = _with_ready(attachment, status, now)
        status = _with_fields(status, None)
        effects.extend(_patch(attachment, _with_phase(attachment, status)))
    return tuple(effects)


def effects(
    attachments: tuple[ReplicatedVolumeAttachment, ...],
    nodes: Mapping[str, NodeAttachment],
    replicas: Mapping[str, ReplicatedVolumeReplica],
    now: float,
) -> tuple[Effect, ...]:
    """reconcileRVAConditionsFromAttachmentsSummary: Attached and ReplicaReady per node, Ready per attachment."""
    out: list[Effect] = []
    for attachment in attachments:
        node = nodes.get(attachment.spec.node_name)
        if node is None:
            continue
        replica = replicas.get(attachment.spec.node_name)
        value = conditions.TRUE if node.reason == AttachedCondition.ATTACHED else conditions.FALSE
        status = _set(attachment, attachment.status, AttachedCondition.TYPE, value, node.reason, node.message, now)
        status = _with_replica_ready(attachment, status, replica, now)
        status = _with_ready(attachment, status, now)
        status = _with_fields(status, replica)
        out.extend(_patch(attachment, _with_phase(attachment, status)))
    return tuple(out)


def _set(
    attachment: ReplicatedVolumeAttachment,
    status: ReplicatedVolumeAttachmentStatus,
    type_: str,
    value: str,
    reason: str,
    message: str,
    now: float,
) -> ReplicatedVolumeAttachmentStatus:
    changed = conditions.set_(
        status.conditions,
        type_,
        status=value,
        reason=reason,
        message=message,
        generation=attachment.metadata.generation,
        now=now,
    )
    return status if changed is status.conditions else replace(status, conditions=changed)


def _with_replica_ready(
    attachment: ReplicatedVolumeAttachment,
    status: ReplicatedVolumeAttachmentStatus,
    replica: ReplicatedVolumeReplica | None,
    now: float,
) -> ReplicatedVolumeAttachmentStatus:
    """ReplicaReady mirrors the replica's Ready."""
    ready = conditions.get(replica.status.conditions, ReplicaCondition.TYPE) if replica is not None else None
    if ready is None:
        message = "No replica on the node yet" if replica is None else "The replica has not reported Ready yet"
        reason = ReplicaReadyCondition.WAITING_FOR_REPLICA
        return _set(attachment, status, ReplicaReadyCondition.TYPE, conditions.UNKNOWN, reason, message, now)
    return _set(attachment, status, ReplicaReadyCondition.TYPE, ready.status, ready.reason, ready.message, now)


def _with_ready(
    attachment: ReplicatedVolumeAttachment, status: ReplicatedVolumeAttachmentStatus, now: float
) -> ReplicatedVolumeAttachmentStatus:
    value, reason, message = compute_ready(attachment, status.conditions)
    return _set(attachment, status, ReadyCondition.TYPE, value, reason, message, now)


def compute_ready(attachment: ReplicatedVolumeAttachment, found: tuple[Condition, ...]) -> tuple[str, str, str]:
    """Ready in the precedence of the ruling: Deleting, NotAttached, ReplicaNotReady."""
    attached = conditions.get(found, AttachedCondition.TYPE)
    replica = conditions.get(found, ReplicaReadyCondition.TYPE)
    if attachment.metadata.deleting:
        return conditions.FALSE, ReadyCondition.DELETING, "The attachment is being deleted"
    if attached is None or attached.status != conditions.TRUE:
        message = attached.message if attached is not None else "The volume is not attached"
        return conditions.FALSE, ReadyCondition.NOT_ATTACHED, message
    if replica is None or replica.status == conditions.UNKNOWN:
        message = replica.message if replica is not None else "The replica has not reported Ready yet"
        return conditions.UNKNOWN, ReadyCondition.REPLICA_NOT_READY, message
    if replica.status != conditions.TRUE:
        return conditions.FALSE, ReadyCondition.REPLICA_NOT_READY, replica.message
    return conditions.TRUE, ReadyCondition.READY, "The volume is attached and its replica is ready"


def _with_fields(
    status: ReplicatedVolumeAttachmentStatus, replica: ReplicatedVolumeReplica | None
) -> ReplicatedVolumeAttachmentStatus:
    """devicePath, ioSuspended and inUse follow the replica's attachment; absent without a device."""
    device = replica.status.attachment if replica is not None else None
    if device is None:
        return replace(status, device_path="", io_suspended=None, in_use=None)
    return replace(status, device_path=device.device_path, io_suspended=device.io_suspended, in_use=device.in_use)


def _with_phase(
    attachment: ReplicatedVolumeAttachment, status: ReplicatedVolumeAttachmentStatus
) -> ReplicatedVolumeAttachmentStatus:
    attached = conditions.get(status.conditions, AttachedCondition.TYPE)
    replica = conditions.get(status.conditions, ReplicaReadyCondition.TYPE)
    assert attached is not None
    message = attached.message
    if attachment.metadata.deleting:
        phase = Phase.TERMINATING
    elif attached.status == conditions.TRUE:
        phase = Phase.ATTACHED
        if replica is not None and replica.status != conditions.TRUE:
            message = replica.message
    elif attached.reason == AttachedCondition.ATTACHING:
        phase = Phase.ATTACHING
    elif attached.reason == AttachedCondition.DETACHING:
        phase = Phase.DETACHING
    else:
        phase = Phase.PENDING
    return replace(status, phase=phase, message=cut(message, MESSAGE_LIMIT))


def _patch(attachment: ReplicatedVolumeAttachment, status: ReplicatedVolumeAttachmentStatus) -> tuple[Effect, ...]:
    if status == attachment.status:
        return ()
    after = replace(attachment, status=status)
    return (Patch(before=attachment, after=after, half=Half.STATUS, cause="state of the attachment"),)
