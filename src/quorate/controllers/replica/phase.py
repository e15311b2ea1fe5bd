"""Phase and message: the replica in one word and one sentence (facts/controllers 5.6).

Computed last, from the conditions of the same pass, so phase and conditions never tell different stories.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quorate.api import conditions
from quorate.api.common import MESSAGE_LIMIT
from quorate.api.messages import cut
from quorate.api.meta import Condition
from quorate.api.replicated_volume import MemberType
from quorate.api.replicated_volume_replica import (
    AttachedCondition,
    BackingVolumeReadyCondition,
    BackingVolumeUpToDateCondition,
    ConfiguredCondition,
    DRBDConfiguredCondition,
    FullyConnectedCondition,
    Phase,
    ReadyCondition,
    ReplicatedVolumeReplicaStatus,
    SatisfyEligibleNodesCondition,
    ScheduledCondition,
)
from quorate.controllers.replica.situation import Situation

BV, DRBD, ATTACHED = BackingVolumeReadyCondition, DRBDConfiguredCondition, AttachedCondition
DATA, LINKS, READY = BackingVolumeUpToDateCondition, FullyConnectedCondition, ReadyCondition

DEGRADED_BY: Mapping[str, tuple[str, ...]] = {
    DATA.TYPE: (DATA.FAILED,),
    LINKS.TYPE: (LINKS.NOT_CONNECTED,),
    ATTACHED.TYPE: (ATTACHED.ATTACHMENT_FAILED,),
    BV.TYPE: (BV.PROVISIONING_FAILED, BV.RESIZE_FAILED),
    DRBD.TYPE: (DRBD.CONFIGURATION_FAILED,),
}
PARTIALLY_DEGRADED_BY: Mapping[str, tuple[str, ...]] = {
    LINKS.TYPE: (LINKS.PARTIALLY_CONNECTED, LINKS.NO_PEERS),
    DATA.TYPE: (DATA.REQUIRES_SYNCHRONIZATION, DATA.UNKNOWN, DATA.ABSENT),
    ATTACHED.TYPE: (ATTACHED.DETACHMENT_FAILED,),
}
PROGRESS_OF: Mapping[str, tuple[str, ...]] = {
    BV.TYPE: (BV.PROVISIONING, BV.REPROVISIONING, BV.RESIZING, BV.NOT_READY),
    DRBD.TYPE: (
        DRBD.APPLYING_CONFIGURATION,
        DRBD.WAITING_FOR_BACKING_VOLUME,
        DRBD.WAITING_FOR_DRBD_RESIZE,
        DRBD.QUORUM_NOT_ENFORCED,
        DRBD.IN_MAINTENANCE,
    ),
}
TEXT_ONLY: Mapping[str, tuple[str, ...]] = {
    SatisfyEligibleNodesCondition.TYPE: (
        SatisfyEligibleNodesCondition.NODE_MISMATCH,
        SatisfyEligibleNodesCondition.LVM_VOLUME_GROUP_MISMATCH,
        SatisfyEligibleNodesCondition.THIN_POOL_MISMATCH,
    )
}
PROVISIONING_BY = (
    BV.PROVISIONING,
    BV.REPROVISIONING,
    BV.RESIZING,
    BV.PROVISIONING_FAILED,
    BV.RESIZE_FAILED,
    BV.NOT_READY,
)
HAD_QUORUM = (Phase.HEALTHY, Phase.PARTIALLY_DEGRADED, Phase.DEGRADED, Phase.SYNCHRONIZING, Phase.CRITICAL)
"""Phases that a replica has only once it had quorum: losing it from there is critical, not progress."""


class Summary(NamedTuple):
    """Phase and message."""

    phase: str
    message: str


class _Conditions:
    """The conditions of the pass by type."""

    def __init__(self, status: ReplicatedVolumeReplicaStatus) -> None:
        self._by_type = {condition.type: condition for condition in status.conditions}

    def get(self, type: str) -> Condition | None:
        """A condition, if it is there."""
        return self._by_type.get(type)

    def reason(self, type: str) -> str:
        """Its reason; empty when absent."""
        condition = self._by_type.get(type)
        return condition.reason if condition is not None else ""

    def status(self, type: str) -> str:
        """Its status; empty when absent."""
        condition = self._by_type.get(type)
        return condition.status if condition is not None else ""

    def message(self, type: str) -> str:
        """Its message; empty when absent."""
        condition = self._by_type.get(type)
        return condition.message if condition is not None else ""

    def first(self, table: Mapping[str, tuple[str, ...]]) -> Condition | None:
        """The first condition whose reason is in the table."""
        return next((found for type in table if (found := self.get(type)) and found.reason in table[type]), None)

    def problems(self) -> list[Condition]:
        """Everything that is wrong, worst first."""
        found: list[Condition] = []
        for table in (DEGRADED_BY, PARTIALLY_DEGRADED_BY, TEXT_ONLY):
            found.extend(
                condition for type in table if (condition := self.get(type)) and condition.reason in table[type]
            )
        return found


def compute_summary(situation: Situation, status: ReplicatedVolumeReplicaStatus, notes: tuple[str, ...]) -> Summary:
    """Phase and message; `notes` are appended (foreign peers, a missing volume)."""
    seen = _Conditions(status)
    if situation.should_not_exist:
        summary = Summary(Phase.TERMINATING, "Replica is being deleted")
    elif seen.reason(DRBD.TYPE) == DRBD.AGENT_NOT_READY:
        summary = Summary(Phase.AGENT_NOT_READY, seen.message(DRBD.TYPE))
    elif situation.deleting and status.datamesh_revision == 0:
        summary = Summary(Phase.TERMINATING, "Replica is being deleted")
    elif status.datamesh_revision != 0:
        summary = _compute_member(situation, status, seen)
    else:
        summary = _compute_before_member(situation, seen)
    text = ". ".join(part for part in (summary.message, *notes) if part)
    return Summary(summary.phase, cut(text, MESSAGE_LIMIT))


def _compute_before_member(situation: Situation, seen: _Conditions) -> Summary:
    spec = situation.replica.spec
    if not spec.node_name or (spec.type == MemberType.DISKFUL and not spec.lvm_volume_group_name):
        scheduled = conditions.get(situation.replica.status.conditions, ScheduledCondition.TYPE)
        waiting = scheduled is not None and scheduled.status != conditions.TRUE
        return Summary(
            Phase.PENDING, scheduled.message if scheduled is not None and waiting else "Waiting for placement"
        )
    if seen.status(BV.TYPE) == conditions.FALSE and seen.reason(BV.TYPE) in PROVISIONING_BY:
        return Summary(Phase.PROVISIONING, seen.message(BV.TYPE))
    if seen.reason(DRBD.TYPE) == DRBD.PENDING_DATAMESH_JOIN:
        configured = seen.message(ConfiguredCondition.TYPE)
        return Summary(Phase.WAITING_FOR_DATAMESH, configured or seen.message(DRBD.TYPE))
    return Summary(Phase.CONFIGURING, seen.message(DRBD.TYPE))


def _compute_member(situation: Situation, status: ReplicatedVolumeReplicaStatus, seen: _Conditions) -> Summary:
    phase, driver = _compute_member_phase(situation, status, seen)
    parts = [driver.message if driver is not None else ""]
    parts += [problem.message for problem in seen.problems() if problem is not driver]
    if situation.deleting:
        parts.append(seen.message(ConfiguredCondition.TYPE))
    return Summary(phase, ". ".join(part for part in parts if part))


def _compute_member_phase(
    situation: Situation, status: ReplicatedVolumeReplicaStatus, seen: _Conditions
) -> tuple[str, Condition | None]:
    ready = seen.get(READY.TYPE)
    if (
        ready is not None
        and ready.status == conditions.FALSE
        and ready.reason in (READY.QUORUM_LOST, READY.QUORUM_VIA_PEERS)
    ):
        had_quorum = bool(status.initial_quorum_reached_at) or situation.replica.status.phase in HAD_QUORUM
        return (Phase.CRITICAL if had_quorum else Phase.PROGRESSING), ready
    attached = seen.get(ATTACHED.TYPE)
    if attached is not None and attached.reason == ATTACHED.IO_SUSPENDED:
        return Phase.CRITICAL, attached
    data = seen.get(DATA.TYPE)
    if data is not None and data.reason == DATA.SYNCHRONIZING:
        return Phase.SYNCHRONIZING, data
    operational = (ready is not None and ready.status == conditions.TRUE) or situation.deleting
    for phase, table in (
        (Phase.DEGRADED, DEGRADED_BY),
        (Phase.PARTIALLY_DEGRADED, PARTIALLY_DEGRADED_BY),
        (Phase.PROGRESSING, PROGRESS_OF),
    ):
        if (operational or phase == Phase.PROGRESSING) and (found := seen.first(table)) is not None:
            return phase, found
    return (Phase.HEALTHY if operational else Phase.PARTIALLY_DEGRADED), ready
