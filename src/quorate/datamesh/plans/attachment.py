"""Attach, detach and forced detach (seed 004, part 8; facts/datamesh 3.10)."""

from __future__ import annotations

from quorate.api.replicated_volume import TransitionGroup, TransitionType
from quorate.api.replicated_volume_attachment import AttachedCondition
from quorate.datamesh import confirm, steps
from quorate.datamesh.dsl import Kind, Plan, Slot, Step
from quorate.datamesh.guards import attachment, emergency

ATTACH = Plan(
    type=TransitionType.ATTACH,
    plan_id="attach/v1",
    group=TransitionGroup.ATTACHMENT,
    slot=Slot.ATTACHMENT,
    display="Attaching volume",
    guards=(
        attachment.no_active_detach,
        attachment.no_active_membership_change,
        attachment.is_member,
        attachment.replica_exists,
        attachment.node_not_fenced,
        attachment.replica_ready,
        attachment.disk_is_local,
    ),
    steps=(
        Step(
            name="Attach",
            kind=Kind.OTHER,
            apply=steps.set_attached(True),
            confirm=confirm.by_attached_subject,
            message_prefix="Attaching",
            condition_reason=AttachedCondition.ATTACHING,
        ),
    ),
)

DETACH = Plan(
    type=TransitionType.DETACH,
    plan_id="detach/v1",
    group=TransitionGroup.ATTACHMENT,
    slot=Slot.ATTACHMENT,
    display="Detaching volume",
    guards=(attachment.no_active_attach, attachment.not_in_use),
    steps=(
        Step(
            name="Detach",
            kind=Kind.OTHER,
            apply=steps.set_attached(False),
            confirm=confirm.by_detached_subject,
            message_prefix="Detaching",
            condition_reason=AttachedCondition.DETACHING,
        ),
    ),
)

FORCE_DETACH = Plan(
    type=TransitionType.FORCE_DETACH,
    plan_id="force-detach/v1",
    group=TransitionGroup.EMERGENCY,
    slot=Slot.ATTACHMENT,
    display="Force-detaching volume",
    guards=(emergency.unreachable, emergency.rest_has_quorum),
    steps=(
        Step(
            name="Force detach",
            kind=Kind.OTHER,
            apply=steps.set_attached(False),
            confirm=confirm.by_nobody,
            message_prefix="Force-detaching",
            condition_reason=AttachedCondition.DETACHING,
        ),
    ),
    done="Detached by force",
)

PLANS = (ATTACH, DETACH, FORCE_DETACH)
